//! The generator that the crate `rand` keeps for each thread.

use std::cell::Cell;
use std::thread;

use gargalo_plugin::stack::host;

#[cfg(not(getrandom_backend = "custom"))]
compile_error!("build with RUSTFLAGS='--cfg getrandom_backend=\"custom\"', as stacks/quinn/.cargo/config.toml does");

thread_local! {
    static SEED: Cell<Option<[u8; 32]>> = const { Cell::new(None) };
}

/// Runs `work` in a new thread, of which the generator has a seed of the host's: that of another thread may have been
/// used by another connection.
pub fn seeded<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let seed = host::random_array();
    let run = thread::spawn(move || {
        SEED.set(Some(seed));
        work()
    });
    run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The random source of the crate `getrandom`: a seed for one generator in a thread of [`seeded`], else none.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(out: *mut u8, length: usize) -> Result<(), getrandom::Error> {
    let seed = SEED.take().filter(|seed| length <= seed.len()).ok_or(getrandom::Error::UNSUPPORTED)?;
    // SAFETY: the caller gives `length` bytes.
    unsafe { out.copy_from_nonoverlapping(seed.as_ptr(), length) };
    Ok(())
}
