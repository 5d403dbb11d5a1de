//! Calls that wait: how long, and how they are done without waiting.

use libc::{c_long, pid_t, user_regs_struct};

use crate::clock::SECOND;
use crate::trace;

/// Where a call has its timeout.
#[derive(Clone, Copy, Debug)]
enum Timeout {
    /// Milliseconds in a register; below 0: no end.
    Millis(Register),
    /// The address of seconds and nanoseconds; null: no end.
    Timespec(Register),
    /// The address of seconds and microseconds; null: no end.
    Timeval(Register),
}

#[derive(Clone, Copy, Debug)]
enum Register {
    Rdx,
    R8,
    R10,
}

impl Register {
    fn of(self, regs: &mut user_regs_struct) -> &mut u64 {
        match self {
            Self::Rdx => &mut regs.rdx,
            Self::R8 => &mut regs.r8,
            Self::R10 => &mut regs.r10,
        }
    }
}

/// A call that waits for something to read, and what is needed to do it again.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// As the program made it.
    pub regs: user_regs_struct,
    /// When it ends without a result; `None`: never.
    pub deadline: Option<u64>,
    /// Memory that the call has overwritten: the sets of `select`.
    saved: Vec<(u64, Vec<u8>)>,
}

fn timeout(call: c_long) -> Option<Timeout> {
    Some(match call {
        libc::SYS_poll => Timeout::Millis(Register::Rdx),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => Timeout::Millis(Register::R10),
        libc::SYS_ppoll => Timeout::Timespec(Register::Rdx),
        libc::SYS_epoll_pwait2 => Timeout::Timespec(Register::R10),
        libc::SYS_pselect6 => Timeout::Timespec(Register::R8),
        libc::SYS_select => Timeout::Timeval(Register::R8),
        _ => return None,
    })
}

impl Waiting {
    /// Whether this is a call with a timeout that waits for sockets and files.
    pub fn is_one(call: c_long) -> bool {
        timeout(call).is_some()
    }

    /// What a program that makes this call now waits for.
    pub fn of(pid: pid_t, regs: &user_regs_struct, now: u64) -> Result<Self, String> {
        let mut copy = *regs;
        let lasts = match timeout(regs.orig_rax as c_long) {
            Some(Timeout::Millis(r)) => {
                let millis = *r.of(&mut copy) as i32;
                u64::try_from(millis).ok().map(|ms| ms * 1_000_000)
            }
            Some(Timeout::Timespec(r)) => match *r.of(&mut copy) {
                0 => None,
                at => Some(trace::timespec(pid, at)?),
            },
            Some(Timeout::Timeval(r)) => match *r.of(&mut copy) {
                0 => None,
                at => Some(trace::word(pid, at)? * SECOND + trace::word(pid, at + 8)? * 1000),
            },
            None => None,
        };
        let mut saved = Vec::new();
        if matches!(
            regs.orig_rax as c_long,
            libc::SYS_select | libc::SYS_pselect6
        ) {
            let bytes = (regs.rdi as usize).div_ceil(64) * 8;
            for at in [regs.rsi, regs.rdx, regs.r10]
                .into_iter()
                .filter(|at| *at != 0)
            {
                saved.push((at, trace::read(pid, at, bytes)?));
            }
        }
        Ok(Self {
            regs: *regs,
            deadline: lasts.map(|l| now.saturating_add(l)),
            saved,
        })
    }

    /// One that waits for a datagram, by a call that has no timeout of its own.
    pub fn for_datagram(regs: &user_regs_struct, deadline: Option<u64>) -> Self {
        Self {
            regs: *regs,
            deadline,
            saved: Vec::new(),
        }
    }

    /// The registers of the same call that does not wait.
    pub fn without(&self, pid: pid_t) -> Result<user_regs_struct, String> {
        let mut regs = self.regs;
        match timeout(regs.orig_rax as c_long) {
            Some(Timeout::Millis(r)) => *r.of(&mut regs) = 0,
            Some(Timeout::Timespec(r) | Timeout::Timeval(r)) => {
                // Below what the program may use of its stack (System V ABI: 128 bytes).
                let place = (regs.rsp - 512) & !15;
                trace::write(pid, place, &[0; 16])?;
                *r.of(&mut regs) = place;
            }
            None => match regs.orig_rax as c_long {
                libc::SYS_recvmsg => regs.rdx |= libc::MSG_DONTWAIT as u64,
                _ => regs.r10 |= libc::MSG_DONTWAIT as u64,
            },
        }
        Ok(regs)
    }

    /// Makes the program do the call again when it goes on.
    pub fn again(&self, pid: pid_t) -> Result<(), String> {
        for (at, data) in &self.saved {
            trace::write(pid, *at, data)?;
        }
        let mut regs = self.regs;
        regs.rip -= 2; // The length of the instruction.
        regs.rax = regs.orig_rax;
        trace::set_registers(pid, &regs)
    }
}
