"""From a run to the study's metrics; called in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from gargalo import metrics
from gargalo.studies import summed

from gargalo_studies.nsquic.scenarios import LIMIT_S, WARM_UP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo import Run


def measure(run: Run) -> Mapping[str, float]:
    """Return the metrics of a run; times in s, rates in bit/s.

    `time_s`: transmission time of the slowest flow, from the start of its connection to its last byte;
    a flow that did not end counts with the limit, and `completed` is the share of those that did.
    `fastest_s`, `median_s`: of the flows of the run. `receive_rate_bps`: mean over flows of bytes over
    the time from the first packet back, the handshake's first answer, to the last byte; `jain`: Jain's index of these.
    `wire_rate_bps`: what a flow alone received with headers, from the first packet back. `time.X`, `receive_rate.X`: of
        the flows
    labelled X. `object_p50_s`, `object_p95_s`, `page_s`: from the start to the end of objects.
    `lost_packets`: packets that senders declared lost; `spurious_losses`: congestion events without a loss.
    """
    flows = run.flows.filter(pl.col("label") != WARM_UP)
    times = flows["completion_s"].fill_null(LIMIT_S).to_numpy()
    rates = np.array([receive_rate(row) for row in flows.iter_rows(named=True)])
    labels = flows["label"].to_numpy()
    found: dict[str, float | None] = {
        "time_s": float(times.max()),
        "fastest_s": float(times.min()),
        "median_s": float(np.median(times)),
        "completed": float(flows["completion_s"].is_not_null().mean()),  # type: ignore[arg-type]
        "receive_rate_bps": float(rates.mean()),
        "jain": metrics.jain_index(rates),
        "lost_packets": summed(flows["lost_packets"]),
        "retransmitted_packets": summed(flows["retransmitted_packets"]),
        "spurious_losses": summed(flows["spurious_losses"]),
        "dropped_packets": float(sum(k["dropped_packets"] for k in run.links)),
    }
    for label in sorted(set(labels)):
        mine = labels == label
        found[f"time.{label}"] = float(times[mine].max())
        found[f"receive_rate.{label}"] = float(rates[mine].mean())
    if run.flows.height == 1 and flows["completion_s"][0] is not None:
        found["wire_rate_bps"] = wire_rate(run, float(times[0]))
    return {k: float(v) for k, v in (found | objects(run, flows)).items() if v is not None}


def receive_rate(flow: Mapping[str, float | None]) -> float:
    """Bytes of a flow over the time from the first packet back to the last byte; 0 if none came."""
    first, size = flow["rtt_min_s"], flow["delivered_bytes"]
    if first is None or not size:
        return 0.0
    last = flow["completion_s"]
    if last is None:
        last = (flow["end_s"] or 0.0) - (flow["start_s"] or 0.0)
    return 8.0 * size / (last - first) if last > first else 0.0


def wire_rate(run: Run, time_s: float) -> float | None:
    """Bytes that came down the link, headers included, since the first answer of the handshake.

    That is what the simulator's flow monitor of the work counted: its 9.89 Mbit/s of TCP on a link of
    10 are more than segments of 536 bytes can carry of payload.
    """
    down = [k for k in run.links if k["direction"] == "down"]
    if len(down) != 1:
        return None
    first = run.flows["rtt_min_s"][0]
    if first is None or time_s <= first:
        return None
    return 8.0 * float(down[0]["sent_bytes"]) / (time_s - float(first))


def objects(run: Run, flows: pl.DataFrame) -> dict[str, float | None]:
    """Return how long objects took from the start of the page, where there are several."""
    table = run.objects.filter(pl.col("flow").is_in(flows["id"].to_list()))
    if table.height < 2:
        return {}
    start = float(flows["start_s"].min())  # type: ignore[arg-type]
    ends = (table["completed_s"].fill_null(LIMIT_S) - start).to_numpy()
    return {
        "object_p50_s": float(np.percentile(ends, 50)),
        "object_p95_s": float(np.percentile(ends, 95)),
        "object_mean_s": float(ends.mean()),
        "page_s": float(ends.max()),
    }
