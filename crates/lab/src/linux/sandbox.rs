//! The sandbox of a run: user, mount and process namespaces in which an ordinary user has the privileges that the lab
//! needs, and whose resources disappear with them.

use std::fs;
use std::io;
use std::process;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid};

use crate::{Error, Result};

const NO_USER_NAMESPACES: &str = "this system does not let ordinary users make namespaces: run as \
    root, or allow it (sysctl user.max_user_namespaces=10000; on Ubuntu also \
    kernel.apparmor_restrict_unprivileged_userns=0; in a container, its seccomp profile)";

/// The network namespace of the process inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A new, empty one.
    New,
    /// That of the caller, who must be root in it.
    Kept,
}

/// Moves the rest of the program into a sandbox: it continues as process 1 of a new process namespace, with every
/// capability over the network namespaces that it creates. The original process stays outside, waits, and exits with
/// the same code; it never returns from here.
///
/// When the process inside dies, for any reason, the kernel kills all its descendants, and removes the namespaces and
/// devices; when a process that waits outside is killed, so is the one inside.
///
/// # Errors
/// When the system does not permit it, or the process has more than one thread.
pub fn enter(network: Network) -> Result<()> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        let reason = io::Error::other(format!("the process has {threads} threads"));
        return Err(Error::system("entering the sandbox", reason));
    }
    let (uid, gid) = (geteuid(), getegid());
    let mut kinds = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    kinds.set(CloneFlags::CLONE_NEWNET, network == Network::New);
    match unshare(kinds) {
        Ok(()) => {}
        Err(Errno::EPERM) if network == Network::New => {
            unshare(kinds | CloneFlags::CLONE_NEWUSER).map_err(|e| {
                Error::with_remedy("making a user namespace", e, NO_USER_NAMESPACES)
            })?;
            map_user(uid.as_raw(), gid.as_raw())?;
        }
        Err(e) => {
            return Err(Error::with_remedy(
                "making namespaces",
                e,
                NO_USER_NAMESPACES,
            ));
        }
    }
    die_with_parent()?;
    let wait = SigSet::from_iter([
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGHUP,
    ]);
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&wait), Some(&mut before))
        .map_err(|e| Error::system("blocking signals", e))?;
    // SAFETY: this process has one thread (checked above), so the child's memory is consistent.
    match unsafe { fork() }.map_err(|e| Error::system("starting the process inside", e))? {
        ForkResult::Parent { child } => stand_by(child, &wait),
        ForkResult::Child => {
            sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None)
                .map_err(|e| Error::system("unblocking signals", e))?;
            die_with_parent()?;
            private_mounts()
        }
    }
}

/// Maps the caller to root inside.
fn map_user(uid: u32, gid: u32) -> Result<()> {
    let write = |name: &str, text: String| {
        let path = format!("/proc/self/{name}");
        fs::write(&path, text)
            .map_err(|e| Error::with_remedy(format!("writing {path}"), e, NO_USER_NAMESPACES))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {uid} 1"))?;
    write("gid_map", format!("0 {gid} 1"))
}

fn die_with_parent() -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|e| Error::system("asking to die with the parent", e))
}

/// Hides mounts made inside from the outside; /proc shows the processes inside.
fn private_mounts() -> Result<()> {
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|e| Error::system("making mounts private", e))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    // Containers often forbid it; then /proc still shows the processes outside.
    let _ = mount(Some("proc"), "/proc", Some("proc"), flags, none);
    Ok(())
}

/// Waits for the process inside and exits with its code. An interrupt from the terminal reaches that process directly;
/// a SIGTERM is forwarded.
fn stand_by(child: Pid, signals: &SigSet) -> ! {
    let mut signals = *signals;
    signals.add(Signal::SIGCHLD);
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), None);
    loop {
        match waitpid(child, Some(nix::sys::wait::WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => process::exit(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => process::exit(128 + signal as i32),
            Err(Errno::EINTR) | Ok(_) => {}
            Err(_) => process::exit(1),
        }
        if let Ok(signal @ (Signal::SIGTERM | Signal::SIGHUP)) = signals.wait() {
            let _ = kill(child, signal);
        }
    }
}

/// Makes host names known to programs inside, by a private /etc/hosts.
///
/// # Errors
/// When the file cannot be created or mounted.
pub fn set_host_names(entries: &str) -> Result<()> {
    let none: Option<&str> = None;
    let path = std::env::temp_dir().join(format!("gargalo-hosts-{}-{}", process::id(), rand_tag()));
    let file = |e| Error::file(&path, e);
    fs::write(&path, entries).map_err(file)?;
    let bound = mount(Some(&path), "/etc/hosts", none, MsFlags::MS_BIND, none);
    fs::remove_file(&path).map_err(file)?;
    bound.map_err(|e| Error::system("mounting a private /etc/hosts", e))
}

/// Distinguishes the files of processes that all have process id 1.
fn rand_tag() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64)
}
