//! Congestion controls for the tests: a copy of a built-in one, and some that do what they must not.

use gargalo_cc::algorithms::cubic;
use gargalo_cc::params::Declared;
use gargalo_cc::{Acked, Algorithm, Congestion, Controller, Init, Path, names, settings};
use gargalo_units::{Bytes, Duration};

settings! {
    /// Parameters of the one that fails.
    pub struct WrongParams: Copy as "Wrong", const {
        /// Acknowledgements before it.
        after: u32 = 3, in 0..=1000;
        /// What it does then.
        deed: Deed = Deed::Panic;
        /// Not used: a parameter with a unit, for tests of how it is passed.
        wait: Duration = Duration::from_millis(10), in Duration::ZERO..=Duration::from_secs(1);
    }
}

names! {
    /// What a controller does.
    pub enum Deed {
        /// Panics with a message.
        Panic = "panic",
        /// Has no window.
        Zero = "zero",
        /// Loops without end.
        Loop = "loop",
    }
}

#[derive(Clone, Debug)]
struct Wrong {
    params: WrongParams,
    acks: u32,
    mss: Bytes,
}

impl Controller for Wrong {
    fn on_ack(&mut self, _: &Acked, _: &Path<'_>) {
        self.acks += 1;
        if self.acks <= self.params.after {
            return;
        }
        match self.params.deed {
            Deed::Panic => {
                // Its text is what counts; on the terminal of a test it would look like a failure.
                std::panic::set_hook(Box::new(|_| ()));
                panic!("{} acknowledgements are too many", self.acks)
            }
            Deed::Zero => self.mss = Bytes::ZERO,
            Deed::Loop => loop {
                std::hint::black_box(&self.acks);
            },
        }
    }
    fn on_congestion(&mut self, _: &Congestion, _: &Path<'_>) {}
    fn cwnd(&self) -> Bytes {
        self.mss * 10
    }
    fn in_slow_start(&self) -> bool {
        false
    }
    fn phase(&self) -> &'static str {
        "wrong"
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

const COPY: Algorithm = Algorithm {
    name: "cubic-copy",
    aliases: &[],
    ..cubic::ALGORITHM
};

const WRONG: Algorithm = Algorithm {
    name: "wrong",
    aliases: &[],
    summary: "does what it must not",
    source: "",
    params: WrongParams::params,
    build: |params, init: Init| {
        let params = WrongParams::from_params("wrong", params)?;
        let mss = init.mss;
        Ok(Box::new(Wrong {
            params,
            acks: 0,
            mss,
        }))
    },
};

gargalo_plugin::export_congestion!(COPY, WRONG);
