"""Pictures of a run; every method returns a Matplotlib figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo import _core
from gargalo.pictures import datagrams, runs
from gargalo.pictures.paper import Picture, draw, save

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from gargalo.results import Run

__all__ = ["Picture", "Plots"]


OF_RECORDINGS = {
    "congestion_window": ("flow_samples", "congestion_window_bytes"),
    "in_flight": ("flow_samples", "bytes_in_flight"),
    "goodput": ("flow_samples", "delivered_bytes"),
    "rtt": ("flow_samples", "srtt_s"),
    "paths": ("subflow_samples", "delivered_bytes"),
    "queue": ("link_samples", "queue_delay_s"),
}
"""Pictures of recordings, each with the table and the column that it shows: what was not recorded has none."""


class Plots:
    """Pictures of one run; a flow has the same name and colour in all of them, and in its report."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def congestion_window(self) -> Picture:
        """Congestion window of each flow over time (kB)."""
        column, title = "congestion_window_bytes", "Congestion window"
        return draw(runs.sampled(self._run, column, title, "window", "kB", 1e-3))

    def in_flight(self) -> Picture:
        """Bytes in flight of each flow over time (kB)."""
        column, title = "bytes_in_flight", "Bytes in flight"
        return draw(runs.sampled(self._run, column, title, "in flight", "kB", 1e-3))

    def goodput(self, *, bin_s: float | None = None) -> Picture:
        """Goodput of each flow (Mbit/s), averaged over whole bins of `bin_s` seconds, and the bottleneck's capacity."""
        return draw(runs.goodput(self._run, bin_s))

    def rtt(self) -> Picture:
        """Smoothed round-trip time of each flow over time (ms)."""
        title = "Smoothed round-trip time"
        return draw(runs.sampled(self._run, "srtt_s", title, "RTT", "ms", 1e3))

    def queue(self) -> Picture:
        """Queueing delay of the link directions with a queue or drops (ms)."""
        return draw(runs.queue(self._run))

    def ping(self) -> Picture:
        """Round-trip time of each echo request of pings (ms)."""
        return draw(datagrams.round_trips(self._run))

    def one_way_delay(self) -> Picture:
        """One-way delays of datagrams (ms): of pings and their answers, with `record.datagrams` of all."""
        return draw(datagrams.one_way_delays(self._run))

    def frame_delay(self) -> Picture:
        """Time from the encoder to the arrival of its last packet of each frame of calls (ms)."""
        return draw(datagrams.frame_delays(self._run))

    def paths(self, *, bin_s: float | None = None) -> Picture:
        """Data that several paths deliver over time (Mbit/s), stacked, of all flows."""
        return draw(runs.paths(self._run, bin_s))

    def out_of_order(self) -> Picture:
        """Data of each flow with several paths that waits at the receiver for data before it (kB)."""
        column, title = "out_of_order_bytes", "Out-of-order buffer"
        return draw(runs.sampled(self._run, column, title, "waiting", "kB", 1e-3))

    def subflow_window(self) -> Picture:
        """Congestion window of each subflow over time (kB)."""
        column, title = "congestion_window_bytes", "Congestion window of each subflow"
        return draw(runs.subflow_sampled(self._run, column, title, "window", "kB", 1e-3))

    def save(self, directory: Path, formats: tuple[str, ...] = ("png", "svg")) -> list[Path]:
        """Write every picture to `directory`; returns the files."""
        written = []
        for name in self._saved():
            figure: Picture = getattr(self, name)()
            for suffix in formats:
                path = directory / f"{name}.{suffix}"
                save(figure, path)
                written.append(path)
        _core.add_files(directory, [p.name for p in written])
        return written

    def _saved(self) -> list[str]:
        """Return the pictures that are written beside the tables."""
        run = self._run
        if run.is_recording:
            return [name for name, shown in OF_RECORDINGS.items() if self._has(*shown)]
        names = ["congestion_window", "goodput", "rtt", "queue"]
        if not run.subflows.is_empty():
            names += ["paths", "out_of_order", "subflow_window"]
        if not run.pings.is_empty():
            names += ["ping", "one_way_delay"]
        if not run.media_frames.is_empty():
            names += ["frame_delay"]
        return names

    def _has(self, table: str, column: str) -> bool:
        """Whether a table has a value in a column."""
        rows: pl.DataFrame = getattr(self._run, table)
        return not rows.is_empty() and rows[column].null_count() < rows.height
