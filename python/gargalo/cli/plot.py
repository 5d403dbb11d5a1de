"""`gargalo plot`: one metric of runs, or of a sweep, in a picture for screens and papers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import click

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    PATH,
    because,
    fail,
    json_option,
    lacks,
    refuse_another,
    to_json,
)
from gargalo.cli.help import command
from gargalo.cli.plot_sweep import Chosen, Kind, picture_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gargalo.pictures.model import Chart
    from gargalo.pictures.paper import Picture
    from gargalo.pictures.sweeps import SweepPicture
    from gargalo.results import Run

Format: TypeAlias = Literal["png", "svg", "pdf"]
"""Formats of pictures."""

INCH = {"in": 1.0, "mm": 1 / 25.4, "cm": 1 / 2.54}
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
LEAST_IN, MOST_IN = 1.5, 40.0


@command(
    examples=[
        ("gargalo plot runs/race-1", "Goodput, in goodput.png."),
        ("gargalo plot runs/race-1 runs/race-2 --metric rtt", "Of two runs in one picture."),
        (
            "gargalo plot runs/race-1 --metric cwnd --flow bbr --output cwnd.pdf --width one-column",
            "Of one flow, for a paper.",
        ),
        (
            "gargalo plot sweeps/buffers --x buffer --metric queue_delay_p95_s",
            "Of a sweep: means with their intervals, a panel for each distance.",
        ),
        (
            "gargalo plot sweeps/buffers --x buffer --group congestion --metric share --kind bars",
            "What the flows of each congestion control have of the data.",
        ),
    ]
)
@click.argument(
    "directories",
    type=PATH,
    metavar="DIR...",
    nargs=-1,
    required=True,
    help="Results of runs, or the store of a sweep.",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="goodput, rtt, cwnd, queue, losses, …, of a sweep goodput_bps, queue_delay_p95_s, …; a name that "
    "does not exist lists all that there are. Default: goodput.",
)
@click.option("--x", metavar="LABEL", help="Of a sweep: the label along the horizontal axis.")
@click.option("--by", metavar="LABEL", help="Of a sweep: a colour for each value of this label.")
@click.option(
    "--kind",
    type=click.Choice(get_args(Kind)),
    help="Of a sweep. Default: points over numbers, bars over names, box without an axis.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="LABEL=VALUE",
    help="Of a sweep: only runs with this value; may be repeated.",
)
@click.option(
    "--flow",
    "flows",
    multiple=True,
    metavar="FLOW",
    help="Only this flow, by label, name or number, of a sweep by label or number; may be repeated.",
)
@click.option(
    "--group",
    metavar="COLUMN",
    help="Of a sweep: a colour for the flows of each label, congestion, transport, workload, from or to.",
)
@click.option("--name", metavar="NAME", help="Which sweep of the store. Default: the latest.")
@click.option("--level", type=float, default=0.95, metavar="X", help="Of confidence, for a sweep.")
@click.option("--log-y", is_flag=True, help="Of a sweep: the axis of the metric is logarithmic.")
@click.option(
    "--link",
    "links",
    multiple=True,
    metavar="LINK",
    help='Only this link, as "bottleneck up"; may be repeated.',
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="TEXT",
    help="Names of the runs, in their order. Default: the directories'.",
)
@click.option(
    "--output", type=PATH, metavar="FILE", help="Its ending is the format. Default: METRIC.png."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(get_args(Format)),
    help="Instead of the ending of FILE.",
)
@click.option("--overwrite", is_flag=True, help="Replace FILE.")
@click.option(
    "--width",
    default="8in",
    metavar="SIZE",
    help="one-column (3.5in), two-columns (7.16in), or a size like 88mm.",
)
@click.option("--height", metavar="SIZE", help="Default: half the width, and room for the legend.")
@click.option("--from", "start", metavar="TIME", help="Show this part only, as 5s.")
@click.option("--until", "end", metavar="TIME", help="Show this part only.")
@click.option(
    "--bin",
    "bin_",
    metavar="TIME",
    help="Width of the bins of rates. Default: by the length of the run.",
)
@click.option(
    "--plain",
    is_flag=True,
    help="No title and notes in the picture; they are printed, for its caption.",
)
@json_option("Print the data of the picture as one JSON object; no file unless --output is given.")
def plot(
    directories: tuple[Path, ...],
    metric: str | None,
    x: str | None,
    by: str | None,
    kind: Kind | None,
    where: tuple[str, ...],
    flows: tuple[str, ...],
    group: str | None,
    name: str | None,
    level: float,
    log_y: bool,
    links: tuple[str, ...],
    labels: tuple[str, ...],
    output: Path | None,
    format_: Format | None,
    overwrite: bool,
    width: str,
    height: str | None,
    start: str | None,
    end: str | None,
    bin_: str | None,
    plain: bool,
    as_json: bool,
) -> None:
    """Draw a metric of one or several runs over time, or of a sweep over its axes, in one picture."""
    width_in = inches("--width", width)
    height_in = None if height is None else inches("--height", height)
    span = part(start, end)
    bin_s = None if bin_ is None else seconds("--bin", bin_)
    of_sweep = any((d / "store.json").is_file() for d in directories)
    shown_metric = metric or "goodput"

    def target_of() -> Path | None:
        if as_json and output is None:
            return None
        return file_of(output, format_, shown_metric, overwrite)

    if of_sweep:
        times = {"--link": links, "--label": labels, "--from": start, "--until": end, "--bin": bin_}
        refuse_options(times, "is for runs: a sweep is drawn over its axes")
        if len(directories) > 1:
            fail("name one store of a sweep; `gargalo plot` draws several runs, or one sweep")
        target = target_of()
        chosen = Chosen(x, by, kind, flows, group, where, level, log_y)
        made = picture_of(directories[0], name, metric or "goodput_bps", chosen)
        figure: Drawn = Drawn(made.title, made.notes, made.to_json(), partial(panels, made))
    else:
        axes: dict[str, Any] = {
            "--x": x,
            "--by": by,
            "--kind": kind,
            "--where": where,
            "--group": group,
        }
        axes |= {"--name": name, "--log-y": log_y}
        refuse_options(axes, "is for a sweep: name the store of one, like sweeps/buffers")
        target = target_of()
        chart = read(directories, shown_metric, flows, links, labels, bin_s)
        if span is not None:
            from gargalo.pictures.runs import cropped

            chart = cropped(chart, span)
            if not chart.lines:
                fail(
                    "nothing was sampled in this part of the runs; choose another --from and --until"
                )
        if plain:
            chart = chart.without_window()
        figure = Drawn(chart.title, chart.remarks, data(chart), partial(lines, chart))
    if target is not None:
        write(figure, target, width_in, height_in, plain=plain)
    if as_json:
        print(to_json(figure.data))
    elif target is not None:
        if plain:
            print(f"{'; '.join([figure.title, *figure.remarks])}.")
        print(target)


@dataclass(frozen=True)
class Drawn:
    """A picture of runs or of a sweep, as this command needs it."""

    title: str
    remarks: Sequence[str]
    data: dict[str, Any]
    draw: Callable[[bool, float, float | None, float], Picture]
    """Draws it: plain or not, width and height in inches, size of the letters in points."""


def lines(
    chart: Chart, plain: bool, width_in: float, height_in: float | None, font_pt: float
) -> Picture:
    """Draw a picture over time."""
    from gargalo.pictures.paper import draw

    shown = replace(chart, title="", notes=()) if plain else chart
    return draw(shown, width_in=width_in, height_in=height_in, font_pt=font_pt)


def panels(
    made: SweepPicture, plain: bool, width_in: float, height_in: float | None, font_pt: float
) -> Picture:
    """Draw a picture of a sweep."""
    from gargalo.pictures.panels import draw_panels

    shown = replace(made, title="", notes=()) if plain else made
    return draw_panels(shown, width_in=width_in, height_in=height_in, font_pt=font_pt)


def refuse_options(given: dict[str, Any], why: str) -> None:
    """End the command if an option was given that has no meaning here."""
    for option, value in given.items():
        if value not in (None, (), False):
            fail(f"{option} {why}")


def quantity(option: str, text: str, units: dict[str, float], example: str) -> float:
    """Read a number with its unit."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)", text.strip())
    if found is None or found[2] not in units:
        fail(
            f"{option} {text}: write a number with its unit ({', '.join(units)}), as in {option} {example}"
        )
    return float(found[1]) * units[found[2]]


def inches(option: str, text: str) -> float:
    """Read a size of paper."""
    from gargalo.pictures.paper import WIDTHS

    size = WIDTHS.get(text) or quantity(option, text, INCH, "88mm")
    if not LEAST_IN <= size <= MOST_IN:
        fail(f"{option} {text}: between {LEAST_IN:g}in and {MOST_IN:g}in")
    return size


def seconds(option: str, text: str) -> float:
    """Read a span of time that is not empty."""
    value = quantity(option, text, SECONDS, "5s")
    if value <= 0:
        fail(f"{option} {text}: it must be more than 0s")
    return value


def part(start: str | None, end: str | None) -> tuple[float, float] | None:
    """Return the part of the run that is shown; None for all of it."""
    if start is None and end is None:
        return None
    first = 0.0 if start is None else quantity("--from", start, SECONDS, "5s")
    last = float("inf") if end is None else seconds("--until", end)
    if last <= first:
        fail(f"--until {end}: it must be later than --from {start}")
    return first, last


def file_of(output: Path | None, format_: Format | None, metric: str, overwrite: bool) -> Path:
    """Return the file to write, or end the command."""
    from pathlib import Path

    known = get_args(Format)
    if output is None:
        output = Path(f"{re.sub('[^a-zA-Z0-9_-]+', '-', metric)}.{format_ or 'png'}")
    ending = output.suffix.removeprefix(".").lower()
    if format_ is None and ending not in known:
        fail(f"{output}: its ending is the format, one of {', '.join(known)}; or say --format")
    if format_ is not None and ending != format_:
        output = output.with_name(f"{output.name}.{format_}")
    if output.is_dir():
        fail(f"{output} is a directory; name a file")
    if not output.parent.is_dir():
        fail(f"{output.parent} does not exist; make it, or choose another --output")
    if output.exists() and not overwrite:
        fail(f"{output} exists; choose another --output or add --overwrite")
    return output


def run_names(directories: Sequence[Path], labels: Sequence[str]) -> list[str]:
    """Return a name for each run: those given, or the shortest ends of the paths that distinguish them."""
    if labels:
        if len(labels) != len(directories):
            fail(
                f"{len(labels)} times --label for {len(directories)} runs: name all of them, or none"
            )
        names = list(labels)
    else:
        parts = [p.resolve().parts for p in directories]
        names = []
        for depth in range(1, max(len(p) for p in parts) + 1):
            names = ["/".join(p[-depth:]) for p in parts]
            if len(set(names)) == len(set(parts)):
                break
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        fail(
            f'two runs are called "{twice}": name each directory once, or tell them apart by --label'
        )
    return names


def load(directory: Path) -> Run:
    """Read the results of a run; the command ends if there are none."""
    from gargalo.results import load as read_run

    if not (directory / "run.json").is_file():
        refuse_another(directory, "run")
        told = lacks(directory, "has no results of a run")
        fail(f"{told}; give the results of a run, as `gargalo run` writes them")
    try:
        return read_run(directory)
    except (FileNotFoundError, _core.RunError) as e:
        fail(str(e))


def read(
    directories: Sequence[Path], metric: str, flows: Sequence[str], links: Sequence[str],
    labels: Sequence[str], bin_s: float | None,
) -> Chart:  # fmt: skip
    """Return the picture of a metric of runs."""
    from gargalo.pictures import metrics, runs

    names = run_names(directories, labels)
    made = [load(d) for d in directories]
    try:
        known = metrics.names_of(made)
        # Columns and gauges by their own names, too.
        columns = {m.column: n for n, m in reversed(metrics.METRICS.items())}
        metric = columns.get(metric, metric)
        if metric not in known and f"{metrics.GAUGE}{metric}" in known:
            metric = f"{metrics.GAUGE}{metric}"
        if metric not in known:
            fail(f'there is no metric "{metric}" in these runs; there are {", ".join(known)}')
        chosen = [flows_of(run, flows) for run in made]
        if flows and not any(chosen):
            every = dict.fromkeys(n for run in made for n in run.names.values())
            fail(f"--flow {', '.join(flows)}: there is no such flow; flows: {', '.join(every)}")
        ways = [links_of(run, links) for run in made]
        if links and not any(ways):
            every = dict.fromkeys(
                f"{x['name']} {x['direction']}" for run in made for x in run.links
            )
            fail(f"--link {', '.join(links)}: there is no such link; links: {', '.join(every)}")
        if metric in metrics.RATES and bin_s is None:
            bin_s = max(runs.bin_width(r, c) for r, c in zip(made, chosen, strict=True))
        charts = []
        for name, run, flow, way in zip(names, made, chosen, ways, strict=True):
            try:
                charts.append(
                    (name, metrics.picture(run, metric, flows=flow, links=way, bin_s=bin_s))
                )
            except metrics.UnknownMetricError:
                continue  # It is in another of the runs.
    except _core.RunError as e:
        fail(str(e))
    chart = metrics.overlay(charts)
    if not chart.lines:
        fail(missing(metric, made))
    return chart


def missing(metric: str, made: Sequence[Run]) -> str:
    """Say why there is nothing to draw, and what records it."""
    from gargalo.pictures import metrics

    if metric in metrics.DATAGRAMS:
        return f"these runs have no {metric}: give them {metrics.DATAGRAMS[metric]}"
    if metric in metrics.COUNTS:
        empty, key = all(r.events.is_empty() for r in made), "record.events"
    elif metric in metrics.METRICS and metrics.METRICS[metric].source == "links":
        empty, key = all(r.link_samples.is_empty() for r in made), "record.links"
    else:
        empty, key = all(r.flow_samples.is_empty() for r in made), "record.flows"
    if empty:
        return f"these runs have no samples of {metric}: record them with --set {key}=true"
    return f"there is nothing to draw of {metric}: no flow or link of these runs has it"


def flows_of(run: Run, wanted: Sequence[str]) -> list[int] | None:
    """Return the numbers of the flows with these labels, names or numbers; None if none was requested."""
    if not wanted:
        return None

    names = run.names
    labels = dict(run.flows.select("id", "label").iter_rows())
    return [i for i in names if {names[i], labels[i], str(i)} & set(wanted)]


def links_of(run: Run, wanted: Sequence[str]) -> list[tuple[str, str]] | None:
    """Return the link directions with these names; None if none was requested."""
    if not wanted:
        return None
    every = [(x["name"], x["direction"]) for x in run.links]
    return [w for w in every if {w[0], " ".join(w)} & set(wanted)]


def write(
    figure: Drawn, target: Path, width_in: float, height_in: float | None, *, plain: bool
) -> None:
    """Draw a picture into a file."""
    from gargalo.pictures.paper import save, style

    font_pt, dpi = style(width_in)
    made = figure.draw(plain, width_in, height_in, font_pt)
    try:
        save(made, target, dpi)
    except OSError as e:
        fail(f"{target}: cannot be written: {because(e, target)}", FAILED)


def data(chart: Chart) -> dict[str, Any]:
    """Return what a picture shows."""
    import math

    def points(lines: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": line.name,
                "colour": line.colour,
                "dash": line.dash,
                "time_s": line.x.tolist(),
                "values": [None if math.isnan(v) else v for v in line.y.tolist()],
            }
            for line in lines
        ]

    return {
        "title": chart.title,
        "quantity": chart.words,
        "unit": chart.unit,
        "lines": points(chart.lines),
        "references": points(chart.references),
        "notes": list(chart.remarks),
    }
