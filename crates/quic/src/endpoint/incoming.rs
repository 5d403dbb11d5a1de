//! Datagrams from the network and events from noq.

use std::net::SocketAddr;

use bytes::BytesMut;
use gargalo_units::Ecn;
use noq_proto::{
    Connection, ConnectionError, DatagramEvent, EcnCodepoint, FourTuple, PathId, Side, StreamEvent,
    Transmit, TransportErrorCode, VarInt,
};

use super::{Endpoint, State};
use crate::types::{Datagram, Event};

impl Endpoint {
    pub(super) fn receive(
        &mut self,
        payload: BytesMut,
        ecn: Ecn,
        local: SocketAddr,
        remote: SocketAddr,
    ) {
        let now = self.time.to_std(self.now);
        // Datagrams in flight to the old address of a migrated client are still delivered, but must not cause a
        // migration back.
        let own = if self.options.multipath {
            local
        } else {
            self.local
        };
        let path = FourTuple::new(remote, Some(own.ip()));
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        self.scratch.clear();
        let event = self.noq.handle(now, path, ecn, payload, &mut self.scratch);
        match event {
            // RFC 9000 §10.2.2: later datagrams are ignored; noq might fail on them.
            Some(DatagramEvent::ConnectionEvent(..)) if self.closing.draining => {}
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((own, connection)) = &mut self.connection
                    && *own == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if self.connection.is_some() || self.state == State::Over {
                    self.noq.ignore(incoming);
                    return;
                }
                self.scratch.clear();
                if self.options.retries && !incoming.remote_address_validated() {
                    self.scratch.clear();
                    // An address that is not validated may be answered with a Retry: noq refuses no other.
                    if let Ok(transmit) = self.noq.retry(incoming, &mut self.scratch) {
                        self.answer(&transmit, local);
                    }
                    return;
                }
                match self.noq.accept(incoming, now, &mut self.scratch, None) {
                    Ok(connection) => self.begin(connection),
                    Err(e) => {
                        if let Some(transmit) = &e.response {
                            self.answer(transmit, local);
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => self.answer(&transmit, local),
            None => {}
        }
    }

    pub(super) fn answer(&mut self, transmit: &Transmit, local: SocketAddr) {
        let payload = BytesMut::from(&self.scratch[..transmit.size]);
        self.answers.push_back(Datagram {
            payload,
            ecn: Ecn::NotEct,
            local,
            remote: transmit.destination,
        });
    }

    /// Passes events between noq's endpoint and connection, and to the application.
    pub(super) fn pass_events(&mut self) {
        let Some((handle, mut connection)) = self.connection.take() else {
            return;
        };
        while let Some(event) = connection.poll_endpoint_events() {
            self.closing.draining |= event.is_draining();
            if let Some(event) = self.noq.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        self.begin_early(&connection);
        while let Some(event) = connection.poll() {
            self.on_event(&mut connection, event);
        }
        self.connection = Some((handle, connection));
    }

    pub(super) fn on_event(&mut self, connection: &mut Connection, event: noq_proto::Event) {
        match event {
            noq_proto::Event::Connected => self.on_handshake(connection),
            noq_proto::Event::HandshakeConfirmed => {
                self.confirmed = true;
                self.observers
                    .report
                    .notice("handshake", || "confirmed".to_owned());
                self.trace_state("handshake_confirmed");
            }
            noq_proto::Event::ConnectionLost { reason } => self.on_lost(reason),
            noq_proto::Event::Stream(event) => {
                self.streams.on_event(connection, &event);
                if let StreamEvent::Stopped { id, .. } = event {
                    self.events.push_back(Event::Stopped(id.into()));
                }
            }
            noq_proto::Event::Path(event) => self.on_path(connection, &event),
            _ => {}
        }
    }

    pub(super) fn on_handshake(&mut self, connection: &mut Connection) {
        let accepted = match self.side {
            Side::Client => connection.accepted_0rtt(),
            Side::Server => true,
        };
        let rejected = self.early && !accepted;
        if rejected {
            self.observers.meter.start_again();
        }
        self.streams.end_early(connection, rejected);
        if self.state == State::Opening {
            self.events.push_back(Event::Connected { early: false });
        }
        self.state = State::Open;
        // noq does not report the first path.
        self.path_opened(connection, PathId::ZERO);
        let zero_rtt = self.early.then_some(accepted);
        self.events.push_back(Event::HandshakeComplete { zero_rtt });
        self.observers
            .report
            .notice("handshake", || "complete".to_owned());
        self.trace_state("handshake_complete");
        if let Some(accepted) = zero_rtt {
            let outcome = if accepted { "accepted" } else { "rejected" };
            self.observers
                .report
                .notice("zero-rtt", || outcome.to_owned());
        }
    }

    pub(super) fn on_lost(&mut self, reason: ConnectionError) {
        let in_order = match &reason {
            ConnectionError::ApplicationClosed(close) => close.error_code == VarInt::from_u32(0),
            ConnectionError::ConnectionClosed(close) => {
                close.error_code == TransportErrorCode::NO_ERROR
            }
            ConnectionError::LocallyClosed => true,
            _ => false,
        };
        let event = if in_order {
            Event::Closed
        } else {
            Event::Failed(reason.to_string())
        };
        self.end(event, false);
    }

    pub(super) fn trace_state(&self, state: &str) {
        if let Some(trace) = &self.observers.trace {
            trace.state(state);
        }
    }

    pub(super) fn end(&mut self, event: Event, locally: bool) {
        if self.state == State::Over {
            return;
        }
        self.state = State::Over;
        if let Some(trace) = &self.observers.trace {
            let failure = match &event {
                Event::Failed(why) => Some(why.as_str()),
                _ => None,
            };
            trace.closed(locally, failure);
        }
        self.observers.report.notice("close", || match &event {
            Event::Failed(why) => why.clone(),
            _ => String::new(),
        });
        self.events.push_back(event);
    }
}
