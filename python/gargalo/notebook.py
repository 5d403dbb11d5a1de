"""What notebooks show of results: small tables in HTML, without colours of their own, so that they fit any theme."""

from __future__ import annotations

from bisect import bisect
from html import escape
from typing import TYPE_CHECKING

from gargalo.quantities import decimal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gargalo.evaluation.model import Verdict
    from gargalo.evaluation.running import Scorecard
    from gargalo.results import Run
    from gargalo.scenarios.scenario import Scenario
    from gargalo.studies import Outcome
    from gargalo.sweeps import Sweep
    from gargalo.terminal.fitting import Column

MOST_ROWS = 20
BINS = 48
"""Of the lines that show a rate over time."""
LINE_WIDTH, LINE_HEIGHT = 120, 22
"""In CSS pixels."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


class Page(str):
    """A page in HTML that works by itself; a notebook shows it in a frame that can reach nothing."""

    __slots__ = ()
    HEIGHT = 700
    """In CSS pixels."""

    def _repr_html_(self) -> str:
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self)}" title="a run" '
            f'style="width:100%;height:{self.HEIGHT}px;border:0"></iframe>'
        )


def cell(value: str) -> str:
    """Write a text as HTML."""
    return value if isinstance(value, Html) else escape(value)


def table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], what: str, *, most: int = MOST_ROWS
) -> str:
    """Write a table of at most so many rows; `what` are its rows."""
    side = [f"text-align:{c.justify};padding:0 0.6em" for c in columns]
    head = "".join(
        f'<th style="{s}">{cell(c.name)}</th>' for c, s in zip(columns, side, strict=True)
    )
    rows = list(rows)
    body = "".join(
        "<tr>"
        + "".join(f'<td style="{s}">{cell(v)}</td>' for v, s in zip(row, side, strict=True))
        + "</tr>"
        for row in rows[:most]
    )
    more = len(rows) - most
    rest = f"<p>… and {more} more {escape(what)}</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def page(title: str, facts: str, *parts: str, notes: Iterable[str] = ()) -> str:
    """Put a title, a line of facts, warnings and tables together."""
    told = "".join(f"<p>⚠ {escape(n)}</p>" for n in notes)
    head = f"<p><b>{escape(title)}</b> {escape(facts)}</p>"
    return f"<div>{head}{told}{''.join(parts)}</div>"


def line(values: Sequence[float]) -> Html:
    """Draw values from 0 to their greatest as a line in the colour of the text."""
    top = max(values, default=0.0)
    if len(values) < 2 or top <= 0:
        return Html("")
    step, height = LINE_WIDTH / (len(values) - 1), LINE_HEIGHT - 2
    points = " ".join(
        f"{i * step:.1f},{1 + height * (1 - v / top):.1f}" for i, v in enumerate(values)
    )
    return Html(
        f'<svg width="{LINE_WIDTH}" height="{LINE_HEIGHT}" viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" role="img">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.2"/></svg>'
    )


def rates(run: Run, flow: int) -> list[float]:
    """Return what a flow delivered per second in each of `BINS` equal parts of the run, in byte/s.

    Where it begins or ends within a part, that of the time in which it was there; 0 before and after.
    """
    import polars as pl

    samples = run.flow_samples
    if samples.is_empty():
        return []
    row = run.flows.filter(pl.col("id") == flow).row(0, named=True)
    duration_s = run.setup.duration_s
    start_s, end_s = row["start_s"], min(row["end_s"] or duration_s, duration_s)
    inside = pl.col("time_s").is_between(start_s, end_s, closed="none")
    own = samples.filter((pl.col("flow") == flow) & inside).sort("time_s")
    times: list[float] = [start_s, *own["time_s"], end_s]
    delivered: list[float] = [0, *own["delivered_bytes"], row["delivered_bytes"]]

    def until(time_s: float) -> float:
        """Return what was delivered until an instant: between two samples in proportion to the time."""
        i = min(bisect(times, time_s), len(times) - 1)
        span_s = times[i] - times[i - 1]
        share = (time_s - times[i - 1]) / span_s if span_s > 0 else 1.0
        return delivered[i - 1] + share * (delivered[i] - delivered[i - 1])

    parts = []
    for i in range(BINS):
        low = max(i * duration_s / BINS, start_s)
        high = min((i + 1) * duration_s / BINS, end_s)
        parts.append(max(until(high) - until(low), 0.0) / (high - low) if high > low else 0.0)
    return parts


def of_run(run: Run) -> str:
    """Write a run: its flows with their goodput over time, its links, what a reader should know."""
    from gargalo import summary
    from gargalo.audit import told
    from gargalo.names import flow_names
    from gargalo.terminal.fitting import Column

    flows = run.to_json()["flows"]
    drawn = [line(rates(run, f["id"])) for f in flows[:MOST_ROWS]]
    found, rows = summary.flow_table(flows, flow_names(flows))
    columns = list(found)
    if any(drawn):
        columns.append(Column("goodput over time", justify="left"))
        rows = [[*row, d] for row, d in zip(rows, [*drawn, *[""] * len(rows)], strict=False)]
    links = [li for li in run.links if li["utilization"] or li["dropped_packets"]]
    notes = [*run.warnings, *map(told, run.findings)]
    if run.interrupted:
        notes.append("the run was interrupted")
    parts = [table(columns, rows, "flows")] if rows else []
    if links:
        parts.append(table(summary.LINKS, map(summary.link_cells, links), "links"))
    how = "recorded" if run.is_recording else f"seed {run.info.get('seed')}"
    facts = f"{decimal(run.setup.duration_s)} s, {how}"
    if run.directory is not None:
        facts += f", in {run.directory}"
    return page(run.setup.name, facts, *parts, notes=notes)


def of_scenario(scenario: Scenario) -> str:
    """Write a scenario: the text of its file."""
    flows = len(scenario.flows)
    facts = f"{flows} flow{'' if flows == 1 else 's'}"
    if scenario.duration is not None:
        facts += f", {scenario.duration}"
    return page(scenario.name, facts, f"<pre>{escape(scenario.to_toml())}</pre>")


def of_sweep(sweep: Sweep) -> str:
    """Write a sweep: how far it is, and the usual figures of its cells."""
    from gargalo.sweeps.show import cells

    facts = f"{sweep.finished} of {len(sweep.plan)} runs, in {sweep.store.path}"
    notes = [f"failed: {f.reason}" for f in sweep.failures[:3]]
    if not sweep.finished:
        return page(sweep.name, facts, notes=notes)
    columns, rows, _ = cells(sweep)
    about = "<p>Mean and its 95% interval.</p>"
    return page(sweep.name, facts, about, table(columns, rows, "cells"), notes=notes)


def of_outcome(outcome: Outcome) -> str:
    """Write what a study found: each claim with its verdicts."""
    from gargalo.reporting.model import VERDICTS
    from gargalo.terminal.fitting import Column

    rows = []
    for claim in outcome.claims:
        found = [
            f"{VERDICTS[j.verdict].sign} {j.verdict}{f' ({j.reading})' if j.reading else ''}"
            for j in claim.judgements()
        ]
        rows.append([Html("<br>".join(map(escape, found))), claim.text])
    columns = [Column("verdict", justify="left"), Column("claim", justify="left")]
    facts = f"profile {outcome.profile.name}, {outcome.sweep.plan.height} runs, {outcome.page}"
    failed = len(outcome.sweep.failures)
    notes = [f"{failed} runs failed"] if failed else []
    return page(outcome.study.name, facts, table(columns, rows, "claims"), notes=notes)


def of_scorecard(card: Scorecard) -> str:
    """Write a scorecard: each criterion with its verdict, its figures beside those of the references, its faults."""
    from gargalo.evaluation.model import VERDICTS
    from gargalo.quantities import measured
    from gargalo.terminal.fitting import Column

    def signed(verdict: Verdict, text: str) -> str:
        return f"{VERDICTS[verdict].sign} {text}"

    facts = f"profile {card.profile.name}, {card.profile.repeat} runs of each cell"
    if card.broken:
        return page(card.algorithm, facts, notes=[card.broken])
    names = ["criterion", card.algorithm, *card.references]
    columns = [Column(name, justify="left") for name in names]
    rows: list[list[str]] = []
    for result in card.results:
        c = result.criterion
        rows.append(
            [
                Html(f"<b>{escape(c.id)}</b> {escape(c.section)}"),
                signed(result.verdict, result.verdict),
            ]
        )
        for outcome in result.outcomes:
            unit = outcome.figure.unit
            others = [measured(outcome.references[r].mean, unit) for r in card.references]
            own = signed(outcome.verdict, measured(outcome.own.mean, unit))
            rows.append([f"\u2003{outcome.figure.name}", own, *others])
        rows += [[f"\u2003{case.id}", case.verdict] for case in result.cases]
    rows = [[*row, *[""] * (len(columns) - len(row))] for row in rows]
    notes = [f"{r.criterion.id}: {fault}" for r in card.results for fault in r.faults]
    return page(card.algorithm, facts, table(columns, rows, "rows", most=10_000), notes=notes)
