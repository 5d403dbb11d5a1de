//! Memory that the allocator keeps.

/// Returns to the system what has been freed. Of many small things that ended, as the connections of a hundred thousand
/// flows, the allocator of the C library would keep all for more of their size, beside the large tables that come next.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointer and changes nothing that is in use (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}
