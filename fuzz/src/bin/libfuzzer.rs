//! libFuzzer around the target that the variable `FUZZ_TARGET` names; `make fuzz` sets it.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static RUN: OnceLock<fn(&[u8])> = OnceLock::new();

fuzz_target!(
    init: {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let target = gargalo_fuzz::target(&name);
        let target = target.unwrap_or_else(|| panic!("FUZZ_TARGET=\"{name}\" is no target"));
        RUN.get_or_init(|| target.run);
    },
    |bytes: &[u8]| {
        if let Some(run) = RUN.get() {
            run(bytes);
        }
    }
);
