//! `mix`: background traffic of several kinds as a share of a link's capacity.

use gargalo_settings::{Error, Probability, names, settings};
use gargalo_units::Bytes;

use super::ftp::Ftp;
use super::quantity::Load;
use super::ticks::LARGEST_PAYLOAD;
use super::web::Web;

settings! {
    /// Background traffic as a share of a link's capacity: constant bit rate over UDP, and files and web over the
    /// flow's transport.
    pub struct Mix as "Mix", checked by Mix::consistent {
        /// Bits on the wire in each loaded direction, headers and acknowledgements included: a share of
        /// the link's capacity, or a rate.
        load: Load;
        /// The loaded link. Default: the slowest link on the route.
        link: Option<String> = None;
        /// The loaded direction.
        direction: MixDirection = MixDirection::Both;
        /// Shares of the load.
        shares: Shares = Shares { cbr: 0.20, ftp: 0.24, web: 0.56 };
        /// Payload of a constant-bit-rate packet.
        packet_size: Bytes = Bytes::new(1000), in Bytes::new(1)..=LARGEST_PAYLOAD;
        /// The web traffic; its load follows from the share.
        web: Box<Web> = Box::default();
        /// The files; their load follows from the share.
        ftp: Ftp = Ftp::default();
    }
}

names! {
    /// The loaded direction of the link.
    pub enum MixDirection {
        /// Up and down, each with the given load.
        Both = "both",
        /// Up: from the left, from the client.
        Up = "up",
        /// Down: towards the left, to the client.
        Down = "down",
    }
}

settings! {
    /// Shares of a load, which add up to 1. A share that is not given is 0.
    pub struct Shares: Copy as "Shares", checked by Shares::whole {
        /// Constant bit rate over UDP.
        cbr: f64 as Probability = 0.0;
        /// File transfers over the flow's transport.
        ftp: f64 as Probability = 0.0;
        /// Web traffic over the flow's transport.
        web: f64 as Probability = 0.0;
    }
}

impl Shares {
    fn whole(&self) -> Result<(), Error> {
        let sum = self.cbr + self.ftp + self.web;
        if (sum - 1.0).abs() > 1e-6 {
            let message = format!("the shares add up to {}%", (sum * 1e6).round() / 1e4);
            let help = "cbr, ftp and web must add up to 100%; a share that is not given is 0";
            return Err(Error::new(message).help(help));
        }
        Ok(())
    }
}

impl Mix {
    fn consistent(&self) -> Result<(), Error> {
        let (web, ftp) = (&self.web, &self.ftp);
        for (key, is_given) in [
            ("web.sessions", web.sessions.is_some()),
            ("web.load", web.load.is_some()),
            ("web.link", web.link.is_some()),
            ("ftp.files", ftp.files.is_some()),
            ("ftp.load", ftp.load.is_some()),
            ("ftp.link", ftp.link.is_some()),
        ] {
            if is_given {
                let message = format!("{key} in a mix, where it follows from load and shares");
                return Err(Error::of(key, message).help("take it out"));
            }
        }
        Ok(())
    }
}
