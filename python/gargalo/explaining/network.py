"""What happened in the network and between the flows: shares, queues, findings, what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gargalo.audit import told
from gargalo.explaining.model import Period, Sentence, counted, instant, listed
from gargalo.metrics import delivered_at
from gargalo.pictures.runs import busy_links
from gargalo.summary import percent, rate, span, window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gargalo.results import Run

MOST_SHARES = 4
SPEAK_OF = 0.05
"""Flows with less than this share are described together, if there are two or more."""
MOST_LINKS = 4


def whole(run: Run) -> Iterator[Sentence]:
    """Describe what was run, and how full the network was."""
    s, end = run.summary, float(run.info.get("virtual_s", 0.0))
    flows = counted(run.flows.height, "flow")
    text = f"{run.info.get('name')}, seed {run.info.get('seed')}: {flows} in {instant(end)}."
    yield Sentence("run", text, 0.0, end, figures={"flows": run.flows.height, "virtual_s": end})
    # Results of older versions have no window.
    during = window(s) or "over the run"
    if s.get("bottleneck") and s.get("utilization") is not None:
        name, used = s["bottleneck"], s["utilization"]
        link = next(x for x in run.links if f"{x['name']} {x['direction']}" == name)
        text = f"The most used link was {name}: {percent(used)} of {rate(link['capacity_bps'])}, {during}."
        yield Sentence(
            "run", text, s.get("measured_from_s"), s.get("measured_until_s"),
            figures={"link": name, "utilization": used, "capacity_bps": link["capacity_bps"]},
        )  # fmt: skip
    if s.get("goodput_bps") is not None and run.flows.height:
        jain = s.get("jain_index")
        even = "" if jain is None or run.flows.height < 2 else f"; Jain's index is {jain:.3f}"
        text = f"All flows together delivered {rate(s['goodput_bps'])}, {during}{even}."
        figures = {"goodput_bps": s["goodput_bps"], "jain_index": jain}
        yield Sentence(
            "run", text, s.get("measured_from_s"), s.get("measured_until_s"), figures=figures
        )
    groups = (s.get("background") or {}).get("groups", [])
    if groups:
        n = sum(g["flows"] for g in groups)
        text = f"Beside them {counted(n, 'flow')} of background traffic came and went, of which only totals are kept."
        yield Sentence("run", text, figures={"background_flows": n})
    if run.interrupted:
        yield Sentence("run", f"The run was interrupted at {instant(end)}.", end)
    if run.ended_early:
        yield Sentence("run", f"The run ended early at {instant(end)}: {run.ended_early}.", end)


def shares(run: Run, names: Mapping[int, str], spans: Sequence[Period]) -> Iterator[Sentence]:
    """Describe what each flow delivered in each period, and its share of what all sampled flows delivered."""
    if run.flow_samples.is_empty() or not spans:
        return
    edges = [spans[0].start_s, *(s.end_s for s in spans)]
    curves = delivered_at(run.flow_samples, edges, flows=run.flows)
    for k, during in enumerate(spans):
        start, end = during.start_s, during.end_s
        got = {f: float(c[k + 1] - c[k]) for f, c in curves.items() if c[k + 1] > c[k]}
        total = sum(got.values())
        if not total:
            text = f"{during} no flow delivered data."
            yield Sentence("shares", text, start, end, figures={"goodput_bps": {}})
            continue
        order = sorted(got, key=lambda f: -got[f])
        rates = {f: 8 * got[f] / (end - start) for f in order}
        own = [f for f in order if got[f] >= SPEAK_OF * total][:MOST_SHARES]
        parts = [
            f"{names[f]} {rate(rates[f])}"
            + (f" ({percent(got[f] / total)})" if len(got) > 1 else "")
            for f in own
        ]
        rest = [f for f in order if f not in own]
        if len(rest) == 1:
            parts.append(
                f"{names[rest[0]]} {rate(rates[rest[0]])} ({percent(got[rest[0]] / total)})"
            )
        elif rest:
            n = counted(len(rest), "more flow" if own else "flow")
            share = percent(sum(got[f] for f in rest) / total)
            parts.append(f"{n} {rate(sum(rates[f] for f in rest))} together ({share})")
        text = f"{during} the goodput was: {', '.join(parts)}."
        figures = {"goodput_bps": {str(f): rates[f] for f in order}}
        yield Sentence("shares", text, start, end, figures=figures)
    without = [names[f] for f in run.flows["id"] if f not in curves]
    if without:
        text = f"Without samples, and so not among these: {listed(without[:MOST_SHARES])}"
        more = len(without) - MOST_SHARES
        yield Sentence("shares", f"{text}{f' and {more} more' if more > 0 else ''}.")


def queues(run: Run, spans: Sequence[Period]) -> Iterator[Sentence]:
    """Describe where the queue of the most used link stood in each period, and those of the others over the run."""
    if run.link_samples.is_empty():
        return
    first = str(run.summary.get("bottleneck") or "")
    link, _, direction = first.rpartition(" ")
    for during in spans if first else ():
        yield from _queue(run, (link, direction), during)
    whole_run = Period(0.0, float(run.info.get("virtual_s", 0.0)))
    others = [way for way in busy_links(run) if way != (link, direction)]
    for way in others[:MOST_LINKS]:
        yield from _queue(run, way, whole_run)
    if len(others) > MOST_LINKS:
        n = counted(len(others) - MOST_LINKS, "more direction", "more directions")
        yield Sentence("queue", f"{n} of links had a queue or drops.")


def _queue(run: Run, way: tuple[str, str], during: Period) -> Iterator[Sentence]:
    start, end = during.start_s, during.end_s
    rows = run.link_samples.filter(pl.col("link") == way[0], pl.col("direction") == way[1])
    # Counters before a sample of the period are those of the latest sample before it.
    inside = rows.filter(pl.col("time_s") > start, pl.col("time_s") <= end)
    if inside.is_empty():
        return
    delays = inside["queue_delay_s"].to_numpy()
    low, middle, high = (float(np.percentile(delays, p)) for p in (5, 50, 95))
    most, empty = float(delays.max()), float(np.mean(inside["queue_packets"].to_numpy() == 0))
    before = rows.filter(pl.col("time_s") <= start)
    dropped, marked = (
        int(inside[c].to_numpy().max()) - int(before[c].to_numpy().max(initial=0))
        for c in ("dropped_packets", "marked_packets")
    )
    name = " ".join(way)
    if most == 0:
        text = f"{during} no packet waited at {name} in any sample"
    else:
        text = (
            f"{during} the queue of {name} stood at {span(middle)} in the median of the samples "
            f"(5% to 95%: {span(low)} to {span(high)}; at most {span(most)})"
        )
        text += f"; no packet waited in {percent(empty)} of them" if empty else ""
    for n, what in ((dropped, "dropped"), (marked, "marked")):
        if n:
            text += f"; the link {what} {counted(n, 'packet')}"
    figures = {
        "link": name, "queue_delay_p5_s": low, "queue_delay_p50_s": middle, "queue_delay_p95_s": high,
        "queue_delay_max_s": most, "empty_share": empty, "dropped_packets": dropped, "marked_packets": marked,
    }  # fmt: skip
    yield Sentence("queue", f"{text}.", start, end, figures=figures)


def findings(run: Run) -> Iterator[Sentence]:
    """List what the auditor found, and the warnings."""
    for finding in run.findings:
        text = told(finding)
        yield Sentence("finding", f"{text[:1].upper()}{text[1:]}.", figures=finding)
    for warning in run.warnings:
        yield Sentence("finding", f"Warning: {warning}.")
    if not run.findings and not run.warnings:
        yield Sentence("finding", "The auditor found nothing unusual.")


def missing(run: Run) -> Iterator[Sentence]:
    """List what was not recorded, and what records it."""
    record = run.setup.record
    for recorded, key, what in (
        (not run.flow_samples.is_empty(), "record.flows", "samples of flows (shares, slow start, what limited a flow)"),
        (not run.link_samples.is_empty(), "record.links", "samples of links (queues)"),
        (record.events, "record.events", "events (losses, recoveries, timeouts)"),
    ):  # fmt: skip
        if not recorded:
            text = f"This run has no {what}: --set {key}=true records them."
            if getattr(record, key.removeprefix("record.")):
                text = f"This run has no {what}: no flow that is recorded has them."
            yield Sentence("missing", text, figures={"option": key})
    tcp = (run.flows["transport"] == "tcp").any()
    if not run.flow_samples.is_empty() and run.gauges.is_empty() and tcp:
        every = span(record.interval_s) if record.interval_s else "the sampling interval"
        text = f"Phases are known to {every} only"
        # The lab has no gauges.
        if run.info.get("world") != "lab":
            text += ": --set record.gauges=true records the instants at which they change"
        yield Sentence("missing", f"{text}.", figures={"option": "record.gauges"})
