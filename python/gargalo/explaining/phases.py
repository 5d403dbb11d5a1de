"""The parts of a run: start-up, steady, and what changes: the network, the flows, PROBE_RTT.

They are found from the samples alone, so that they are the same whatever else was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from gargalo.explaining.model import Period, listed
from gargalo.summary import rate, span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gargalo.results import Run

STARTING = {
    "slow-start": "slow start",
    "conservative-slow-start": "slow start",
    "startup": "startup",
    "accelerated-ramp-up": "accelerated ramp-up",
}
"""Phases of the beginning, and their names."""
PROBE_RTT = "probe-rtt"
MOST_PERIODS = 8
"""With more, what matters least is left out: PROBE_RTT, then ends of start-ups, then flows."""
SHORTEST = 0.02
"""Changes that are closer than this share of the run are one."""
MOST_NAMED = 3
AFTER = ("after the start-up of", "steady, after the start-up of")
NETWORK, FLOWS, STARTUPS, PROBES = range(4)
"""What a change is of, the most important first."""


@dataclass(frozen=True)
class Change:
    """What begins at an instant."""

    at_s: float
    kind: int
    word: str
    """Before the names of those that it happens to; a sentence by itself if there is no name."""
    name: str = ""


def periods(run: Run, chosen: Sequence[int], names: Mapping[int, str]) -> list[Period]:
    """Return the parts of the run that are described one by one."""
    end = float(run.info.get("virtual_s", 0.0))
    if end <= 0:
        return []
    found = [*_network(run, end), *_flows(run, names), *_phases(run, chosen, names)]
    found = sorted((c for c in found if 0 <= c.at_s < end), key=lambda c: c.at_s)
    for least in (PROBES, STARTUPS, FLOWS, NETWORK):
        made = _merged([c for c in found if c.kind <= least], end)
        if len(made) <= MOST_PERIODS:
            return made
    return [Period(0.0, end)]


def _merged(changes: Sequence[Change], end: float) -> list[Period]:
    """Return the periods between changes; those that are closer than a share of the run are one, but for PROBE_RTT."""
    edges: list[tuple[float, list[Change]]] = [(0.0, [])]
    for change in changes:
        at, here = edges[-1]
        near = change.at_s - at < SHORTEST * end or end - change.at_s < SHORTEST * end
        probing = PROBES in (change.kind, *(c.kind for c in here))
        if change.at_s == at or (near and not probing):
            here.append(change)
        else:
            edges.append((change.at_s, [change]))
    starts = [at for at, _ in edges]
    return [
        Period(a, b, _name(here))
        for (a, b), (_, here) in zip(pairwise([*starts, end]), edges, strict=True)
    ]


def _name(changes: Sequence[Change]) -> str:
    """Say what begins."""
    whose: dict[str, list[str]] = {}
    for c in changes:
        whose.setdefault(c.word, []).extend([c.name] if c.name else [])
    # A start-up that is over before the period is.
    begun = whose.get("start-up of", [])
    parts = []
    for word, own in whose.items():
        names = [n for n in own if n not in begun] if word in AFTER else own
        if own and not names:
            continue
        told = list(dict.fromkeys(names))
        more = len(told) - MOST_NAMED
        told = [*told[:MOST_NAMED], f"{more} more"] if more > 0 else told
        parts.append(f"{word} {listed(told)}" if told else word)
    return "; ".join(parts[:MOST_NAMED])


def _network(run: Run, end: float) -> Iterator[Change]:
    """Describe steps of rates and delays, and of outages."""
    for link in run.setup.links:
        for way in (link.up, link.down):
            for step in way.rate.steps:
                if step.time_s > 0:
                    word = f"{link.name} at {rate(step.rate_bps)}"
                    yield Change(step.time_s, NETWORK, word)
            for later in way.delay.steps:
                if later.time_s > 0:
                    word = f"{link.name} with a delay of {span(later.delay_s)}"
                    yield Change(later.time_s, NETWORK, word)
            for outage in way.outages:
                yield Change(outage.start_s, NETWORK, f"outage of {link.name}")
                if outage.end_s < end:
                    yield Change(outage.end_s, NETWORK, f"after the outage of {link.name}")


def _flows(run: Run, names: Mapping[int, str]) -> Iterator[Change]:
    """Describe flows that start and end, of those that are sampled."""
    flows = run.flows
    if not run.flow_samples.is_empty():
        flows = flows.filter(pl.col("id").is_in(run.flow_samples["flow"].unique().to_list()))
    for row in flows.select("id", "start_s", "end_s").iter_rows(named=True):
        yield Change(row["start_s"], FLOWS, "start-up of", names[row["id"]])
        yield Change(row["end_s"], FLOWS, "without", names[row["id"]])


def _phases(run: Run, chosen: Sequence[int], names: Mapping[int, str]) -> Iterator[Change]:
    """Describe when flows left their start-up, and when they were in PROBE_RTT."""
    if run.flow_samples.is_empty():
        return
    left: dict[int, float] = {}
    for flow in chosen:
        seen = phases_of(run.flow_samples, flow)
        if not seen:
            continue
        if seen[0][1] in STARTING:
            at = next((t for t, phase in seen if phase not in STARTING), None)
            left |= {} if at is None else {flow: at}
        for before, _, _, after in visits(seen):
            yield Change(before, PROBES, "PROBE_RTT of", names[flow])
            yield Change(after, PROBES, "after PROBE_RTT of", names[flow])
    last = max(left.values(), default=0.0)
    for flow, at in left.items():
        # No flow that is described is in its start-up any more.
        yield Change(at, STARTUPS, AFTER[at == last], names[flow])


def phases_of(samples: pl.DataFrame, flow: int) -> list[tuple[float, str]]:
    """Return the instants of the samples of a flow, and its phase there."""
    mine = samples.filter(pl.col("flow") == flow).sort("time_s")
    return list(mine.select("time_s", "phase").iter_rows())


def visits(
    seen: Sequence[tuple[float, str]], phase: str = PROBE_RTT
) -> list[tuple[float, float, float, float]]:
    """Return for each time in a phase the last instant before it, its first and last one, and the first after it."""
    found: list[tuple[float, float, float, float]] = []
    first: tuple[float, float] | None = None
    before = seen[0][0] if seen else 0.0
    last = before
    for t, now in seen:
        if now == phase:
            first = first or (before, t)
            last = t
        elif first is not None:
            found.append((*first, last, t))
            first = None
        before = t
    if first is not None:
        found.append((*first, last, last))
    return found
