//! Packets of malicious peers: no panic, bounded memory, and other connections continue.

use crate::pair::attack::attack;

#[test]
fn neither_strangers_nor_peers_without_manners_do_harm() {
    let out = attack(1, 20_000, &mut || ());
    assert!(out.honest > 2 && out.abused > 3, "{out:?}");
    assert!(out.ended > 0 && out.ended < out.abused, "{out:?}");
    assert!(out.outside.iter().all(|n| *n > 300), "{out:?}");
    assert!(out.inside.iter().all(|n| *n > 0), "{out:?}");
}
