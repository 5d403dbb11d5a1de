/// Defines the C functions that read the clock, so that code linked into the library reads virtual time with them: for
/// implementations that read the clock themselves. For Linux of 64 bits; the library must be linked with
/// `-Wl,-Bsymbolic`, so that its own functions come before those of the C library.
///
/// `clock_gettime`, `gettimeofday` and `time` return [`CALENDAR_START`](crate::stack::CALENDAR_START) and the time of
/// the call ([`host::now`](crate::stack::host::now)), or of the start of the run outside of a call. `getrandom` draws
/// from the object's stream, except with `GRND_INSECURE`: the standard library takes the keys of hash maps with that,
/// once for each thread, so they must not depend on the object for which that happens; they are constant.
#[macro_export]
macro_rules! virtual_clock {
    () => {
        mod gargalo_virtual_clock {
            use std::ffi::{c_int, c_uint, c_void};
            use std::time::Duration;

            use $crate::stack::{CALENDAR_START, host};

            #[repr(C)]
            pub struct Time {
                seconds: i64,
                /// Nanoseconds or microseconds.
                parts: i64,
            }

            /// Of other clocks: not zero, so that times before the start of the run exist.
            const START: Duration = Duration::from_secs(1_000_000);

            fn since(start: Duration) -> Duration {
                start + host::now().unwrap_or_default()
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn clock_gettime(clock: c_int, out: *mut Time) -> c_int {
                const REALTIME: [c_int; 3] = [0, 5, 11];
                let is_calendar = REALTIME.contains(&clock);
                let t = since(if is_calendar { CALENDAR_START } else { START });
                let seconds = t.as_secs() as i64;
                let parts = t.subsec_nanos().into();
                // SAFETY: the caller gives a place for the result.
                unsafe { out.write(Time { seconds, parts }) };
                0
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn gettimeofday(out: *mut Time, _zone: *mut c_void) -> c_int {
                let t = since(CALENDAR_START);
                let seconds = t.as_secs() as i64;
                let parts = t.subsec_micros().into();
                // SAFETY: as above.
                unsafe { out.write(Time { seconds, parts }) };
                0
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn time(out: *mut i64) -> i64 {
                let seconds = since(CALENDAR_START).as_secs() as i64;
                if !out.is_null() {
                    // SAFETY: as above.
                    unsafe { out.write(seconds) };
                }
                seconds
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn getrandom(out: *mut u8, length: usize, flags: c_uint) -> isize {
                const INSECURE: c_uint = 4;
                // SAFETY: the caller gives `length` bytes.
                let out = unsafe {
                    out.write_bytes(0, length);
                    std::slice::from_raw_parts_mut(out, length)
                };
                if flags & INSECURE == 0 {
                    // Outside of a call they stay zero.
                    let _ = host::random(out);
                }
                length as isize
            }
        }
    };
}
