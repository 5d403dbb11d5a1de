//! Creation of subflows, and the handshake of the connection by MP_CAPABLE (RFC 8684 §3.1, §3.7).

use std::net::IpAddr;

use gargalo_cc::{Controller, Sibling};
use gargalo_tcp::{Endpoint, State};
use gargalo_units::{Bytes, Ecn, Instant, Seq};
use gargalo_wire::mptcp::{CapableFlags, CapableKeys, List, MptcpOption, Reset};
use gargalo_wire::tcp::{Flags, Options, Segment};
use rand::Rng;
use rand_pcg::Pcg64;

use super::{Connection, Mode, Place, Transmit};
use crate::addresses::Addresses;
use crate::crypto::Key;
use crate::error::{ConfigError, ResetReason};
use crate::event::Event;
use crate::mapping::{Received, Sent};
use crate::send::{Fin, SLOTS};
use crate::subflow::{
    Backup, Burst, Input, Join, LossProbe, LostDeliveries, Origin, Outbox, Penalty, Removal,
    Subflow,
};

/// SYNs with MP_CAPABLE before one without: a middlebox may drop them (RFC 8684 §3.7).
const MOST_SYNS: u32 = 2;

/// What to do with a segment of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Pass it to the endpoint.
    Pass,
    /// Drop it: the peer will retransmit.
    Drop,
    /// End the subflow.
    Refuse(ResetReason),
}

/// The parameters of a new subflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) addresses: Addresses,
    pub(super) gateway: Option<IpAddr>,
    pub(super) origin: Origin,
    pub(super) local_id: u8,
    pub(super) remote_id: Option<u8>,
    pub(super) backup: bool,
    pub(super) active: bool,
}

/// MP_CAPABLE among the options.
fn capable(segment: &Segment) -> Option<(u8, CapableFlags, CapableKeys)> {
    let list = segment.options.mptcp.as_deref()?;
    list.iter().find_map(|o| match o {
        MptcpOption::Capable {
            version,
            flags,
            keys,
        } => Some((*version, *flags, *keys)),
        _ => None,
    })
}

/// Whether the flags name the algorithm, and no extension of this version (RFC 8684 §3.1: a receiver that does not
/// understand flag B ignores the option).
fn is_understood(flags: CapableFlags) -> bool {
    flags.contains(CapableFlags::HMAC_SHA256) && !flags.contains(CapableFlags::EXTENSIBLE)
}

impl Connection {
    /// Creates a congestion control with its own random stream.
    pub(super) fn controller(
        &self,
        now: Instant,
        rng: &mut Pcg64,
    ) -> Result<Box<dyn Controller>, ConfigError> {
        let mut word = || u128::from(rng.next_u64());
        let own = Pcg64::new((word() << 64) | word(), (word() << 64) | word());
        let mss = Bytes::new(u64::from(self.tcp.mss));
        let init = gargalo_cc::Init {
            now,
            mss,
            initial_window: self.tcp.first_window(),
            rng: own,
        };
        self.congestion.build(init).map_err(ConfigError::Congestion)
    }

    pub(super) fn open_initial(
        &mut self,
        now: Instant,
        addresses: Addresses,
    ) -> Result<(), ConfigError> {
        self.timers.local_port = addresses.local.port();
        let plan = Plan {
            addresses,
            gateway: None,
            origin: Origin::Initial,
            local_id: 0,
            remote_id: Some(0),
            backup: false,
            active: self.is_client,
        };
        self.make(now, plan).map(|_| ())
    }

    /// Creates a subflow; returns its index.
    pub(super) fn make(&mut self, now: Instant, plan: Plan) -> Result<usize, ConfigError> {
        let mut rng = self.rng.clone();
        let controller = self.controller(now, &mut rng)?;
        let init = gargalo_tcp::Init {
            local_port: plan.addresses.local.port(),
            remote_port: plan.addresses.remote.port(),
            isn: Seq::new(rng.next_u64() as u32),
            is_ipv6: plan.addresses.local.is_ipv6(),
            ts_offset: rng.next_u64() as u32,
            fast_open_cookie: None,
        };
        let own_nonce = rng.next_u64() as u32;
        self.rng = rng;
        let endpoint = if plan.active {
            Endpoint::connect(self.tcp.clone(), controller, init, now)
        } else {
            Endpoint::listen(self.tcp.clone(), controller, init, now)
        };
        Ok(self.install(now, plan, endpoint, own_nonce))
    }

    /// Creates a subflow with an endpoint; returns its index.
    pub(super) fn install(
        &mut self,
        now: Instant,
        plan: Plan,
        mut endpoint: Endpoint,
        own_nonce: u32,
    ) -> usize {
        endpoint.share_window(Some(self.receive.window()));
        endpoint.leave_send_window(true);
        endpoint.reserve_options(now, self.reserved());
        let used = self.subflows.iter().fold(0u64, |bits, s| bits | s.bit());
        // There are never more subflows than slots.
        let slot = (!used).trailing_zeros().min(SLOTS as u32 - 1) as u8;
        let mut subflow = Subflow {
            id: self.next_id,
            slot,
            addresses: plan.addresses,
            gateway: plan.gateway,
            origin: plan.origin,
            join: Join {
                local_id: plan.local_id,
                remote_id: plan.remote_id,
                own_nonce,
                peer_nonce: 0,
                confirm_at: Instant::MAX,
            },
            backup: Backup {
                own: plan.backup,
                peer: false,
            },
            endpoint,
            confirmed: false,
            announced: false,
            closing: false,
            sent: Sent::default(),
            written: 0,
            acked: 0,
            input: Input {
                received: Received::default(),
                consumed: 0,
                read_at: now,
            },
            outbox: Outbox::default(),
            probe: LossProbe::NONE,
            copies: Default::default(),
            penalty: Penalty::default(),
            halves_after: now,
            burst: Burst::default(),
            stale: false,
            suspected: false,
            lost_deliveries: LostDeliveries::new(now),
            last_pushed: now,
            paced_until: Instant::MAX,
            deadline: Instant::MAX,
            removal: Removal::NONE,
        };
        self.next_id += 1;
        self.work.active |= subflow.bit();
        self.work.changed |= subflow.bit();
        self.places.push(Place::new(&subflow));
        self.views.push(subflow.view(now));
        self.labels
            .push(self.address_table.names.label(subflow.addresses));
        self.siblings.push(Sibling {
            cwnd: Bytes::ZERO,
            srtt: None,
            min_rtt: None,
            mss: Bytes::new(u64::from(self.tcp.mss)),
            since_loss: Bytes::ZERO,
            between_losses: Bytes::ZERO,
            rate: 0.0,
            can_send: false,
        });
        self.subflows.push(subflow);
        self.subflows.len() - 1
    }

    /// Processes a segment for no existing subflow.
    pub(super) fn on_unknown_segment(
        &mut self,
        now: Instant,
        addresses: Addresses,
        segment: Segment,
        ecn: Ecn,
    ) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let is_syn = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let fresh = !self.is_client && self.next_id == 0 && !self.over;
        if is_syn && fresh {
            self.address_table.set_initial(addresses);
            if self.open_initial(now, addresses).is_ok() {
                self.handle(now, addresses, segment, ecn);
            }
            return;
        }
        let reason = if is_syn {
            match self.on_join(now, addresses, &segment, ecn) {
                Ok(()) => return,
                Err(reason) => reason,
            }
        } else {
            None
        };
        self.refuse(addresses, &segment, reason);
    }

    /// Answers by a reset (RFC 9293 §3.10.7.1).
    pub(super) fn refuse(
        &mut self,
        addresses: Addresses,
        segment: &Segment,
        reason: Option<ResetReason>,
    ) {
        /// Bound on the state that unknown segments can cause.
        const MOST: usize = 64;
        if self.stray.len() >= MOST {
            return;
        }
        let (seq, ack, flags) = if segment.flags.contains(Flags::ACK) {
            (segment.ack, Seq::new(0), Flags::RST)
        } else {
            (Seq::new(0), segment.end(), Flags::RST | Flags::ACK)
        };
        let words = reason.map(|r| Box::new(List::from(reset_option(r))));
        self.stray.push_back(Transmit {
            addresses,
            gateway: None,
            segment: Segment {
                src_port: addresses.local.port(),
                dst_port: addresses.remote.port(),
                seq,
                ack,
                flags,
                options: Options {
                    mptcp: words,
                    ..Options::default()
                },
                ..Segment::default()
            },
            ecn: Ecn::NotEct,
        });
    }

    /// Examines a segment before the endpoint of its subflow does.
    pub(super) fn admit(&mut self, now: Instant, i: usize, segment: &Segment) -> Admission {
        let s = &self.subflows[i];
        let flags = segment.flags;
        let (syn, ack) = (flags.contains(Flags::SYN), flags.contains(Flags::ACK));
        let state = s.endpoint.state();
        if flags.contains(Flags::RST) || state.is_synchronised() {
            return Admission::Pass;
        }
        // A segment that does not acknowledge our SYN is refused by the endpoint.
        let answers = ack && s.endpoint.sent_position(segment.ack) == Some(0);
        match (s.origin, state) {
            (Origin::Initial, State::Listen) if syn && !ack => self.on_capable_syn(now, i, segment),
            (Origin::Initial, State::SynSent) if syn && answers => {
                self.on_capable_answer(now, i, segment);
                Admission::Pass
            }
            (Origin::Initial, State::SynReceived) if !syn && answers => {
                self.on_capable_ack(now, i, segment)
            }
            (Origin::OwnJoin, State::SynSent) if syn && answers => self.on_join_answer(i, segment),
            (Origin::PeerJoin, State::SynReceived) if !syn && answers => {
                self.on_join_ack(i, segment)
            }
            _ => Admission::Pass,
        }
    }

    /// Processes the peer's SYN.
    pub(super) fn on_capable_syn(
        &mut self,
        now: Instant,
        i: usize,
        segment: &Segment,
    ) -> Admission {
        match capable(segment) {
            Some((1, flags, CapableKeys::None)) if is_understood(flags) => {
                self.note_flags(now, i, flags);
            }
            _ => self.fall_back(now, i),
        }
        Admission::Pass
    }

    /// Processes the SYN-ACK.
    fn on_capable_answer(&mut self, now: Instant, i: usize, segment: &Segment) {
        match capable(segment) {
            Some((1, flags, CapableKeys::Sender(key)))
                if is_understood(flags) && self.timers.syns <= MOST_SYNS =>
            {
                self.note_flags(now, i, flags);
                self.become_multipath(i, key);
                self.send.edge = u64::from(segment.window);
            }
            _ => self.fall_back(now, i),
        }
    }

    /// Processes the third packet.
    fn on_capable_ack(&mut self, now: Instant, i: usize, segment: &Segment) -> Admission {
        if self.mode != Mode::Opening {
            return Admission::Pass;
        }
        match capable(segment) {
            Some((
                1,
                flags,
                CapableKeys::Both { sender, receiver }
                | CapableKeys::BothAndData {
                    sender, receiver, ..
                },
            )) if is_understood(flags) && receiver == self.handshake.own.get() => {
                self.become_multipath(i, sender);
            }
            // Later data with DSS: the packet with the keys was lost and will be retransmitted.
            None if segment.options.mptcp.is_some() => return Admission::Drop,
            _ => self.fall_back(now, i),
        }
        Admission::Pass
    }

    fn become_multipath(&mut self, i: usize, peer_key: u64) {
        self.handshake.peer = Some(Key::new(peer_key));
        self.mode = Mode::Multipath;
        self.subflows[i].confirmed = true;
    }

    fn note_flags(&mut self, now: Instant, i: usize, flags: CapableFlags) {
        self.handshake.deny_join_initial = flags.contains(CapableFlags::DENY_JOIN_INITIAL);
        if flags.contains(CapableFlags::CHECKSUM) && !self.handshake.checksum {
            self.handshake.checksum = true;
            let reserved = self.reserved();
            self.subflows[i].endpoint.reserve_options(now, reserved);
        }
    }

    /// MP_CAPABLE for a SYN or SYN-ACK to send.
    pub(super) fn capable_of_syn(&mut self, answers: bool) -> Option<MptcpOption> {
        let keys = if answers {
            if self.mode == Mode::Plain {
                return None;
            }
            CapableKeys::Sender(self.handshake.own.get())
        } else {
            self.timers.syns = self.timers.syns.saturating_add(1);
            if self.timers.syns > MOST_SYNS {
                return None;
            }
            CapableKeys::None
        };
        Some(MptcpOption::Capable {
            version: 1,
            flags: self.capable_flags(),
            keys,
        })
    }

    pub(super) fn capable_flags(&self) -> CapableFlags {
        if self.handshake.checksum {
            CapableFlags::HMAC_SHA256 | CapableFlags::CHECKSUM
        } else {
            CapableFlags::HMAC_SHA256
        }
    }

    /// Falls back to plain TCP on this subflow (RFC 8684 §3.7).
    pub(super) fn fall_back(&mut self, now: Instant, i: usize) {
        if self.mode == Mode::Plain {
            return;
        }
        let was_multipath = self.mode == Mode::Multipath;
        self.mode = Mode::Plain;
        self.stats.fallbacks += 1;
        self.events.push(Event::FellBack);
        self.send.again.clear();
        self.timers.data = Instant::MAX;
        for j in 0..self.subflows.len() {
            if j != i {
                self.reset_subflow(now, j, ResetReason::Unspecified);
            }
        }
        let s = &mut self.subflows[i];
        s.confirmed = true;
        s.copies.clear();
        s.endpoint.leave_send_window(false);
        // The endpoint controls the send window from now on.
        self.send.edge = u64::MAX / 2;
        if was_multipath {
            self.fallback.infinite_until = s.written + 1;
            // DATA_FIN has no meaning any more: the FIN of the subflow replaces it.
            if matches!(self.send.fin, Fin::Sent | Fin::Acked) {
                self.send.fin = Fin::Wanted;
            }
        } else {
            s.endpoint.reserve_options(now, 0);
        }
        self.work.schedule_due = true;
    }

    /// The initial subflow is open.
    pub(super) fn on_initial_open(&mut self, now: Instant) {
        if !self.connected {
            self.connected = true;
            self.events.push(Event::Connected);
        }
        self.work.schedule_due = true;
        self.arm_data_timer(now);
    }
}

/// The MP_TCPRST option of a reset.
pub(super) fn reset_option(reason: ResetReason) -> MptcpOption {
    MptcpOption::Reset(Reset {
        flags: 0,
        reason: reason.code(),
    })
}
