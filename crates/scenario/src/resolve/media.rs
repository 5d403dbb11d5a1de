//! Media calls, voice and video with all defaults.

use gargalo_units::{Bytes, Duration, Rate};
use gargalo_workload::Period;
use gargalo_workload::emodel;
use gargalo_workload::media::Media;
use gargalo_workload::nada::Nada;
use gargalo_workload::video::{Selection, Video};
use gargalo_workload::voice::{Playout, Voice};

use super::traffic::Refuse;
use crate::model::{
    ByBuffer, ByThroughput, Codec, Media as MediaSpec, PeriodMap, PeriodSpec, PlayoutSpec,
    SelectionMap, SelectionName, SelectionSpec, Video as VideoSpec, Voice as VoiceSpec,
};

/// RTP header without options (RFC 3550 section 5.1).
const RTP_HEADER: u64 = 12;

/// The values of RFC 8698 figure 3 and RFC 8593 §5.
pub(crate) fn media(spec: &MediaSpec, refuse: Refuse<'_, '_>) -> Media {
    let usual = Media::default();
    let min_rate = spec.min_rate.map_or(usual.nada.min_rate, |q| q.0);
    let max_rate = spec.max_rate.map_or(usual.nada.max_rate, |q| q.0);
    let packet_size = spec.packet_size.map_or(usual.packet_size, |q| q.0);
    if min_rate.as_bps() < 1000 || max_rate < min_rate || max_rate.as_bps() > 10_000_000_000 {
        let message = format!("rates from {min_rate} to {max_rate}");
        let help = "give 1kbit/s to 10Gbit/s, the lower one first";
        refuse("media.min_rate", &message, help);
    }
    if !(64..=65_507).contains(&packet_size.get()) {
        let message = format!("a packet_size of {packet_size}");
        refuse("media.packet_size", &message, "give 64B to 65507B");
    }
    let feedback = spec.feedback.map_or(usual.nada.feedback, |q| q.0);
    if !(Duration::from_millis(1)..=Duration::from_secs(10)).contains(&feedback) {
        let message = format!("a report every {feedback}");
        refuse("media.feedback", &message, "give 1ms to 10s");
    }
    Media {
        nada: Nada {
            min_rate,
            max_rate,
            priority: spec.priority.unwrap_or(usual.nada.priority),
            feedback,
            reference: spec.reference.map_or(usual.nada.reference, |q| q.0),
        },
        frame_rate: spec.frame_rate.unwrap_or(usual.frame_rate),
        packet_size,
        variation: spec.variation.map_or(usual.variation, |q| q.0.0),
        reaction: spec.reaction.map_or(usual.reaction, |q| q.0),
        ecn: spec.ecn.unwrap_or(usual.ecn),
    }
}

pub(crate) fn voice(spec: &VoiceSpec, refuse: Refuse<'_, '_>) -> Voice {
    let interval = Duration::from_millis(20);
    let (speech, look_ahead, impairment) = match spec.codec.unwrap_or_default() {
        Codec::G711 => (160, Duration::ZERO, emodel::G711),
        Codec::G729 => (20, Duration::from_millis(5), emodel::G729),
    };
    let mut period = |p: &Option<PeriodSpec>, key: &str, usual: u64| {
        let period = match p {
            None => Period::Exponential(Duration::from_millis(usual)),
            Some(PeriodSpec::Fixed(d)) => Period::Fixed(d.0),
            Some(PeriodSpec::Random(PeriodMap::Exponential(d))) => Period::Exponential(d.0),
        };
        if period.mean().is_zero() {
            refuse(
                &format!("voice.{key}"),
                "a period of zero",
                "give a length, like \"1s\"",
            );
        }
        period
    };
    Voice {
        packet_size: Bytes::new(speech + RTP_HEADER),
        interval,
        look_ahead,
        impairment,
        talk: period(&spec.talk, "talk", 1004),
        pause: period(&spec.pause, "pause", 1587),
        playout: match spec.playout {
            Some(PlayoutSpec::Fixed(d)) => Playout::Fixed(d.0),
            _ => Playout::Adaptive,
        },
    }
}

/// The rates of T.-Y. Huang et al., SIGCOMM 2014, and two more above.
const LADDER: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];

pub(crate) fn video(spec: &VideoSpec, refuse: Refuse<'_, '_>) -> Video {
    let segment = spec.segment.map_or(Duration::from_secs(4), |q| q.0);
    if segment < Duration::from_millis(1) {
        refuse(
            "video.segment",
            "a segment of less than a millisecond",
            "give some seconds",
        );
    }
    let ladder: Vec<Rate> = match &spec.ladder {
        Some(list) => list.iter().map(|q| q.0).collect(),
        None => LADDER.map(|k| Rate::from_bps(k * 1000)).to_vec(),
    };
    let rising = ladder.windows(2).all(|w| w[0] < w[1]);
    if !rising || ladder.first().is_none_or(|r| r.is_zero()) {
        refuse(
            "video.ladder",
            "the rates do not rise from above zero",
            "sort them, each once",
        );
    }
    if ladder
        .iter()
        .any(|r| (*r * segment).get() > 1_000_000_000_000)
    {
        refuse(
            "video.ladder",
            "a segment of more than 1TB",
            "give lower rates",
        );
    }
    let selection = match spec.selection {
        None | Some(SelectionSpec::Named(SelectionName::Throughput)) => {
            by_throughput(ByThroughput::default())
        }
        Some(SelectionSpec::Named(SelectionName::Buffer)) => by_buffer(ByBuffer::default()),
        Some(SelectionSpec::Table(SelectionMap::Throughput(t))) => by_throughput(t),
        Some(SelectionSpec::Table(SelectionMap::Buffer(b))) => by_buffer(b),
    };
    let usual = match selection {
        Selection::Throughput { .. } => Duration::from_secs(60),
        Selection::Buffer { .. } => Duration::from_secs(240),
    };
    let buffer = spec.buffer.map_or(usual, |q| q.0);
    let startup = spec.startup.map_or(segment.saturating_mul(2), |q| q.0);
    if buffer < segment || startup > buffer {
        let message = "the buffer does not hold a segment, or what playing begins with";
        refuse("video.buffer", message, "give a larger buffer");
    }
    let request_size = spec.request_size.map_or(Bytes::new(350), |q| q.0);
    if !(1..=1_000_000).contains(&request_size.get()) {
        let message = format!("a request of {request_size}");
        refuse("video.request_size", &message, "give 1B to 1MB");
    }
    if spec.length.is_some_and(|q| q.0.is_zero()) {
        refuse(
            "video.length",
            "a video of no length",
            "leave it out to play until the flow stops",
        );
    }
    Video {
        segment,
        ladder: ladder.into(),
        selection,
        buffer,
        startup,
        length: spec.length.map(|q| q.0),
        request_size,
    }
}

fn by_throughput(t: ByThroughput) -> Selection {
    Selection::Throughput {
        efficiency: t.efficiency.unwrap_or(0.85),
        window: t.window.unwrap_or(20),
    }
}

fn by_buffer(b: ByBuffer) -> Selection {
    Selection::Buffer {
        reservoir: b.reservoir.map_or(Duration::from_secs(90), |q| q.0),
        cushion: b.cushion.map_or(Duration::from_secs(126), |q| q.0),
    }
}
