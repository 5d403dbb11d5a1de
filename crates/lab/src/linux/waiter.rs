//! Waits for descriptors and for a time, with the resolution of the kernel's timers.

use std::os::fd::{AsFd, BorrowedFd};

use gargalo_units::Duration;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::prctl;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::{Error, Result};

/// Key of the timer.
const TIMER: u64 = u64::MAX;

/// Waits for descriptors, each with a key, and for a time.
#[derive(Debug)]
pub(crate) struct Waiter {
    epoll: Epoll,
    timer: TimerFd,
}

impl Waiter {
    /// Creates one for the calling thread, whose timers it makes exact.
    pub(crate) fn new() -> Result<Self> {
        let failed = |e| Error::system("preparing to wait", e);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(failed)?;
        let event = EpollEvent::new(EpollFlags::EPOLLIN, TIMER);
        epoll.add(timer.as_fd(), event).map_err(failed)?;
        // The default slack of 50 us would add an error to every emulated delay.
        prctl::set_timerslack(1).map_err(failed)?;
        Ok(Self { epoll, timer })
    }

    /// Registers a descriptor.
    pub(crate) fn add(&self, fd: impl AsFd, key: u64, flags: EpollFlags) -> Result<()> {
        self.epoll
            .add(fd, EpollEvent::new(flags, key))
            .map_err(|e| Error::system("waiting for a descriptor", e))
    }

    /// Changes the events of a registered descriptor.
    pub(crate) fn modify(&self, fd: BorrowedFd<'_>, key: u64, flags: EpollFlags) -> Result<()> {
        self.epoll
            .modify(fd, &mut EpollEvent::new(flags, key))
            .map_err(|e| Error::system("waiting for a descriptor", e))
    }

    /// Removes a descriptor.
    pub(crate) fn forget(&self, fd: impl AsFd) -> Result<()> {
        self.epoll
            .delete(fd)
            .map_err(|e| Error::system("waiting for a descriptor no more", e))
    }

    /// Waits for at most `wait`, not at all if it is zero; calls `ready` with the key of each descriptor that is
    /// ready.
    pub(crate) fn wait(&self, wait: Duration, mut ready: impl FnMut(u64)) -> Result<()> {
        let failed = |e: nix::Error| Error::system("waiting", e);
        let mut timeout = EpollTimeout::ZERO;
        if !wait.is_zero() {
            let wait = std::time::Duration::from_nanos(wait.as_nanos());
            let expiration = Expiration::OneShot(wait.into());
            // Arming again also clears an expiration that was not read.
            let armed = self.timer.set(expiration, TimerSetTimeFlags::empty());
            armed.map_err(failed)?;
            timeout = EpollTimeout::NONE;
        }
        let mut events = [EpollEvent::empty(); 64];
        let n = match self.epoll.wait(&mut events, timeout) {
            Err(nix::Error::EINTR) => 0,
            n => n.map_err(failed)?,
        };
        let keys = events[..n].iter().map(EpollEvent::data);
        keys.filter(|k| *k != TIMER).for_each(&mut ready);
        Ok(())
    }
}
