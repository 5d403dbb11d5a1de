"""What a sweep is drawn from: its runs, or the flows of its runs, and which of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from gargalo.metrics.declared import NETWORK
from gargalo.metrics.intervals import POSITIVE, SHARE
from gargalo.pictures.sweeps import MOST_PANELS, axes_of, describe, unknown
from gargalo.sweeps.errors import SweepError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.metrics.intervals import Bounds
    from gargalo.pictures.sweeps import Kind, SweepPicture
    from gargalo.sweeps.result import Sweep

FLOWS = "flows"
GROUPS = ("label", "congestion", "transport", "workload", "from", "to")
"""Columns of the table of flows by which they can be grouped."""
SHARE_OF_DATA = "share"
"""Of the data that all flows of a run delivered in the measured window, what some of them did."""


@dataclass(frozen=True)
class Selection:
    """Which runs and flows are drawn, and how."""

    x: str | None = None
    by: str | None = None
    kind: Kind | None = None
    flows: Sequence[str] = ()
    """Labels or numbers of flows; with none, and without a group, figures are those of whole runs."""
    group: str | None = None
    """One of `GROUPS`: a colour, or a panel, for each of its values."""
    where: Mapping[str, str] | None = None
    """Values of labels: other runs are left out."""
    level: float = 0.95
    log_y: bool = False


def picture(sweep: Sweep, metric: str, chosen: Selection) -> SweepPicture:
    """Return the picture of a figure of a sweep.

    Raises:
        SweepError: No run is done yet; or a label, a value, a figure or a flow is unknown.
        StoreError: The table of flows was not kept.
        PictureError: An axis is unknown or has one value.

    """
    frame = sweep.frame()
    if frame.is_empty():
        msg = f'the sweep "{sweep.name}" has no finished run: run it first'
        raise SweepError(msg)
    frame = _where(frame, sweep.labels, chosen.where or {})
    labels, bounds = list(sweep.labels), sweep.bounds
    if chosen.flows or chosen.group is not None:
        whole = chosen.kind != "cdf"
        frame, label = _of_flows(sweep, frame, metric, chosen, whole=whole)
        labels, bounds = [*labels, label], {metric: _bounds(metric)}
        by = chosen.by
        if by is None and chosen.x != label and frame[label].n_unique() > 1:
            by = label
        frame, axes = axes_of(frame, labels, x=chosen.x, by=by)
    else:
        known = sweep.metrics
        if metric not in known:
            raise SweepError(unknown("figure", metric, known))
        frame, axes = axes_of(frame, labels, x=chosen.x, by=chosen.by)
    if frame[metric].drop_nulls().is_empty():
        msg = f"no run of these has {metric}: choose another metric"
        raise SweepError(msg)
    made = describe(frame, metric, axes, kind=chosen.kind, level=chosen.level, bounds=bounds)
    many = len(made.panels)
    if many > MOST_PANELS:
        notes = (*made.notes, f"the first {MOST_PANELS} of {many} combinations; --where chooses")
        made = replace(made, panels=made.panels[:MOST_PANELS], notes=notes)
    if chosen.flows:
        title = f"{made.title}, {' and '.join(chosen.flows)}"
        made = replace(made, title=title)
    return replace(made, y=replace(made.y, log=True)) if chosen.log_y else made


def _bounds(metric: str) -> Bounds:
    """Return the bounds of a figure of flows."""
    return SHARE if metric == SHARE_OF_DATA else POSITIVE


def _where(frame: pl.DataFrame, labels: Sequence[str], where: Mapping[str, str]) -> pl.DataFrame:
    """Return the runs with these values of labels."""
    for label, value in where.items():
        if label not in labels:
            raise SweepError(unknown("label", label, labels))
        values = frame[label].cast(pl.String)
        have = values.unique(maintain_order=True).drop_nulls().to_list()
        if value not in have:
            raise SweepError(unknown(label, value, have))
        frame = frame.filter(values == value)
    return frame


def _of_flows(
    sweep: Sweep, frame: pl.DataFrame, metric: str, chosen: Selection, *, whole: bool
) -> tuple[pl.DataFrame, str]:
    """Return a row for each run and flow or group, and the label that distinguishes these.

    A figure of several flows is their mean, their share what they have together; unless `whole`, each flow has a row.
    """
    group = chosen.group or "label"
    if group not in GROUPS:
        raise SweepError(unknown("group of flows", group, GROUPS))
    flows = sweep.table(FLOWS)
    schema = flows.collect_schema()
    numeric = [
        *(c for c, k in schema.items() if k.is_numeric() and c not in ("id", "repeat", "seed")),
        SHARE_OF_DATA,
    ]
    numeric = [c for c in numeric if c not in sweep.labels and not c.startswith("sweep.")]
    if metric not in numeric:
        raise SweepError(unknown("figure of flows", metric, numeric))
    needed = {"run", "id", "label", group, "measured_bytes"}
    needed |= set() if metric == SHARE_OF_DATA else {metric}
    rows = flows.select(sorted(needed)).collect()
    rows = rows.filter(pl.col("run").is_in(frame["run"].implode()))
    total = pl.col("measured_bytes").sum().over("run")
    rows = rows.with_columns(_share=pl.when(total > 0).then(pl.col("measured_bytes") / total))
    if chosen.flows:
        wanted = list(chosen.flows)
        have = rows["label"].unique(maintain_order=True).to_list()
        for name in wanted:
            if name not in have and not (rows["id"].cast(pl.String) == name).any():
                raise SweepError(unknown("flow", name, have))
        named = pl.col("label").is_in(wanted) | pl.col("id").cast(pl.String).is_in(wanted)
        rows = rows.filter(named)
    label = group if group not in frame.columns else f"flows.{group}"
    if group == "label":
        label = "flow"
    rows = rows.rename({group: "_group"})
    value = pl.col("_share") if metric == SHARE_OF_DATA else pl.col(metric)
    together = value.sum() if metric == SHARE_OF_DATA else value.mean()
    figures = rows.select("run", pl.col("_group").alias(label), value.alias(metric))
    if whole:
        keys = ["run", "_group"]
        figures = rows.group_by(keys, maintain_order=True).agg(together.alias(metric))
        figures = figures.rename({"_group": label})
    facts = ["run", *sweep.labels, "repeat", "seed"]
    facts += [c for c in ("results_hash", *NETWORK) if c in frame.columns and whole]
    runs = frame.select(facts)
    return runs.join(figures, on="run", how="inner", maintain_order="left_right"), label
