"""The report of a single run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo import _core, metrics
from gargalo.audit import told
from gargalo.pictures import runs as pictures
from gargalo.pictures.looks import Looks
from gargalo.pictures.model import MOST_LINES
from gargalo.quantities import measured, number
from gargalo.reporting import charts, paths
from gargalo.reporting.model import FigureBlock, Report, TableBlock
from gargalo.results import Run, load
from gargalo.summary import window

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        subtitle=f"One run of {number(named.height)} {plural}, "
        f"{measured(run.info.get('virtual_s'), 's')} of virtual time",
        figures=_figures(run, named),
        tables=_tables(run),
        scenarios=scenarios,
        commands=commands,
        facts={**_facts(run), **(facts or {})},
        highlights=_highlights(run),
        notes=[*map(told, run.findings), *run.warnings, *_notes(run, named), *about],
        algorithms=named["name"].head(MOST_LINES).to_list(),
        belongs={run.names[flow]: look.of for flow, look in pictures.looks_of(run).items()},
    )


def _again(run: Run) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the scenario by file name, the command, and what to know about them.

    The resolved scenario differs from the text it was made of; the command runs that text.
    """
    source = run.source
    if "text" not in source:
        shown = json.dumps(run.scenario, indent=1, ensure_ascii=False)
        note = (
            "The results do not have the text of the scenario: "
            "it is shown as resolved, with every default filled in."
        )
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
    """Flows with a name that distinguishes them, and what they are grouped by."""
    names = run.names
    return run.flows.with_columns(
        pl.when(pl.col("congestion") == "").then("transport").otherwise("congestion").alias("kind"),
        pl.Series("name", [names[i] for i in run.flows["id"]], dtype=pl.String),
    )


def _figures(run: Run, named: pl.DataFrame) -> list[FigureBlock]:
    blocks: list[FigureBlock] = []
    for chart, text in (
        (pictures.goodput(run), "Data that reached the receiver, each byte once"),
        (
            pictures.sampled(
                run, "congestion_window_bytes", "Congestion window", "congestion window", "kB", 1e-3
            ),
            "What the sender may have in flight",
        ),
        (
            pictures.sampled(run, "srtt_s", "Smoothed round-trip time", "smoothed RTT", "ms", 1e3),
            "As the sender measures it; queues show here",
        ),
        (pictures.round_trips(run), "From each echo request to its answer"),
        (
            pictures.one_way_delays(run),
            "Of each echo request and of its answer: which way the queue is",
        ),
    ):
        if chart.lines:
            blocks.append(charts.block(chart, text, "Flows"))
    blocks += paths.figures(run)
    blocks += _link_figures(run)
    done = named.drop_nulls("completion_s")
    if done.height >= FEWEST_COMPLETED:
        times = done["completion_s"].to_list()
        drawn = charts.distribution(
            done, "completion_s", "kind", log_x=max(times) > 30 * min(times)
        )
        looks = Looks()
        for trace in drawn.data:
            trace.legendgroup = None
            trace.line.color, trace.line.dash = looks.next(trace.name)
        text = (
            f"Time from the start of a flow to its last byte, of {number(done.height)} flows that "
            f"completed ({number(named.height - done.height)} did not)."
        )
        blocks.append(FigureBlock("Completion times", text, drawn, "Flows", restyle=False))
    return blocks


def _link_figures(run: Run) -> list[FigureBlock]:
    blocks = []
    for chart, text in (
        (pictures.queue(run), "Time a packet that arrives would wait"),
        (
            pictures.linked(run, "utilization", "Link utilization", "utilization", "", 1.0),
            "Share of the capacity used since the sample before",
        ),
    ):
        if chart.lines:
            blocks.append(charts.block(chart, text, "Links"))
    return blocks


def _tables(run: Run) -> list[TableBlock]:
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
    blocks = [TableBlock("Flows", caption, flows.select(kept), group="Flows", algorithm="flow")]
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
            "name", "direction", "capacity_bps", "utilization", "queue_delay_mean_s", "queue_delay_p50_s",
                "queue_delay_p95_s",
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
            TableBlock(
                "Events",
                "What protocols did, counted by flow and kind.",
                counted.head(MOST_ROWS),
                group="Flows",
                algorithm="flow",
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
