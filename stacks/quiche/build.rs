//! Replaces what BoringSSL draws random numbers with; the functions are in `stacks/common/src/boringssl.rs`.

fn main() {
    // The library's own functions come before those of the C library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    for function in [
        "_ZN4bssl14CRYPTO_sysrandEPhm",
        "_ZN4bssl23CRYPTO_set_thread_localENS_19thread_local_data_tEPvPFvS1_E",
        "CRYPTO_rdrand",
        "CRYPTO_rdrand_multiple8_buf",
    ] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={function}");
    }
}
