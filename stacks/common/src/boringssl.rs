//! BoringSSL with random numbers of the host.
//!
//! BoringSSL has one generator for each thread, seeded by the system and mixed with the processor's random numbers at
//! each use. The linker (`stacks/quiche/build.rs`) puts these functions in place of its own, so that each draw has a
//! generator of its own, seeded by the host.

use std::ffi::{c_int, c_void};

use gargalo_plugin::stack::host;

/// `CRYPTO_sysrand`: random bytes of the system. Outside of a call they are zero.
#[unsafe(export_name = "__wrap__ZN4bssl14CRYPTO_sysrandEPhm")]
unsafe extern "C" fn sysrand(out: *mut u8, length: usize) {
    // SAFETY: BoringSSL gives `length` bytes.
    unsafe {
        out.write_bytes(0, length);
        let _ = host::random(std::slice::from_raw_parts_mut(out, length));
    }
}

type Free = unsafe extern "C" fn(*mut c_void);

unsafe extern "C" {
    #[link_name = "__real__ZN4bssl23CRYPTO_set_thread_localENS_19thread_local_data_tEPvPFvS1_E"]
    fn real_set_thread_local(index: c_int, value: *mut c_void, free: Free) -> c_int;
}

/// `CRYPTO_set_thread_local`: fails for the generator, which BoringSSL then makes anew for each draw.
#[unsafe(export_name = "__wrap__ZN4bssl23CRYPTO_set_thread_localENS_19thread_local_data_tEPvPFvS1_E")]
unsafe extern "C" fn set_thread_local(index: c_int, value: *mut c_void, free: Free) -> c_int {
    /// `OPENSSL_THREAD_LOCAL_RAND`.
    const GENERATOR: c_int = 1;
    // SAFETY: the arguments are BoringSSL's; a value that is not kept is freed, as its own function does.
    unsafe {
        if index != GENERATOR {
            return real_set_thread_local(index, value, free);
        }
        free(value);
        0
    }
}

/// `CRYPTO_rdrand_multiple8_buf`: random bytes of the processor, added to those of the generator.
#[unsafe(export_name = "__wrap_CRYPTO_rdrand_multiple8_buf")]
unsafe extern "C" fn rdrand(out: *mut u8, length: usize) -> c_int {
    // SAFETY: BoringSSL gives `length` bytes.
    unsafe { out.write_bytes(0, length) };
    1
}

/// `CRYPTO_rdrand`: eight bytes of them.
#[unsafe(export_name = "__wrap_CRYPTO_rdrand")]
unsafe extern "C" fn rdrand_word(out: *mut u8) -> c_int {
    // SAFETY: as above.
    unsafe { rdrand(out, 8) }
}
