//! Network namespaces, one per host.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use super::netlink::Netlink;
use crate::{Error, Result};

/// A network namespace; it is removed when nothing refers to it any more.
#[derive(Debug)]
pub struct NetNs {
    file: OwnedFd,
}

impl NetNs {
    /// Opens that of the calling thread.
    ///
    /// # Errors
    /// When /proc is not mounted.
    pub fn current() -> Result<Self> {
        let file = File::open("/proc/thread-self/ns/net").map_err(|e| {
            Error::with_remedy("opening the network namespace", e, "mount /proc first")
        })?;
        Ok(Self { file: file.into() })
    }

    /// Creates a new one with only a loopback interface, which is up.
    ///
    /// # Errors
    /// When the user lacks the privilege.
    pub fn new() -> Result<Self> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| {
                Error::with_remedy(
                    "making a network namespace",
                    e,
                    "enter the sandbox first, or be root",
                )
            })?;
            Netlink::open()?.loopback_up()?;
            Self::current()
        })
    }

    /// Runs `f` inside, on a thread of its own. What `f` opens, creates or starts stays in the namespace, including
    /// processes.
    ///
    /// # Errors
    /// When the namespace cannot be entered, or what `f` returns.
    pub fn run<T: Send, E: From<Error> + Send>(
        &self,
        f: impl FnOnce() -> Result<T, E> + Send,
    ) -> Result<T, E> {
        on_a_thread(|| {
            setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)
                .map_err(|e| Error::system("entering a network namespace", e))?;
            f()
        })
    }

    /// Sets a value under `/proc/sys/net`; `name` has slashes.
    ///
    /// # Errors
    /// When there is no such setting or the value is refused.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        self.run(|| {
            let path = format!("/proc/sys/net/{name}");
            std::fs::write(&path, value)
                .map_err(|e| Error::system(format!("setting {path} to {value}"), e))
        })
    }

    /// Reads a value under `/proc/sys/net`.
    ///
    /// # Errors
    /// When there is no such setting.
    pub fn get(&self, name: &str) -> Result<String> {
        self.run(|| {
            let path = format!("/proc/sys/net/{name}");
            let text = std::fs::read_to_string(&path)
                .map_err(|e| Error::system(format!("reading {path}"), e))?;
            Ok(text.trim().to_owned())
        })
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for NetNs {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

/// Runs `f` on a new thread, because namespaces belong to threads: that of the caller must not change.
fn on_a_thread<T: Send, E: Send>(f: impl FnOnce() -> Result<T, E> + Send) -> Result<T, E> {
    thread::scope(|scope| match scope.spawn(f).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
