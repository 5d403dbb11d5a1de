"""Pictures of a run; every method returns a Matplotlib figure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from gargalo import _core
from gargalo.metrics import path_bins, with_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.axes import Axes

    from gargalo.results import Run

# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MOST_LINES = 24


class Picture(Figure):
    """A Matplotlib figure that a notebook shows without `%matplotlib` and without pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return a PNG with two pixels for each of CSS, and its size in these."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=200)
        width, height = (round(inches * 100) for inches in self.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}


class Plots:
    """Pictures of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def _axes(self, title: str, ylabel: str) -> tuple[Figure, Axes]:
        figure = Picture(figsize=(8, 4), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(title, loc="left")
        axes.set_xlabel("time (s)")
        axes.set_ylabel(ylabel)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        return figure, axes

    def _flows(self) -> Iterator[tuple[int, str, pl.DataFrame]]:
        samples = self._run.flow_samples
        if samples.is_empty():
            return
        shown = self._run.flows.head(MOST_LINES)
        for i, (flow, label) in enumerate(shown.select("id", "label").iter_rows()):
            rows = samples.filter(pl.col("flow") == flow).sort("time_s")
            if not rows.is_empty():
                yield i, label, rows

    def _legend(self, axes: Axes) -> None:
        handles, _ = axes.get_legend_handles_labels()
        if 0 < len(handles) <= 12:
            axes.legend(frameon=False, ncols=min(4, len(handles)), loc="upper right")
        elif not handles:
            text = "nothing was sampled in this run"
            axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)

    def _samples(
        self, title: str, ylabel: str, column: str, scale: float, *, gaps: bool = False
    ) -> Figure:
        """Draw a column of the samples of each flow, with gaps or without where it has no value."""
        figure, axes = self._axes(title, ylabel)
        for i, label, rows in self._flows():
            seen = rows if gaps else rows.drop_nulls(column)
            values = seen[column] * scale
            axes.plot(seen["time_s"], values, label=label, color=COLOURS[i % 8], lw=1.2)
        self._legend(axes)
        return figure

    def congestion_window(self) -> Figure:
        """Congestion window of each flow over time (kB)."""
        column = "congestion_window_bytes"
        return self._samples("Congestion window", "window (kB)", column, 1e-3, gaps=True)

    def goodput(self, *, bin_s: float | None = None) -> Figure:
        """Goodput of each flow over time (Mbit/s), averaged over bins of `bin_s` seconds."""
        figure, axes = self._axes("Goodput", "goodput (Mbit/s)")
        for i, label, rows in self._flows():
            first, last = rows["time_s"][0], rows["time_s"][-1]
            width = bin_s or max((last - first) / 50, 0.1)
            bins = (
                rows.group_by((pl.col("time_s") / width).floor().alias("bin"), maintain_order=True)
                .agg(pl.col("time_s").last(), pl.col("delivered_bytes").last())
                .select(
                    "time_s",
                    (
                        pl.col("delivered_bytes").cast(pl.Float64).diff()
                        * 8e-6
                        / pl.col("time_s").diff()
                    ).alias("mbps"),
                )
                .drop_nulls()
            )
            axes.plot(bins["time_s"], bins["mbps"], label=label, color=COLOURS[i % 8], lw=1.5)
        self._legend(axes)
        return figure

    def rtt(self) -> Figure:
        """Smoothed round-trip time of each flow over time (ms)."""
        return self._samples("Smoothed round-trip time", "RTT (ms)", "srtt_s", 1e3)

    def queue(self) -> Figure:
        """Queueing delay of each link direction that ever had a queue (ms)."""
        figure, axes = self._axes("Queueing delay", "queueing delay (ms)")
        samples = self._run.link_samples
        if not samples.is_empty():
            busy = samples.group_by("link", "direction", maintain_order=True).agg(
                pl.col("queue_delay_s").max()
            )
            busy = busy.filter(pl.col("queue_delay_s") > 0).head(MOST_LINES)
            for i, (link, direction, _) in enumerate(busy.iter_rows()):
                rows = samples.filter(pl.col("link") == link, pl.col("direction") == direction)
                milliseconds = rows["queue_delay_s"] * 1e3
                axes.plot(
                    rows["time_s"],
                    milliseconds,
                    label=f"{link} {direction}",
                    color=COLOURS[i % 8],
                    lw=1,
                )
        self._legend(axes)
        return figure

    def paths(self, *, bin_s: float | None = None) -> Figure:
        """Data that Multipath TCP delivers by each path over time (Mbit/s), stacked, of all flows."""
        figure, axes = self._axes("Delivered by path", "rate (Mbit/s)")
        samples, subflows = self._run.subflow_samples, self._run.subflows
        if not samples.is_empty():
            times = samples["time_s"]
            width = bin_s or max(float(times.max() - times.min()) / 100, 0.1)  # type: ignore[arg-type, operator]
            bins = path_bins(samples, subflows, width)
            wide = bins.pivot(
                "path", index="time_s", values="throughput_bps", aggregate_function="sum"
            ).sort("time_s")
            names = [c for c in wide.columns if c != "time_s"]
            if names:
                rates = [wide[n].fill_null(0.0).to_numpy() / 1e6 for n in names]
                colours = [COLOURS[i % 8] for i in range(len(names))]
                axes.stackplot(
                    wide["time_s"], rates, labels=names, colors=colours, alpha=0.85, step="post"
                )
                axes.set_ylim(top=1.15 * np.sum(rates, axis=0).max())  # room for the legend
        self._legend(axes)
        return figure

    def out_of_order(self) -> Figure:
        """Data of each Multipath TCP flow that waits at the receiver for data before it (kB)."""
        figure, axes = self._axes("Out-of-order buffer", "waiting (kB)")
        for i, label, rows in self._flows():
            seen = rows.drop_nulls("out_of_order_bytes")
            if not seen.is_empty():
                kilobytes = seen["out_of_order_bytes"] / 1e3
                axes.plot(seen["time_s"], kilobytes, label=label, color=COLOURS[i % 8], lw=1.2)
        self._legend(axes)
        return figure

    def subflow_window(self) -> Figure:
        """Congestion window of each subflow over time (kB)."""
        figure, axes = self._axes("Congestion window of each subflow", "window (kB)")
        samples = self._run.subflow_samples
        if not samples.is_empty():
            named = with_path(self._run.subflows)
            labels = dict(self._run.flows.select("id", "label").iter_rows())
            several = named["flow"].n_unique() > 1
            for i, s in enumerate(named.head(MOST_LINES).iter_rows(named=True)):
                own = (pl.col("flow") == s["flow"]) & (pl.col("subflow") == s["subflow"])
                rows = samples.filter(own).sort("time_s")
                label = f"{labels[s['flow']]}: {s['path']}" if several else s["path"]
                kilobytes = rows["congestion_window_bytes"] / 1e3
                axes.plot(rows["time_s"], kilobytes, label=label, color=COLOURS[i % 8], lw=1.2)
        self._legend(axes)
        return figure

    def save(self, directory: Path, formats: tuple[str, ...] = ("png", "svg")) -> list[Path]:
        """Write every picture to `directory`; returns the files."""
        written = []
        names = ["congestion_window", "goodput", "rtt", "queue"]
        if not self._run.subflows.is_empty():
            names += ["paths", "out_of_order", "subflow_window"]
        for name in names:
            figure: Figure = getattr(self, name)()
            for suffix in formats:
                path = directory / f"{name}.{suffix}"
                # No date in the file: equal runs give equal pictures.
                metadata = {"Date": None} if suffix == "svg" else None
                try:
                    figure.savefig(path, dpi=130, metadata=metadata)
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
                written.append(path)
        _core.add_files(directory, [p.name for p in written])
        return written
