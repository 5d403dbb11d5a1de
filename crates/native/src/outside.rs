//! What a library asks the system for by itself: clocks, random bytes, the environment, files, sockets. In virtual time
//! nothing of it is of the run.
//!
//! Entries of the library's procedure linkage table are replaced by functions that note the call and do it. Calls
//! within other libraries that it is linked to are not seen.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::library::Library;

/// How often each was called since [`watch`], by its name and what it asked for.
static SEEN: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Notes such calls of a library from now on, until the process ends; returns whether that can be done here.
///
/// No other thread may be in a call of the library.
pub fn watch(library: &'static Library) -> bool {
    system::watch(library)
}

/// The calls so far and how many of each, of all libraries that are watched.
pub fn seen() -> BTreeMap<String, u64> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod system {
    use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};

    use super::*;

    fn note(what: &str) {
        let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        *seen.entry(what.to_owned()).or_default() += 1;
    }

    /// Notes a call with the text that it has.
    ///
    /// # Safety
    /// `text` must be null or end with 0.
    unsafe fn note_with(what: &str, text: *const c_char) {
        if !text.is_null() {
            // SAFETY: the caller answers for it.
            let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
            note(&format!("{what}(\"{text}\")"));
        }
    }

    /// Functions that note their name and call the system's, with a list of them.
    macro_rules! noted {
        ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty = $of:path;)*) => {
            $(
                unsafe extern "C" fn $name($($argument: $kind),*) -> $result {
                    note(stringify!($name));
                    // SAFETY: the arguments are those of the caller.
                    unsafe { $of($($argument),*) }
                }
            )*
            const PLAIN: &[(&str, Address)] = &[$((stringify!($name), Address($name as *const c_void))),*];
        };
    }

    /// Of a function.
    struct Address(*const c_void);

    unsafe extern "C" {
        #[link_name = "random"]
        fn system_random() -> c_long;
        #[link_name = "secure_getenv"]
        fn system_secure_getenv(name: *const c_char) -> *mut c_char;
    }

    noted! {
        clock_gettime(id: libc::clockid_t, out: *mut libc::timespec) -> c_int = libc::clock_gettime;
        gettimeofday(out: *mut libc::timeval, zone: *mut libc::timezone) -> c_int = gettimeofday_of;
        time(out: *mut libc::time_t) -> libc::time_t = libc::time;
        getrandom(out: *mut c_void, length: usize, flags: c_uint) -> isize = libc::getrandom;
        getentropy(out: *mut c_void, length: usize) -> c_int = libc::getentropy;
        rand() -> c_int = libc::rand;
        random() -> c_long = system_random;
        socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int = libc::socket;
    }

    unsafe fn gettimeofday_of(out: *mut libc::timeval, zone: *mut libc::timezone) -> c_int {
        // SAFETY: the arguments are those of the caller.
        unsafe { libc::gettimeofday(out, zone.cast()) }
    }

    unsafe extern "C" fn getenv(name: *const c_char) -> *mut c_char {
        // SAFETY: the name is a text, and the call is the caller's.
        unsafe {
            note_with("getenv", name);
            libc::getenv(name)
        }
    }

    unsafe extern "C" fn secure_getenv(name: *const c_char) -> *mut c_char {
        // SAFETY: as above.
        unsafe {
            note_with("secure_getenv", name);
            system_secure_getenv(name)
        }
    }

    /// With the argument that is there only where a file is made.
    unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
        // SAFETY: as above; where there is no third argument, the system does not look at it.
        unsafe {
            note_with("open", path);
            libc::open(path, flags, mode)
        }
    }

    unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
        // SAFETY: as above.
        unsafe {
            note_with("fopen", path);
            libc::fopen(path, mode)
        }
    }

    const WITH_TEXT: &[(&str, Address)] = &[
        ("getenv", Address(getenv as *const c_void)),
        ("secure_getenv", Address(secure_getenv as *const c_void)),
        ("open", Address(open as *const c_void)),
        ("open64", Address(open as *const c_void)),
        ("fopen", Address(fopen as *const c_void)),
        ("fopen64", Address(fopen as *const c_void)),
    ];

    pub(super) fn watch(library: &'static Library) -> bool {
        // SAFETY: the handle is of a library that stays loaded.
        let Ok(object) = (unsafe { plthook::ObjectFile::open_by_handle(library.handle()) }) else {
            return false;
        };
        for (name, address) in PLAIN.iter().chain(WITH_TEXT) {
            // SAFETY: the function has the arguments of that of this name; the caller answers for other threads.
            if let Ok(mut replaced) = unsafe { object.replace(name, address.0) } {
                replaced.discard();
            }
        }
        true
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod system {
    use super::*;

    pub(super) fn watch(_: &'static Library) -> bool {
        false
    }
}
