//! What a scenario asks, in neqo's types.

use gargalo_plugin::stack::Config;
use neqo_transport::{CongestionControl, ConnectionParameters, SlowStart, StreamType, Version};
use serde_json::{Map, Value};

/// Options of neqo that scenarios may set.
const KNOWN: &str = "slow_start, spurious_recovery, mlkem, sni_slicing";

/// Datagrams that wait to be sent.
const SENT_DATAGRAMS: usize = 16;

fn option(parameters: ConnectionParameters, name: &str, value: &Value) -> Result<ConnectionParameters, String> {
    let wrong = |what: &str| Err(format!("option {name} = {value}: {what}"));
    if name == "slow_start" {
        return match value.as_str().map(str::parse::<SlowStart>) {
            Some(Ok(algorithm)) => Ok(parameters.slow_start(algorithm)),
            _ => wrong("give \"classic\", \"hystart\" or \"search\""),
        };
    }
    let Some(on) = value.as_bool() else { return wrong(&format!("neqo has {KNOWN}, the last three true or false")) };
    match name {
        "spurious_recovery" => Ok(parameters.spurious_recovery(on)),
        "mlkem" => Ok(parameters.mlkem(on)),
        "sni_slicing" => Ok(parameters.sni_slicing(on)),
        _ => wrong(&format!("neqo has {KNOWN}")),
    }
}

pub fn parameters(asked: &Config<'_>) -> Result<ConnectionParameters, String> {
    let congestion = match asked.congestion {
        "newreno" => CongestionControl::NewReno,
        _ => CongestionControl::Cubic,
    };
    let stream = asked.stream_window.min((1 << 62) - 1);
    let mut parameters = ConnectionParameters::default()
        .versions(Version::Version1, vec![Version::Version1])
        .congestion_control(congestion)
        .max_data(asked.connection_window)
        .max_stream_data(StreamType::BiDi, false, stream)
        .max_stream_data(StreamType::BiDi, true, stream)
        .max_streams(StreamType::BiDi, asked.max_streams.min(1 << 60))
        .idle_timeout(asked.idle_timeout)
        .initial_rtt(asked.initial_rtt)
        .pacing(asked.pacing)
        .pmtud(asked.max_datagram_size > asked.datagram_size);
    if asked.max_datagram_frame > 0 {
        // neqo discards the oldest of more.
        parameters = parameters.datagram_size(asked.max_datagram_frame.into()).outgoing_datagram_queue(SENT_DATAGRAMS);
    }
    if asked.max_unidirectional_streams > 0 {
        parameters = parameters
            .max_streams(StreamType::UniDi, asked.max_unidirectional_streams.min(1 << 60))
            .max_stream_data(StreamType::UniDi, true, stream);
    }
    let options: Map<String, Value> = serde_json::from_str(asked.options).map_err(|e| e.to_string())?;
    options.iter().try_fold(parameters, |all, (name, value)| option(all, name, value))
}
