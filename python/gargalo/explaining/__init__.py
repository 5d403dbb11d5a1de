"""The story of a run in plain sentences, derived from its tables alone.

>>> print(gargalo.explaining.explain(gargalo.load("runs/race-1")))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gargalo.extras import need

need("explanations", "matplotlib", "numpy")

from gargalo.explaining import flows, network, phases, recorded
from gargalo.explaining.model import Sentence, Story

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gargalo.results import Run

__all__ = ["Sentence", "Story", "explain"]

MOST_FLOWS = 8
"""With more flows only those that delivered most are described one by one."""


SPEAK_OF = 0.05
"""And only those that delivered at least this share of all data."""


def main_flows(run: Run) -> list[int]:
    """Return the numbers of the flows that are described one by one: all, or of many those that delivered most."""
    if run.flows.height <= MOST_FLOWS:
        return list(run.flows["id"])
    most = run.flows.sort("delivered_bytes", descending=True, maintain_order=True).head(MOST_FLOWS)
    total = int(run.flows["delivered_bytes"].sum())
    kept = most.filter((pl.col("delivered_bytes") >= SPEAK_OF * total) & (total > 0))
    return sorted((kept if kept.height else most.head(1))["id"].to_list())


def explain(run: Run, chosen: Sequence[int] | None = None) -> Story:
    """Return what happened in a run.

    Every sentence is derived from the results: times are those of the tables, which are those of the pictures and of
    the capture. Where a table was not recorded, a sentence says what is missing and which option records it.

    Args:
        run: A finished run.
        chosen: Numbers of the flows to describe one by one; by default all, of more than eight those that delivered
            most.

    """
    if chosen is None:
        chosen = main_flows(run)
    names = run.names
    of_recording = run.is_recording
    teller = recorded if of_recording else flows
    told = list(recorded.whole(run) if of_recording else network.whole(run))
    for flow in chosen:
        told += teller.story(run, flow, names[flow])
    told += flows.others(run, chosen)
    spans = phases.periods(run, chosen, names)
    told += network.shares(run, names, spans)
    told += network.queues(run, spans)
    if not of_recording:
        told += [*network.findings(run), *network.missing(run)]
    facts = run.info
    return Story(str(facts.get("name", "")), facts.get("seed"), tuple(told), names)
