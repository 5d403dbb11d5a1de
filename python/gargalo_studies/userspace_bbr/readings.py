"""The stacks with which the simulated part is repeated, and the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.studies import Reading

from gargalo_studies.userspace_bbr.scenarios import LINUX, NEWRENO

if TYPE_CHECKING:
    from collections.abc import Callable

    from gargalo.studies import ScenarioTable, Table, Value

    Change = Callable[[ScenarioTable], ScenarioTable]

THEN, TODAY, LAB = "2023", "today", "lab"
SIZE = "50MB"
"""Of the transfers of the work."""
SMOLTCP: Table = {
    "profile": "smoltcp",
    "send_buffer": "256KiB",
    "receive_buffer": "16MiB",
    "delayed_ack": {"every": 2, "timeout": "40ms"},
}
"""Its sender, to a receiver of Linux. The work does not give its buffer: this is the least power of two that carries
the
12 Mbit/s that it prints for a link of 24."""
KEPT = frozenset({"congestion", "pacing"})
WORK = (
    "loss-lead",
    "loss-means",
    "loss-factor",
    "rate-means",
    "rate-low",
    "rate-high",
    "traces-order",
    "traces-lead",
    "variation",
)
"""Claims on which hypotheses are tried."""
ALL = (*WORK, "pacing", "pacing-cost", "competition", "later-bbr", "parking-lot")
"""With those that the work did not have."""


def lengthened(scenario: ScenarioTable) -> ScenarioTable:
    """Make transfers as long as published."""
    for flow in scenario["flows"]:
        match flow.get("workload"):
            case {"bulk": {"bytes": _}}:
                flow["workload"] = {"bulk": {"bytes": SIZE}}
    return scenario


def changed(scenario: ScenarioTable, options: Table, bbr: Table) -> ScenarioTable:
    """Give BBR a stack, options of TCP and parameters of its own, and all other flows that of Linux."""
    for flow in scenario["flows"]:
        tcp = flow["transport"].get("tcp")
        if tcp is None or "profile" in tcp:
            continue
        name = str(tcp["congestion"])
        if not name.startswith("bbr"):
            tcp = {**tcp, "profile": LINUX}
        else:
            kept = {k: v for k, v in tcp.items() if k in KEPT}
            tcp = {**options, **kept, "congestion": {name: bbr} if bbr and name == "bbr" else name}
        flow["transport"] = {"tcp": tcp}
    return scenario


def smoltcp(bbr: Table | None = None, *, long: bool = True, **options: Value) -> Change:
    """Return the stacks of 2023 with other parameters of BBR or options of its TCP; real time stays as it is."""

    def apply(scenario: ScenarioTable) -> ScenarioTable:
        if "hosts" in scenario:
            return scenario
        made = changed(scenario, {**SMOLTCP, **options}, bbr or {})
        return lengthened(made) if long else made

    return apply


def today(scenario: ScenarioTable) -> ScenarioTable:
    """Scenarios are written with today's stacks."""
    return scenario if "hosts" in scenario else lengthened(scenario)


def without_sack(scenario: ScenarioTable) -> ScenarioTable:
    """Take selective acknowledgements from today's sender."""
    if "hosts" in scenario:
        return scenario
    return lengthened(changed(scenario, {**NEWRENO}, {}))


def tried(
    name: str, title: str, description: str, apply: Change, claims: tuple[str, ...] = WORK
) -> Reading:
    """Return a hypothesis about the stack of 2023."""
    return Reading(name, f"2023, {title}", description, apply, claims)


READINGS = (
    Reading(
        THEN,
        "2023, simulated",
        "BBR on the profile smoltcp (no scoreboard, go-back-N, send buffer of 256 KiB) to a "
        "receiver of Linux; NewReno and CUBIC are "
        "those of linux-6; transfers of 50 MB.",
        smoltcp(),
    ),
    Reading(
        TODAY,
        "today, simulated",
        "BBR on the profile modern (SACK, RACK-TLP); NewReno and CUBIC as in 2023; transfers of 50 MB.",
        today,
    ),
    Reading(
        LAB,
        "today, in the lab",
        "BBR on our TCP in real time, NewReno and CUBIC the kernel's; shorter transfers, compared "
        "with the simulator's.",
    ),
    tried("64-kib", "buffer of 64 KiB", "As smoltcp's examples.", smoltcp(send_buffer="65535B")),
    tried(
        "96-kib",
        "buffer of 96 KiB",
        "Chosen after a look: with it BBR's mean over losses is the printed one.",
        smoltcp(send_buffer="96KiB"),
    ),
    tried("128-kib", "buffer of 128 KiB", "Between the two.", smoltcp(send_buffer="128KiB")),
    tried("64-mib", "buffer of 64 MiB", "No limit.", smoltcp(send_buffer="64MiB"), ALL),
    tried(
        "newreno",
        "NewReno's recovery",
        "What partial acknowledgements show to be missing is sent again, not everything.",
        smoltcp(recovery="newreno"),
        ALL,
    ),
    tried("rto-1s", "least timeout of 1 s", "That of RFC 6298.", smoltcp(min_rto="1s"), ALL),
    tried(
        "two-samples",
        "bandwidth filter of two round trips",
        "The draft has ten.",
        smoltcp({"bandwidth_window": 2}),
    ),
    tried(
        "gain-1",
        "window of one bandwidth-delay product",
        "The draft has two.",
        smoltcp({"cwnd_gain": 1, "extra_acked_gain": 0}),
    ),
    tried("short", "transfers of 6 to 24 MB", "As in the lab here.", smoltcp(long=False)),
    tried(
        "no-sack",
        "BBR on modern without SACK",
        "With timestamps, limited transmit and an initial window of 10.",
        without_sack,
        ALL,
    ),
)
