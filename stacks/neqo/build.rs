//! Replaces what NSS draws random bytes with, keeps its keys in, and asks the system for; the functions are in
//! `src/nss.rs` and `src/random.rs`.

fn main() {
    // The library's own functions come before those of the C library.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    for function in [
        "RNG_GenerateGlobalRandomBytes",
        "RNG_RNGInit",
        "PK11_FindCertFromNickname",
        "PK11_FindKeyByAnyCert",
        "ssl_GetSelfEncryptKeys",
        "ssl3_CacheWrappedSecret",
        "ssl3_FillInCachedSID",
        "ssl3_GetWrappingKey",
        "PR_GetEnvSecure",
        "fopen",
    ] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={function}");
    }
}
