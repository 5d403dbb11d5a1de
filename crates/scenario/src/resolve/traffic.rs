//! What sources of flows are made of: published models, and what was given instead.

use gargalo_units::{Bytes, Duration};
use gargalo_workload::distribution::Distribution;
use gargalo_workload::ftp::Ftp;
use gargalo_workload::web::Web;

use crate::model::{
    CountMap, CountSpec, Ftp as FtpSpec, SizeMap, SizeSpec, TimeMap, TimeSpec, Web as WebSpec,
    WebModel,
};
use crate::quantity::Quantity;

/// Refuses with a dotted key below the flow, a message and a help.
pub(crate) type Refuse<'a, 'b> = &'a mut dyn FnMut(&str, &str, &str);

/// A file source with all defaults.
pub(crate) fn ftp(spec: &FtpSpec, key: &str, refuse: Refuse<'_, '_>) -> Ftp {
    // Tail index: V. Paxson and S. Floyd, 1995, find 0.9 to 1.4 for FTP bursts; M. Crovella and A.
    // Bestavros, 1997, about 1.1 for files on the Web.
    let usual = Distribution::Pareto {
        alpha: 1.1,
        min: 1e5,
        max: 2e7,
    };
    Ftp {
        size: spec
            .size
            .as_ref()
            .map_or(usual, |s| size(s, &format!("{key}.size"), refuse)),
    }
}

/// A web source with all defaults.
pub(crate) fn web(spec: &WebSpec, key: &str, refuse: Refuse<'_, '_>) -> Web {
    let model = spec.model.unwrap_or_default();
    let (main, embedded, object) = match model {
        WebModel::Ngmn => (
            Distribution::LogNormal {
                mu: 8.37,
                sigma: 1.37,
                min: 100.0,
                max: 2e6,
            },
            Distribution::ClippedPareto {
                alpha: 1.1,
                min: 2.0,
                max: 55.0,
            },
            Distribution::LogNormal {
                mu: 6.17,
                sigma: 2.36,
                min: 50.0,
                max: 2e6,
            },
        ),
        WebModel::Surge => {
            let file = Distribution::Hybrid {
                mu: 9.357,
                sigma: 1.318,
                cut: 133_000.0,
                body: 0.93,
                alpha: 1.1,
                max: 2e7,
            };
            // References of a page, of which the main object is one.
            let references = Distribution::ClippedPareto {
                alpha: 2.43,
                min: 1.0,
                max: 150.0,
            };
            (file, references, file)
        }
    };
    let think = match model {
        WebModel::Ngmn => Distribution::Exponential(30.0),
        WebModel::Surge => Distribution::Pareto {
            alpha: 1.5,
            min: 1.0,
            max: 1000.0,
        },
    };
    let request_size = spec.request_size.map_or(Bytes::new(350), |q| q.0);
    if !(1..=1_000_000).contains(&request_size.get()) {
        let message = format!("a request of {request_size}");
        refuse(&format!("{key}.request_size"), &message, "give 1B to 1MB");
    }
    let sized = |s: &Option<SizeSpec>, name: &str, usual: Distribution, r: Refuse<'_, '_>| {
        s.as_ref()
            .map_or(usual, |s| size(s, &format!("{key}.{name}"), r))
    };
    let main = sized(&spec.main_size, "main_size", main, refuse);
    let object = sized(&spec.embedded_size, "embedded_size", object, refuse);
    let timed = |s: &Option<TimeSpec>, name: &str, usual: Distribution, r: Refuse<'_, '_>| {
        s.as_ref()
            .map_or(usual, |s| time(s, &format!("{key}.{name}"), r))
    };
    let think_time = timed(&spec.think_time, "think_time", think, refuse);
    let parsing_time = timed(
        &spec.parsing_time,
        "parsing_time",
        Distribution::Exponential(0.13),
        refuse,
    );
    let counted = |s: &Option<CountSpec>, name: &str, usual: Distribution, r: Refuse<'_, '_>| {
        s.as_ref()
            .map_or(usual, |s| count(s, &format!("{key}.{name}"), r))
    };
    Web {
        pages: counted(&spec.pages, "pages", Distribution::Geometric(5.0), refuse),
        think_time,
        main,
        embedded: counted(&spec.embedded, "embedded", embedded, refuse),
        object,
        parsing_time,
        request_size,
        connections: spec.connections.unwrap_or(4),
        persistent: spec.persistent.unwrap_or(false),
    }
}

/// Largest object: a terabyte, as elsewhere.
const LARGEST: f64 = 1e12;

pub(super) fn size(spec: &SizeSpec, key: &str, refuse: Refuse<'_, '_>) -> Distribution {
    let bytes = |q: Quantity<Bytes>| q.0.as_f64();
    let (d, low, high) = match spec {
        SizeSpec::Fixed(q) => (Distribution::Fixed(bytes(*q)), bytes(*q), bytes(*q)),
        SizeSpec::Random(SizeMap::Exponential(q)) => {
            (Distribution::Exponential(bytes(*q)), bytes(*q), bytes(*q))
        }
        SizeSpec::Random(SizeMap::Pareto(p)) => {
            let (min, max) = (bytes(p.min), bytes(p.max));
            (
                Distribution::Pareto {
                    alpha: p.alpha,
                    min,
                    max,
                },
                min,
                max,
            )
        }
        SizeSpec::Random(SizeMap::Lognormal(l)) => {
            let (min, max) = (l.min.map_or(1.0, bytes), bytes(l.max));
            (
                Distribution::LogNormal {
                    mu: l.mu,
                    sigma: l.sigma,
                    min,
                    max,
                },
                min,
                max,
            )
        }
        SizeSpec::Random(SizeMap::Hybrid(h)) => {
            let (cut, max) = (bytes(h.cut), bytes(h.max));
            let d = Distribution::Hybrid {
                mu: h.mu,
                sigma: h.sigma,
                cut,
                body: h.body,
                alpha: h.alpha,
                max,
            };
            (d, cut, max)
        }
    };
    if low < 1.0 {
        refuse(key, "a size of zero", "give 1B or more");
    } else if high > LARGEST {
        refuse(key, "a size of more than 1TB", "give less");
    } else if low > high {
        refuse(key, "the smallest size is above the largest", "swap them");
    }
    d
}

fn time(spec: &TimeSpec, key: &str, refuse: Refuse<'_, '_>) -> Distribution {
    let seconds = |q: Quantity<Duration>| q.0.as_secs_f64();
    match spec {
        TimeSpec::Fixed(q) => Distribution::Fixed(seconds(*q)),
        TimeSpec::Random(TimeMap::Exponential(q)) => Distribution::Exponential(seconds(*q)),
        TimeSpec::Random(TimeMap::Pareto(p)) => {
            let (min, max) = (seconds(p.min), seconds(p.max));
            if min <= 0.0 {
                refuse(
                    key,
                    "a shortest time of zero",
                    "a Pareto distribution begins above zero",
                );
            } else if min > max {
                refuse(key, "the shortest time is above the longest", "swap them");
            }
            Distribution::Pareto {
                alpha: p.alpha,
                min,
                max,
            }
        }
    }
}

fn count(spec: &CountSpec, key: &str, refuse: Refuse<'_, '_>) -> Distribution {
    match spec {
        CountSpec::Fixed(n) => Distribution::Fixed(f64::from(*n)),
        CountSpec::Random(CountMap::Geometric(mean)) => Distribution::Geometric(*mean),
        CountSpec::Random(CountMap::Pareto(p)) => {
            if p.min > p.max {
                refuse(key, "the least number is above the most", "swap them");
            }
            Distribution::ClippedPareto {
                alpha: p.alpha,
                min: p.min,
                max: p.max,
            }
        }
    }
}
