//! TLS secrets as lines of an `SSLKEYLOGFILE` (RFC 9850).

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::Mutex;

use super::tickets::lock;

/// Collects secrets until they are polled.
#[derive(Default)]
pub(crate) struct Secrets(Mutex<VecDeque<String>>);

impl Secrets {
    pub(crate) fn pop(&self) -> Option<String> {
        lock(&self.0).pop_front()
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl rustls::KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = format!("{label} ");
        for byte in client_random {
            let _ = write!(line, "{byte:02x}");
        }
        line.push(' ');
        for byte in secret {
            let _ = write!(line, "{byte:02x}");
        }
        lock(&self.0).push_back(line);
    }
}
