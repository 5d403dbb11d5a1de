"""The page of a fit: the recording and the simulated flow side by side, the path, and what is not known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gargalo.fitting.toml import toml
from gargalo.names import flow_names
from gargalo.pictures.metrics import overlay, picture
from gargalo.quantities import measured
from gargalo.reporting import FigureBlock, Report, TableBlock
from gargalo.reporting.charts import figure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go

    from gargalo.fitting.model import Fit
    from gargalo.fitting.predicting import Compared, Predicted
    from gargalo.pictures.model import Chart

FIGURES = {
    "goodput": "What arrived, as a rate over time.",
    "rtt": "Smoothed round trips, as the acknowledgements show them at the sender.",
    "in-flight": "What had been sent and not yet acknowledged.",
    "losses": "Packets that were lost, as they were sent again.",
}
RECORDED, SIMULATED = "recorded", "simulated"


def page(
    fit: Fit,
    *,
    verified: Sequence[Compared] = (),
    predicted: Mapping[str, Predicted] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Report:
    """Return the page of a fit.

    Args:
        fit: The fit.
        verified: What `Fit.verify` returned.
        predicted: What `Fit.what_if` returned.
        settings: Of `predicted`.

    """
    tables = [
        TableBlock("The path", "Where each parameter lies in nine cases of ten.", parameters(fit)),
        TableBlock(
            "Recorded and simulated",
            f"The recorded flow, and a flow with {fit.congestion} over the path.",
            side_by_side(fit.compared),
        ),
    ]
    if verified:
        told = "What was kept back, beside a simulation that did not know it."
        tables.append(TableBlock("Verified", told, side_by_side(verified)))
    if predicted:
        asked = ", ".join(f"{k}={v}" for k, v in (settings or {}).items())
        about = "The figures of such a flow, and their least and greatest over all paths that the recording allows."
        tables.append(TableBlock(f"What if {asked}", about, alternatives(predicted)))
    return Report(
        title=f"The path of {fit.name}",
        subtitle=fit.seen.label,
        figures=_figures(fit),
        tables=tables,
        scenarios={"path.toml": toml(fit)},
        commands=["gargalo run path.toml", "gargalo explore path.toml"],
        highlights={
            c.name: f"{c.difference:+.1%}" for c in fit.compared if c.difference is not None
        },
        facts={"distance": fit.distance, "packets": len(fit.seen.sent_s)},
        notes=[f"The recording cannot tell: {told}." for told in fit.unknown],
    )


def parameters(fit: Fit) -> pl.DataFrame:
    """Return a row for each parameter of the path: its value, and where it lies."""
    rows = []
    for name, unit, found in listed(fit):
        interval = fit.intervals.get(name)
        low, high = (interval.low, interval.high) if interval else (None, None)
        rows.append(
            {
                "parameter": name,
                "value": measured(found, unit),
                "at least": "" if low is None else measured(low, unit),
                "at most": "" if high is None else measured(high, unit),
            }
        )
    return pl.DataFrame(rows)


def listed(fit: Fit) -> list[tuple[str, str, float]]:
    """Return the parameters that the path has: name, unit, value in SI."""
    path = fit.path
    found = [
        ("rate_bps", "bit/s", path.mean_rate_bps(fit.seen.duration_s)),
        ("base_rtt_s", "s", path.base_rtt_s),
        ("buffer_bytes", "byte", path.buffer_bytes),
    ]
    if path.loss > 0:
        found.append(("loss", "", path.loss))
    if path.jitter_s > 0:
        found.append(("jitter_s", "s", path.jitter_s))
    if path.aggregation_s > 0:
        found.append(("aggregation_s", "s", path.aggregation_s))
    if path.reordering:
        found.append(("reorder_probability", "", path.reordering.probability))
        found.append(("reorder_by_s", "s", path.reordering.by_s))
    if path.policer:
        found.append(("policer_rate_bps", "bit/s", path.policer.rate_bps))
        found.append(("policer_burst_bytes", "byte", path.policer.burst_bytes))
    if path.elastic:
        found.append(("other_flows", "", float(len(path.elastic))))
    elif path.cross:
        found.append(("cross_traffic_bps", "bit/s", path.mean_cross_bps(fit.seen.duration_s)))
    return found


def side_by_side(rows: Sequence[Compared]) -> pl.DataFrame:
    """Return a row for each figure: recorded, simulated, and the difference."""
    return pl.DataFrame(
        {
            "figure": [r.name for r in rows],
            RECORDED: [r.measured for r in rows],
            SIMULATED: [r.simulated for r in rows],
            "difference": [r.difference for r in rows],
        },
        schema_overrides=dict.fromkeys((RECORDED, SIMULATED, "difference"), pl.Float64),
    )


def alternatives(predicted: Mapping[str, Predicted]) -> pl.DataFrame:
    """Return a row for each figure that was predicted."""
    rows = predicted.items()
    return pl.DataFrame(
        {
            "figure": [name for name, _ in rows],
            "value": [p.value for _, p in rows],
            "least": [p.low for _, p in rows],
            "greatest": [p.high for _, p in rows],
        },
        schema_overrides=dict.fromkeys(("value", "least", "greatest"), pl.Float64),
    )


def _figures(fit: Fit) -> list[FigureBlock]:
    names = flow_names(fit.recording.flows.to_dicts())
    flow = next(n for n, name in names.items() if name == fit.seen.label or len(names) == 1)
    sides = ((RECORDED, fit.recording, flow), (SIMULATED, fit.simulated.run, 0))
    found = []
    for metric, about in FIGURES.items():
        charts = [(name, picture(run, metric, flows=[n])) for name, run, n in sides]
        if any(chart.lines for _, chart in charts):
            chart = overlay(charts)
            found.append(FigureBlock(chart.title, about, _drawn(chart), restyle=False))
    return found


def _drawn(chart: Chart) -> go.Figure:
    made = figure("time (s)", chart.y_title)
    for line in chart.lines:
        made.add_scatter(
            x=line.x,
            y=line.y,
            name=line.name,
            mode="lines",
            line={
                "color": line.colour,
                "dash": line.dash,
                "shape": "hv" if line.step else "linear",
            },
        )
    return made
