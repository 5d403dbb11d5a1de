//! Control connections without a test: those that have not sent their cookie or parameters, and those that wait for
//! the server.

use std::net::{IpAddr, SocketAddr};

use gargalo_host::ConnectionId;
use gargalo_units::{Duration, Instant};

use super::protocol::{Cookie, Parameters, Reader};

/// Time limit for the cookie, and for the parameters.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a client that has sent its parameters and waits for the server.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(300);
/// Most of these connections.
const MOST: usize = 64;

/// A connection that has sent no cookie, or a client whose test has not begun.
#[derive(Debug)]
pub(super) struct PendingClient {
    pub(super) control: ConnectionId,
    pub(super) remote: SocketAddr,
    pub(super) reader: Reader,
    pub(super) cookie: Option<Cookie>,
    pub(super) parameters: Option<Parameters>,
    /// When it times out.
    deadline: Instant,
}

impl PendingClient {
    /// Which messages it has sent.
    fn progress(&self) -> (bool, bool) {
        (self.cookie.is_some(), self.parameters.is_some())
    }
}

/// All of them, in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct PendingClients(Vec<PendingClient>);

impl PendingClients {
    /// Adds a connection; returns the one that is dropped for it. Where there are too many, that is one of the address
    /// with the most connections: of those with the least progress the oldest.
    pub(super) fn push(
        &mut self,
        now: Instant,
        control: ConnectionId,
        remote: SocketAddr,
    ) -> Option<ConnectionId> {
        let goes = (self.0.len() >= MOST).then(|| self.dispensable()).flatten();
        let gone = goes.map(|at| self.0.remove(at).control);
        self.0.push(PendingClient {
            control,
            remote,
            reader: Reader::default(),
            cookie: None,
            parameters: None,
            deadline: now + STEP_TIMEOUT,
        });
        gone
    }

    fn dispensable(&self) -> Option<usize> {
        let of = |ip: IpAddr| self.0.iter().filter(|n| n.remote.ip() == ip).count();
        let most = self.0.iter().map(|n| of(n.remote.ip())).max()?;
        let all = self.0.iter().enumerate();
        all.filter(|(_, n)| of(n.remote.ip()) == most)
            .min_by_key(|(_, n)| n.progress())
            .map(|(at, _)| at)
    }

    pub(super) fn get(&mut self, control: ConnectionId) -> Option<&mut PendingClient> {
        self.0.iter_mut().find(|n| n.control == control)
    }

    pub(super) fn take(&mut self, control: ConnectionId) -> Option<PendingClient> {
        let at = self.0.iter().position(|n| n.control == control)?;
        Some(self.0.remove(at))
    }

    pub(super) fn take_all(&mut self) -> Vec<PendingClient> {
        std::mem::take(&mut self.0)
    }

    /// Restarts the timeout after a message.
    pub(super) fn on_progress(&mut self, now: Instant, control: ConnectionId) {
        if let Some(n) = self.get(control) {
            let wait = match n.parameters {
                Some(_) => QUEUE_TIMEOUT,
                None => STEP_TIMEOUT,
            };
            n.deadline = now + wait;
        }
    }

    /// The client that is served next: the first that has sent everything, if possible of another address than `last`.
    pub(super) fn next(&self, last: Option<IpAddr>) -> Option<ConnectionId> {
        let mut ready = self.0.iter().filter(|n| n.parameters.is_some());
        let first = ready.clone().next()?;
        let other = ready.find(|n| Some(n.remote.ip()) != last);
        Some(other.unwrap_or(first).control)
    }

    /// When the next timeout is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.iter().map(|n| n.deadline).min()
    }

    /// Returns a connection that has timed out.
    pub(super) fn overdue(&self, now: Instant) -> Option<ConnectionId> {
        let n = self.0.iter().find(|n| n.deadline <= now)?;
        Some(n.control)
    }
}

#[cfg(test)]
mod tests {
    use gargalo_host::{Host, HostConfig, SocketOptions};

    use super::*;

    /// Creates this many connections.
    fn connections(n: usize) -> Vec<ConnectionId> {
        let config = HostConfig::new(["10.0.0.1".parse().unwrap()]);
        let mut host = Host::new(config, Instant::ZERO).unwrap();
        let congestion = gargalo_cc::Registered::new("reno", Default::default()).unwrap();
        let options = SocketOptions {
            tcp: gargalo_tcp::Config::modern().into(),
            congestion: std::sync::Arc::new(congestion),
            mptcp: None,
            fast_open: false,
            dscp: 0,
        };
        let to = "10.0.0.2:5201".parse().unwrap();
        let one = |_| host.connect(Instant::ZERO, None, to, &options).unwrap();
        (0..n).map(one).collect()
    }

    #[test]
    fn a_crowd_of_one_address_pushes_out_its_own() {
        let ids = connections(3 * MOST);
        let from = |n: u8| SocketAddr::from(([10, 0, 0, n], 999));
        let mut all = PendingClients::default();
        assert_eq!(all.push(Instant::ZERO, ids[0], from(1)), None);
        for id in &ids[1..MOST] {
            assert_eq!(all.push(Instant::ZERO, *id, from(2)), None);
        }
        for (n, id) in ids[MOST..].iter().enumerate() {
            let gone = all.push(Instant::ZERO, *id, from(2));
            assert_eq!(gone, Some(ids[n + 1]));
        }
        assert!(all.get(ids[0]).is_some());
    }

    #[test]
    fn who_has_said_more_stays_and_addresses_take_turns() {
        let ids = connections(MOST + 1);
        let from = |n: u8| SocketAddr::from(([10, 0, 0, n], 999));
        let mut all = PendingClients::default();
        for (n, id) in ids[..MOST].iter().enumerate() {
            all.push(Instant::ZERO, *id, from(1 + u8::from(n == 2)));
        }
        for id in &ids[..3] {
            all.get(*id).unwrap().parameters = Some(Parameters::default());
        }
        assert_eq!(all.push(Instant::ZERO, ids[MOST], from(1)), Some(ids[3]));
        assert_eq!(all.next(None), Some(ids[0]));
        assert_eq!(all.next(Some(from(1).ip())), Some(ids[2]));
        assert_eq!(all.next(Some(from(2).ip())), Some(ids[0]));
    }
}
