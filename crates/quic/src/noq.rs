//! noq as an implementation like others.

use crate::{Config, Congestion, Endpoint, Error, Implementation, Init, NOQ, Realm, Stack};

/// noq, with this congestion control.
#[derive(Clone, Debug)]
pub struct Noq(pub Congestion);

impl Implementation for Noq {
    fn name(&self) -> &str {
        NOQ
    }

    fn check(&self, config: &Config, _: bool) -> Result<(), Error> {
        config.check_ranges()
    }

    fn connect(&self, realm: &Realm, config: &Config, init: Init) -> Result<Box<dyn Stack>, Error> {
        let made = Endpoint::connect(realm, config, &self.0, init)?;
        Ok(Box::new(made))
    }

    fn listen(&self, realm: &Realm, config: &Config, init: Init) -> Result<Box<dyn Stack>, Error> {
        let made = Endpoint::listen(realm, config, &self.0, init)?;
        Ok(Box::new(made))
    }
}
