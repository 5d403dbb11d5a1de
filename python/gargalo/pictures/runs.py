"""The pictures of one run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gargalo.metrics import path_bins, throughput_bins
from gargalo.names import with_path
from gargalo.pictures.looks import DASHES, REFERENCE, Looks, distinct
from gargalo.pictures.model import MOST_LINES, Chart, Line
from gargalo.quantities import decimal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from gargalo.results import Run
    from gargalo.scenarios.setup import Span

BINS = 100
"""A picture of the whole run has about this many bins at most."""
SLACK = 1e-6
TALLEST = 3.0
"""A capacity of more than this many times the greatest value is written, not drawn."""
MOST_LINKS = 8
SPEAK_OF = 0.02
"""A queue is drawn if it is more than this share of the greatest one: a packet that waits for the one before it is
none."""


def shown_flows(run: Run, chosen: Sequence[int] | None = None) -> list[int]:
    """Return the numbers of the flows that pictures show."""
    return list(run.flows["id"] if chosen is None else chosen)[:MOST_LINES]


@dataclass(frozen=True)
class Look:
    """How the lines of a flow, path or link look."""

    of: str
    """What the colour belongs to."""
    colour: str
    dash: str = "solid"

    def line(
        self, name: str, x: NDArray[np.float64], y: NDArray[np.float64], *, step: bool = False
    ) -> Line:
        """Return a line that looks like this."""
        return Line(name, x, y, self.colour, self.dash, step, self.of)


def looks_of(run: Run, chosen: Sequence[int] | None = None) -> dict[int, Look]:
    """Return how each shown flow looks, in all pictures of the run: the colour is that of its congestion control.

    A flow without one has that of its transport.
    """
    looks, found = Looks(), {}
    missing = set(shown_flows(run, chosen))
    for flow, congestion, transport in run.flows.select("id", "congestion", "transport").rows():
        if not missing:
            break
        of = congestion or transport
        found[int(flow)] = Look(of, *looks.next(of))
        missing.discard(flow)
    return found


def left_out(run: Run, chosen: Sequence[int] | None = None) -> tuple[str, ...]:
    """Say how many flows a picture has no room for."""
    flows = run.flows.height if chosen is None else len(chosen)
    return (f"the first {MOST_LINES} of {flows} flows",) if flows > MOST_LINES else ()


def measured_window(run: Run) -> tuple[float, float] | None:
    """Return the measured part of the run, if the scenario chose one."""
    chosen = run.setup.measure
    return None if chosen is None else (chosen.from_s, chosen.until_s)


def sampled(
    run: Run,
    column: str,
    title: str,
    words: str,
    unit: str,
    scale: float,
    *,
    chosen: Sequence[int] | None = None,
) -> Chart:
    """Draw a column of the samples of each flow; a missing value is a gap."""
    lines, looks = [], looks_of(run, chosen)
    for flow, name, rows in _flows(run, chosen):
        values = rows[column].cast(pl.Float64) * scale
        if values.null_count() < len(values):
            lines.append(looks[flow].line(name, numbers(rows["time_s"]), numbers(values)))
    notes = left_out(run, chosen)
    return Chart(title, words, unit, tuple(lines), notes=notes, window=measured_window(run))


def numbers(values: pl.Series) -> NDArray[np.float64]:
    """Return a column as numbers; what is missing is not a number."""
    found: NDArray[np.float64] = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return found


def _flows(run: Run, chosen: Sequence[int] | None) -> Iterator[tuple[int, str, pl.DataFrame]]:
    samples = run.flow_samples
    if samples.is_empty():
        return
    names = run.names
    parts = samples.filter(pl.col("flow").is_in(shown_flows(run, chosen))).partition_by(
        "flow", as_dict=True, maintain_order=True
    )
    for flow in shown_flows(run, chosen):
        if (flow,) in parts:
            yield flow, names[flow], parts[flow,].sort("time_s")


# --- goodput


def nice(value: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is not below a number."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(f * power for f in (1.0, 2.0, 5.0, 10.0) if f * power >= value * (1 - SLACK))


def bin_width(run: Run, chosen: Sequence[int] | None = None) -> float:
    """Return a width of bins that suits the run and its flows, and is a multiple of the sampling interval."""
    least = run.setup.record.interval_s or 0.1
    rows = run.flows.filter(pl.col("id").is_in(shown_flows(run, chosen)))
    lives = (rows["end_s"] - rows["start_s"]).to_numpy()
    span = float(run.info.get("virtual_s", 0) or 0)
    typical = float(np.median(lives)) if lives.size else span
    width = nice(max(min(span / BINS, typical / 10), least))
    return round(math.ceil(width / least - SLACK) * least, 9)


def whole_bins(
    run: Run, flow: int, width: float, bins: pl.DataFrame
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the beginnings of the bins that lie within the life of a flow, and the rates in them (bit/s)."""
    start, end = run.flows.filter(pl.col("id") == flow).select("start_s", "end_s").row(0)
    slack = SLACK * width
    begins = pl.col("time_s")
    rows = bins.filter(
        pl.col("flow") == flow, begins >= start - slack, begins + width <= end + slack
    )
    return rows["time_s"].to_numpy(), rows["throughput_bps"].to_numpy()


def origin(run: Run, width: float) -> float:
    """Return where the first bin begins, so that a measured window that was chosen begins with a bin."""
    window = measured_window(run)
    begins = 0.0 if window is None else window[0]
    return begins - math.floor(begins / width + SLACK) * width


def goodput(run: Run, bin_s: float | None = None, chosen: Sequence[int] | None = None) -> Chart:
    """Draw the goodput of each flow in whole bins, and the capacity of the bottleneck.

    Data counts when it reaches the receiver, in order or not; where its stack does not report that, when it is
    delivered.
    """
    chart = _rates(run, "received_bytes", "Goodput", "goodput", bin_s, chosen)
    samples = run.flow_samples
    if not chart.lines or "received_bytes" not in samples.columns:
        return chart
    rows = samples.group_by("flow").agg(pl.col("received_bytes").is_null().all().alias("missing"))
    missing = set(rows.filter("missing")["flow"])
    names = [run.names[f] for f in shown_flows(run, chosen) if f in missing]
    if not names:
        return chart
    told = f"of {_first(names)} data counts when it is delivered in order: its receiver's stack reports no more"
    return replace(chart, notes=(*chart.notes, told))


def delivery(run: Run, bin_s: float | None = None, chosen: Sequence[int] | None = None) -> Chart:
    """Draw the in-order delivery of each flow in whole bins: data that waited for earlier data counts at once."""
    return _rates(run, "delivered_bytes", "In-order delivery", "delivered", bin_s, chosen)


def _first(names: Sequence[str]) -> str:
    """Return a few names."""
    return f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''}"


def _rates(
    run: Run, column: str, title: str, words: str, bin_s: float | None, chosen: Sequence[int] | None
) -> Chart:
    """Draw how fast a column of the samples of each flow grows, in whole bins, and the capacity of the bottleneck."""
    width = bin_s or bin_width(run, chosen)
    start = origin(run, width)
    seen = run.flow_samples
    if not seen.is_empty():
        seen = seen.filter(pl.col("flow").is_in(shown_flows(run, chosen)))
    bins = throughput_bins(
        seen, width, start_s=max(start, 0.0), end_s=_end(run), flows=run.flows, column=column
    )
    lines, short, looks = [], 0, looks_of(run, chosen)
    sampled_flows = set()
    for flow, name, _ in _flows(run, chosen):
        sampled_flows.add(flow)
        begins, rates = whole_bins(run, flow, width, bins)
        if not begins.size:
            short += 1
            continue
        lines.append(looks[flow].line(name, begins + width / 2, rates / 1e6))
    notes = [f"in bins of {decimal(width)} s", *left_out(run, chosen)]
    if short:
        notes.append(f"{short} shorter than a bin {'is' if short == 1 else 'are'} left out")
    if without := [run.names[f] for f in shown_flows(run, chosen) if f not in sampled_flows]:
        notes.append(f"without samples: {_first(without)}")
    most = max((float(line.y.max()) for line in lines), default=0.0)
    references, told = capacity(run, width, most * 1e6)
    if lines:
        first = min(float(line.x[0]) for line in lines) - width / 2
        last = max(float(line.x[-1]) for line in lines) + width / 2
        references = tuple(clipped(line, first, last) for line in references)
    notes += told
    if (run.summary.get("background") or {}).get("groups"):
        notes.append("background traffic is not drawn")
    return Chart(
        title, words, "Mbit/s", tuple(lines), references, tuple(notes), window=measured_window(run)
    )  # fmt: skip


def _end(run: Run) -> float:
    return float(run.info.get("virtual_s", 0) or 0)


def clipped(line: Line, first: float, last: float) -> Line:
    """Return the part of a line of steps between two instants."""
    place = int(np.searchsorted(line.x, first, side="right")) - 1
    inside = (line.x > first) & (line.x < last)
    begin = line.y[max(place, 0)]
    end = line.y[inside][-1] if inside.any() else begin
    x = np.concatenate(([max(first, line.x[0])], line.x[inside], [min(last, line.x[-1])]))
    return replace(line, x=x, y=np.concatenate(([begin], line.y[inside], [end])))


def cropped(chart: Chart, span: tuple[float, float]) -> Chart:
    """Return the part of a picture between two instants; it has no lines if nothing was sampled there."""
    first, last = span
    lines = []
    for line in chart.lines:
        if line.step and line.x[0] <= last and line.x[-1] >= first:
            # What holds between two steps holds here, too.
            lines.append(clipped(line, first, last))
            continue
        inside = (line.x >= first) & (line.x <= last)
        if inside.any():
            lines.append(replace(line, x=line.x[inside], y=line.y[inside]))
    end = min(last, max((float(line.x[-1]) for line in lines), default=last))
    return replace(chart, lines=tuple(lines), span=(first, end))


def capacity(
    run: Run, width: float, greatest_bps: float
) -> tuple[tuple[Line, ...], tuple[str, ...]]:
    """Return the capacity of the bottleneck over time as a line, or in words where it would dwarf all others.

    With several paths it is the sum of the tightest link of each at the ends of the flow. In an outage it is zero.
    """
    if not run.flows.is_empty() and not run.subflows.is_empty():
        names = _tightest(run)
    else:
        names = [str(run.summary.get("bottleneck") or "")]
    found = _sum_of_steps([_link_capacity(run, name, width) for name in names])
    if found is None:
        return (), ()
    at, rates = found
    known = rates[np.isfinite(rates)]
    if not (known > 0).any():
        return (), ()
    name = " + ".join(names)
    constant = known.min() == known.max()
    worth = f": {_rate(known[0])}" if constant else ""
    least = known[known > 0].min()
    if least > TALLEST * greatest_bps:
        told = worth or f": at least {_rate(least)}"
        if not known.min():
            told += " but in outages"
        return (), (f"capacity of {name}{told}, beyond the picture",)
    line = Line(f"capacity of {name}{worth}", at, rates / 1e6, REFERENCE, "dash", step=True)
    return (line,), ("the capacity is with headers",)


def _sum_of_steps(
    parts: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]] | None],
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Add functions that hold their values until the next instant; None if one is not known."""
    known = [p for p in parts if p is not None]
    if not known or len(known) < len(parts):
        return None
    at = np.unique(np.concatenate([x for x, _ in known]))
    return at, np.sum([_held(x, y, at) for x, y in known], axis=0)


def _held(
    x: NDArray[np.float64], y: NDArray[np.float64], at: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the values of a function of steps at instants."""
    return y[np.clip(np.searchsorted(x, at, side="right") - 1, 0, y.size - 1)]


def _rate(bps: float) -> str:
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if bps >= size:
            return f"{bps / size:.4g} {prefix}bit/s"
    return f"{bps:.4g} bit/s"


def _tightest(run: Run) -> list[str]:
    """Return the tightest link direction of each path at the ends of the flows; none if one is not known."""
    links = {link.name: link for link in run.setup.links}
    hosts = dict(zip(run.flows["id"], run.flows.select("from", "to").rows(), strict=True))
    facts = {(link["name"], link["direction"]): link.get("capacity_bps") for link in run.links}
    tightest: dict[str, None] = {}
    for flow, first, last in run.subflows.select("flow", "link", "peer_link").iter_rows():
        ends = []
        sender, receiver = hosts.get(flow, ("", ""))
        for name, out in ((first, True), (last, False)):
            link = links.get(name)
            if link is None:
                return []
            leaves = link.from_ == sender if out else link.to == receiver
            direction = "up" if leaves else "down"
            rate = facts.get((name, direction))
            if rate:
                ends.append((float(rate), f"{name} {direction}"))
        if not ends:
            return []
        tightest[min(ends)[1]] = None
    return list(tightest)


def _link_capacity(
    run: Run, name: str, width: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return instants and the capacity from each on (bit/s) of a link direction; not a number where it is not known."""
    link, _, direction = name.rpartition(" ")
    made = next((x for x in run.setup.links if x.name == link), None)
    side = None if made is None else (made.up if direction == "up" else made.down)
    end = _end(run)
    steps = [] if side is None else [s for s in side.rate.steps if s.time_s < end]
    if side is not None and side.rate.constant_bps is not None:
        found = np.array([0.0, end]), np.full(2, float(side.rate.constant_bps))
    elif steps:
        at = [*(s.time_s for s in steps), end]
        found = np.array(at), np.array([*(s.rate_bps for s in steps), steps[-1].rate_bps], float)
    else:
        rows = run.link_samples
        if not rows.is_empty():
            rows = rows.filter(pl.col("link") == link, pl.col("direction") == direction)
        if rows.height < 2 or rows["utilization"].null_count() == rows.height:
            return None
        found = _offered(rows.sort("time_s"), width, end)
    return found if side is None else _without(found, side.outages)


def _without(
    steps: tuple[NDArray[np.float64], NDArray[np.float64]], outages: Sequence[Span]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a capacity that is zero in outages."""
    if not outages:
        return steps
    x, y = steps
    edges = np.array([t for span in outages for t in span])
    at = np.unique(np.concatenate((x, edges[(edges > x[0]) & (edges < x[-1])])))
    values = _held(x, y, at).copy()
    for start, end in outages:
        values[(at >= start) & (at < end)] = 0.0
    return at, values


def _offered(
    rows: pl.DataFrame, width: float, end: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the capacity of a link whose rate varies, in bins: what it sent over the share used.

    Bins in which it was used for less than half of the time are not known.
    """
    span = pl.col("time_s").diff()
    used = (pl.col("utilization") * span).alias("used_s")
    sent = (pl.col("sent_bytes").cast(pl.Float64).diff() * 8).alias("sent_bits")
    begins = ((pl.col("time_s") - span / 2) / width).floor().alias("bin")
    bins = (
        rows.select(begins, used, sent, span.alias("span_s"))
        .drop_nulls()
        .group_by("bin", maintain_order=True)
        .agg(pl.all().sum())
        .filter((pl.col("bin") + 1) * width <= end * (1 + SLACK))
    )
    known = bins["used_s"].to_numpy() >= 0.5 * bins["span_s"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = np.where(known, bins["sent_bits"].to_numpy() / bins["used_s"].to_numpy(), np.nan)
    at = bins["bin"].to_numpy() * width
    return np.append(at, at[-1:] + width), np.append(rates, rates[-1:])


# --- links


def busy_links(run: Run) -> list[tuple[str, str]]:
    """Return the link directions with a queue that is drawn or a drop, the longest queue first."""
    samples = run.link_samples
    if samples.is_empty():
        return []
    busy = samples.group_by("link", "direction", maintain_order=True).agg(
        pl.col("queue_delay_s").max(), pl.col("dropped_packets").max(), pl.col("sent_bytes").max()
    )
    greatest = pl.col("queue_delay_s").max()
    queued = (pl.col("queue_delay_s") > SPEAK_OF * greatest) & (pl.col("queue_delay_s") > 0)
    kept = busy.filter(pl.col("sent_bytes") > 0, queued | (pl.col("dropped_packets") > 0))
    kept = kept.sort("queue_delay_s", descending=True, maintain_order=True)
    return list(kept.select("link", "direction").iter_rows())


def _looks_of_links(links: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Look]:
    """Return how directions of links look: both directions of one have its colour."""
    looks = Looks()
    return {x: Look(x[0], *looks.next(x[0])) for x in dict.fromkeys(links)}


def linked(
    run: Run,
    column: str,
    title: str,
    words: str,
    unit: str,
    scale: float,
    *,
    chosen: Sequence[tuple[str, str]] | None = None,
) -> Chart:
    """Draw a column of the samples of the links that have a queue or a drop."""
    samples, busy = run.link_samples, busy_links(run)
    looks = _looks_of_links([*busy, *(chosen or ())])
    lines = []
    for link, direction in busy[:MOST_LINKS] if chosen is None else chosen:
        rows = samples.filter(pl.col("link") == link, pl.col("direction") == direction)
        rows = rows.sort("time_s")
        values = rows[column].cast(pl.Float64) * scale
        if values.null_count() < len(values):
            name = f"{link} {direction}"
            lines.append(
                looks[link, direction].line(name, numbers(rows["time_s"]), numbers(values))
            )
    notes: list[str] = []
    if chosen is None and not samples.is_empty():
        every = samples.select("link", "direction").n_unique()
        if every > len(lines):
            notes.append(
                f"{len(lines)} of {every} directions of links: those with a queue or drops"
            )
    return Chart(title, words, unit, tuple(lines), notes=tuple(notes), window=measured_window(run))


def queue(run: Run) -> Chart:
    """Draw the queueing delay of the links that have a queue or a drop."""
    return linked(run, "queue_delay_s", "Queueing delay", "queueing delay", "ms", 1e3)


# --- several paths


def looks_of_paths(run: Run) -> dict[str, Look]:
    """Return how each path of the run looks; those that share a colour have shades of it."""
    paths = with_path(run.subflows)["path"].unique(maintain_order=True).to_list()
    return {p: Look(p, colour) for p, colour in zip(paths, distinct(paths), strict=True)}


def paths(run: Run, bin_s: float | None = None, chosen: Sequence[int] | None = None) -> Chart:
    """Draw what each path delivers in whole bins, stacked, of the chosen flows or of all."""
    width = bin_s or bin_width(run)
    lines: list[Line] = []
    if not run.subflows.is_empty() and not run.subflow_samples.is_empty():
        start = max(origin(run, width), 0.0)
        bins = path_bins(run.subflow_samples, run.subflows, width, start_s=start, end_s=_end(run))
        if chosen is not None:
            bins = bins.filter(pl.col("flow").is_in(list(chosen)))
        if chosen is not None and len(chosen) == 1:
            life = run.flows.filter(pl.col("id") == chosen[0]).select("start_s", "end_s").row(0)
            slack = SLACK * width
            begins = pl.col("time_s")
            bins = bins.filter(begins >= life[0] - slack, begins + width <= life[1] + slack)
        wide = (
            bins.group_by("path", "time_s", maintain_order=True)
            .agg(pl.col("throughput_bps").sum())
            .pivot("path", index="time_s", values="throughput_bps")
            .sort("time_s")
        )
        at = wide["time_s"].to_numpy() if wide.height else np.array([])
        looks = looks_of_paths(run)
        for path in [c for c in looks if c in wide.columns]:
            rates = wide[path].fill_null(0.0).to_numpy() / 1e6
            # The last bin has a width, too.
            x, y = np.append(at, at[-1:] + width), np.append(rates, rates[-1:])
            lines.append(looks[path].line(path, x, y, step=True))
    notes = (f"in bins of {decimal(width)} s",)
    return Chart(
        "Delivered by path", "rate", "Mbit/s", tuple(lines), (), notes, stacked=True, window=measured_window(run)
    )  # fmt: skip


def subflow_names(run: Run) -> pl.DataFrame:
    """Return the subflows with columns `path` and `name`, which distinguishes them."""
    names = run.names
    rows = with_path(run.subflows)
    if rows["flow"].n_unique() > 1:
        made = [f"{names[f]}: {p}" for f, p in rows.select("flow", "path").iter_rows()]
    else:
        made = rows["path"].to_list()
    rows = rows.with_columns(pl.Series("name", made, dtype=pl.String))
    again = pl.format("{} ({})", "name", "subflow")
    return rows.with_columns(
        pl.when(pl.col("name").is_duplicated()).then(again).otherwise("name").alias("name")
    )


def subflow_sampled(
    run: Run, column: str, title: str, words: str, unit: str, scale: float,
    *, chosen: Sequence[int] | None = None,
) -> Chart:  # fmt: skip
    """Draw a column of the samples of each subflow: a path has one colour, its subflows differ in their dashes."""
    lines: list[Line] = []
    samples = run.subflow_samples
    notes: tuple[str, ...] = ()
    if not samples.is_empty():
        named, looks = subflow_names(run), looks_of_paths(run)
        if chosen is not None:
            named = named.filter(pl.col("flow").is_in(list(chosen)))
        used: Counter[str] = Counter()
        for s in named.head(MOST_LINES).iter_rows(named=True):
            own = (pl.col("flow") == s["flow"]) & (pl.col("subflow") == s["subflow"])
            rows = samples.filter(own).sort("time_s")
            values = rows[column].cast(pl.Float64) * scale
            # A dash for each subflow of a path, in the order that lines have.
            dash = DASHES[used[s["path"]] % len(DASHES)]
            used[s["path"]] += 1
            look = replace(looks[s["path"]], dash=dash)
            lines.append(look.line(s["name"], numbers(rows["time_s"]), numbers(values)))
        if named.height > MOST_LINES:
            notes = (f"the first {MOST_LINES} of {named.height} subflows",)
    return Chart(title, words, unit, tuple(lines), notes=notes, window=measured_window(run))


def facts(chart: Chart) -> list[dict[str, Any]]:
    """Return the data of a picture as rows: line, time, value."""
    return [
        {"line": line.name, "x": float(x), "y": None if math.isnan(y) else float(y)}
        for line in (*chart.lines, *chart.references)
        for x, y in zip(line.x, line.y, strict=True)
    ]
