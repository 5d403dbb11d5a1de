"""The stacks with which the study is repeated: those of 2018, today's, and what was tried on claims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo.studies import Reading

from gargalo_studies.nsquic import transports as t
from gargalo_studies.nsquic.scenarios import STEPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gargalo.studies import ScenarioTable, Table

    Change = Callable[[ScenarioTable], ScenarioTable]

THEN, TODAY = "2018", "today"
WORK = (
    "always-faster",
    "advantage-grows",
    "loss",
    "many-nodes",
    "many-nodes-apart",
    "fairness",
    "order",
    "figures-quic",
    "small-transfers",
    "tool-sizes",
    "tool-delays",
)
"""The claims of the work in which QUIC's initial window takes part."""


def of_2018(scenario: ScenarioTable, **changes: Table) -> ScenarioTable:
    """Give all flows the stacks of 2018, with changes by the kind of transport; steps stay as they are."""
    if scenario["name"] == STEPS:
        return scenario
    for flow in scenario["flows"]:
        ((kind, options),) = t.old(flow["transport"]).items()
        flow["transport"] = {kind: {**options, **changes.get(kind, {})}}
    return scenario


def with_(**changes: Table) -> Change:
    """Return the stacks of 2018 with changes by the kind of transport."""
    return lambda scenario: of_2018(scenario, **changes)


TEN: Table = {"initial_window": "10 packets"}
EACH: Table = {"delayed_ack": False}
READINGS = (
    Reading(
        THEN,
        "2018",
        "TCP of ns-3.27 (segments of 536 bytes, initial window 1, buffers of 128 KiB, no pacing), Google QUIC v41 "
        "(initial window 32 packets of 1350 bytes, CUBIC like two connections, hybrid slow start, pacing).",
        of_2018,
    ),
    Reading(
        TODAY,
        "today",
        "TCP like a current Linux (segments of 1448 bytes, initial window 10, RACK-TLP, PRR), QUIC "
        "of RFC 9000 with the "
        "CUBIC of RFC 9438 and an initial window of 10.",
    ),
    Reading(
        "window-10",
        "2018, QUIC's initial window 10",
        "The constant of Google's code is 32 packets, the connection option IW10 makes it 10: with it the published "
        "figures of QUIC come out.",
        with_(quic=TEN),
        claims=WORK,
    ),
    Reading(
        "unpaced",
        "2018, QUIC without pacing",
        "All of the window at once.",
        with_(quic={"pacing": False}),
        claims=("advantage-grows", "figures-quic"),
    ),
    Reading(
        "one-connection",
        "2018, QUIC's CUBIC of one connection",
        "The option 1CON.",
        with_(quic={"congestion": t.ONE_CONNECTION}),
        claims=("advantage-grows", "figures-quic", "many-nodes", "many-nodes-apart"),
    ),
    Reading(
        "each-segment",
        "2018, TCP acknowledges each segment",
        "A lone first segment of 536 bytes otherwise waits 200 ms for its acknowledgement.",
        with_(tcp=EACH),
        claims=("advantage-grows", "figures-tcp", "small-transfers"),
    ),
    Reading(
        "tcp-2",
        "2018, TCP's initial window 2",
        "The initial window of RFC 2581; with it payload over the whole time gives the figures printed of 1 MB.",
        with_(tcp={"initial_window": "2 packets"}),
        claims=("figures-tcp", "small-transfers"),
    ),
    Reading(
        "tcp-10",
        "2018, TCP's initial window 10",
        "The default of ns-3 from 3.30 on.",
        with_(tcp=TEN),
        claims=("figures-tcp", "small-transfers"),
    ),
    Reading(
        "tcp-10-1448",
        "2018, TCP's initial window 10, segments of 1448 bytes",
        "With segments that fill a packet a transfer of 10 kB is one flight, as QUIC's.",
        with_(tcp={**TEN, "mss": "1448B"}),
        claims=("figures-tcp", "small-transfers"),
    ),
    Reading(
        "first-segment",
        "2018, TCP acknowledges the first segment at once",
        "The same, later segments in pairs.",
        with_(tcp={"delayed_ack": {"quick": 1}}),
        claims=("advantage-grows", "figures-tcp", "small-transfers"),
    ),
    Reading(
        "window-20",
        "2018, QUIC's initial window 20",
        "Between the two.",
        with_(quic={"initial_window": "20 packets"}),
        claims=("advantage-grows", "figures-quic", "many-nodes", "many-nodes-apart"),
    ),
    Reading(
        "rack",
        "2018, TCP with RACK-TLP",
        "The recovery of today's TCP in that of 2018.",
        with_(tcp={"recovery": "rack-tlp"}),
        claims=("reordering",),
    ),
    Reading(
        "adaptive",
        "2018, TCP's duplicate threshold adapts",
        "Up to 300 segments, by the reordering that SACK blocks show.",
        with_(tcp={"max_dup_thresh": 300}),
        claims=("reordering",),
    ),
    Reading(
        "wide",
        "2018, TCP with RACK-TLP and buffers of 64 MiB",
        "The same without the limit of 128 KiB.",
        with_(tcp={"recovery": "rack-tlp", "send_buffer": "64MiB", "receive_buffer": "64MiB"}),
        claims=("reordering",),
    ),
)
