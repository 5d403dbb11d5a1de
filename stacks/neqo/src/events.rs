//! What neqo reports, passed on to the host.

use std::io::LineWriter;
use std::time::Instant;

use gargalo_plugin::stack::{EarlyData, Event, host};
use neqo_common::Role;
use neqo_common::event::Provider;
use neqo_common::qlog::{Qlog, new_trace};
use neqo_transport::{CloseReason, Connection, ConnectionEvent, Error, State, ZeroRttState};
use nss_rs::AuthenticationStatus;
use qlog::events::EventImportance;
use qlog::streamer::QlogStreamer;

use crate::Neqo;

impl Neqo {
    fn on_event(&mut self, c: &mut Connection, event: ConnectionEvent, at: Instant) {
        match event {
            ConnectionEvent::AuthenticationNeeded => {
                let chain = c.peer_certificate();
                let is_known = chain.is_some_and(|chain| chain.iter().next() == Some(&self.certificate[..]));
                let told = if is_known { AuthenticationStatus::Ok } else { AuthenticationStatus::CertUntrusted };
                c.authenticated(told, at);
            }
            ConnectionEvent::RecvStreamReadable { stream_id } => {
                while let Ok((length, fin)) = c.stream_recv(stream_id, &mut self.piece) {
                    if length > 0 || fin {
                        host::received(stream_id.as_u64(), &self.piece[..length], fin);
                    }
                    if length == 0 || fin {
                        break;
                    }
                }
            }
            ConnectionEvent::RecvStreamReset { stream_id, .. } => host::reset(stream_id.as_u64()),
            ConnectionEvent::SendStreamStopSending { stream_id, .. } => host::stopped(stream_id.as_u64()),
            ConnectionEvent::Datagram(data) => host::datagram(&data),
            ConnectionEvent::SendStreamComplete { stream_id } => drop(self.sending.remove(&stream_id.as_u64())),
            ConnectionEvent::ZeroRttRejected => {
                self.early = EarlyData::Rejected;
                self.sending.clear();
            }
            ConnectionEvent::StateChange(State::Connected) => {
                if c.role() == Role::Server && c.send_ticket(at, &[]).is_err() {
                    host::notice("ticket", "cannot be sent");
                }
                if matches!(c.zero_rtt_state(), ZeroRttState::AcceptedClient | ZeroRttState::AcceptedServer) {
                    self.early = EarlyData::Accepted;
                }
                host::event(Event::Connected(self.early));
            }
            ConnectionEvent::ResumptionToken(session) => host::session(session.as_ref()),
            ConnectionEvent::StateChange(state) => state.error().into_iter().for_each(end),
            _ => {}
        }
    }

    /// Passes on what a call has changed.
    pub fn report(&mut self, at: Instant) {
        let Some(connection) = self.connection.clone() else { return };
        let c = &mut *connection.borrow_mut();
        while let Some(event) = c.next_event() {
            self.on_event(c, event, at);
        }
        if c.role() == Role::Client && c.state().connected() {
            // Without a NEW_TOKEN neqo waits before it tells it, perhaps until after the end of the connection.
            c.take_resumption_token(at).iter().for_each(|session| host::session(session.as_ref()));
        }
        if let Some(local) = self.moves_to
            && matches!(c.state(), State::Confirmed)
        {
            self.moves_to = None;
            if let Err(e) = c.migrate(Some(local), None, true, at) {
                host::notice("migration", &format!("failed: {e}"));
            }
        }
        if self.asked.notices {
            self.noticed.update(c);
        }
    }
}

fn end(reason: &CloseReason) {
    match reason {
        CloseReason::Application(0)
        | CloseReason::Transport(Error::None | Error::Peer(0) | Error::PeerApplication(0)) => {
            host::event(Event::Closed)
        }
        CloseReason::Transport(Error::IdleTimeout) => host::event(Event::Failed("timed out")),
        CloseReason::Transport(e) => host::event(Event::Failed(&e.to_string())),
        CloseReason::Application(code) => host::event(Event::Failed(&format!("application error {code:#x}"))),
    }
}

pub fn write_qlog(c: &mut Connection, at: Instant) {
    let (version, level) = (qlog::QLOG_VERSION.to_owned(), EventImportance::Extra);
    let file = Box::new(LineWriter::new(host::QlogFile));
    let log = QlogStreamer::new(version, None, None, None, at, new_trace(c.role()), level, file);
    if let Ok(log) = Qlog::enabled(log, "gargalo".into()) {
        c.set_qlog(log);
    }
}
