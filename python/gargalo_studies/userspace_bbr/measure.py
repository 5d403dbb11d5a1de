"""From a run to the study's metrics; called in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo import Run

MEANS = {
    "mos": "mos",
    "bitrate_bps": "bitrate_bps",
    "rebuffering_s": "rebuffering_s",
    "startup_s": "startup_s",
}
"""Metrics of applications: the mean of a column of flows over those that have it."""


def measure(run: Run) -> Mapping[str, float]:
    """Return the metrics of a run; times in s, rates in bit/s.

    `rate_bps`: goodput of the first flow: bytes that the receiver's application has over the time from the
    opening of the connection to the last of them, or to the end of the run; `completed`: 1 if its transfer came to
    its end. `share`: of the goodput of flows labelled "mine" in that and the mean of those labelled "rival".
    `game_p95_s`: one-way delay of the flow "game". `mos`, `bitrate_bps`, `rebuffering_s`, `startup_s`: of calls and
    films. `dropped_packets`: on all links.
    """
    flows = run.flows
    first = flows.row(0, named=True)
    found: dict[str, float | None] = {
        "rate_bps": first["goodput_bps"] or 0.0,
        "completed": float(first["completion_s"] is not None),
        "timeouts": first["timeouts"],
        "lost_packets": first["lost_packets"],
        "retransmitted_packets": first["retransmitted_packets"],
        "dropped_packets": float(sum(k["dropped_packets"] for k in run.links)),
        "share": share(flows),
    }
    for name, column in MEANS.items():
        found[name] = flows[column].mean()  # type: ignore[assignment]
    game = flows.filter(pl.col("label") == "game")
    if game.height:
        found["game_p95_s"] = game["delay_p95_s"][0]
    return {k: float(v) for k, v in found.items() if v is not None}


def share(flows: pl.DataFrame) -> float | None:
    """Return what "mine" has of the goodput of "mine" and the mean "rival"; None without a rival."""
    mine, rival = (
        flows.filter(pl.col("label") == name)["goodput_bps"].fill_null(0.0).mean()
        for name in ("mine", "rival")
    )
    if mine is None or rival is None:
        return None
    both = float(mine) + float(rival)  # type: ignore[arg-type]
    return float(mine) / both if both > 0 else None  # type: ignore[arg-type]
