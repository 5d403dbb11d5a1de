"""What a frozen page has below the pictures, as HTML: figures at a glance, tables, how to run it again, facts."""

from __future__ import annotations

import html
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import _core, metrics
from gargalo.pictures.runs import subflow_names
from gargalo.quantities import measured, number, quantity
from gargalo.summary import window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo.results import Run

MOST_ROWS = 5000
# With fewer completed flows a distribution has no meaning.
FEWEST_COMPLETED = 10


@dataclass(frozen=True)
class Table:
    """A table of figures in SI; the endings of its columns' names are their units."""

    title: str
    caption: str
    frame: pl.DataFrame


def section(run: Run, facts: Mapping[str, str | int | float] | None = None) -> str:
    """Return what is known of a run beside its pictures, as HTML that needs no script.

    Args:
        run: A finished run.
        facts: More facts, such as the date: the clock is never read.

    """
    scenario, command = _again(run)
    parts = [
        _list("At a glance", _highlights(run)),
        _notes(run),
        *map(_table, _tables(run)),
        "<h2>Run it again</h2>",
        f"<pre>{html.escape(command)}</pre>" if command else
        "<p>The results do not have the text of the scenario: it is shown as resolved, with every default "
        "filled in.</p>",
        f'<details><summary>The scenario</summary><pre id="scenario">{html.escape(scenario)}</pre></details>',
        _list("Facts", {**_facts(run), **(facts or {})}),
    ]  # fmt: skip
    return "\n".join(p for p in parts if p)


def _list(title: str, facts: Mapping[str, str | int | float]) -> str:
    rows = "".join(
        f"<dt>{html.escape(k)}</dt><dd>{html.escape(v if isinstance(v, str) else number(v))}</dd>"
        for k, v in facts.items()
    )
    return f"<h2>{title}</h2><dl>{rows}</dl>"


def _table(table: Table) -> str:
    """Return a table; each cell has its number in SI for sorting."""
    heads, columns = [], []
    for name in table.frame.columns:
        series = table.frame[name]
        numeric = series.dtype.is_numeric()
        unit = quantity(
            name, series.drop_nulls().to_list() if numeric else (), None if numeric else ""
        )
        heads.append(
            f'<th scope="col"><button type="button">{html.escape(unit.title)}</button></th>'
        )
        columns.append(
            [
                f'<td data-value="{v:.6g}">{number(v / unit.factor)}</td>'
                if numeric and v is not None
                else f"<td>{_text(v)}</td>"
                for v in series
            ]
        )  # fmt: skip
    rows = "".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    title = html.escape(table.title)
    return (
        f'<h2>{title}</h2><div class="scroll" tabindex="0" role="group" aria-label="{title}">'
        f"<table><caption>{html.escape(table.caption)}</caption>"
        f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _text(value: Any) -> str:
    if value is None:
        return "–"  # noqa: RUF001
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else html.escape(str(value))


def _again(run: Run) -> tuple[str, str]:
    """Return the text of the scenario, or what it was resolved to, and the command that runs the text."""
    source = run.source
    if "text" not in source:
        return json.dumps(run.scenario, indent=1, ensure_ascii=False), ""
    path = source.get("path")
    name = (
        Path(path).name
        if path and path != "<stdin>"
        else f"{run.info.get('name', 'scenario')}.toml"
    )
    words = ["gargalo", "run", name]
    for key, value in source.get("set", []):
        words += ["--set", f"{key}={value}"]
    return str(source["text"]), shlex.join(words)


def _named(run: Run) -> pl.DataFrame:
    """Flows with a name that distinguishes them, and what they are grouped by."""
    names = run.names
    return run.flows.with_columns(
        pl.when(pl.col("congestion") == "").then("transport").otherwise("congestion").alias("kind"),
        pl.Series("name", [names[i] for i in run.flows["id"]], dtype=pl.String),
    )


def _tables(run: Run) -> list[Table]:
    flows = run.flows.head(MOST_ROWS)
    flows = flows.with_columns(_named(run).head(MOST_ROWS)["name"].alias("flow"))
    columns = [
        "flow", "from", "to", "congestion", "transport", "workload", "start_s", "end_s", "goodput_bps",
            "completion_s", "delivered_bytes",
        "rtt_p50_s", "rtt_p95_s", "delay_p50_s", "delay_p95_s", "sent_packets", "retransmitted_packets",
            "lost_packets", "timeouts", "ce_marks", "failure",
    ]  # fmt: skip
    kept = [c for c in columns if c in flows.columns and flows[c].null_count() < flows.height]
    left = run.flows.height - flows.height
    caption = "Every flow; goodput is over its own time. Percentiles are over the sender's samples."
    if left:
        caption += f" The first {number(flows.height)}; {number(left)} more are in flows.parquet."
    blocks = [Table("Flows", caption, flows.select(kept))]
    blocks += _subflows(run)
    sizes = metrics.completion_times(run.flows, by=["congestion", metrics.size_class()])
    if sizes["completed"].sum() >= FEWEST_COMPLETED:
        blocks.append(
            Table(
                "Completion times by size",
                "By congestion control and by what was delivered.",
                sizes,
            )
        )
    links = pl.DataFrame(run.links, infer_schema_length=None)
    if not links.is_empty():
        wanted = [
            "name", "direction", "capacity_bps", "utilization", "queue_delay_mean_s", "queue_delay_p50_s",
                "queue_delay_p95_s",
            "queue_delay_p99_s", "offered_packets", "dropped_packets", "lost_packets", "marked_packets",
        ]  # fmt: skip
        blocks.append(
            Table(
                "Links",
                "Each direction of every link; delays are over packets.",
                links.select([c for c in wanted if c in links.columns]),
            )
        )
    events = run.events
    if not events.is_empty():
        counted = (
            events.rename({"flow": "id"})
            .join(
                _named(run).select("id", pl.col("name").alias("flow"), "congestion"),
                on="id",
                how="left",
            )
            .group_by("flow", "congestion", "kind", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias("events"),
                pl.col("time_s").min().alias("first_s"),
                pl.col("time_s").max().alias("last_s"),
            )
            .sort("flow", "kind")
        )
        blocks.append(
            Table(
                "Events",
                "What protocols did, counted by flow and kind.",
                counted.head(MOST_ROWS),
            )
        )
    return blocks


def _subflows(run: Run) -> list[Table]:
    """Return the table of subflows."""
    if run.subflows.is_empty():
        return []
    labels = _named(run).select(pl.col("id").alias("flow"), pl.col("name").alias("flow_name"))
    rows = subflow_names(run).join(labels, on="flow", maintain_order="left")
    rows = rows.with_columns(
        (pl.col("measured_bytes") / pl.col("measured_bytes").sum().over("flow"))
        .fill_nan(None)
        .alias("share")
    )
    shown = rows.head(MOST_ROWS).select(
        pl.col("flow_name").alias("flow"), "path", "backup", "opened_s", "closed_s", "delivered_bytes",
            "goodput_bps", "share",
        "sent_packets", "retransmitted_packets", "lost_packets", "timeouts", "rtt_min_s", "rtt_mean_s", "rtt_p95_s",
    )  # fmt: skip
    caption = "Every subflow; its path is the link of the data and, if another, that of the acknowledgements."
    if rows.height > MOST_ROWS:
        left = number(rows.height - MOST_ROWS)
        caption += f" The first {number(MOST_ROWS)}; {left} more are in subflows.parquet."
    return [Table("Subflows", caption, shown)]


def _highlights(run: Run) -> dict[str, str]:
    s = run.summary
    during = f", {window(s)}" if window(s) else ""
    shown: dict[str, str] = {f"goodput, all flows{during}": measured(s.get("goodput_bps"), "bit/s")}
    if s.get("utilization") is not None:
        shown[f"utilization of {s.get('bottleneck') or 'the bottleneck'}"] = measured(
            s["utilization"], "%"
        )
    if len(run.flows) > 1 and s.get("jain_index") is not None:
        shown["Jain's index"] = number(s["jain_index"])
    for key, name, unit in (
        ("queue_delay_p95_s", "queueing delay, p95", "s"),
        ("loss_rate", "lost packets", "%"),
        ("completion_p50_s", "completion time, median", "s"),
    ):
        if s.get(key) is not None:
            shown[name] = measured(s[key], unit)
    return shown


def _notes(run: Run) -> str:
    notes = [
        "This is one run: it says nothing about chance. A sweep with several seeds gives intervals."
    ]
    if run.interrupted:
        notes.insert(0, "The run was interrupted: figures and tables end there.")
    if run.is_recording:
        notes = [
            "This was recorded: figures are those that the captures show, and what they do not show is missing."
        ]
        notes += run.warnings
    if run.info.get("world") == "lab":
        notes.insert(
            0, "The run was done in the lab, in real time: it cannot be repeated to the byte."
        )
    return "".join(f"<p>{html.escape(note)}</p>" for note in notes)


def _facts(run: Run) -> dict[str, str | int | float]:
    i = run.info
    facts: dict[str, str | int | float] = {
        "engine": f"gargalo {i.get('version', _core.__engine__)}"
    }
    for key, name in (
        ("seed", "seed"),
        ("packets", "packets"),
        ("events", "events"),
        ("scenario_hash", "scenario hash"),
    ):
        if i.get(key) is not None:
            # A seed is a name, not an amount.
            facts[name] = str(i[key]) if key == "seed" else i[key]
    facts["runs"] = 1
    if i.get("wall_s") is not None:
        facts["wall time"] = measured(i["wall_s"], "s")
    return facts
