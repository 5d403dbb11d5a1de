//! Links: defaults, overrides of one direction, traces.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gargalo_link::{
    BaseDelay, CoDelConfig, DelayModel, DeliveryTrace, Displacement, DualPi2Config, FqCoDelConfig,
    Jitter, JitterDistribution, LinkConfig, LossModel, PieConfig, PieEstimator, QueueConfig,
    QueueLimit, RateModel, RedConfig, Reorder, StepConfig,
};
use gargalo_sim::Strip;
use gargalo_units::{Bytes, Duration, Instant};

use super::Context;
use crate::model::{
    CoDel, DelayMap, DelaySpec, Direction, DualPi2, FqCoDel, JitterSpec, LossMap, LossSpec, Pie,
    PieEstimatorName, QueueMap, QueueName, QueueSpec, RateMap, RateSpec, Red, Shape, Step,
    StripName, StripSpec,
};
use crate::quantity::{Quantity, QueueSize};
use crate::resolved::Link;

/// A tail-drop limit of so many bandwidth-delay products.
pub(crate) struct BdpLimit {
    /// Which link.
    pub(crate) link: usize,
    /// Whether the direction is down.
    pub(crate) down: bool,
    /// How many products.
    pub(crate) factor: f64,
}

/// What a link joins.
pub(crate) struct Ends<'a> {
    pub(crate) index: usize,
    pub(crate) name: &'a str,
    pub(crate) ends: (usize, usize),
}

/// Where a field of a direction was written.
struct Site<'a> {
    at: &'a str,
    side: &'static str,
}

impl Site<'_> {
    fn path(&self, field: &str, overridden: bool) -> String {
        match overridden {
            true => format!("{}.{}.{field}", self.at, self.side),
            false => format!("{}.{field}", self.at),
        }
    }
}

/// The value of a field and where it was written.
macro_rules! field {
    ($base:ident, $over:ident, $site:ident, $name:ident) => {{
        let over = $over.and_then(|d| d.$name.as_ref());
        let path = $site.path(stringify!($name), over.is_some());
        (over.or_else(|| $base.and_then(|d| d.$name.as_ref())), path)
    }};
}

/// Resolves both directions of a link.
pub(crate) fn resolve(
    ends: Ends<'_>,
    sides: [(Option<&Direction>, Option<&Direction>, &'static str); 2],
    at: &str,
    bdp: &mut Vec<BdpLimit>,
    cx: &mut Context<'_>,
) -> Link {
    let [(up, up_strip), (down, down_strip)] = sides.map(|(base, over, side)| {
        let site = Site { at, side };
        let (config, factor) = direction(base, over, &site, cx);
        if let Some(factor) = factor {
            bdp.push(BdpLimit {
                link: ends.index,
                down: side == "down",
                factor,
            });
        }
        let (spec, _) = field!(base, over, site, strip_mptcp);
        (config, spec.and_then(strip))
    });
    Link {
        name: ends.name.to_owned(),
        a: ends.ends.0,
        b: ends.ends.1,
        up,
        down,
        strip: [up_strip, down_strip],
    }
}

/// One direction, and the factor of its queue limit if that is in bandwidth-delay products.
fn direction(
    base: Option<&Direction>,
    over: Option<&Direction>,
    site: &Site<'_>,
    cx: &mut Context<'_>,
) -> (LinkConfig, Option<f64>) {
    let mut config = LinkConfig::default();
    if let (Some(spec), path) = field!(base, over, site, rate) {
        config.rate = rate(spec, &path, cx);
    }
    if let (Some(spec), _) = field!(base, over, site, delay) {
        config.delay.base = match spec {
            DelaySpec::Constant(d) => BaseDelay::Constant(d.0),
            DelaySpec::Varying(DelayMap::Steps(s)) => BaseDelay::Steps(steps(s)),
        };
    }
    if let (Some(spec), _) = field!(base, over, site, jitter) {
        let (scale, shape) = match spec {
            JitterSpec::Uniform(scale) => (scale.0, Shape::Uniform),
            JitterSpec::Shaped(m) => (m.scale.0, m.distribution.unwrap_or(Shape::Uniform)),
        };
        let distribution = match shape {
            Shape::Uniform => JitterDistribution::Uniform,
            Shape::Normal => JitterDistribution::Normal,
            Shape::Pareto => JitterDistribution::Pareto,
        };
        config.delay.jitter = (!scale.is_zero()).then_some(Jitter {
            distribution,
            scale,
        });
    }
    if let (Some(spec), _) = field!(base, over, site, loss) {
        config.loss = loss(spec);
    }
    if let (Some(spec), _) = field!(base, over, site, outages) {
        let at = |q: Quantity<Duration>| Instant::ZERO + q.0;
        config.outages = spec.iter().map(|(a, b)| (at(*a), at(*b))).collect();
    }
    if let (Some(spec), _) = field!(base, over, site, policer) {
        config.policer = Some(gargalo_link::Policer {
            rate: spec.rate.0,
            burst: spec.burst.0,
        });
    }
    if let (Some(spec), path) = field!(base, over, site, reorder) {
        if spec.late.is_some() && spec.early.is_some() {
            let message = "reorder is given as late and early at once".to_owned();
            cx.error(
                &path,
                "one too many",
                message,
                "keep one of them".to_owned(),
            );
        }
        let displacement = match (spec.late, spec.early) {
            (Some(late), _) => Displacement::Late(late.0),
            (None, Some(early)) => Displacement::Early(early.0),
            (None, None) => Displacement::Early(Duration::MAX),
        };
        config.reorder = Some(Reorder {
            probability: spec.probability.0.0,
            gap: spec.gap.unwrap_or(1),
            correlation: spec.correlation.map_or(0.0, |q| q.0.0),
            displacement,
        });
    }
    if let (Some(spec), _) = field!(base, over, site, duplicate) {
        config.duplicate = spec.0.0;
    }
    if let (Some(spec), path) = field!(base, over, site, mtu) {
        // IPv4 asks for 68 (RFC 791), and a packet is at most 65535 bytes long.
        match u32::try_from(spec.0.get()) {
            Ok(n) if (68..=65_535).contains(&n) => config.mtu = n,
            _ => {
                let message = format!("mtu = \"{}\" is out of range", spec.0);
                let help = "give 68B to 65535B; Ethernet has 1500B".to_owned();
                cx.error(&path, "out of range", message, help);
            }
        }
    }
    let (ecn, ecn_path) = field!(base, over, site, ecn);
    let ecn = ecn.copied();
    let (spec, path) = field!(base, over, site, queue);
    let factor = match spec {
        None => None,
        Some(spec) => {
            let (queue, factor) = queue(spec, ecn);
            config.queue = queue;
            factor
        }
    };
    if factor.is_some() && config.rate == RateModel::Unlimited {
        let message = "a link of unlimited rate has no bandwidth-delay product".to_owned();
        let help = "give the link a rate, or the queue another unit".to_owned();
        cx.error(&path, "needs a rate", message, help);
    }
    if ecn == Some(true) && matches!(config.queue, QueueConfig::DropTail { .. }) {
        let message = "a droptail queue cannot mark packets".to_owned();
        let help =
            "choose a queue that marks: red, codel, fq-codel, pie, step or dualpi2".to_owned();
        cx.error(&ecn_path, "needs another queue", message, help);
    }
    if let Err(e) = config.validate() {
        let at = site.path("", false);
        let known = [
            "rate",
            "delay",
            "loss",
            "outages",
            "policer",
            "reorder",
            "duplicate",
            "mtu",
            "queue",
        ];
        let root = e.field.split('.').next().unwrap_or_default();
        let overridden = over.is_some_and(|d| {
            (root == "rate" && d.rate.is_some())
                || (root == "delay" && d.delay.is_some())
                || (root == "loss" && d.loss.is_some())
                || (root == "outages" && d.outages.is_some())
                || (root == "policer" && d.policer.is_some())
                || (root == "reorder" && d.reorder.is_some())
                || (root == "queue" && d.queue.is_some())
        });
        let path = match known.contains(&root) {
            true => site.path(e.field, overridden),
            false => at,
        };
        cx.error(&path, "not possible", e.to_string(), String::new());
    }
    (config, factor)
}

/// Which packets lose their options.
fn strip(spec: &StripSpec) -> Option<Strip> {
    match spec {
        StripSpec::Word(StripName::None) => None,
        StripSpec::Word(StripName::All) => Some(Strip::All),
        StripSpec::Word(StripName::Syn) => Some(Strip::Syn),
        StripSpec::Word(StripName::Rest) => Some(Strip::Rest),
        StripSpec::Later(m) => Some(Strip::After(m.after.0.get())),
    }
}

fn steps<T: Copy>(list: &[(Quantity<Duration>, Quantity<T>)]) -> Vec<(Instant, T)> {
    list.iter()
        .map(|(t, v)| (Instant::ZERO + t.0, v.0))
        .collect()
}

fn rate(spec: &RateSpec, path: &str, cx: &mut Context<'_>) -> RateModel {
    match spec {
        RateSpec::Unlimited(_) => RateModel::Unlimited,
        RateSpec::Constant(r) => RateModel::Constant(r.0),
        RateSpec::Varying(RateMap::Steps(s)) => RateModel::Steps(steps(s)),
        RateSpec::Varying(RateMap::Trace(file)) => trace(file, &format!("{path}.trace"), cx),
    }
}

/// Longest text of a trace: an hour at 100 Mbit/s has 240 MB.
const LONGEST_TRACE: u64 = 256 << 20;

/// The text of a trace. What is no plain file, such as a device, has no end.
fn read(path: &Path) -> std::io::Result<String> {
    let facts = std::fs::metadata(path)?;
    if facts.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    if !facts.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    if facts.len() > LONGEST_TRACE {
        let why = format!(
            "it has {} bytes, and a trace at most {LONGEST_TRACE}",
            facts.len()
        );
        return Err(std::io::Error::other(why));
    }
    std::fs::read_to_string(path)
}

fn trace(file: &str, path: &str, cx: &mut Context<'_>) -> RateModel {
    if let Some(known) = cx.traces.get(file) {
        return known.clone();
    }
    let parent = cx.origin.path.as_deref().and_then(Path::parent);
    let full: PathBuf = parent.map_or_else(|| file.into(), |dir| dir.join(file));
    let model = match read(&full) {
        Err(e) => {
            let message = format!("trace \"{file}\" cannot be read: {e}");
            let help = format!(
                "looked for {}; paths are relative to the scenario file",
                full.display()
            );
            cx.error(path, "no trace there", message, help);
            RateModel::Unlimited
        }
        Ok(text) => match DeliveryTrace::parse(&text) {
            Ok(trace) => RateModel::Trace(Arc::new(trace)),
            Err(e) => {
                let message = format!("\"{file}\" is no packet-delivery trace: {e}");
                let help = "a trace has one integer millisecond a line".to_owned();
                cx.error(path, "not a trace", message, help);
                RateModel::Unlimited
            }
        },
    };
    cx.traces.insert(file.to_owned(), model.clone());
    model
}

fn loss(spec: &LossSpec) -> LossModel {
    let independent = |p: f64| match p {
        0.0 => LossModel::None,
        p => LossModel::Independent(p),
    };
    match spec {
        LossSpec::Independent(p) | LossSpec::Model(LossMap::Independent(p)) => independent(p.0.0),
        LossSpec::Model(LossMap::Periodic(n)) => LossModel::Periodic(*n),
        LossSpec::Model(LossMap::GilbertElliott(g)) => LossModel::GilbertElliott {
            p: g.p.0.0,
            r: g.r.0.0,
            h: g.h.map_or(0.0, |q| q.0.0),
            k: g.k.map_or(1.0, |q| q.0.0),
        },
    }
}

fn queue(spec: &QueueSpec, ecn: Option<bool>) -> (QueueConfig, Option<f64>) {
    let config = match spec {
        QueueSpec::Named(QueueName::Droptail) => QueueConfig::default(),
        QueueSpec::Named(QueueName::Red) => QueueConfig::Red(red(&Red::default(), ecn)),
        QueueSpec::Named(QueueName::Codel) => QueueConfig::CoDel(codel(&CoDel::default(), ecn)),
        QueueSpec::Named(QueueName::FqCodel) => {
            QueueConfig::FqCoDel(fq_codel(&FqCoDel::default(), ecn))
        }
        QueueSpec::Named(QueueName::Pie) => QueueConfig::Pie(pie(&Pie::default(), ecn)),
        QueueSpec::Named(QueueName::Step) => return step(&Step::default(), ecn),
        QueueSpec::Named(QueueName::Dualpi2) => return dualpi2(&DualPi2::default(), ecn),
        QueueSpec::Model(QueueMap::Droptail(size)) => {
            let (limit, factor) = size_or_factor(size.0);
            return (QueueConfig::DropTail { limit }, factor);
        }
        QueueSpec::Model(QueueMap::Red(r)) => QueueConfig::Red(red(r, ecn)),
        QueueSpec::Model(QueueMap::Codel(c)) => QueueConfig::CoDel(codel(c, ecn)),
        QueueSpec::Model(QueueMap::FqCodel(f)) => QueueConfig::FqCoDel(fq_codel(f, ecn)),
        QueueSpec::Model(QueueMap::Pie(p)) => QueueConfig::Pie(pie(p, ecn)),
        QueueSpec::Model(QueueMap::Step(s)) => return step(s, ecn),
        QueueSpec::Model(QueueMap::Dualpi2(q)) => return dualpi2(q, ecn),
    };
    (config, None)
}

/// A size, or the multiple of a bandwidth-delay product that is known later.
fn size_or_factor(size: QueueSize) -> (QueueLimit, Option<f64>) {
    match size {
        QueueSize::Packets(n) => (QueueLimit::Packets(n), None),
        QueueSize::Bytes(b) => (QueueLimit::Bytes(b), None),
        QueueSize::Time(d) => (QueueLimit::Time(d), None),
        QueueSize::Bdp(factor) => (QueueLimit::default(), Some(factor)),
    }
}

fn step(s: &Step, ecn: Option<bool>) -> (QueueConfig, Option<f64>) {
    let d = StepConfig::default();
    let (mark_above, factor) = s
        .mark_above
        .map_or((d.mark_above, None), |q| size_or_factor(q.0));
    let config = StepConfig {
        limit: s.limit.map_or(d.limit, |q| q.0.0),
        mark_above,
        drop_incapable: s.drop_incapable.unwrap_or(d.drop_incapable),
        ecn: s.ecn.or(ecn).unwrap_or(d.ecn),
    };
    (QueueConfig::Step(config), factor)
}

fn dualpi2(s: &DualPi2, ecn: Option<bool>) -> (QueueConfig, Option<f64>) {
    let d = DualPi2Config::default();
    let (step_threshold, factor) = s
        .step_threshold
        .map_or((d.step_threshold, None), |q| size_or_factor(q.0));
    let config = DualPi2Config {
        target: s.target.map_or(d.target, |q| q.0),
        update: s.update.map_or(d.update, |q| q.0),
        alpha: s.alpha.unwrap_or(d.alpha),
        beta: s.beta.unwrap_or(d.beta),
        coupling: s.coupling.unwrap_or(d.coupling),
        step_threshold,
        ramp: s.ramp.map_or(d.ramp, |q| q.0),
        min_step_packets: s.min_step.map_or(d.min_step_packets, |q| q.0.0),
        classic_protection: s.classic_protection.map_or(d.classic_protection, |q| q.0.0),
        drop_on_overload: s.drop_on_overload.unwrap_or(d.drop_on_overload),
        drop_early: s.drop_early.unwrap_or(d.drop_early),
        any_ect: s.any_ect.unwrap_or(d.any_ect),
        derandomize: s.derandomize.unwrap_or(d.derandomize),
        limit: s.limit.map_or(d.limit, |q| q.0.0),
        memory_limit: s.memory_limit.map(|q| q.0).or(d.memory_limit),
        ecn: s.ecn.or(ecn).unwrap_or(d.ecn),
    };
    (QueueConfig::DualPi2(config), factor)
}

fn red(r: &Red, ecn: Option<bool>) -> RedConfig {
    let d = RedConfig::default();
    RedConfig {
        limit: r.limit.map_or(d.limit, |q| q.0.0),
        min_threshold: r.min_threshold.unwrap_or(d.min_threshold),
        max_threshold: r.max_threshold.unwrap_or(d.max_threshold),
        max_probability: r.max_probability.map_or(d.max_probability, |q| q.0.0),
        weight: r.weight.map_or(d.weight, |q| q.0.0),
        gentle: r.gentle.unwrap_or(d.gentle),
        ecn: r.ecn.or(ecn).unwrap_or(d.ecn),
    }
}

fn codel(c: &CoDel, ecn: Option<bool>) -> CoDelConfig {
    let d = CoDelConfig::default();
    CoDelConfig {
        target: c.target.map_or(d.target, |q| q.0),
        interval: c.interval.map_or(d.interval, |q| q.0),
        limit: c.limit.map_or(d.limit, |q| q.0.0),
        ecn: c.ecn.or(ecn).unwrap_or(d.ecn),
        ce_threshold: c.ce_threshold.map(|q| q.0).or(d.ce_threshold),
    }
}

fn fq_codel(f: &FqCoDel, ecn: Option<bool>) -> FqCoDelConfig {
    let d = FqCoDelConfig::default();
    let small = |b: Bytes| u32::try_from(b.get()).unwrap_or(u32::MAX);
    FqCoDelConfig {
        flows: f.flows.unwrap_or(d.flows),
        quantum: f.quantum.map_or(d.quantum, |q| small(q.0)),
        limit: f.limit.map_or(d.limit, |q| q.0.0),
        memory_limit: f.memory_limit.map_or(d.memory_limit, |q| q.0),
        drop_batch: f
            .drop_batch
            .map_or(d.drop_batch, |q| u32::try_from(q.0.0).unwrap_or(u32::MAX)),
        target: f.target.map_or(d.target, |q| q.0),
        interval: f.interval.map_or(d.interval, |q| q.0),
        ecn: f.ecn.or(ecn).unwrap_or(d.ecn),
        ce_threshold: f.ce_threshold.map(|q| q.0).or(d.ce_threshold),
    }
}

fn pie(p: &Pie, ecn: Option<bool>) -> PieConfig {
    let d = PieConfig::default();
    let estimator = |name| match name {
        PieEstimatorName::Timestamp => PieEstimator::Timestamp,
        PieEstimatorName::DepartureRate => PieEstimator::DepartureRate,
    };
    PieConfig {
        target: p.target.map_or(d.target, |q| q.0),
        update: p.update.map_or(d.update, |q| q.0),
        alpha: p.alpha.unwrap_or(d.alpha),
        beta: p.beta.unwrap_or(d.beta),
        max_burst: p.max_burst.map_or(d.max_burst, |q| q.0),
        limit: p.limit.map_or(d.limit, |q| q.0.0),
        ecn: p.ecn.or(ecn).unwrap_or(d.ecn),
        mark_threshold: p.mark_threshold.map_or(d.mark_threshold, |q| q.0.0),
        estimator: p.estimator.map_or(d.estimator, estimator),
        derandomize: p.derandomize.unwrap_or(d.derandomize),
    }
}

/// The base delay of a direction, at its least.
pub(crate) fn base_delay(config: &LinkConfig) -> Duration {
    DelayModel::minimum(&config.delay)
}
