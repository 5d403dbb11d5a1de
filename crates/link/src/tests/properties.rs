//! Properties of links under any configuration and input.

use gargalo_settings::{Files, Setting};
use gargalo_units::{Bytes, Duration, Ecn, Instant, Rate};
use proptest::prelude::*;

use super::{Fate, MS, arrivals, drive, droptail, ms, packet, rng};
use crate::*;

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let ecn = any::<bool>();
    // Every registered discipline with its default settings.
    let usual = prop::sample::select(QueueConfig::KINDS);
    let usual = usual.prop_map(|name| {
        QueueConfig::read(&name.into(), &mut Files::default()).expect("a name alone is enough")
    });
    prop_oneof![
        usual,
        (0u64..40).prop_map(droptail),
        (0u64..40_000).prop_map(|b| QueueConfig::DropTail(QueueLimit::Bytes(Bytes::new(b)))),
        (0u64..40).prop_map(|t| QueueConfig::DropTail(QueueLimit::Time(MS * t))),
        (1u64..60, ecn).prop_map(|(limit, ecn)| QueueConfig::Red(RedConfig {
            limit: Some(limit.into()),
            ecn,
            weight: 0.05,
            ..RedConfig::default()
        })),
        (1u64..60, ecn).prop_map(|(limit, ecn)| QueueConfig::CoDel(CoDelConfig {
            limit,
            ecn,
            ..CoDelConfig::default()
        })),
        (1u64..60, ecn).prop_map(|(limit, ecn)| QueueConfig::FqCoDel(FqCoDelConfig {
            limit,
            ecn,
            flows: 4,
            ..FqCoDelConfig::default()
        })),
        (1u64..60, ecn).prop_map(|(limit, ecn)| QueueConfig::Pie(PieConfig {
            limit,
            ecn,
            max_burst: MS * 15,
            ..PieConfig::default()
        })),
        (1u64..60, ecn, 0u64..30, 0..3).prop_map(|(limit, ecn, k, unit)| {
            QueueConfig::Step(StepConfig {
                limit,
                ecn,
                mark_above: match unit {
                    0 => QueueLimit::Packets(k),
                    1 => QueueLimit::Bytes(Bytes::new(k * 1000)),
                    _ => QueueLimit::Time(MS * k),
                },
                drop_incapable: k % 2 == 0,
            })
        }),
        (1u64..60, ecn, 0u64..30, 0u8..32).prop_map(|(limit, ecn, k, flags)| {
            QueueConfig::DualPi2(DualPi2Config {
                limit,
                ecn,
                step_threshold: match k % 3 {
                    0 => QueueLimit::Packets(k),
                    1 => QueueLimit::Bytes(Bytes::new(k * 1000)),
                    _ => QueueLimit::Time(MS * k),
                },
                min_step: k % 2,
                classic_protection: k as f64 / 29.0,
                drop_on_overload: flags & 1 == 0,
                drop_early: flags & 2 == 0,
                any_ect: flags & 4 == 0,
                derandomize: flags & 8 == 0,
                memory_limit: (flags & 16 == 0).then_some(Bytes::new(20_000)),
                ..DualPi2Config::default()
            })
        }),
    ]
}

fn any_rate() -> impl Strategy<Value = RateModel> {
    prop_oneof![
        Just(RateModel::Unlimited),
        (100_000u64..50_000_000).prop_map(|r| RateModel::Constant(Rate::from_bps(r))),
        proptest::collection::vec((1u64..100, 0u64..20), 0..5).prop_map(|steps| {
            let mut at = 0;
            let mut all = vec![(ms(0), Rate::from_mbps(7))];
            for (gap, mbps) in steps {
                at += gap;
                all.push((ms(at), Rate::from_mbps(mbps)));
            }
            // No permanent outage, so that every packet leaves.
            all.push((ms(at + 50), Rate::from_mbps(3)));
            RateModel::Steps(all)
        }),
        proptest::collection::vec(0u32..200, 1..100).prop_map(|mut times| {
            times.sort_unstable();
            times.push(201);
            let trace = DeliveryTrace::from_millis(times).expect("sorted and above zero");
            RateModel::Trace(trace.into())
        }),
    ]
}

fn any_delay() -> impl Strategy<Value = (Delay, Option<Jitter>)> {
    let jitter = proptest::option::of((0u64..20, 0usize..3)).prop_map(|j| {
        j.map(|(scale, d)| Jitter {
            distribution: [
                JitterDistribution::Uniform,
                JitterDistribution::Normal,
                JitterDistribution::Pareto,
            ][d],
            scale: MS * scale,
        })
    });
    let base = prop_oneof![
        (0u64..60).prop_map(|d| Delay::Constant(MS * d)),
        (0u64..60, 1u64..200, 0u64..60)
            .prop_map(|(a, t, b)| Delay::Steps(vec![(ms(0), MS * a), (ms(t), MS * b)])),
    ];
    (base, jitter)
}

fn any_loss() -> impl Strategy<Value = LossModel> {
    prop_oneof![
        3 => Just(LossModel::NONE),
        1 => (0.0f64..=1.0).prop_map(LossModel::Independent),
        1 => (1u64..20).prop_map(LossModel::Periodic),
        1 => (0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0, 0.5f64..=1.0)
            .prop_map(|(p, r, h, k)| LossModel::GilbertElliott(GilbertElliott { p, r, h, k })),
    ]
}

fn any_reorder() -> impl Strategy<Value = Option<Reorder>> {
    proptest::option::of((0.0f64..=1.0, 1u32..5, 0u64..30, any::<bool>())).prop_map(|r| {
        r.map(|(probability, gap, by, late)| Reorder {
            probability,
            gap,
            correlation: 0.3,
            late: late.then_some(MS * by),
            early: (!late).then_some(MS * by),
        })
    })
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    (
        any_rate(),
        any_delay(),
        proptest::option::of(0u64..30),
        any_loss(),
        any_reorder(),
        prop_oneof![2 => Just(0.0), 1 => 0.0f64..=1.0],
        any_queue(),
    )
        .prop_map(
            |(rate, (delay, jitter), aggregation, loss, reorder, duplicate, queue)| LinkConfig {
                rate,
                delay,
                jitter,
                aggregation: aggregation.map(|time| MS * time),
                loss,
                reorder,
                duplicate,
                queue,
                ..LinkConfig::default()
            },
        )
}

fn any_input() -> impl Strategy<Value = Vec<(Instant, Packet<u32>)>> {
    let gap = prop_oneof![3 => Just(0u64), 2 => 0u64..3_000_000, 1 => 0u64..60_000_000];
    let size = prop_oneof![3 => Just(1500u32), 2 => 40u32..1600];
    proptest::collection::vec((gap, size, 0u8..4), 1..250).prop_map(|packets| {
        let mut now = 0;
        let with_time = |(id, (gap, bytes, ecn)): (usize, (u64, u32, u8))| {
            // Some gaps end on a whole millisecond, where opportunities and steps are.
            now += gap;
            if id % 3 == 0 {
                now = now.next_multiple_of(1_000_000);
            }
            let mut p = packet(id as u32, bytes);
            p.ecn = Ecn::from_bits(ecn);
            (Instant::from_nanos(now), p)
        };
        packets.into_iter().enumerate().map(with_time).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every payload leaves exactly once, and the counters agree.
    #[test]
    fn packets_are_conserved(config in any_config(), input in any_input()) {
        let mut link = Link::new(config, rng()).unwrap();
        let fates = drive(&mut link, &input);
        let mut ends = vec![0; input.len()];
        for fate in &fates {
            match fate {
                Fate::Arrived(_, id, last, _) => ends[*id as usize] += u32::from(*last),
                Fate::Dropped(id, _) => ends[*id as usize] += 1,
            }
        }
        prop_assert!(ends.iter().all(|n| *n == 1));
        let s = link.stats();
        prop_assert_eq!(s.inside_packets(), 0);
        prop_assert_eq!(s.inside_bytes(), 0);
        prop_assert_eq!(s.offered_packets, input.len() as u64);
        prop_assert_eq!(s.delivered_packets, arrivals(&fates).len() as u64);
        prop_assert_eq!(s.queue_delay.count(), s.delivered_packets);
        let end = input.last().unwrap().0 + Duration::from_secs(100_000);
        let sample = link.sample(end);
        prop_assert_eq!(sample.sent_packets, sample.delivered_packets);
        prop_assert_eq!(sample.sent_bytes, sample.delivered_bytes);
        prop_assert_eq!((sample.queue_packets, sample.queue_bytes), (0, 0));
        prop_assert_eq!(sample.queue_delay, Duration::ZERO);
    }

    /// At any time the counters add up, and sampling changes nothing.
    #[test]
    fn sampling_changes_nothing(config in any_config(), input in any_input()) {
        let mut a = Link::new(config.clone(), rng()).unwrap();
        let mut b = Link::new(config, rng()).unwrap();
        let expected = drive(&mut a, &input);
        let mut fates = Vec::new();
        for (now, p) in &input {
            b.send(*now, *p);
            let s = b.sample(*now);
            prop_assert!(s.queue_packets <= b.stats().inside_packets());
            prop_assert!(s.queue_bytes <= b.stats().inside_bytes());
            while let Some(d) = b.poll(*now) {
                fates.push((*now, d.packet.payload));
            }
        }
        let s = b.stats();
        prop_assert!(s.delivered_packets + s.dropped_packets()
            <= s.offered_packets + s.duplicated_packets);
        // Late polls deliver late, but the same packets in the same order.
        while b.next_event() < Instant::MAX {
            let now = b.next_event();
            while let Some(d) = b.poll(now) {
                fates.push((now, d.packet.payload));
            }
        }
        let order = |f: &[(Instant, u32)]| f.iter().map(|x| x.1).collect::<Vec<_>>();
        prop_assert_eq!(order(&fates), order(&arrivals(&expected)));
    }

    /// At a constant rate no window carries more than its capacity, wherever its edges fall, and adjacent windows
    /// add up to the amount sent.
    #[test]
    fn utilization_is_a_share(
        config in any_config(), bps in 100_000u64..50_000_000, input in any_input(),
        cuts in proptest::collection::vec(0u64..4_000_000_000, 1..60),
    ) {
        let rate = Rate::from_bps(bps);
        let config = LinkConfig { rate: RateModel::Constant(rate), ..config };
        let mut link = Link::new(config, rng()).unwrap();
        let mut events: Vec<(Instant, Option<Packet<u32>>)> =
            cuts.into_iter().map(|t| (Instant::from_nanos(t), None)).collect();
        events.extend(input.iter().map(|(t, p)| (*t, Some(*p))));
        let end = input.last().unwrap().0 + Duration::from_secs(1000);
        events.push((end, None));
        events.sort_by_key(|e| e.0);
        let (mut before, mut at, mut sum) = (Carried::default(), Instant::ZERO, 0.0);
        for (now, packet) in events {
            while link.next_event() <= now && link.next_event() < Instant::MAX {
                let due = link.next_event();
                while link.poll(due).is_some() {}
            }
            let Some(packet) = packet else {
                let carried = link.carried(now);
                let used = link.utilization(before, carried).unwrap();
                prop_assert!((0.0..=1.0).contains(&used), "{used} from {at} to {now}");
                sum += used * rate.as_bps() as f64 * (now - at).as_secs_f64() / 8.0;
                (before, at) = (carried, now);
                continue;
            };
            link.send(now, packet);
        }
        let sent = link.sample(end).sent_bytes as f64;
        prop_assert!((sum - sent).abs() < 1e-6 * sent.max(1.0), "{sum} of {sent}");
    }

    /// Only ECN-capable packets are marked, the ECN field does not change otherwise, and only packets of the
    /// low-latency queue (or Classic packets, if marking is enabled) are marked.
    #[test]
    fn dualpi2_marks_only_ecn_capable_packets(
        config in any_config(), input in any_input(), any_ect in any::<bool>(), ecn in any::<bool>(),
    ) {
        let queue = QueueConfig::DualPi2(DualPi2Config { any_ect, ecn, ..DualPi2Config::default() });
        let mut link = Link::new(LinkConfig { queue, ..config }, rng()).unwrap();
        let mut marked = 0;
        for fate in drive(&mut link, &input) {
            let Fate::Arrived(_, id, last, now) = fate else { continue };
            let before = input[id as usize].1.ecn;
            let set = now == Ecn::Ce && before != Ecn::Ce;
            prop_assert!(now == before || set && before != Ecn::NotEct && ecn, "{before:?} {now:?}");
            marked += u64::from(set && last);
        }
        prop_assert!(marked <= link.stats().marked_packets);
    }

    #[test]
    fn order_is_kept_within_a_flow(config in any_config(), input in any_input()) {
        let config = LinkConfig { reorder: None, ..config };
        let mut link = Link::new(config, rng()).unwrap();
        let fates = drive(&mut link, &input);
        let got = arrivals(&fates);
        prop_assert!(got.windows(2).all(|w| w[0].0 <= w[1].0));
        for flow in 0..5 {
            // A flow has one codepoint: DualPI2 queues by it.
            for ecn in 0..4 {
                let of = |id: &u32| id % 5 == flow && input[*id as usize].1.ecn as u8 == ecn;
                let ids: Vec<_> = got.iter().map(|a| a.1).filter(of).collect();
                prop_assert!(ids.windows(2).all(|w| w[0] <= w[1]), "{ids:?}");
            }
        }
    }

    #[test]
    fn nothing_arrives_before_its_delay(config in any_config(), input in any_input()) {
        let minimum = config.delay.minimum();
        let config = LinkConfig { reorder: None, jitter: None, ..config };
        let mut link = Link::new(config, rng()).unwrap();
        for (at, id) in arrivals(&drive(&mut link, &input)) {
            prop_assert!(at >= input[id as usize].0 + minimum);
        }
    }

    /// In no interval more arrives than the link can carry (with constant delay, so that arrivals are shifted
    /// departures).
    #[test]
    fn throughput_is_never_above_the_rate(config in any_config(), input in any_input()) {
        let config = LinkConfig {
            delay: Delay::Constant(MS * 20),
            aggregation: None,
            jitter: None,
            reorder: None,
            ..config
        };
        let mut link = Link::new(config.clone(), rng()).unwrap();
        let fates = drive(&mut link, &input);
        let got = arrivals(&fates);
        let on_trace = matches!(config.rate, RateModel::Trace(_));
        for (i, (from, _)) in got.iter().enumerate().step_by(7) {
            let mut bytes = 0u64;
            let departed = |arrival: Instant| arrival - MS * 20;
            for (n, (to, id)) in got[i..].iter().enumerate() {
                let size = u64::from(input[*id as usize].1.bytes);
                if on_trace {
                    // All of the opportunities from the first packet's on, and what it had before.
                    bytes += size + 4;
                    let before = departed(*from) - Duration::from_nanos(1);
                    let capacity = link.capacity(before, departed(*to)).unwrap().get();
                    prop_assert!(bytes <= capacity / 1500 * 1504 + 1504, "{bytes} {capacity}");
                } else if n > 0 {
                    bytes += size;
                    let Some(capacity) = link.capacity(departed(*from), departed(*to)) else { break };
                    // Departures are rounded up to a nanosecond.
                    prop_assert!(bytes <= capacity.get() + 8, "{bytes} {capacity:?}");
                }
            }
        }
    }

    #[test]
    fn the_seed_decides_everything(config in any_config(), input in any_input()) {
        let run = || {
            let mut link = Link::new(config.clone(), rng()).unwrap();
            let fates = drive(&mut link, &input);
            (fates, link.stats().clone())
        };
        prop_assert_eq!(run(), run());
    }

    /// Tail drop computed on arrival equals tail drop served packet by packet.
    #[test]
    fn the_fast_path_equals_the_general_path(
        config in any_config(),
        input in any_input(),
        limit in 0u64..40,
        in_bytes in any::<bool>(),
    ) {
        let limit = if in_bytes {
            QueueLimit::Bytes(Bytes::new(limit * 1000))
        } else {
            QueueLimit::Packets(limit.max(1))
        };
        // A packet that need not wait is accepted even above the limit. The general path cannot know this, so such
        // limits are left out.
        prop_assume!(!matches!(limit, QueueLimit::Bytes(b) if b.get() < 1500));
        let config = LinkConfig { queue: QueueConfig::DropTail(limit), ..config };
        let mut fast = Link::new(config.clone(), rng()).unwrap();
        let mut general = Link::new_general(config, rng()).unwrap();
        let (a, b) = (drive(&mut fast, &input), drive(&mut general, &input));
        let drops = |f: &[Fate]| f.iter()
            .filter(|f| matches!(f, Fate::Dropped(..))).cloned().collect::<Vec<_>>();
        prop_assert_eq!(arrivals(&a), arrivals(&b));
        prop_assert_eq!(drops(&a), drops(&b));
        prop_assert_eq!(fast.stats(), general.stats());
    }
}
