"""The report of a single run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import _core, metrics
from gargalo.audit import told
from gargalo.reporting import charts, paths
from gargalo.reporting.model import FigureBlock, Report, TableBlock
from gargalo.reporting.palette import COLOURS, DASHES
from gargalo.reporting.quantities import measured, number
from gargalo.results import Run, load
from gargalo.summary import window

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_LINES = 24
MOST_ROWS = 5000
# With fewer completed flows a distribution has no meaning.
FEWEST_COMPLETED = 10


def report_of_run(
    run: Run | str | Path, *, facts: Mapping[str, str | int | float] | None = None
) -> Report:
    """Return the report of a run.

    Args:
        run: The run, or the directory with its results.
        facts: More facts, such as the date: the clock is never read.

    Raises:
        FileNotFoundError: The directory has no results of a run.

    """
    if not isinstance(run, Run):
        run = load(run)
    named = _named(run)
    scenarios, commands, about = _again(run)
    plural = "flow" if named.height == 1 else "flows"
    return Report(
        title=str(run.info.get("name", "Run")),
        subtitle=f"One run of {number(named.height)} {plural}, {measured(run.info.get('virtual_s'), 's')} of virtual time",
        figures=_figures(run, named),
        tables=_tables(run),
        scenarios=scenarios,
        commands=commands,
        facts={**_facts(run), **(facts or {})},
        highlights=_highlights(run),
        notes=[*map(told, run.findings), *run.warnings, *_notes(run, named), *about],
    )


def _again(run: Run) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the scenario by file name, the command, and what to know about them.

    The resolved scenario differs from the text it was made of; the command runs that text.
    """
    source = run.source
    if "text" not in source:
        shown = json.dumps(run.scenario, indent=1, ensure_ascii=False)
        note = "The results do not have the text of the scenario: it is shown as resolved, with every default filled in."
        return {"scenario as resolved (JSON)": shown}, [], [note]
    path = source.get("path")
    name = (
        Path(path).name
        if path and path != "<stdin>"
        else f"{run.info.get('name', 'scenario')}.toml"
    )
    words = ["gargalo", "run", name]
    for key, value in source.get("set", []):
        words += ["--set", f"{key}={value}"]
    return {name: str(source["text"])}, [shlex.join(words)], []


def _named(run: Run) -> pl.DataFrame:
    """Flows with a unique name to show and the algorithm that gives the colour."""
    flows = run.flows.with_columns(
        pl.when(pl.col("congestion") == "").then("transport").otherwise("congestion").alias("kind"),
        pl.when(pl.col("label").is_duplicated())
        .then(pl.format("{} ({})", "label", "id"))
        .otherwise("label")
        .alias("name"),
    )
    # A few flows with the same algorithm have their own colours.
    alone = flows["kind"].n_unique() == 1 and flows.height <= len(COLOURS)
    return flows.with_columns(pl.col("name" if alone else "kind").alias("colour"))


def _figures(run: Run, named: pl.DataFrame) -> list[FigureBlock]:
    blocks: list[FigureBlock] = []
    lines = named.head(MOST_LINES)
    samples = run.flow_samples
    if not samples.is_empty():
        mine = lines.select(pl.col("id").alias("flow"), "name", "colour")
        seen = samples.join(mine, on="flow", maintain_order="left").sort("flow", "time_s")
        end = float(run.info.get("virtual_s", 0) or 0)
        width = next((w for w in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if end / w <= 200), 30.0)
        bins = metrics.throughput_bins(samples, width, flows=run.flows)
        if not bins.is_empty():
            rates = bins.rename({"throughput_bps": "goodput_bps"}).join(
                mine, on="flow", maintain_order="left"
            )
            blocks.append(
                _over_time(
                    rates,
                    "goodput_bps",
                    "Goodput",
                    f"Data delivered to the receiver, each byte once, in bins of {width:g} s.",
                    "Flows",
                )
            )
        for column, title, text in (
            ("congestion_window_bytes", "Congestion window", "What the sender may have in flight."),
            ("srtt_s", "Smoothed round-trip time", "As the sender measures it; queues show here."),
        ):
            blocks.append(_over_time(seen, column, title, text, "Flows"))
    blocks += paths.figures(run, named)
    blocks += _link_figures(run)
    done = named.drop_nulls("completion_s")
    if done.height >= FEWEST_COMPLETED:
        times = done["completion_s"].to_list()
        drawn = charts.distribution(
            done, "completion_s", "kind", log_x=max(times) > 30 * min(times)
        )
        text = f"Time from the start of a flow to its last byte, of {number(done.height)} flows that completed ({number(named.height - done.height)} did not)."
        blocks.append(FigureBlock("Completion times", text, drawn, "Flows"))
    return blocks


def _over_time(frame: pl.DataFrame, y: str, title: str, text: str, group: str) -> FigureBlock:
    drawn = charts.timelines(frame, y, "name", algorithm="colour")
    return FigureBlock(title, text, drawn, group)


def _link_figures(run: Run) -> list[FigureBlock]:
    samples = run.link_samples
    if samples.is_empty():
        return []
    samples = samples.with_columns(pl.format("{} {}", "link", "direction").alias("name"))
    blocks = []
    for column, title, text in (
        (
            "queue_delay_s",
            "Queueing delay",
            "Time a packet that arrives would wait; links without a queue to speak of are left out.",
        ),
        (
            "utilization",
            "Link utilization",
            "Share of the capacity used since the sample before; only links with a queue or a drop.",
        ),
    ):
        busy = samples.group_by("name", maintain_order=True).agg(
            pl.col("queue_delay_s").max(), pl.col("dropped_packets").max()
        )
        # One packet that waits for the one before it is not a queue.
        worth = pl.col("queue_delay_s") > 0.02 * pl.col("queue_delay_s").max()
        busy = busy.filter(worth | (pl.col("dropped_packets") > 0)).sort(
            "queue_delay_s", descending=True, maintain_order=True
        )
        rows = samples.join(
            busy.head(8).select("name"), on="name", how="semi", maintain_order="left"
        )
        if not rows.is_empty() and rows[column].drop_nulls().len():
            # Links are not algorithms: they have our colours in Plotly's order.
            drawn = charts.timelines(rows, column, "name")
            for i, trace in enumerate(drawn.data):
                trace.legendgroup = None
                trace.line.color = COLOURS[i % len(COLOURS)]
                trace.line.dash = DASHES[i % len(DASHES)]
            blocks.append(FigureBlock(title, text, drawn, "Links"))
    return blocks


def _tables(run: Run) -> list[TableBlock]:
    flows = run.flows.head(MOST_ROWS)
    columns = [
        "label", "congestion", "transport", "workload", "start_s", "end_s", "goodput_bps", "completion_s", "delivered_bytes",
        "rtt_p50_s", "rtt_p95_s", "sent_packets", "retransmitted_packets", "lost_packets", "timeouts", "ce_marks", "failure",
    ]  # fmt: skip
    kept = [c for c in columns if c in flows.columns and flows[c].null_count() < flows.height]
    left = run.flows.height - flows.height
    caption = "Every flow; goodput is over its own time. Percentiles are over the sender's samples."
    if left:
        caption += f" The first {number(flows.height)}; {number(left)} more are in flows.parquet."
    blocks = [TableBlock("Flows", caption, flows.select(kept), group="Flows")]
    blocks += paths.tables(run, _named(run))
    sizes = metrics.completion_times(run.flows, by=["congestion", metrics.size_class()])
    if sizes["completed"].sum() >= FEWEST_COMPLETED:
        blocks.append(
            TableBlock(
                "Completion times by size",
                "By congestion control and by what was delivered.",
                sizes,
                group="Flows",
            )
        )
    links = pl.DataFrame(run.links, infer_schema_length=None)
    if not links.is_empty():
        wanted = [
            "name", "direction", "capacity_bps", "utilization", "queue_delay_mean_s", "queue_delay_p50_s", "queue_delay_p95_s",
            "queue_delay_p99_s", "offered_packets", "dropped_packets", "lost_packets", "marked_packets",
        ]  # fmt: skip
        blocks.append(
            TableBlock(
                "Links",
                "Each direction of every link; delays are over packets.",
                links.select([c for c in wanted if c in links.columns]),
                group="Links",
            )
        )
    events = run.events
    if not events.is_empty():
        counted = (
            events.join(
                _named(run).select(
                    pl.col("id").alias("flow"), pl.col("name").alias("label"), "congestion"
                ),
                on="flow",
                how="left",
            )
            .group_by("label", "congestion", "kind", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias("events"),
                pl.col("time_s").min().alias("first_s"),
                pl.col("time_s").max().alias("last_s"),
            )
            .sort("label", "kind")
        )
        blocks.append(
            TableBlock(
                "Events",
                "What protocols did, counted by flow and kind.",
                counted.head(MOST_ROWS),
                group="Flows",
            )
        )
    return blocks


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


def _notes(run: Run, named: pl.DataFrame) -> list[str]:
    notes = [
        "This is one run: it says nothing about chance. A sweep with several seeds gives intervals."
    ]
    if run.interrupted:
        notes.insert(0, "The run was interrupted: figures and tables end there.")
    if named.height > MOST_LINES:
        notes.append(
            f"Figures over time show the first {MOST_LINES} of {number(named.height)} flows."
        )
    return [*notes, *paths.notes(run)]


def _facts(run: Run) -> dict[str, Any]:
    i = run.info
    facts: dict[str, Any] = {"engine": f"gargalo {i.get('version', _core.__version__)}"}
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
