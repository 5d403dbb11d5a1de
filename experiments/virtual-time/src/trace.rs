//! A traced program: its start, its registers and its memory.

use std::ffi::CString;
use std::io;

use libc::{c_long, c_void, pid_t, user_regs_struct};

/// The calls at which a program stops.
pub const STOPS: &[c_long] = &[
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_getrandom,
    libc::SYS_timerfd_create,
    libc::SYS_bind,
    libc::SYS_connect,
];

fn failed(what: &str) -> String {
    format!("{what}: {}", io::Error::last_os_error())
}

/// Starts a program, which is stopped before its first instruction.
pub fn start(words: &[CString]) -> Result<pid_t, String> {
    let mut argv: Vec<_> = words.iter().map(|w| w.as_ptr()).collect();
    argv.push(std::ptr::null());
    let filter = filter();
    // SAFETY: the child calls functions that are safe after a fork only, and ends if one of them fails.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(failed("fork"));
    }
    if pid == 0 {
        // SAFETY: as above; the filter and the words are alive.
        unsafe {
            let program = libc::sock_fprog {
                len: filter.len() as u16,
                filter: filter.as_ptr().cast_mut(),
            };
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0
                && libc::raise(libc::SIGSTOP) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const program,
                ) == 0;
            if traced {
                libc::execvp(argv[0], argv.as_ptr());
            }
            libc::_exit(127);
        }
    }
    wait(pid)?;
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SETOPTIONS, pid, 0, options as usize, "trace")?;
    // Until it is the program itself: the loader of this one does nothing that matters.
    loop {
        request(libc::PTRACE_CONT, pid, 0, 0, "start")?;
        let status = wait(pid)?;
        if libc::WIFEXITED(status) {
            return Err(format!("{:?} could not be started", words[0]));
        }
        if status >> 16 == libc::PTRACE_EVENT_EXEC {
            hide_vdso(pid)?;
            return Ok(pid);
        }
    }
}

/// A filter that stops at [`STOPS`].
fn filter() -> Vec<libc::sock_filter> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let done = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut made = vec![step(load, 0, 0, 0)];
    for (i, call) in STOPS.iter().enumerate() {
        let rest = (STOPS.len() - i) as u8;
        made.push(step(equal, *call as u32, rest, 0));
    }
    made.push(step(done, libc::SECCOMP_RET_ALLOW, 0, 0));
    made.push(step(done, libc::SECCOMP_RET_TRACE, 0, 0));
    made
}

/// Waits for the next stop of a program, or its end.
pub fn wait(pid: pid_t) -> Result<i32, String> {
    let mut status = 0;
    // SAFETY: the status is alive.
    match unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) } {
        p if p == pid => Ok(status),
        _ => Err(failed("wait")),
    }
}

/// A request to the tracing.
pub fn request(
    what: libc::c_uint,
    pid: pid_t,
    address: usize,
    data: usize,
    name: &str,
) -> Result<(), String> {
    // SAFETY: those that write get the address of something that is alive.
    match unsafe { libc::ptrace(what, pid, address, data) } {
        0 => Ok(()),
        _ => Err(failed(name)),
    }
}

/// Its registers.
pub fn registers(pid: pid_t) -> Result<user_regs_struct, String> {
    // SAFETY: the structure is numbers.
    let mut regs: user_regs_struct = unsafe { std::mem::zeroed() };
    let to = &raw mut regs as usize;
    request(libc::PTRACE_GETREGS, pid, 0, to, "registers")?;
    Ok(regs)
}

/// Sets its registers.
pub fn set_registers(pid: pid_t, regs: &user_regs_struct) -> Result<(), String> {
    let from = std::ptr::from_ref(regs) as usize;
    request(libc::PTRACE_SETREGS, pid, 0, from, "registers")
}

/// Bytes of its memory.
pub fn read(pid: pid_t, at: u64, length: usize) -> Result<Vec<u8>, String> {
    let mut out = vec![0_u8; length];
    let local = libc::iovec {
        iov_base: out.as_mut_ptr().cast(),
        iov_len: length,
    };
    let remote = libc::iovec {
        iov_base: at as *mut c_void,
        iov_len: length,
    };
    // SAFETY: the room is as large as said.
    let got = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(got) == Ok(length) {
        true => Ok(out),
        false => Err(failed("memory")),
    }
}

/// Writes to its memory.
pub fn write(pid: pid_t, at: u64, data: &[u8]) -> Result<(), String> {
    let local = libc::iovec {
        iov_base: data.as_ptr().cast_mut().cast(),
        iov_len: data.len(),
    };
    let remote = libc::iovec {
        iov_base: at as *mut c_void,
        iov_len: data.len(),
    };
    // SAFETY: the data is as long as said.
    let put = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(put) == Ok(data.len()) {
        true => Ok(()),
        false => Err(failed("memory")),
    }
}

/// A number in its memory.
pub fn word(pid: pid_t, at: u64) -> Result<u64, String> {
    let bytes = read(pid, at, 8)?;
    Ok(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
}

/// Seconds and nanoseconds in its memory, as nanoseconds.
pub fn timespec(pid: pid_t, at: u64) -> Result<u64, String> {
    let (seconds, nanos) = (word(pid, at)?, word(pid, at + 8)?);
    Ok(seconds
        .saturating_mul(crate::clock::SECOND)
        .saturating_add(nanos))
}

/// Takes the address of the vDSO out of what the kernel tells the program, so that clocks are read by calls.
fn hide_vdso(pid: pid_t) -> Result<(), String> {
    let mut at = registers(pid)?.rsp;
    let count = word(pid, at)?;
    // Arguments, variables, and a null after each.
    at += 8 * (count + 2);
    while word(pid, at)? != 0 {
        at += 8;
    }
    at += 8;
    loop {
        let kind = word(pid, at)?;
        if kind == libc::AT_NULL {
            return Ok(());
        }
        if kind == libc::AT_SYSINFO_EHDR {
            write(pid, at, &libc::AT_IGNORE.to_le_bytes())?;
        }
        if kind == libc::AT_RANDOM {
            // Sixteen bytes that the C library makes its canaries of.
            let place = word(pid, at + 8)?;
            write(pid, place, &[0x5a; 16])?;
        }
        at += 16;
    }
}

/// The program's socket of this number, shared with it.
pub fn share(pid: pid_t, fd: i32) -> Result<i32, String> {
    // SAFETY: these take numbers.
    let own = unsafe {
        let handle = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        let own = libc::syscall(libc::SYS_pidfd_getfd, handle, fd, 0) as i32;
        libc::close(handle);
        own
    };
    match own {
        0.. => Ok(own),
        _ => Err(failed("a socket of the program")),
    }
}
