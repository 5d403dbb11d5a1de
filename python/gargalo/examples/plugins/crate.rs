//! A congestion control of a plug-in: Reno that keeps more of its window after a loss.

use gargalo_cc::{Acked, Algorithm, Congestion, Path, Policy, Window, WindowBased, WindowParams};
use gargalo_units::Bytes;

gargalo_cc::params! {
    /// Its parameters.
    pub struct Params {
        /// Window kept after a loss, as a fraction.
        beta: f64 = 0.8, in 0.01..=0.99;
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
    params: Params::params,
    build: |params, init| {
        let params = Params::from_params(NAME, params)?;
        Ok(Box::new(WindowBased::new(
            Gentle(params),
            params.window,
            &init,
        )))
    },
};
gargalo_plugin::export_congestion!(ALGORITHM);

#[derive(Clone, Debug)]
struct Gentle(Params);

impl Policy for Gentle {
    fn increase(&mut self, window: &mut Window, acked: Bytes, _: &Acked, _: &Path<'_>) {
        window.additive_increase(acked);
    }

    fn decrease(&mut self, window: &Window, event: &Congestion, _: &Path<'_>) -> Bytes {
        window.reduction_base(event).mul_f64(self.0.beta)
    }
}
