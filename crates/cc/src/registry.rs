//! Algorithms by name, for the command line, the documentation and scenarios.

use gargalo_units::{Bytes, Instant, nearest};
use rand_pcg::Pcg64;

use crate::Controller;
use crate::algorithms::ALGORITHMS;
use crate::params::{BuildError, Param, Params};

/// The initial values of a controller.
#[derive(Clone, Debug)]
pub struct Init {
    /// When the path is opened.
    pub now: Instant,
    /// Maximum segment size: payload bytes.
    pub mss: Bytes,
    /// The transport's initial window (RFC 6928).
    pub initial_window: Bytes,
    /// The controller's own random stream, named by flow and path.
    pub rng: Pcg64,
}

/// Builds a controller from checked parameters.
pub type Build = fn(&Params, Init) -> Result<Box<dyn Controller>, BuildError>;

/// An entry of a registry, which is built by a `B`.
#[derive(Clone, Copy, Debug)]
pub struct Entry<B> {
    /// Name in scenarios.
    pub name: &'static str,
    /// Other names that scenarios may use.
    pub aliases: &'static [&'static str],
    /// Description in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Lists its parameters, in the order of declaration.
    pub params: fn() -> &'static [Param],
    /// Builds it from parameters.
    pub build: B,
}

/// A congestion control; see [`build`] for its function.
pub type Algorithm = Entry<Build>;

impl<B> Entry<B> {
    /// Its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<B> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The description of the algorithm, without building it.
    pub fn listed(&self) -> Entry<()> {
        Entry {
            name: self.name,
            aliases: self.aliases,
            summary: self.summary,
            source: self.source,
            params: self.params,
            build: (),
        }
    }
}

/// The algorithm of this name or alias.
///
/// # Errors
/// When there is none; the error names the nearest.
pub fn find(name: &str) -> Result<&'static Algorithm, BuildError> {
    ALGORITHMS
        .iter()
        .find(|a| a.names().any(|n| n == name))
        .ok_or_else(|| BuildError::UnknownAlgorithm {
            name: name.to_owned(),
            nearest: nearest(name, ALGORITHMS.iter().flat_map(Entry::names)),
        })
}

/// Builds the controller of this name.
///
/// # Errors
/// When the name or a parameter is unknown, or a value invalid.
pub fn build(name: &str, params: &Params, init: Init) -> Result<Box<dyn Controller>, BuildError> {
    (find(name)?.build)(params, init)
}

/// Whether the control of this name is defined by its pacing ([`Controller::needs_pacing`]); `false` if it is not
/// registered.
pub fn needs_pacing(name: &str) -> bool {
    let init = Init {
        now: Instant::ZERO,
        mss: Bytes::new(1),
        initial_window: Bytes::new(1),
        rng: Pcg64::new(0, 0),
    };
    build(name, &Params::new(), init).is_ok_and(|control| control.needs_pacing())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{ParamKind, ParamValue};
    use crate::testing::init;

    #[test]
    fn sorted_and_without_duplicates() {
        let mut names: Vec<_> = ALGORITHMS.iter().map(|a| a.name).collect();
        assert!(names.is_sorted());
        names.extend(ALGORITHMS.iter().flat_map(|a| a.aliases));
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }

    #[test]
    fn every_entry_builds_with_defaults_and_round_trips() {
        for a in ALGORITHMS {
            let default = build(a.name, &Params::new(), init()).unwrap();
            let mut explicit = Params::new();
            for p in (a.params)() {
                explicit.push(p.name, p.default_value());
            }
            let same = build(a.name, &explicit, init()).unwrap();
            assert_eq!(format!("{default:?}"), format!("{same:?}"), "{}", a.name);
            for alias in a.aliases {
                assert_eq!(find(alias).unwrap().name, a.name);
            }
        }
    }

    #[test]
    fn every_parameter_has_a_name_of_its_own_and_a_line() {
        for a in ALGORITHMS {
            let mut names: Vec<_> = (a.params)().iter().map(|p| p.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{}", a.name);
            for p in (a.params)() {
                assert!(
                    !p.doc.is_empty() && !p.doc.ends_with('.'),
                    "{} {}",
                    a.name,
                    p.name
                );
            }
        }
    }

    #[test]
    fn every_bound_of_every_parameter_builds_and_beyond_does_not() {
        for a in ALGORITHMS {
            for p in (a.params)() {
                let ok = |v: ParamValue| {
                    let mut params = Params::new();
                    params.push(p.name, v);
                    build(a.name, &params, init()).is_ok()
                };
                match p.kind {
                    ParamKind::Number { min, max, .. } => {
                        assert!(ok(min.into()) && ok(max.into()), "{} {}", a.name, p.name);
                        assert!(!ok((min - 1.0).into()) && !ok((max * 2.0 + 1.0).into()));
                        assert!(!ok(f64::NAN.into()) && !ok("much".into()));
                    }
                    ParamKind::Bool { .. } => {
                        assert!(ok(true.into()) && ok(false.into()) && !ok(1.0.into()));
                    }
                    ParamKind::Choice { choices, .. } => {
                        assert!(choices.iter().all(|c| ok((*c).into())) && !ok("none".into()));
                    }
                    ParamKind::Duration { min, max, .. } => {
                        assert!(ok(min.to_string().as_str().into()));
                        assert!(ok(max.to_string().as_str().into()));
                        assert!(!ok(5.0.into()), "a bare number has no unit");
                    }
                }
            }
        }
    }

    #[test]
    fn those_that_are_defined_by_their_pacing() {
        let found: Vec<_> = ALGORITHMS
            .iter()
            .map(|a| a.name)
            .filter(|name| needs_pacing(name))
            .collect();
        assert_eq!(found, ["bbr", "bbr2", "bbr3"]);
        assert!(!needs_pacing("mine"));
    }

    #[test]
    fn errors_help() {
        let e = |name: &str, params: Params| {
            build(name, &params, init())
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        };
        assert_eq!(
            e("cubik", Params::new()),
            "there is no congestion control \"cubik\" (did you mean \"cubic\"?)"
        );
        assert!(e("cubic", Params::new().with("Beta", 0.7)).contains("did you mean \"beta\"?"));
        assert_eq!(
            e("reno", Params::new().with("beta", 7.0)),
            "reno: beta = 7 is not valid: it must be a number from 0.01 to 0.99"
        );
        assert!(
            e("cubic", Params::new().with("slow_start", "hystrat++"))
                .contains("did you mean \"hystart++\"?")
        );
        assert!(
            e("bbr", Params::new().with("probe_rtt_duration", 200.0))
                .contains("did you mean \"200ms\"?")
        );
        assert!(
            e("reno", Params::new().with("beta", 0.5).with("beta", 0.5)).contains("given twice")
        );
    }
}
