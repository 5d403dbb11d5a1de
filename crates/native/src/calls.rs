//! The calls of plug-in functions that are under way: who is called in which thread.
//!
//! A watching thread, which begins with the first call, looks at them ten times a second. A call that has taken a
//! second of processor time is a loop; one that has not returned after ten times as long waits for something. The
//! environment variable [`VARIABLE`] has another number of seconds, for sanitizers and debuggers. Either is put
//! into the [`Faults`] of its run; the call cannot be ended from outside (its library may hold locks), so the run goes
//! on without its thread: see [`contained`]. When a call crashes, a signal handler says whose it was before the
//! process ends.
//!
//! A call costs some stores to memory of its thread.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use crate::fault::{Fault, Faults, Place, Wrong};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The environment variable with the seconds of processor time after which a call is a loop.
pub const VARIABLE: &str = "GARGALO_CALL_SECONDS";
/// Without it.
const USUAL_SECONDS: u32 = 1;
/// More would not end within the time of a run.
const MOST_SECONDS: u32 = 1_000_000;
/// A call that has computed for this long does not wait.
const LEAST_COMPUTING: Duration = Duration::from_millis(100);
/// Looks, for each of these seconds, after which a call that does not compute is reported: 10 s. The time of a machine
/// that sleeps does not count.
const MOST_LOOKS: u32 = 100;

/// The seconds that the environment has; a whole number from 1 on.
///
/// # Errors
/// When it has something else.
pub fn limit() -> Result<u32, String> {
    limit_of(std::env::var(VARIABLE).ok().as_deref())
}

fn limit_of(text: Option<&str>) -> Result<u32, String> {
    let Some(text) = text else {
        return Ok(USUAL_SECONDS);
    };
    let seconds = text.parse().ok();
    let fits = seconds.filter(|s| (1..=MOST_SECONDS).contains(s));
    fits.ok_or_else(|| {
        format!(
            "{VARIABLE} = \"{text}\": it must be a whole number of seconds from 1 to {MOST_SECONDS}"
        )
    })
}

/// What is printed of a library that crashes as it is loaded, before what happened.
const LOADING: &str = "loading it crashed";

/// A plug-in's name and the functions that it may be called by; lives as long as its library.
#[derive(Debug)]
pub struct Callee {
    /// Name of the library's file, for messages.
    pub file: &'static str,
    /// The name that scenarios use.
    pub name: &'static str,
    /// The names of its functions.
    pub functions: &'static [&'static str],
    /// What is printed when it crashes: for each function a line, without what happened.
    crashes: Vec<String>,
}

impl Callee {
    /// A plug-in of a library.
    pub fn new(
        file: &'static str,
        name: &'static str,
        functions: &'static [&'static str],
    ) -> &'static Self {
        let crashes = functions.iter().map(|function| {
            let place = Place {
                file,
                name,
                function,
            };
            format!("{place} crashed")
        });
        Box::leak(Box::new(Self {
            file,
            name,
            functions,
            crashes: crashes.collect(),
        }))
    }

    /// A library while it is loaded: its own initialization, and the loader's work on it.
    pub(crate) fn loading(file: &'static str) -> &'static Self {
        Box::leak(Box::new(Self {
            file,
            name: "loading it",
            functions: &[],
            crashes: vec![format!("{file}: {LOADING}")],
        }))
    }

    /// One of its functions.
    pub fn place(&self, function: usize) -> Place {
        Place {
            file: self.file,
            name: self.name,
            function: self.functions.get(function).copied().unwrap_or("?"),
        }
    }
}

/// The call under way in a thread.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// Odd during a call; counts the beginnings and the ends.
    calls: AtomicU64,
    callee: AtomicPtr<Callee>,
    function: AtomicUsize,
    run: AtomicU64,
    clock: AtomicUsize,
    thread: AtomicU64,
}

/// A thread's slot, which another gets when the thread ends.
struct Own {
    slot: &'static Slot,
    _stack: system::CrashStack,
}

impl Drop for Own {
    fn drop(&mut self) {
        CURRENT.set(None);
        self.slot.clock.store(0, Ordering::Release);
        self.slot.thread.store(0, Ordering::Release);
        lock(&FREE).push(self.slot);
    }
}

thread_local! {
    /// The slot of [`OWN`], where it is found sooner: this has nothing to be dropped.
    static CURRENT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

/// All slots; they live as long as the process.
static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
/// Slots that no thread uses.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

/// The descriptor of [`tell_crashes_to`], or -1.
static TOLD_TO: AtomicI32 = AtomicI32::new(-1);

/// What is printed of a crash is also written to this open file.
pub fn tell_crashes_to(descriptor: i32) {
    TOLD_TO.store(descriptor, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that calls plug-ins: no other that lives has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(*const Slot);

impl Mark {
    /// That of no thread.
    pub(crate) const NONE: Self = Self(std::ptr::null());

    /// That of this thread, or of none if it has not called a plug-in yet.
    #[inline]
    pub(crate) fn current() -> Self {
        CURRENT.get().map_or(Self::NONE, |slot| Self(slot))
    }

    /// As a pointer, to be shared between threads.
    pub(crate) const fn pointer(self) -> *mut Slot {
        self.0.cast_mut()
    }
}

/// Calls a function of a plug-in: `call` is nothing but that call.
#[inline]
pub fn calling<T>(
    callee: &'static Callee,
    function: usize,
    run: u64,
    call: impl FnOnce() -> T,
) -> T {
    calling_as(callee, function, run, |_| call())
}

/// The same for a call that is told by which thread it is made.
#[inline]
pub(crate) fn calling_as<T>(
    callee: &'static Callee,
    function: usize,
    run: u64,
    call: impl FnOnce(Mark) -> T,
) -> T {
    let slot = CURRENT.get().unwrap_or_else(begin);
    let calls = slot.calls.load(Ordering::Relaxed);
    let callee = std::ptr::from_ref(callee).cast_mut();
    slot.callee.store(callee, Ordering::Relaxed);
    slot.function.store(function, Ordering::Relaxed);
    slot.run.store(run, Ordering::Relaxed);
    slot.calls.store(calls + 1, Ordering::Release);
    let result = call(Mark(slot));
    slot.calls.store(calls + 2, Ordering::Release);
    result
}

/// The slot of this thread; the first one begins to be watched.
#[cold]
fn begin() -> &'static Slot {
    static WATCH: Once = Once::new();
    let free = lock(&FREE).pop();
    let slot = free.unwrap_or_else(|| {
        let new: &'static Slot = Box::leak(Box::default());
        lock(&SLOTS).push(new);
        new
    });
    system::know_thread(slot);
    // A thread that is ending already keeps the slot to itself.
    let _ = OWN.try_with(|own| {
        own.get_or_init(|| Own {
            slot,
            _stack: system::CrashStack::new(),
        });
    });
    CURRENT.set(Some(slot));
    WATCH.call_once(|| {
        system::tell_crashes();
        // Without it loops are not found; nothing else is lost.
        let _ = std::thread::Builder::new()
            .name("gargalo-watch".to_owned())
            .spawn(watch);
    });
    slot
}

/// A call seen by the watching thread.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    calls: u64,
    since: Duration,
    looks: u32,
}

fn watch() {
    // What is wrong is an error where libraries are loaded.
    let seconds = limit().unwrap_or(USUAL_SECONDS);
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        std::thread::sleep(LOOK_EVERY);
        let slots = lock(&SLOTS).clone();
        seen.resize_with(slots.len(), Seen::default);
        for (slot, seen) in slots.into_iter().zip(&mut seen) {
            look(slot, seen, seconds);
        }
    }
}

fn look(slot: &Slot, seen: &mut Seen, seconds: u32) {
    let calls = slot.calls.load(Ordering::Acquire);
    let used = system::processor_time(slot);
    if calls.is_multiple_of(2) || calls != seen.calls {
        *seen = Seen {
            calls,
            since: used.unwrap_or_default(),
            looks: 0,
        };
        return;
    }
    seen.looks += 1;
    let computed = used.map(|u| u.saturating_sub(seen.since));
    let most_looks = MOST_LOOKS * seconds;
    let wrong = match computed {
        Some(time) if time.as_secs() >= seconds.into() => Wrong::Loop {
            seconds: seconds.into(),
        },
        // On a busy machine a loop computes little in a long time.
        Some(time) if time >= LEAST_COMPUTING => return,
        _ if seen.looks >= most_looks => Wrong::Stuck {
            seconds: u64::from(most_looks) * LOOK_EVERY.as_millis() as u64 / 1000,
        },
        _ => return,
    };
    // A callee lives as long as the process.
    let callee: Option<&'static Callee> =
        // SAFETY: only `calling` stores the pointer, made of a reference that is valid forever.
        unsafe { slot.callee.load(Ordering::Relaxed).as_ref() };
    let run = Faults::of_run(slot.run.load(Ordering::Relaxed));
    if slot.calls.load(Ordering::Acquire) != calls {
        return; // it has just returned
    }
    if let (Some(callee), Some(run)) = (callee, run)
        && !run.is_stuck()
    {
        system::make_idle(slot);
        run.put(Fault {
            place: callee.place(slot.function.load(Ordering::Relaxed)),
            wrong,
        });
    }
}

/// How a contained run ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// With a result.
    Returned(T),
    /// A call of a plug-in does not return. The thread of the run stays until the process ends, at the lowest priority.
    Stuck,
}

/// Does a run in a thread of its own, so that a call that never returns does not hold up the caller. `meanwhile` is
/// called some times a second.
///
/// # Panics
/// When `run` does.
pub fn contained<T: Send + 'static>(
    faults: &Faults,
    run: impl FnOnce() -> T + Send + 'static,
    mut meanwhile: impl FnMut(),
) -> std::io::Result<Ended<T>> {
    const STACK: usize = 8 << 20;
    let (done, result) = sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("gargalo-run".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Nobody waits for the result of a run that is stuck.
            let _ = done.send(run());
        })?;
    loop {
        match result.recv_timeout(LOOK_EVERY / 2) {
            Ok(value) => {
                // What the thread still holds is given up before the next run.
                let _ = thread.join();
                return Ok(Ended::Returned(value));
            }
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(std::io::ErrorKind::BrokenPipe.into()),
            },
            Err(RecvTimeoutError::Timeout) if faults.is_stuck() => return Ok(Ended::Stuck),
            Err(RecvTimeoutError::Timeout) => meanwhile(),
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::{SLOTS, Slot, TOLD_TO};

    /// Where a thread handles its crashes: the stack may be what has overflowed.
    pub(super) struct CrashStack(Option<Box<[u8]>>);

    impl CrashStack {
        const SIZE: usize = 64 << 10;

        /// That of the calling thread, unless it has one.
        pub(super) fn new() -> Self {
            let mut room = vec![0; Self::SIZE].into_boxed_slice();
            let stack = libc::stack_t {
                ss_sp: room.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: room.len(),
            };
            let mut before = MaybeUninit::<libc::stack_t>::uninit();
            // SAFETY: the calls fill and read structures of ours; the room stays until `drop`.
            let set = unsafe {
                libc::sigaltstack(ptr::null(), before.as_mut_ptr()) == 0
                    && before.assume_init().ss_flags & libc::SS_DISABLE != 0
                    && libc::sigaltstack(&raw const stack, ptr::null_mut()) == 0
            };
            Self(set.then_some(room))
        }
    }

    impl Drop for CrashStack {
        fn drop(&mut self) {
            if self.0.is_none() {
                return;
            }
            let none = libc::stack_t {
                ss_sp: ptr::null_mut(),
                ss_flags: libc::SS_DISABLE,
                ss_size: Self::SIZE,
            };
            // SAFETY: the structure is valid; the thread that set the stack is the one that ends.
            unsafe {
                libc::sigaltstack(&raw const none, ptr::null_mut());
            }
        }
    }

    /// Notes the calling thread's clock and number.
    pub(super) fn know_thread(slot: &Slot) {
        let mut clock = 0;
        // SAFETY: the calling thread exists, and `clock` is ours.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        if failed == 0 {
            // Such clocks have negative numbers.
            slot.clock.store(clock as isize as usize, Ordering::Release);
        }
        // SAFETY: no arguments.
        let thread = unsafe { libc::gettid() };
        slot.thread
            .store(thread.unsigned_abs().into(), Ordering::Release);
    }

    /// The processor time of a thread; `None` if it has ended.
    pub(super) fn processor_time(slot: &Slot) -> Option<Duration> {
        let clock = slot.clock.load(Ordering::Acquire) as isize as libc::clockid_t;
        if clock == 0 {
            return None;
        }
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the call fills `time` if it succeeds; for a clock of a thread that has ended it fails.
        let time = unsafe {
            if libc::clock_gettime(clock, time.as_mut_ptr()) != 0 {
                return None;
            }
            time.assume_init()
        };
        let seconds = u64::try_from(time.tv_sec).ok()?;
        Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
    }

    /// Lets a thread run only when nothing else does.
    pub(super) fn make_idle(slot: &Slot) {
        let thread = slot.thread.load(Ordering::Acquire) as libc::pid_t;
        // SAFETY: the parameter has numbers only, more with musl than with glibc, and all may be 0; a thread that has
        // ended makes the call fail, which does no harm.
        unsafe {
            let none: libc::sched_param = std::mem::zeroed();
            libc::sched_setscheduler(thread, libc::SCHED_IDLE, &none);
        }
    }

    const CRASHES: [(libc::c_int, &str); 5] = [
        (libc::SIGSEGV, " (SIGSEGV: an invalid memory access)\n"),
        (libc::SIGBUS, " (SIGBUS: an invalid memory access)\n"),
        (libc::SIGFPE, " (SIGFPE: a division by zero)\n"),
        (libc::SIGILL, " (SIGILL: an invalid instruction)\n"),
        (libc::SIGABRT, " (SIGABRT: it called abort)\n"),
    ];
    static mut BEFORE: [MaybeUninit<libc::sigaction>; 5] = [MaybeUninit::uninit(); 5];

    /// From now on a crash during a call prints whose call it was; then happens what would have happened without.
    pub(super) fn tell_crashes() {
        for (i, (signal, _)) in CRASHES.iter().enumerate() {
            // SAFETY: called once, before any crash that the handler could report; the structure is zeroed and then
            // filled as sigaction requires, and `BEFORE` has room for the old one.
            unsafe {
                let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
                action.sa_sigaction = crashed as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
                libc::sigemptyset(&raw mut action.sa_mask);
                let before = (&raw mut BEFORE[i]).cast::<libc::sigaction>();
                libc::sigaction(*signal, &raw const action, before);
            }
        }
    }

    /// Prints what crashed if a plug-in did, puts the handler back that was there before, and returns to the
    /// instruction that crashes, for which the other handler is then called.
    extern "C" fn crashed(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let index = CRASHES.iter().position(|(s, _)| *s == signal).unwrap_or(0);
        // SAFETY: no arguments; the system gives a valid structure. Codes of signals that were sent are not positive.
        let (thread, was_sent) = unsafe { (libc::gettid(), (*info).si_code <= 0) };
        // Not by a thread-local value, which may not exist yet in this thread.
        if let Ok(slots) = SLOTS.try_lock() {
            let own = u64::from(thread.unsigned_abs());
            let slot = slots
                .iter()
                .find(|s| s.thread.load(Ordering::Relaxed) == own);
            slot.iter().for_each(|slot| tell(slot, index));
        }
        // SAFETY: `BEFORE` was filled when this handler was set; nothing writes it later. These calls are allowed in
        // handlers.
        unsafe {
            let before = (&raw const BEFORE[index]).cast::<libc::sigaction>();
            libc::sigaction(signal, before, ptr::null_mut());
            if was_sent {
                libc::raise(signal);
            }
        }
    }

    /// Prints whose call is under way in a slot, if one is.
    fn tell(slot: &Slot, crash: usize) {
        if slot.calls.load(Ordering::Relaxed).is_multiple_of(2) {
            return;
        }
        // SAFETY: only `calling` stores the pointer, made of a reference that is valid forever.
        let Some(callee) = (unsafe { slot.callee.load(Ordering::Relaxed).as_ref() }) else {
            return;
        };
        if let Some(sentence) = callee.crashes.get(slot.function.load(Ordering::Relaxed)) {
            say("error: ");
            say(sentence);
            say(CRASHES[crash].1);
        }
    }

    /// Writes to standard error, and to the file of [`super::tell_crashes_to`], as a signal handler may.
    fn say(text: &str) {
        for descriptor in [libc::STDERR_FILENO, TOLD_TO.load(Ordering::Relaxed)] {
            if descriptor >= 0 {
                // SAFETY: the pointer and the length are those of the text.
                unsafe {
                    libc::write(descriptor, text.as_ptr().cast(), text.len());
                }
            }
        }
    }
}

/// Elsewhere calls that wait or compute for ten seconds are reported.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    use super::Slot;

    pub(super) struct CrashStack;

    impl CrashStack {
        pub(super) fn new() -> Self {
            Self
        }
    }

    pub(super) fn know_thread(_: &Slot) {}
    pub(super) fn processor_time(_: &Slot) -> Option<Duration> {
        None
    }
    pub(super) fn make_idle(_: &Slot) {}
    pub(super) fn tell_crashes() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_a_whole_number_of_seconds() {
        assert_eq!(limit_of(None), Ok(1));
        assert_eq!(limit_of(Some("120")), Ok(120));
        for wrong in ["", "0", "-1", "1.5", "1s", "9999999"] {
            assert!(limit_of(Some(wrong)).unwrap_err().contains(VARIABLE));
        }
    }
}
