//! Named random streams: each component draws from its own stream, derived from the seed of the run and the
//! component's path. Adding a flow does not change the random numbers of another.

use rand::Rng;
use rand_pcg::Pcg64;

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns the stream of `path` (say `"link/bottleneck/up"`) in the run with this seed.
///
/// The path is hashed with FNV-1a and expanded with SplitMix64 to state and stream of a PCG64,
/// whose output is specified and the same on every platform.
pub fn stream(seed: u64, path: &str) -> Pcg64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for b in path.bytes() {
        hash = (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut s = seed;
    let mut state = split_mix(&mut s) ^ hash;
    let mut word = || u128::from(split_mix(&mut state));
    Pcg64::new((word() << 64) | word(), (word() << 64) | word())
}

/// Returns a stream for a part of a component, which takes three numbers from the stream of the whole.
pub fn part(of: &mut Pcg64) -> Pcg64 {
    let mut word = || u128::from(of.next_u64());
    Pcg64::new((word() << 64) | word(), word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_repeatable_and_apart() {
        let first = |seed, path| stream(seed, path).next_u64();
        assert_eq!(first(1, "link/a"), first(1, "link/a"));
        assert_ne!(first(1, "link/a"), first(2, "link/a"));
        assert_ne!(first(1, "link/a"), first(1, "link/b"));
    }

    /// Whoever has the seed of a result gets that result. The numbers are those of a model in Python.
    #[test]
    fn streams_are_the_same_in_every_version() {
        let mut whole = stream(7, "flow/0");
        let mut parts = [part(&mut whole), part(&mut whole)];
        let first = parts.each_mut().map(|p| p.next_u64());
        assert_eq!(first, [0x1a7e_0152_fb8b_6202, 0xd7a6_e3c7_acc2_bd44]);
        assert_eq!(whole.next_u64(), 0x1fec_300a_c2a7_d518);
    }
}
