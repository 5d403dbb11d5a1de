//! Python classes that implement congestion controls, schedulers and path managers.

use std::collections::BTreeMap;
use std::sync::Arc;

use gargalo_cc::Params;
use gargalo_flow::ControllerFactory;
use gargalo_mptcp::Factory;
use gargalo_mptcp::path_manager::PathManager;
use gargalo_mptcp::scheduler::Scheduler;
use gargalo_native::congestion::NativeFactory;
use gargalo_scenario::resolved::Transport;
use gargalo_scenario::{Names, Scenario};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::controller::{Faults, PyFactory};
use crate::errors::{Diagnostic, scenario_error};
use crate::multipath::{Class, PyPathManagerFactory, PySchedulerFactory};
use crate::native::NativeCongestion;

/// The keys of a scenario that take the name of a class.
const CONGESTION: &str = "congestion";
const SCHEDULER: &str = "scheduler";
const PATH_MANAGER: &str = "path_manager";
/// The key of a scenario that takes the name of a QUIC stack.
pub const STACK: &str = "stack";
/// Names of stacks that would be loaded if a scenario named them.
const INSTALLED: &str = "installed";

/// Collects the names of `{key: names}`, or of `{key: {name: class}}`.
pub fn names_of(given: &Bound<'_, PyDict>) -> PyResult<Names> {
    let mut names = Names::default();
    for (key, of_kind) in given.iter() {
        let list: Vec<String> = of_kind
            .try_iter()?
            .map(|name| name?.extract())
            .collect::<PyResult<_>>()?;
        match key.extract::<String>()?.as_str() {
            CONGESTION => names.congestion.extend(list),
            SCHEDULER => names.schedulers = list,
            PATH_MANAGER => names.path_managers = list,
            INSTALLED => names.installed = list,
            STACK => {
                names.stacks = list;
                // Their congestion controls have names of their own.
                if let Ok(stacks) = of_kind.cast::<PyDict>() {
                    for stack in stacks.values() {
                        let own: Vec<String> = stack.getattr("congestion")?.extract()?;
                        names.congestion.extend(own);
                    }
                }
            }
            other => return Err(PyValueError::new_err(format!("no class is a \"{other}\""))),
        }
    }
    Ok(names)
}

type Named<T> = BTreeMap<String, Arc<T>>;

/// Factories for the flows that use Python classes.
#[derive(Debug, Default)]
pub struct Classes {
    /// Congestion controls by name.
    pub controllers: Named<dyn ControllerFactory>,
    /// Schedulers of Multipath TCP by name.
    pub schedulers: Named<dyn Factory<dyn Scheduler>>,
    /// Path managers of Multipath TCP by name.
    pub path_managers: Named<dyn Factory<dyn PathManager>>,
    /// Whether a congestion control is of a shared library.
    pub has_native: bool,
    /// Whether something is a class in Python.
    pub has_python: bool,
}

impl Classes {
    /// Creates factories, and sets their names in the flows.
    ///
    /// The engine looks factories up by name alone; flows that differ in parameters get different ones,
    /// under names that no scenario can have. Schedulers and path managers are made for each flow, so
    /// that their seeds depend on no other flow.
    pub fn adopt(
        scenario: &mut Scenario,
        classes: &Bound<'_, PyDict>,
        faults: &Arc<Faults>,
        native: &Arc<gargalo_native::Faults>,
    ) -> PyResult<Self> {
        let seed = scenario.seed;
        let mut made = Self::default();
        for flow in &mut scenario.flows {
            made.congestion(&mut flow.transport, classes, faults, native)?;
            let Transport::Mptcp(mptcp) = &mut flow.transport else {
                continue;
            };
            let find = |kind: &str, name: &str, params: &Params| -> PyResult<Option<_>> {
                let Some(class) = find(classes, kind, name)? else {
                    return Ok(None);
                };
                let (name, params) = (name.to_owned(), params.clone());
                let stream = format!("flow/{}/{kind}", flow.id);
                let key = format!("{name} of {stream}");
                let faults = Arc::clone(faults);
                let class = Class::new(name, class.unbind(), params, (seed, stream), faults);
                Ok(Some((key, class)))
            };
            let spec = &mut Arc::make_mut(mptcp).spec;
            let chosen = &mut spec.scheduler;
            if let Some((key, class)) = find(SCHEDULER, &chosen.name, &chosen.params)? {
                chosen.name.clone_from(&key);
                let factory = Arc::new(PySchedulerFactory(class));
                made.has_python = true;
                made.schedulers.insert(key, factory);
            }
            let Some(chosen) = &mut spec.path_manager else {
                continue;
            };
            if let Some((key, class)) = find(PATH_MANAGER, &chosen.name, &chosen.params)? {
                chosen.name.clone_from(&key);
                let factory = Arc::new(PyPathManagerFactory(class));
                made.has_python = true;
                made.path_managers.insert(key, factory);
            }
        }
        Ok(made)
    }

    /// Creates the factory for the congestion control of a flow.
    fn congestion(
        &mut self,
        transport: &mut Transport,
        classes: &Bound<'_, PyDict>,
        faults: &Arc<Faults>,
        native: &Arc<gargalo_native::Faults>,
    ) -> PyResult<()> {
        let Some(class) = find(classes, CONGESTION, transport.congestion())? else {
            return Ok(());
        };
        let chosen = match transport {
            Transport::Tcp(tcp) => &mut Arc::make_mut(tcp).congestion,
            Transport::Mptcp(mptcp) => &mut Arc::make_mut(mptcp).spec.tcp.congestion,
            Transport::Quic(quic) => &mut Arc::make_mut(quic).congestion,
            Transport::Udp => return Ok(()),
        };
        let (name, params) = (chosen.name.clone(), chosen.params.clone());
        let key = format!("{name} {params:?}");
        if !self.controllers.contains_key(&key) {
            let factory: Arc<dyn ControllerFactory> = match class.cast::<NativeCongestion>() {
                Ok(control) => {
                    self.has_native = true;
                    let algorithm = control.get().algorithm();
                    let factory = NativeFactory::new(algorithm, &params, Arc::clone(native));
                    Arc::new(factory.map_err(|e| {
                        scenario_error(format!("error: {e}"), vec![Diagnostic::says(e)])
                    })?)
                }
                Err(_) => {
                    self.has_python = true;
                    let faults = Arc::clone(faults);
                    Arc::new(PyFactory::new(name, class.unbind(), params, faults))
                }
            };
            self.controllers.insert(key.clone(), factory);
        }
        chosen.name = key;
        Ok(())
    }
}

/// Returns the class of this kind and name.
pub fn find<'py>(
    classes: &Bound<'py, PyDict>,
    kind: &str,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match classes.get_item(kind)? {
        Some(of_kind) => of_kind.cast_into::<PyDict>()?.get_item(name),
        None => Ok(None),
    }
}
