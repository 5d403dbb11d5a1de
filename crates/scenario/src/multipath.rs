//! Multipath between a scenario and its results: the engine's specification of Multipath TCP, and the results of its
//! subflows and of the paths of multipath QUIC.

use std::sync::Arc;

use gargalo_cc::chosen::Chosen;
use gargalo_flow::{AddressChange, FlowResult, MptcpSpec, Outcome, SubflowResult};
use gargalo_mptcp::{Config, Factory, path_manager, scheduler};
use gargalo_trace::Table;
use gargalo_trace::schema::{FlowRow, SubflowRow, SubflowSample, SubflowSamples, Subflows};
use gargalo_units::Rate;
use gargalo_workload::tls::TlsVersion;

use crate::options::{Factories, RunError};
use crate::resolved::{Flow, Mptcp, Scenario};

/// The specification of the transport for the engine.
pub(crate) fn spec(
    scenario: &Scenario,
    f: &Flow,
    m: &Mptcp,
    factories: &mut Factories<'_>,
) -> Result<MptcpSpec, RunError> {
    let events = scenario.record.events && f.rows;
    let options = factories.options;
    let spec = &m.spec;
    let Chosen { name, params, .. } = &spec.scheduler;
    let scheduler: Arc<dyn Factory<dyn scheduler::Scheduler>> = match options.schedulers.get(name) {
        Some(own) => Arc::clone(own),
        None => {
            Arc::new(scheduler::Registered::new(name, params.clone()).map_err(RunError::Multipath)?)
        }
    };
    let Chosen { name, params, .. } = &spec.path_manager.clone().unwrap_or_default();
    let own = options.path_managers.get(name);
    let path_manager: Arc<dyn Factory<dyn path_manager::PathManager>> = match own {
        Some(own) => Arc::clone(own),
        None => Arc::new(
            path_manager::Registered::new(name, params.clone()).map_err(RunError::Multipath)?,
        ),
    };
    let tcp = gargalo_tcp::Config {
        notices: events,
        ..spec.tcp.config.clone()
    };
    let config = Config {
        tcp: tcp.into(),
        scheduler,
        path_manager,
        options: spec.options,
        max_remote_addresses: 64,
        notices: events,
        decisions: scenario.record.decisions && f.rows,
        ..Config::default()
    };
    // A player's connection is opened by the flow's second host.
    let swapped = u8::from(f.workload.is_asked_for());
    let change = |c: &AddressChange| AddressChange {
        side: c.side ^ swapped,
        ..*c
    };
    Ok(MptcpSpec {
        config: config.into(),
        congestion: factories.get(&spec.tcp.congestion.name, &spec.tcp.congestion.params)?,
        tls: TlsVersion::chosen(spec.tcp.tls),
        links: m.links.clone(),
        backups: m.backups.clone(),
        gateways: m.gateways.iter().map(|n| *n as u32).collect(),
        changes: m.changes.iter().map(change).collect(),
    })
}

/// Fills a flow's columns and appends the rows of its subflows.
pub(crate) fn push(
    scenario: &Scenario,
    out: &Outcome,
    f: &FlowResult,
    row: &mut FlowRow<'_>,
    table: &mut Table<Subflows>,
) {
    let Some(m) = &f.multipath else { return };
    row.subflows = Some(m.subflows.len() as u64);
    if let Some(m) = &m.mptcp {
        row.reinjected_packets = Some(m.stats.reinjected_segments);
        row.opportunistic_packets = Some(m.stats.opportunistic_segments);
        row.copied_packets = Some(m.stats.copied_segments);
        row.duplicate = Some(gargalo_units::Bytes::new(m.duplicate_bytes));
        row.out_of_order_max = Some(gargalo_units::Bytes::new(m.out_of_order_max));
        row.fell_back = Some(m.stats.fallbacks > 0);
    }
    for s in &m.subflows {
        let rtt = s.rtt.summary();
        table.push(&SubflowRow {
            flow: f.id,
            subflow: u64::from(s.id),
            link: &scenario.links[s.link].name,
            peer_link: &scenario.links[s.reverse_link].name,
            gateway: s.gateway.map(|g| scenario.nodes[g as usize].name.as_str()),
            backup: s.backup,
            opened: s.opened,
            closed: s.closed,
            delivered: s.delivered,
            measured: gargalo_units::Bytes::new(s.inside.delivered),
            goodput: goodput(out, f, s),
            counters: s.counters,
            rtt_min: rtt.map(|r| r.min),
            rtt_mean: rtt.map(|r| r.mean),
            rtt_p95: rtt.map(|r| r.p95),
        });
    }
}

/// Appends a sample of a subflow.
pub(crate) fn sample(
    scenario: &Scenario,
    s: &gargalo_flow::SubflowSample,
    table: &mut Table<SubflowSamples>,
) {
    table.push(&SubflowSample {
        time: s.time,
        flow: s.flow,
        subflow: u64::from(s.subflow),
        link: &scenario.links[s.link].name,
        congestion_window: Some(s.cwnd),
        slow_start_threshold: s.ssthresh,
        bytes_in_flight: s.in_flight,
        srtt: s.srtt,
        delivery_rate: s.delivery_rate,
        sent: s.sent,
        delivered: s.delivered,
        phase: s.phase,
    });
}

/// Goodput of a subflow over the time that it was open in the measured window; `None`: it was not.
fn goodput(out: &Outcome, f: &FlowResult, s: &SubflowResult) -> Option<Rate> {
    let end = s.closed.unwrap_or(f.end).max(s.opened);
    Some(gargalo_units::Bytes::new(s.inside.delivered) / out.active(s.opened, end)?)
}
