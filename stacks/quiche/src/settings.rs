//! What a scenario asks, in quiche's and BoringSSL's types.

use std::error::Error;

use boring::pkey::{Id, PKey};
use boring::ssl::{SslContextBuilder, SslMethod, SslSignatureAlgorithm};
use boring::x509::X509;
use gargalo_plugin::stack::Config;

/// Lengths of the queues of datagrams. What arrives is taken at once; what cannot be sent at once waits at the host,
/// which knows what is too old.
const RECEIVED_DATAGRAMS: usize = 1000;
const SENT_DATAGRAMS: usize = 16;

pub fn config(asked: &Config<'_>) -> Result<quiche::Config, Box<dyn Error>> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    let certificate = X509::from_der(asked.certificate)?;
    if asked.is_server {
        tls.set_certificate(&certificate)?;
        tls.set_private_key(&*PKey::private_key_from_pkcs8(asked.private_key)?)?;
    } else {
        tls.cert_store_mut().add_cert(&certificate)?;
        let algorithm = match certificate.public_key()?.id() {
            Id::EC => SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256,
            _ => SslSignatureAlgorithm::ED25519,
        };
        tls.set_verify_algorithm_prefs(&[algorithm])?;
    }
    let mut c = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, tls)?;
    c.verify_peer(!asked.is_server);
    c.set_application_protos(&[asked.alpn.as_bytes()])?;
    c.set_cc_algorithm_name(asked.congestion)?;
    let packets = asked.initial_window / u64::from(asked.datagram_size);
    c.set_initial_congestion_window_packets(usize::try_from(packets.max(1))?);
    c.set_initial_rtt(asked.initial_rtt);
    c.set_max_idle_timeout(u64::try_from(asked.idle_timeout.as_millis())?);
    c.set_initial_max_streams_bidi(asked.max_streams);
    c.set_initial_max_data(asked.connection_window);
    c.set_max_connection_window(asked.connection_window);
    c.set_initial_max_stream_data_bidi_local(asked.stream_window);
    c.set_initial_max_stream_data_bidi_remote(asked.stream_window);
    c.set_max_stream_window(asked.stream_window);
    if asked.max_unidirectional_streams > 0 {
        c.set_initial_max_streams_uni(asked.max_unidirectional_streams);
        c.set_initial_max_stream_data_uni(asked.stream_window);
    }
    if asked.max_datagram_frame > 0 {
        c.enable_dgram(true, RECEIVED_DATAGRAMS, SENT_DATAGRAMS);
    }
    c.set_max_recv_udp_payload_size(65527);
    c.set_max_send_udp_payload_size(asked.max_datagram_size.into());
    c.discover_pmtu(asked.max_datagram_size > asked.datagram_size);
    c.enable_pacing(asked.pacing);
    if asked.is_server {
        c.set_ticket_key(asked.ticket_key.get(..48).ok_or("the ticket key is too short")?)?;
    }
    // Without it, a client's session would not remember that the server takes early data.
    if asked.early_data || (!asked.is_server && asked.session.is_empty()) {
        c.enable_early_data();
    }
    c.log_keys();
    Ok(c)
}
