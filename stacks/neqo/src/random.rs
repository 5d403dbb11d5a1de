//! Random bytes of the host for NSS and nss-rs.
//!
//! NSS has one generator for the process; `build.rs` puts [`generate`] in its place. nss-rs draws some thousand bytes
//! in advance, for the thread: they would be of whichever connection came first. So each fill of that store is of the
//! call that makes it, and [`settle`] leaves the store empty before the next.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use gargalo_plugin::stack::host;

/// What is longer is the store of nss-rs.
const MOST: usize = 1024;
/// nss-rs takes so much at once from its store.
const PIECE: usize = 32;

thread_local! {
    /// The store is empty, as it is in a new thread.
    static EMPTY: Cell<bool> = const { Cell::new(true) };
    /// The store is being emptied: the next fill consists of places, so that it can be seen where reading goes on.
    static PLACES: Cell<bool> = const { Cell::new(false) };
    /// Draws are constant; the number of the next.
    static CONSTANT: Cell<Option<u64>> = const { Cell::new(None) };
    /// Length of a fill with places.
    static FILLED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs work that makes keys of the process, which must not be those of whichever connection came first.
pub fn constant<R>(work: impl FnOnce() -> R) -> R {
    let before = CONSTANT.replace(Some(0));
    let result = work();
    CONSTANT.set(before);
    result
}

/// Reads what is left in the store of this thread.
pub fn settle() {
    if EMPTY.replace(true) {
        return;
    }
    PLACES.set(true);
    let (length, last) = loop {
        let piece = nss_rs::random::<PIECE>();
        if let Some(length) = FILLED.take() {
            break (length, usize::from(piece[PIECE - 1]));
        }
    };
    let left = length.saturating_sub(last + 1);
    for _ in 0..left / PIECE {
        let _ = nss_rs::random::<PIECE>();
    }
    for _ in 0..left % PIECE {
        let _ = nss_rs::random::<1>();
    }
    PLACES.set(false);
}

/// `SplitMix64`.
fn expand(mut state: u64, out: &mut [u8]) {
    for piece in out.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        piece.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..piece.len()]);
    }
}

fn fill(out: &mut [u8]) {
    /// Numbers of draws outside of a call, in `prepare`.
    static OUTSIDE: AtomicU64 = AtomicU64::new(0);
    if PLACES.get() {
        out.iter_mut().zip(0_usize..).for_each(|(byte, place)| *byte = place as u8);
        FILLED.set(Some(out.len()));
        return;
    }
    let mut seed = [0; 8];
    if let Some(number) = CONSTANT.get() {
        CONSTANT.set(Some(number + 1));
        expand(number << 32, out);
    } else if host::now().is_none() {
        expand(OUTSIDE.fetch_add(1, Ordering::Relaxed) << 32, out);
    } else if out.len() <= MOST {
        let _ = host::random(out);
    } else {
        EMPTY.set(false);
        let _ = host::random(&mut seed);
        expand(u64::from_le_bytes(seed), out);
    }
}

/// `RNG_GenerateGlobalRandomBytes`: all random bytes of NSS.
#[unsafe(export_name = "__wrap_RNG_GenerateGlobalRandomBytes")]
unsafe extern "C" fn generate(out: *mut u8, length: usize) -> c_int {
    // SAFETY: NSS gives `length` bytes.
    fill(unsafe {
        out.write_bytes(0, length);
        std::slice::from_raw_parts_mut(out, length)
    });
    0
}

/// `RNG_RNGInit`: seeds the generator from the system.
#[unsafe(export_name = "__wrap_RNG_RNGInit")]
extern "C" fn init() -> c_int {
    0
}
