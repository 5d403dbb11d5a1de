"""What the page shows of a run, part by part: the network, the panels, the figures and the story."""

from __future__ import annotations

import base64
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from gargalo.audit import told
from gargalo.explaining import explain
from gargalo.pictures.metrics import names_of, picture
from gargalo.pictures.runs import numbers
from gargalo.pictures.thinning import thin
from gargalo.summary import FLOWS, flow_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from gargalo.pictures.model import Chart, Line
    from gargalo.results import Run

    Part: TypeAlias = Mapping[str, object]
    """A part of what the page shows, as JSON."""

FIRST = (
    "goodput", "rtt", "queue", "cwnd", "losses", "marks", "pacing", "paths", "subflow-cwnd", "subflow-rtt", "objects",
    "ping", "one-way-delay", "frame-delay",
)  # fmt: skip
"""The panels of a page that has not been asked for others, if there is something to draw in them."""
MORE = ("out-of-order", "utilization")
"""Further panels of a page that is read without a server, which cannot be asked for others."""
OF_MEDIA = "pacing"
"""The rate that a call may have, which its encoder follows; of other flows it says what the window says."""
AT_LINKS = ("queue_packets", "queue_delay_s", "utilization", "dropped_packets")
"""Columns of the links' samples that the drawn network shows at an instant."""
MOST_ROWS = 50


def parts(
    run: Run, panels: Sequence[str] | None = None, usual: Sequence[str] = FIRST
) -> Iterator[Part]:
    """Return what a page shows, what is had soonest first; each part has its name in `part`.

    Args:
        run: A finished run.
        panels: Names of metrics, as `gargalo plot --metric` has them; by default the usual ones.
        usual: Names of metrics that are shown if something happens in them.

    """
    yield from pictures(run, panels, usual)
    yield {"part": "story", "sentences": _story(run)}


def pictures(
    run: Run, panels: Sequence[str] | None = None, usual: Sequence[str] = FIRST
) -> Iterator[Part]:
    """Return the parts without the story; they may be those of a run that was stopped."""
    yield _about(run)
    drawn = _panels(run, panels, usual)
    # The network comes after the first picture, which is what is waited for.
    yield from islice(drawn, 1)
    yield {"part": "network", **_network(run)}
    yield from drawn


def _panels(run: Run, chosen: Sequence[str] | None, usual: Sequence[str]) -> Iterator[Part]:
    if chosen is None:
        calls = (run.flows["workload"] == "media").any()
        names = tuple(name for name in usual if calls or name != OF_MEDIA)
    else:
        known = names_of([run])
        names = tuple(name for name in chosen if name in known)
    for name in names:
        chart = picture(run, name)
        if chart.lines and (chosen is not None or _changes(chart)):
            yield {"part": "panel", "metric": name, **_chart(chart)}


def view(run: Run, panels: Sequence[str] | None = None, usual: Sequence[str] = FIRST) -> list[Part]:
    """Return all parts of a page at once."""
    return list(parts(run, panels, usual))


def _changes(chart: Chart) -> bool:
    """Whether a picture shows more than zeros."""
    return any(np.nanmax(line.y, initial=0.0) > 0 for line in chart.lines)


def _about(run: Run) -> Part:
    rows = run.flows.head(MOST_ROWS).to_dicts()
    columns, lines = flow_table(rows, run.names)
    return {
        "part": "about",
        "name": run.setup.name,
        "description": run.setup.description or "",
        "seed": run.info["seed"],
        "duration_s": float(run.info.get("virtual_s") or 0.0),
        "results_hash": run.info.get("results_hash"),
        "packets": run.info.get("packets"),
        "version": run.info.get("version"),
        "world": run.info.get("world", "sim"),
        "metrics": names_of([run]),
        "figures": {
            "columns": [c.name for c in columns or FLOWS],
            "rows": [list(r) for r in lines],
        },
        "flows": [{"id": r["id"], "name": run.names[r["id"]]} for r in rows],
        "left_out": max(run.flows.height - MOST_ROWS, 0),
        "findings": [{"severity": f["severity"], "text": told(f)} for f in run.findings],
        "warnings": run.warnings,
    }


def _network(run: Run) -> Part:
    """Return nodes and links, and of each link direction that carried something its samples."""
    samples, directions = run.link_samples, []
    if not samples.is_empty():
        for (link, direction), rows in samples.partition_by(
            "link", "direction", as_dict=True, maintain_order=True
        ).items():
            if rows["sent_bytes"].max() or rows["dropped_packets"].max():
                at = numbers(rows["time_s"])
                lines = {column: _points(at, numbers(rows[column])) for column in AT_LINKS}
                directions.append({"link": link, "direction": direction, "samples": lines})
    return {
        "nodes": [{"name": n.name, "host": n.host} for n in run.setup.nodes],
        "links": [{"name": x.name, "from": x.from_, "to": x.to} for x in run.setup.links],
        "ends": run.flows.select("from", "to").unique(maintain_order=True).to_dicts(),
        "directions": directions,
    }


def _chart(chart: Chart) -> Part:
    return {
        "title": chart.title,
        "words": chart.words,
        "unit": chart.unit,
        "stacked": chart.stacked,
        "counted": chart.counted,
        "window": chart.window,
        "notes": list(chart.remarks),
        "lines": [_line(line) for line in chart.lines],
        "references": [_line(line) for line in chart.references],
    }


def _line(line: Line) -> Part:
    return {
        "name": line.name,
        "colour": line.colour,
        "dash": line.dash,
        "step": line.step,
        **_points(line.x, line.y),
    }


def _points(x: NDArray[np.float64], y: NDArray[np.float64]) -> Part:
    """Return points as the page takes them: little-endian doubles in base64, thinned to what a screen can show."""
    at, values = thin(x, y)
    return {"x": _packed(at), "y": _packed(values), "thinned_from": x.size if at.size < x.size else None}  # fmt: skip


def _packed(values: NDArray[np.float64]) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")


def _story(run: Run) -> list[Part]:
    story = explain(run)
    found: list[Part] = []
    for sentence in story.sentences:
        heading = story.heading(sentence)
        found.append(
            {
                "heading": heading,
                "topic": sentence.topic,
                "text": sentence.text,
                "time_s": sentence.time_s,
                "until_s": sentence.until_s,
            }
        )
    return found
