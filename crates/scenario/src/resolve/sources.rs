//! Resolves sources of flows: the requested load, and the link that it is on.

use gargalo_link::{LinkConfig, RateModel};
use gargalo_units::{Rate, nearest};
use gargalo_workload::mix::MixDirection;
use gargalo_workload::plan::Demand;
use gargalo_workload::quantity::{Load, PerSecond};

use super::routes::Routes;
use super::{Context, Network, did_you_mean};
use crate::resolved::{Loaded, Rest};

/// A source in one direction: its hosts with the data first, its demand, and the link it loads.
pub(crate) struct Part {
    pub(crate) pairs: Vec<(usize, usize)>,
    pub(crate) demand: Demand,
    pub(crate) loaded: Option<Loaded>,
}

/// The requested load on a link in the direction of the flow.
struct Request {
    link: Option<(usize, bool)>,
    /// Bits per second in that direction and, for the same share, in the opposite one.
    rates: (Rate, Rate),
    share: Option<f64>,
}

/// The demand of web or ftp: a number per time or a load.
pub(crate) fn single(
    (number, key): (Option<PerSecond>, &str),
    load: Option<Load>,
    link: Option<&str>,
    pairs: &[(usize, usize)],
    at: &str,
    (net, routes, path): (&Network, &mut Routes, u8),
    cx: &mut Context<'_>,
) -> Option<Part> {
    let demand = match (number, load) {
        (Some(_), Some(_)) => {
            let message = format!("both {key} and load are given");
            cx.error(
                &format!("{at}.load"),
                "one too many",
                message,
                "keep one of them".into(),
            );
            return None;
        }
        (None, None) => {
            let message = format!("neither {key} nor load is given");
            let help = format!("add `load = \"50%\"` or `{key} = \"10/s\"`");
            cx.error(at, "how much?", message, help);
            return None;
        }
        (Some(n), None) => {
            if !(1e-6..=1e6).contains(&n.0) {
                let message = format!("{key} = {}/s is out of range", n.0);
                let help = "give 0.000001/s to 1000000/s".to_owned();
                cx.error(&format!("{at}.{key}"), "out of range", message, help);
                return None;
            }
            (Demand::PerSecond(n.0), None)
        }
        (None, Some(load)) => {
            let asked = asked(load, link, pairs, at, (net, routes, path), cx)?;
            let forward = asked.rates.0;
            let loaded = asked.link.map(|(link, down)| Loaded {
                link,
                down,
                asked: forward,
                share: asked.share,
                rest: Rest::Extra,
            });
            (
                Demand::Load {
                    forward,
                    opposite: Rate::ZERO,
                },
                loaded,
            )
        }
    };
    Some(Part {
        pairs: pairs.to_vec(),
        demand: demand.0,
        loaded: demand.1,
    })
}

/// One direction of a mix.
pub(crate) struct Way {
    /// Pairs of hosts, the one with the data first.
    pub(crate) pairs: Vec<(usize, usize)>,
    /// Bits per second in this direction.
    pub(crate) rate: Rate,
    /// Bits per second in the opposite direction; zero if that is not loaded.
    pub(crate) opposite: Rate,
    pub(crate) loaded: Option<Loaded>,
}

/// The load of a mix in each of its directions.
pub(crate) fn both(
    load: Load,
    link: Option<&str>,
    direction: MixDirection,
    pairs: &[(usize, usize)],
    at: &str,
    (net, routes, path): (&Network, &mut Routes, u8),
    cx: &mut Context<'_>,
) -> Option<Vec<Way>> {
    let asked = asked(load, link, pairs, at, (net, routes, path), cx)?;
    // Without a link the direction of the flow is up.
    let is_down = asked.link.is_some_and(|l| l.1);
    let swapped: Vec<(usize, usize)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
    let mut parts = Vec::new();
    for (down, wanted) in [(false, MixDirection::Up), (true, MixDirection::Down)] {
        if direction != MixDirection::Both && direction != wanted {
            continue;
        }
        let with_flow = down == is_down;
        let (pairs, rate, other) = if with_flow {
            (pairs.to_vec(), asked.rates.0, asked.rates.1)
        } else {
            (swapped.clone(), asked.rates.1, asked.rates.0)
        };
        let other = if direction == MixDirection::Both {
            other
        } else {
            Rate::ZERO
        };
        let loaded = asked.link.map(|(link, _)| Loaded {
            link,
            down,
            asked: rate,
            share: asked.share,
            rest: if direction == MixDirection::Both {
                Rest::Included
            } else {
                Rest::Extra
            },
        });
        parts.push(Way {
            pairs,
            rate,
            opposite: other,
            loaded,
        });
    }
    Some(parts)
}

fn asked(
    load: Load,
    link: Option<&str>,
    pairs: &[(usize, usize)],
    at: &str,
    (net, routes, path): (&Network, &mut Routes, u8),
    cx: &mut Context<'_>,
) -> Option<Request> {
    let key = format!("{at}.load");
    let is_nothing = match load {
        Load::Share(s) => s <= 0.0,
        Load::Rate(r) => r.is_zero(),
    };
    if is_nothing {
        let help = "give a load like \"50%\", or leave the flow out".to_owned();
        cx.error(&key, "nothing", "the load is zero".to_owned(), help);
        return None;
    }
    if let Load::Share(s) = load
        && s >= 1.0
    {
        let message = format!("a load of {}% of the link's capacity", percent(s));
        let help = "give less than 100%: at and above it queues grow without end".to_owned();
        cx.error(&key, "too much", message, help);
        return None;
    }
    let found = find(link, pairs, at, (net, routes, path), cx)?;
    let Some((index, down)) = found else {
        let Load::Rate(rate) = load else {
            let message = "no link on the way has a rate that the load could be a share of";
            let help = "give a link a rate, or the load as a rate like \"50Mbit/s\"".to_owned();
            cx.error(&key, "a share of what?", message.to_owned(), help);
            return None;
        };
        return Some(Request {
            link: None,
            rates: (rate, rate),
            share: None,
        });
    };
    let l = &net.links[index];
    let (own, opposite) = if down {
        (&l.down, &l.up)
    } else {
        (&l.up, &l.down)
    };
    let (Some(own), Some(opposite)) = (capacity(own), capacity(opposite)) else {
        let message = format!(
            "link \"{}\" has no rate that the load could be a share of",
            l.name
        );
        let help = "give it a rate, or name another link".to_owned();
        cx.error(&key, "a share of what?", message, help);
        return None;
    };
    let (rates, share) = match load {
        Load::Share(s) => ((own.mul_f64(s), opposite.mul_f64(s)), Some(s)),
        Load::Rate(r) => ((r, r), None),
    };
    if rates.0 >= own || rates.1 >= opposite {
        let message = format!(
            "a load of {} on link \"{}\", whose capacity is {}",
            rates.0,
            l.name,
            own.min(opposite)
        );
        let help =
            "give less than the capacity: at and above it queues grow without end".to_owned();
        cx.error(&key, "too much", message, help);
        return None;
    }
    Some(Request {
        link: Some((index, down)),
        rates,
        share,
    })
}

fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// The loaded link and whether the flow uses its down direction: the named link, or the slowest on the route. `None`
/// inside if no link on the route has a rate; outside after an error.
#[expect(clippy::option_option, reason = "an error is not a missing link")]
fn find(
    link: Option<&str>,
    pairs: &[(usize, usize)],
    at: &str,
    (net, routes, path): (&Network, &mut Routes, u8),
    cx: &mut Context<'_>,
) -> Option<Option<(usize, bool)>> {
    let key = format!("{at}.link");
    let named = link.and_then(|name| net.links.iter().position(|l| l.name == name));
    let mut found = None;
    for &(from, to) in pairs {
        let route = routes.find(from, to, path)?;
        let this = match link {
            Some(name) => {
                let Some(index) = named else {
                    let names = || net.links.iter().map(|l| l.name.as_str());
                    let help = did_you_mean(nearest(name, names()), "links", names());
                    cx.error(
                        &key,
                        "no such link",
                        format!("there is no link \"{name}\""),
                        help,
                    );
                    return None;
                };
                let Some(step) = route.iter().find(|s| s.0 == index) else {
                    let (a, b) = (&net.nodes[from].name, &net.nodes[to].name);
                    let message = format!(
                        "the way from \"{a}\" to \"{b}\" does not lead over link \"{name}\""
                    );
                    let names = route.iter().map(|s| net.links[s.0].name.as_str());
                    let help = did_you_mean(None, "it leads over", names);
                    cx.error(&key, "not on the way", message, help);
                    return None;
                };
                Some(*step)
            }
            None => route
                .iter()
                .filter_map(|&(i, down)| {
                    let l = &net.links[i];
                    Some((capacity(if down { &l.down } else { &l.up })?, (i, down)))
                })
                .min_by_key(|c| c.0)
                .map(|c| c.1),
        };
        match (found, this) {
            (None, _) => found = Some(this),
            (Some(before), _) if before == this => {}
            _ => {
                let message = "the pairs of hosts do not all go over the same slowest link";
                let help = "name the link, and hosts whose ways lead over it in one direction";
                cx.error(&key, "which link?", message.to_owned(), help.to_owned());
                return None;
            }
        }
    }
    Some(found.flatten())
}

fn capacity(config: &LinkConfig) -> Option<Rate> {
    match &config.rate {
        RateModel::Unlimited => None,
        other => Some(other.mean()),
    }
}
