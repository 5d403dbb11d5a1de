"""From a run to the study's metrics; called in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gargalo_studies.mptcp_schedulers.networks import LEAVES_S, RETURNS_S, SAMPLE_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo import Run

PATHS = 5
BINS = 30
"""Of the course of a run, a second each."""
BEFORE_S = 5
"""Time over which the rates before a hand-over and after the return are measured."""


def measure(run: Run) -> Mapping[str, float]:
    """Return the metrics of a run; times in s, rates in bit/s, amounts in bytes.

    `rate_bps`: goodput of the upload, opening of the connection included; `completed`: 1 if it came to its end.
    `share.pathN`: of the data that reached the receiver by path N. `duplicate_acks.pathN`: those that the sender
    received for its data there. `queue.pathN`: mean queueing delay there;
    `dropped.pathN`: packets its queue did not take. `out_of_order_bytes`: most that waited at the receiver for data
    before it. `reinjected_packets`, `opportunistic_packets`, `duplicate_bytes`, `timeouts`, `retransmitted_share`.
    `others_bps`: of the background. Of runs whose course is kept, second by second: `out_of_order.SS`, `rate.SS`,
        `queue.SS.pathN`. Of hand-overs:
    `gap_s`: longest silence after the address went, `before_bps`, `alone_bps`, `after_bps`.
    """
    flow = run.flows.row(0, named=True)
    sent = float(flow["sent_packets"] or 0)
    found: dict[str, float | None] = {
        "rate_bps": flow["goodput_bps"] or 0.0,
        "completed": float(flow["completion_s"] is not None),
        "timeouts": flow["timeouts"],
        "retransmitted_share": (flow["retransmitted_packets"] or 0) / sent if sent else None,
        "out_of_order_bytes": flow["out_of_order_max_bytes"],
        "reinjected_packets": flow["reinjected_packets"],
        "opportunistic_packets": flow["opportunistic_packets"],
        "duplicate_bytes": flow["duplicate_bytes"],
    }
    others = run.flows.filter(pl.col("label").str.starts_with("other"))
    if others.height:
        # Bytes over one time: rates of flows that came at different times do not add up.
        span = float(others["end_s"].max() - others["start_s"].min())  # type: ignore[arg-type, operator]
        found["others_bps"] = 8 * float(others["delivered_bytes"].sum()) / span if span > 0 else 0.0
    found |= shares(run, int(flow["id"])) | queues(run)
    if flow["transport"] == "mptcp" and run.flow_samples.height:
        # A link is sampled wherever a course is kept; a hand-over samples its flow only.
        found |= course(run) if run.link_samples.height else gap(run.flow_samples)
    return {k: float(v) for k, v in found.items() if v is not None}


def shares(run: Run, flow: int) -> dict[str, float | None]:
    """Return which part of the data of a flow came by which path, and its duplicate acknowledgements there."""
    by_path: dict[str, float] = {}
    duplicates: dict[str, float] = {}
    for s in run.subflows.filter(pl.col("flow") == flow).iter_rows(named=True):
        by_path[s["link"]] = by_path.get(s["link"], 0.0) + float(s["delivered_bytes"])
        if s["duplicate_acks"] is not None:
            duplicates[s["link"]] = duplicates.get(s["link"], 0.0) + float(s["duplicate_acks"])
    total = sum(by_path.values())
    # Where paths are shared, the link of the host itself has the same number.
    found: dict[str, float | None] = {
        f"share.path{k[-1]}": n / total for k, n in sorted(by_path.items()) if total > 0
    }
    return found | {f"duplicate_acks.path{k[-1]}": n for k, n in sorted(duplicates.items())}


def queues(run: Run) -> dict[str, float | None]:
    """Return how long packets waited on the way of the data, and how many were dropped there."""
    found: dict[str, float | None] = {}
    for link in run.links:
        if link["direction"] == "up" and str(link["name"]).startswith("path"):
            found[f"queue.{link['name']}"] = link["queue_delay_mean_s"]
            found[f"dropped.{link['name']}"] = link["dropped_queue_full_packets"]
    return found


def course(run: Run) -> dict[str, float | None]:
    """Return how a run went, second by second."""
    second = pl.col("time_s").ceil().cast(pl.Int64).alias("second")
    found: dict[str, float | None] = {}
    flow = run.flow_samples.with_columns(second).group_by("second").agg(
        pl.col("out_of_order_bytes").mean(), pl.col("delivered_bytes").max()
    )  # fmt: skip
    before = 0.0
    for row in flow.sort("second").iter_rows(named=True):
        if not 1 <= row["second"] <= BINS:
            continue
        found[f"out_of_order.{row['second']:02}"] = row["out_of_order_bytes"]
        found[f"rate.{row['second']:02}"] = 8.0 * (row["delivered_bytes"] - before)
        before = row["delivered_bytes"]
    links = run.link_samples.filter(pl.col("direction") == "up").with_columns(second)
    links = links.group_by("second", "link").agg(pl.col("queue_delay_s").mean())
    for row in links.sort("second", "link").iter_rows(named=True):
        if 1 <= row["second"] <= BINS:
            found[f"queue.{row['second']:02}.{row['link']}"] = row["queue_delay_s"]
    return found


def gap(samples: pl.DataFrame) -> dict[str, float | None]:
    """Return what a hand-over cost."""
    times, delivered = samples["time_s"].to_list(), samples["delivered_bytes"].to_list()

    def rate(start: float, end: float) -> float | None:
        inside = [(t, d) for t, d in zip(times, delivered, strict=True) if start <= t <= end]
        if len(inside) < 2 or inside[-1][0] <= inside[0][0]:
            return None
        return 8.0 * float(inside[-1][1] - inside[0][1]) / float(inside[-1][0] - inside[0][0])

    longest, since = 0.0, float(LEAVES_S)
    known = None
    for time, amount in zip(times, delivered, strict=True):
        if time < LEAVES_S or time > RETURNS_S:
            continue
        if known is not None and amount > known:
            longest, since = max(longest, time - since - 1e-3 * SAMPLE_MS), time
        known = amount
    longest = max(longest, float(RETURNS_S) - since - 1e-3 * SAMPLE_MS) if known is not None else longest  # fmt: skip
    return {
        "gap_s": max(longest, 0.0),
        "before_bps": rate(LEAVES_S - BEFORE_S, LEAVES_S),
        "alone_bps": rate(RETURNS_S - BEFORE_S, RETURNS_S),
        "after_bps": rate(RETURNS_S + BEFORE_S, RETURNS_S + 2 * BEFORE_S),
    }
