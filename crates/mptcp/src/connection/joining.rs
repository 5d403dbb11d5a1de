//! Further subflows: MP_JOIN with its three authenticated packets (RFC 8684 §3.2).

use gargalo_units::{Ecn, Instant};
use gargalo_wire::mptcp::{Join, MptcpOption};
use gargalo_wire::tcp::Segment;

use super::opening::{Admission, Plan};
use super::{Connection, Mode, ip};
use crate::addresses::Addresses;
use crate::crypto::{join_hmac, leftmost_64, leftmost_160};
use crate::error::ResetReason;
use crate::subflow::Origin;

fn join(segment: &Segment) -> Option<Join> {
    let list = segment.options.mptcp.as_deref()?;
    list.iter().find_map(|o| match o {
        MptcpOption::Join(join) => Some(*join),
        _ => None,
    })
}

impl Connection {
    /// Processes a SYN for no existing subflow. Returns the subflow of a valid join, else the reason of the
    /// refusal; none if it is not a join.
    pub(super) fn on_join(
        &mut self,
        now: Instant,
        addresses: Addresses,
        segment: &Segment,
        ecn: Ecn,
    ) -> Result<(), Option<ResetReason>> {
        let Some(Join::Syn {
            backup,
            address_id,
            receiver_token,
            nonce,
        }) = join(segment)
        else {
            return Err(None);
        };
        let refusal = if receiver_token != self.handshake.own.token() {
            Some(ResetReason::ProtocolError)
        } else if self.mode != Mode::Multipath || self.over || self.is_finishing() {
            Some(ResetReason::Prohibited)
        } else if self.subflows.len() >= self.most_subflows() {
            Some(ResetReason::LackOfResources)
        } else {
            None
        };
        if refusal.is_some() {
            self.stats.joins_refused += 1;
            return Err(refusal);
        }
        let local = self.address_table.local.iter();
        let mut of_ours = local.filter(|l| l.address == ip(addresses.local));
        let (local_id, own_backup) = of_ours.next().map_or((0, false), |l| (l.id, l.backup));
        let plan = Plan {
            addresses,
            gateway: None,
            origin: Origin::PeerJoin,
            local_id,
            remote_id: Some(address_id),
            backup: own_backup,
            active: false,
        };
        let made = self.make(now, plan);
        let Ok(i) = made else {
            return Err(Some(ResetReason::LackOfResources));
        };
        let s = &mut self.subflows[i];
        s.join.peer_nonce = nonce;
        s.backup.peer = backup;
        s.endpoint.handle(now, segment.clone(), ecn);
        self.refresh(now, i);
        Ok(())
    }

    pub(super) fn most_subflows(&self) -> usize {
        (self.config.options.max_subflows as usize).min(crate::send::SLOTS)
    }

    /// Processes the SYN-ACK of a join that we initiated.
    pub(super) fn on_join_answer(&mut self, i: usize, segment: &Segment) -> Admission {
        let (Some(peer), own) = (self.handshake.peer, self.handshake.own) else {
            return Admission::Refuse(ResetReason::ProtocolError);
        };
        let s = &mut self.subflows[i];
        match join(segment) {
            Some(Join::SynAck {
                backup,
                address_id,
                hmac,
                nonce,
            }) if leftmost_64(&join_hmac(peer, own, nonce, s.join.own_nonce)) == hmac => {
                s.join.peer_nonce = nonce;
                s.backup.peer = backup;
                s.join.remote_id.get_or_insert(address_id);
                Admission::Pass
            }
            _ => {
                self.stats.joins_refused += 1;
                Admission::Refuse(ResetReason::ProtocolError)
            }
        }
    }

    /// Processes the third packet of a join that the peer initiated.
    pub(super) fn on_join_ack(&mut self, i: usize, segment: &Segment) -> Admission {
        let (Some(peer), own) = (self.handshake.peer, self.handshake.own) else {
            return Admission::Refuse(ResetReason::ProtocolError);
        };
        let s = &mut self.subflows[i];
        match join(segment) {
            Some(Join::Ack { hmac }) => {
                let expected = join_hmac(peer, own, s.join.peer_nonce, s.join.own_nonce);
                if leftmost_160(&expected) == hmac {
                    s.confirmed = true;
                    s.outbox.ack_wanted = true;
                    Admission::Pass
                } else {
                    self.stats.joins_refused += 1;
                    Admission::Refuse(ResetReason::Prohibited)
                }
            }
            // The packet with the HMAC was lost and will be retransmitted.
            _ => Admission::Drop,
        }
    }

    /// MP_JOIN for a SYN or SYN-ACK to send.
    pub(super) fn join_of_syn(&self, i: usize) -> Option<MptcpOption> {
        let (peer, s) = (self.handshake.peer?, &self.subflows[i]);
        Some(MptcpOption::Join(match s.origin {
            Origin::PeerJoin => Join::SynAck {
                backup: s.backup.own,
                address_id: s.join.local_id,
                hmac: leftmost_64(&join_hmac(
                    self.handshake.own,
                    peer,
                    s.join.own_nonce,
                    s.join.peer_nonce,
                )),
                nonce: s.join.own_nonce,
            },
            _ => Join::Syn {
                backup: s.backup.own,
                address_id: s.join.local_id,
                receiver_token: peer.token(),
                nonce: s.join.own_nonce,
            },
        }))
    }

    /// MP_JOIN for a third packet to send.
    pub(super) fn join_of_ack(&self, i: usize) -> Option<MptcpOption> {
        let (peer, s) = (self.handshake.peer?, &self.subflows[i]);
        let code = join_hmac(
            self.handshake.own,
            peer,
            s.join.own_nonce,
            s.join.peer_nonce,
        );
        Some(MptcpOption::Join(Join::Ack {
            hmac: leftmost_160(&code),
        }))
    }
}
