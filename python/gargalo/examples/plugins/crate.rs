//! A congestion control of a plug-in: Reno that keeps more of its window after a loss.

use gargalo_cc::params::Declared;
use gargalo_cc::{Acked, Algorithm, Congestion, Path, Policy, Window, WindowBased, WindowParams};
use gargalo_units::Bytes;

gargalo_cc::settings! {
    /// Its parameters.
    pub struct GentleParams: Copy as "Gentle", const {
        /// Window kept after a loss, as a fraction.
        beta: f64 = 0.8, in 0.01..=0.99;
    }
    with {
        /// The parameters that window-based algorithms share.
        window: WindowParams = WindowParams::DEFAULT;
    }
}

const NAME: &str = "gentle-rust";

const ALGORITHM: Algorithm = Algorithm {
    name: NAME,
    aliases: &[],
    summary: "Reno that keeps more of its window",
    source: "",
    params: GentleParams::params,
    build: |params, init| {
        let params = GentleParams::from_params(NAME, params)?;
        Ok(Box::new(WindowBased::new(
            Gentle(params),
            params.window,
            &init,
        )))
    },
};
gargalo_plugin::export_congestion!(ALGORITHM);

#[derive(Clone, Debug)]
struct Gentle(GentleParams);

impl Policy for Gentle {
    fn increase(&mut self, window: &mut Window, acked: Bytes, _: &Acked, _: &Path<'_>) {
        window.additive_increase(acked);
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _: &Path<'_>) -> Bytes {
        window.reduction_base(event).mul_f64(self.0.beta)
    }
}
