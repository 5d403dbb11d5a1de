//! Shared libraries: found by their bytes, kept until the process ends.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::calls::{self, Callee};

/// Why a library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The system's loader refuses it.
    #[error("{file}: not a library that can be loaded here: {reason}")]
    NotLoaded {
        /// The file's name.
        file: String,
        /// What the loader says.
        reason: String,
    },
    /// What its tables say cannot be so.
    #[error("{file}: the file is damaged: {what}; build it again from its source")]
    Damaged {
        /// The file's name.
        file: String,
        /// What is wrong.
        what: String,
    },
    /// It does not export the function that a plug-in has.
    #[error("{file}: not a plug-in: it exports no function {symbol}")]
    NoSymbol {
        /// The file's name.
        file: String,
        /// Name of the function that is missing.
        symbol: &'static str,
    },
    /// It was made for another version of the interface.
    #[error(
        "{file}: made for version {found} of the plug-in interface; this gargalo has version {wanted}: compile it \
         again"
    )]
    Version {
        /// The file's name.
        file: String,
        /// The version of the interface that it was made for.
        found: u32,
        /// The version of this crate.
        wanted: u32,
    },
    /// Its structures are of other sizes.
    #[error(
        "{file}: compiled with another gargalo_{header}.h: its structures are of other sizes; compile it again"
    )]
    Sizes {
        /// The file's name.
        file: String,
        /// Which header it was compiled with: "congestion" or "stack".
        header: &'static str,
    },
    /// Its description of itself is not valid.
    #[error("{file}: {what}")]
    Invalid {
        /// The file's name.
        file: String,
        /// What is wrong.
        what: String,
    },
}

/// A loaded library. It is never unloaded: its threads and thread-local values may outlive any use of it.
pub struct Library {
    file: String,
    digest: String,
    bytes: Vec<u8>,
    inner: libloading::Library,
    /// What the loader knows it by.
    handle: usize,
    loading: &'static Callee,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("file", &self.file)
            .field("digest", &self.digest)
            .finish_non_exhaustive()
    }
}

static LOADED: Mutex<BTreeMap<String, &'static Library>> = Mutex::new(BTreeMap::new());

impl Library {
    /// Loads the library that `bytes` are; `file` is its name in messages. The same bytes are loaded once, and keep
    /// their first name: two copies would have two states, and some libraries look each other's functions up.
    ///
    /// # Errors
    /// When it is damaged or the system's loader refuses it, or the environment's limit for its calls is none.
    pub fn load(file: &str, bytes: &[u8]) -> Result<&'static Self, LoadError> {
        crate::calls::limit().map_err(|what| LoadError::Invalid {
            file: file.to_owned(),
            what,
        })?;
        let digest: String = Sha256::digest(bytes)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.get(&digest) {
            return Ok(library);
        }
        let refused = |reason: String| LoadError::NotLoaded {
            file: file.to_owned(),
            reason,
        };
        if !is_library(bytes) {
            return Err(refused("it is no shared library of this system".to_owned()));
        }
        crate::elf::check(bytes).map_err(|what| LoadError::Damaged {
            file: file.to_owned(),
            what,
        })?;
        let loading = Callee::loading(file.to_owned().leak());
        let opened = calls::calling(loading, 0, 0, || open(file, bytes));
        let (inner, handle) = with_handle(opened.map_err(refused)?);
        let library: &'static Self = Box::leak(Box::new(Self {
            file: file.to_owned(),
            digest: digest.clone(),
            bytes: bytes.to_vec(),
            inner,
            handle,
            loading,
        }));
        loaded.insert(digest, library);
        Ok(library)
    }

    /// Its name in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// What its file has.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the system's loader knows it by; valid as long as the process.
    pub fn handle(&self) -> *const std::ffi::c_void {
        std::ptr::without_provenance(self.handle)
    }

    /// SHA-256 of its bytes in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Reads what its functions return as it is loaded: a crash says that it was then.
    pub(crate) fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        calls::calling(self.loading, 0, 0, read)
    }

    /// The exported function of this name.
    ///
    /// # Errors
    /// When there is none.
    ///
    /// # Safety
    /// `F` must be the type of that function.
    pub unsafe fn function<F: Copy>(&self, symbol: &'static str) -> Result<F, LoadError> {
        // SAFETY: the caller answers for the type; the library stays loaded.
        let found = unsafe { self.inner.get::<F>(symbol) };
        found.map(|f| *f).map_err(|_| LoadError::NoSymbol {
            file: self.file.clone(),
            symbol,
        })
    }
}

/// What the tables of libraries say, each read once.
pub(crate) struct Read<T>(Mutex<BTreeMap<&'static str, Result<T, LoadError>>>);

impl<T: Clone> Read<T> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// What `read` returned for this library at the first call.
    pub(crate) fn of(
        &self,
        library: &'static Library,
        read: impl FnOnce() -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = known.entry(&library.digest);
        entry.or_insert_with(|| library.reading(read)).clone()
    }
}

#[cfg(unix)]
fn with_handle(library: libloading::Library) -> (libloading::Library, usize) {
    use libloading::os::unix::Library;

    let handle = Library::from(library).into_raw();
    // SAFETY: the handle is the one that was taken out.
    let library = unsafe { Library::from_raw(handle) };
    (library.into(), handle.addr())
}

#[cfg(windows)]
fn with_handle(library: libloading::Library) -> (libloading::Library, usize) {
    use libloading::os::windows::Library;

    let handle = Library::from(library).into_raw();
    // SAFETY: the handle is the one that was taken out.
    let library = unsafe { Library::from_raw(handle) };
    (library.into(), handle as usize)
}

/// Whether the bytes begin as a shared library of this system does; loaders say strange things of other files.
fn is_library(bytes: &[u8]) -> bool {
    let begins: &[&[u8]] = if cfg!(target_os = "macos") {
        &[b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"]
    } else if cfg!(windows) {
        &[b"MZ"]
    } else {
        &[b"\x7fELF"]
    };
    begins.iter().any(|b| bytes.starts_with(b))
}

/// Loads bytes through a file in memory: what was read and hashed is what runs, also where a file of the same name was
/// loaded before.
#[cfg(target_os = "linux")]
fn open(file: &str, bytes: &[u8]) -> Result<libloading::Library, String> {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::{FromRawFd, IntoRawFd};

    let stem = std::path::Path::new(file).file_name();
    let name = std::ffi::CString::new(stem.map_or("plugin", |s| s.to_str().unwrap_or("plugin")))
        .map_err(|e| e.to_string())?;
    // SAFETY: the name is a C string, and there is no other argument to be wrong.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(gargalo_units::reason(&std::io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is new and belongs to nobody else.
    let mut memory = unsafe { File::from_raw_fd(descriptor) };
    memory
        .write_all(bytes)
        .map_err(|e| gargalo_units::reason(&e))?;
    // The loader knows libraries by this path: the descriptor stays open, as it must never be another file.
    let path = format!("/proc/self/fd/{}", memory.into_raw_fd());
    load(path.as_ref())
}

#[cfg(not(target_os = "linux"))]
fn open(file: &str, bytes: &[u8]) -> Result<libloading::Library, String> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);

    let stem = std::path::Path::new(file).file_name().unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let unique = format!("gargalo-plugin-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(unique);
    std::fs::create_dir(&folder).map_err(|e| e.to_string())?;
    let path = folder.join(stem);
    let loaded = std::fs::write(&path, bytes)
        .map_err(|e| e.to_string())
        .and_then(|()| load(&path));
    if cfg!(unix) {
        // What is loaded stays; only its name goes.
        let _ = std::fs::remove_dir_all(&folder);
    }
    loaded
}

fn load(path: &std::path::Path) -> Result<libloading::Library, String> {
    // SAFETY: the user asks for the code of this library to be run.
    unsafe { bound(path) }.map_err(|e| {
        let text = e
            .source()
            .map_or_else(|| e.to_string(), ToString::to_string);
        // The path is one of ours, not the user's.
        text.replace(&format!("{}: ", path.display()), "")
    })
}

/// Loads with all that it uses of other libraries: what is missing is an error here, where later it would end the
/// process.
#[cfg(unix)]
unsafe fn bound(path: &std::path::Path) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

    // SAFETY: the caller answers for the library's code.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
unsafe fn bound(path: &std::path::Path) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller answers for the library's code.
    unsafe { libloading::Library::new(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_library_is_refused_by_name() {
        for bytes in [
            &b""[..],
            b"def on_ack(): pass\n",
            b"\x7fELF but nothing else",
        ] {
            let error = Library::load("mine.so", bytes).unwrap_err();
            assert!(matches!(error, LoadError::NotLoaded { .. }), "{error}");
            assert!(
                error.to_string().starts_with("mine.so: not a library"),
                "{error}"
            );
        }
    }
}
