//! Key logs: the secrets of TLS connections, as programs write them for the environment variable `SSLKEYLOGFILE`
//! (RFC 9850).

use std::io::{self, BufRead};

use gargalo_units::Duration;

use super::{Kind, Log, lines};
use crate::secrets::is_label;

/// A kind of log.
pub const KIND: Kind = Kind {
    name: "key log",
    is,
    read,
};

fn is(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let first = text
        .lines()
        .map(str::trim)
        .find(|l| !l.is_empty() && !l.starts_with('#'));
    let label = first.and_then(|l| l.split_ascii_whitespace().next());
    label.is_some_and(is_label)
}

fn read(input: &mut dyn BufRead, _: Duration) -> io::Result<Log> {
    let mut log = Log::default();
    let mut unused = 0;
    let secrets = &mut log.secrets;
    let too_long = lines(input, &mut |line| {
        unused += u64::from(!secrets.add_line(line))
    })?;
    log.unused = unused + too_long;
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{RANDOM, Secret, Secrets};

    fn line(label: &str, random: u8, secret: u8, length: usize) -> String {
        let hex = |byte: u8, n: usize| format!("{byte:02x}").repeat(n);
        format!("{label} {} {}\n", hex(random, RANDOM), hex(secret, length))
    }

    #[test]
    fn secrets_are_found_by_the_clients_random_number() {
        let text = [
            "# made by a test\n\n",
            &line("CLIENT_HANDSHAKE_TRAFFIC_SECRET", 1, 10, 32),
            &line("SERVER_TRAFFIC_SECRET_0", 1, 11, 48),
            &line("CLIENT_EARLY_TRAFFIC_SECRET", 2, 12, 32),
            &line("EXPORTER_SECRET", 1, 13, 32),
            &line("CLIENT_RANDOM", 9, 14, 48),
            "SERVER_TRAFFIC_SECRET_0 zz 00\n",
            "some words\n",
            &line("CLIENT_TRAFFIC_SECRET_0", 1, 15, 31),
        ]
        .concat();
        assert!(is(text.as_bytes()));
        assert!(!is(b"# CLIENT_RANDOM\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2"));
        let log = read(&mut text.as_bytes(), Duration::ZERO).unwrap();
        assert_eq!(log.unused, 3);
        let found = log.secrets.of(&[1; RANDOM]).unwrap();
        assert_eq!(found.handshake, [Secret::new(&[10; 32]), None]);
        assert_eq!(found.data, [None, Secret::new(&[11; 48])]);
        assert_eq!(
            log.secrets.of(&[2; RANDOM]).unwrap().early,
            Secret::new(&[12; 32])
        );
        assert_eq!(log.secrets.of(&[9; RANDOM]), None);
        // Those of another file are added.
        let mut all = Secrets::default();
        all.add_lines(&line("CLIENT_TRAFFIC_SECRET_0", 1, 16, 32));
        all.add(log.secrets);
        let both = all.of(&[1; RANDOM]).unwrap();
        assert_eq!(both.data, [Secret::new(&[16; 32]), Secret::new(&[11; 48])]);
    }
}
