//! New inputs from those of the corpus, determined by a seed.

use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

use crate::Target;

/// Numbers at which behaviour often changes.
const EDGES: [u64; 12] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Returns an input derived from the corpus, or generated from nothing.
pub(crate) fn mutated(target: &Target, kept: &[Vec<u8>], rng: &mut Pcg64) -> Vec<u8> {
    let mut input = if kept.is_empty() || rng.random_ratio(1, 20) {
        let mut fresh = vec![0; rng.random_range(0..=target.longest)];
        rng.fill_bytes(&mut fresh);
        fresh
    } else {
        kept[rng.random_range(0..kept.len())].clone()
    };
    for _ in 0..1 << rng.random_range(0..5) {
        change(target, kept, rng, &mut input);
    }
    input.truncate(target.longest);
    input
}

fn change(target: &Target, kept: &[Vec<u8>], rng: &mut Pcg64, input: &mut Vec<u8>) {
    let len = input.len();
    let at = rng.random_range(0..=len);
    let some = rng.random_range(0..=(len - at).min(64));
    match rng.random_range(0..9) {
        0 if at < len => input[at] ^= 1 << rng.random_range(0..8),
        1 if at < len => input[at] = rng.random(),
        2 => drop(input.drain(at..at + some)),
        3 => {
            let mut new = vec![0; rng.random_range(0..16)];
            rng.fill_bytes(&mut new);
            input.splice(at..at, new);
        }
        4 => {
            let copy = input[at..at + some].to_vec();
            let to = rng.random_range(0..=len);
            input.splice(to..to, copy);
        }
        5 => {
            let edge = EDGES[rng.random_range(0..EDGES.len())].to_le_bytes();
            let width = (1 << rng.random_range(0..4)).min(len - at);
            input[at..at + width].copy_from_slice(&edge[..width]);
        }
        6 if !kept.is_empty() => {
            let other = &kept[rng.random_range(0..kept.len())];
            let from = rng.random_range(0..=other.len());
            let to = rng.random_range(from..=other.len());
            input.splice(at..at + some, other[from..to].iter().copied());
        }
        7 if !target.words.is_empty() => {
            let word = target.words[rng.random_range(0..target.words.len())];
            input.splice(at..at + some.min(rng.random_range(0..8)), word.bytes());
        }
        _ => input.truncate(at.max(len / 2)),
    }
}
