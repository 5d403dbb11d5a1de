//! noq as an implementation like others.

use crate::{Config, Congestion, Endpoint, Error, Implementation, Init, NOQ, Realm, Stack, Uses};

/// noq, with this congestion control.
#[derive(Clone, Debug)]
pub struct Noq(pub Congestion);

impl Implementation for Noq {
    fn name(&self) -> &str {
        NOQ
    }

    fn check(&self, config: &Config, _: Uses, _: bool) -> Result<(), Error> {
        config.check_ranges()
    }

    fn end(
        &self,
        realm: &Realm,
        config: &Config,
        init: Init,
        is_client: bool,
    ) -> Result<Box<dyn Stack>, Error> {
        let made = match is_client {
            true => Endpoint::connect(realm, config, &self.0, init)?,
            false => Endpoint::listen(realm, config, &self.0, init)?,
        };
        Ok(Box::new(made))
    }
}
