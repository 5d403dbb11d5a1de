"""From a run to its figures; called in the workers.

What is measured depends on the run alone, not on the criterion, so that criteria share runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gargalo import metrics
from gargalo.evaluation.criteria.conformance import cases as conformance
from gargalo.evaluation.criteria.conformance.model import is_case
from gargalo.metrics._numbers import direction_of, summed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo.results import Run
    from gargalo.scenarios.setup import Link

WARM_UP = 0.25
"""Share of the run before figures of steady state are taken."""
STARVED = 0.1
"""A flow with less than this share of its fair share starves; the threshold is ours."""
RECOVERED = 0.8
"""Share of its former rate, or of the capacity, that a flow must reach again."""
PACKET_BITS = 8 * 1500
SEEN = ("link", "direction", "time_s", "utilization", "queue_delay_s")
"""Columns of `link_samples` of which the figures of a bottleneck are made."""
BIN_S = 0.5
"""Width of the bins in which the recovery of a flow is measured."""
HELD = 4
"""This many bins in a row, 2 s, must have `RECOVERED` on average: a burst of data that waited for a retransmission
is not a rate."""


def measure(run: Run) -> Mapping[str, float]:
    """Return the figures of a run; times in s, rates in bit/s.

    By label L of flows: `goodput_bps.L` (sum over the time after the warm-up, a quarter of the run),
    `least_bps.L` and `most_bps.L` (of its flows), `jain.L`, `flows.L`, `sent_packets.L`,
    `retransmitted.L` and `lost.L` (shares of these), `timeouts.L`, `offered.L` (payload sent over the time of
    all of them, as a share of the capacity), `per_rtt.L` (packets sent in a base round trip, mean over flows),
    `rtt_p50_s.L` and `rtt_p95_s.L` (means over flows), over UDP `delay_p95_s.L` (the same of one-way delays),
    `completed.L` (share), `completion_p50_s.L` and `completion_p95_s.L` (unfinished flows count with the time they
    had), `starved.L` (share of the time after the warm-up in which a flow has less than a tenth of its fair share: of
    the flow that fares worst), `variation.L` (coefficient of variation of rates over bins of 1 s, in the second half of
    the time after the warm-up), `mos.L`.

    Of the bottleneck (the most used direction): `utilization`, `queue_p50_s`, `queue_p95_s`, `queue_p99_s`
    (over time, after the warm-up), `standing_queue_s`, `queue_mean_s` (over packets), `drop_rate` and `mark_rate` (of
    all packets, slow start
    included: it is part of what an algorithm does to a queue), `capacity_bps`. `wasted_bps`: what the queues of
    links with a rate drop, other than the first link's: data that used the first link and did not arrive.

    Of files: `flow_bps.L`, the mean of their goodputs, and of the smallest and largest quarter of them
    `flow_bps_small.L` and `flow_bps_large.L`.

    `jain` of all flows without end. `convergence_s`: from the start of the last flow without end until rates
    differ by less than a fifth for 2 s. Outages and steps: see `outages`, `changes`; for
    draft-irtf-iccrg-tcpeval-01: see `ramp`, `transient`.

    Of a run that is a case of conformance, only what its case looks at (`seen.NAME`).
    """
    if is_case(run):
        return conformance.measure(run)
    found: dict[str, float | None] = {}
    end_s = run.setup.duration_s
    reached = float(run.info["virtual_s"])
    window = (min(WARM_UP * end_s, reached), reached)
    found |= bottleneck(run, window)
    labels(run, window, found)
    found["wasted_bps"] = sum(
        (float(k["dropped_queue_full_packets"]) + float(k["dropped_aqm_packets"])) * PACKET_BITS
        for k in run.links
        if k["capacity_bps"] is not None and k["name"] != run.setup.links[0].name
    ) / max(reached, 1e-9)
    found |= converged(run)
    found |= outages(run)
    found |= changes(run)
    found |= ramp(run)
    found |= transient(run)
    return {k: float(v) for k, v in found.items() if v is not None and np.isfinite(v)}


# What a run shows of a case is decided there.
measure.packages = ("gargalo.evaluation.criteria.conformance",)  # type: ignore[attr-defined]


def busiest(run: Run) -> Mapping[str, Any] | None:
    """Return the link direction that was used most, of those with a rate."""
    with_rate = [k for k in run.links if k["utilization"] is not None]
    return max(with_rate, key=lambda k: float(k["utilization"]), default=None)


def bottleneck(run: Run, window: tuple[float, float]) -> dict[str, float | None]:
    """Return the figures of the bottleneck."""
    link = busiest(run)
    if link is None or run.link_samples.height == 0:
        return {}
    start, end = window
    name, direction = str(link["name"]), str(link["direction"])
    samples = direction_of(run.link_samples.select(SEEN), name, direction)
    queue = metrics.queue_delay_percentiles(samples, name, direction, start_s=start, end_s=end)
    rtts = [r for r in run.flows["rtt_min_s"].to_list() if r]
    bin_s = max([0.1, *rtts])
    offered = float(link["offered_packets"])
    return {
        "utilization": metrics.link_utilization(samples, name, direction, start_s=start, end_s=end),
        "queue_p50_s": queue.get("queue_delay_p50_s"),
        "queue_p95_s": queue.get("queue_delay_p95_s"),
        "queue_p99_s": queue.get("queue_delay_p99_s"),
        "standing_queue_s": metrics.standing_queue_delay(
            samples, name, direction, window_s=bin_s, start_s=start, end_s=end
        ),
        "drop_rate": (link["dropped_queue_full_packets"] + link["dropped_aqm_packets"]) / offered
        if offered
        else 0.0,
        "mark_rate": link["marked_packets"] / offered if offered else 0.0,
        "queue_mean_s": link["queue_delay_mean_s"],
        "capacity_bps": link["capacity_bps"],
    }


def labels(run: Run, window: tuple[float, float], found: dict[str, float | None]) -> None:
    """Add the figures of each label."""
    start, end = window
    late: dict[int, float] = {}
    if run.flow_samples.height and end > start:
        rows = metrics.goodput_in(run.flow_samples, start, end, flows=run.flows)
        late = dict(zip(rows["flow"].to_list(), rows["goodput_bps"].to_list(), strict=True))
    capacity = found.get("capacity_bps")
    endless = [f for f in run.setup.flows if f.endless]
    ids = {f.id for f in endless}
    starved = starving(run, ids, capacity, window)
    variations = varying(run, ids, window)
    shares = [late[i] for i in sorted(ids) if i in late]
    found["jain"] = metrics.jain_index(shares) if len(shares) > 1 else None
    for rows in run.flows.partition_by("label", maintain_order=True):
        label = rows["label"][0]
        own = rows["id"].to_list()
        rates = [late.get(i, 0.0) for i in own]
        sent = summed(rows["sent_packets"])
        times = (
            rows["completion_s"].fill_null(rows["end_s"] - rows["start_s"]).to_numpy().astype(float)
        )
        figures: dict[str, float | None] = {
            "flows": float(rows.height),
            "goodput_bps": float(sum(rates)),
            "least_bps": min(rates),
            "most_bps": max(rates),
            "jain": metrics.jain_index(rates) if len(rates) > 1 else None,
            "sent_packets": sent,
            "retransmitted": share(summed(rows["retransmitted_packets"]), sent),
            "lost": share(summed(rows["lost_packets"]), sent),
            "timeouts": summed(rows["timeouts"]),
            "offered": share(sent_rate(rows), capacity) if capacity else None,
            "per_rtt": mean(
                rows["sent_packets"] * rows["rtt_min_s"] / (rows["end_s"] - rows["start_s"])
            ),
            "rtt_p50_s": mean(rows["rtt_p50_s"]),
            "rtt_p95_s": mean(rows["rtt_p95_s"]),
            "delay_p95_s": mean(rows["delay_p95_s"]),
            "completed": float(rows["completion_s"].is_not_null().mean()),  # type: ignore[arg-type]
            "completion_p50_s": float(np.percentile(times, 50)),
            "completion_p95_s": float(np.percentile(times, 95)),
            "mos": mean(rows["mos"]) if "mos" in rows.columns else None,
            "variation": np.mean([variations[i] for i in own if i in variations]).item()
            if any(i in variations for i in own)
            else None,
            "starved": max((starved[i] for i in own if i in starved), default=None),
        }
        if (rows["completion_s"] > 0).any():
            finished = rows.filter(pl.col("completion_s") > 0)
            size = finished["delivered_bytes"]
            quarter, rest = size.quantile(0.25, "linear"), size.quantile(0.75, "linear")
            figures |= {
                "flow_bps": mean(finished["goodput_bps"]),
                "flow_bps_small": mean(finished.filter(size <= quarter)["goodput_bps"]),
                "flow_bps_large": mean(finished.filter(size >= rest)["goodput_bps"]),
            }
        for name, value in figures.items():
            found[f"{name}.{label}"] = value


def share(part: float | None, whole: float | None) -> float | None:
    """Return a part of a whole, 0 of nothing; None if one of them is not known."""
    if part is None or whole is None:
        return None
    return part / whole if whole else 0.0


def sent_rate(flows: pl.DataFrame) -> float | None:
    """Return the rate of all flows together, from the first start to the last end, in bit/s.

    None if it is not known.
    """
    if flows["throughput_bps"].null_count() and flows["transport"].eq("quic").any():
        return None
    bits = (flows["throughput_bps"] * (flows["end_s"] - flows["start_s"])).sum()
    span = float(flows["end_s"].max() - flows["start_s"].min())  # type: ignore[arg-type, operator]
    return float(bits) / span if span > 0 else 0.0


def mean(column: pl.Series) -> float | None:
    """Return the mean of the values that are not null."""
    there = column.drop_nulls() if column.null_count() else column
    return float(there.mean()) if there.len() else None  # type: ignore[arg-type]


def starving(
    run: Run, ids: set[int], capacity: float | None, window: tuple[float, float]
) -> dict[int, float]:
    """Return for each flow without end the share of time that it starves."""
    if not ids or not capacity or run.flow_samples.height == 0:
        return {}
    fair = metrics.fair_share(capacity, len(ids))
    found = {}
    for flow, rates in rates_of(run, ids, window).items():
        share = metrics.starved_share(rates, fair, below=STARVED)
        if share is not None:
            found[flow] = share
    return found


def varying(run: Run, ids: set[int], window: tuple[float, float]) -> dict[int, float]:
    """Return for each flow without end the coefficient of variation of its rate over bins of 1 s."""
    if not ids or run.flow_samples.height == 0:
        return {}
    # The second half: a flow that comes late varies as it grows.
    start = (window[0] + window[1]) / 2
    found = {}
    for flow, rates in rates_of(run, ids, (start, window[1])).items():
        value = metrics.coefficient_of_variation(rates)
        if value is not None:
            found[flow] = value
    return found


def rates_of(run: Run, ids: set[int], window: tuple[float, float]) -> dict[int, Any]:
    """Return the goodput of flows in bins of 1 s."""
    bins = metrics.throughput_bins(run.flow_samples, 1.0, start_s=window[0], end_s=window[1])
    flows, begins = np.unique(bins["flow"].to_numpy(), return_index=True)
    parts = np.split(bins["throughput_bps"].to_numpy(), begins[1:])
    return {f: rates for f, rates in zip(flows.tolist(), parts, strict=False) if f in ids}


def converged(run: Run) -> dict[str, float | None]:
    """Return how long flows without end need to share after the last has come."""
    endless = [f for f in run.setup.flows if f.endless]
    if len(endless) < 2 or run.flow_samples.height == 0:
        return {}
    last = max(f.start_s for f in endless)
    ids = [f.id for f in endless]
    bins = metrics.throughput_bins(run.flow_samples, 1.0, start_s=last)
    if bins.height == 0:
        return {}
    took = metrics.fairness_time(bins, flows=ids, epsilon=0.2, start_s=last, hold_s=2.0)
    end = float(run.info["virtual_s"])
    # Flows that do not get there count with the time they had.
    return {"convergence_s": took if took is not None else max(end - last, 1.0)}


def rate_of(run: Run, flow: int, bin_s: float) -> tuple[Any, Any]:
    """Return times of bins and the goodput of a flow in them."""
    bins = metrics.throughput_bins(run.flow_samples, bin_s).filter(pl.col("flow") == flow)
    return bins["time_s"].to_numpy(), bins["throughput_bps"].to_numpy()


def held(rates: Any) -> Any:
    """Return for each bin the mean of `HELD` bins from it on; the last bins have none."""
    if rates.size < HELD:
        return np.empty(0)
    return np.convolve(rates, np.full(HELD, 1 / HELD), "valid")


def outages(run: Run) -> dict[str, float | None]:
    """Return what the first flow does while a direction loses everything, and after.

    `outage_packets`: packets that it sent into the outage, `outage_late_packets`: of those, in its second
    half. If it ends before the run does: `recovery_s`: from its end until the flow has four fifths of the
    rate it had before, and keeps them for 2 s, or the time there was, `recovered`: the most that it had for
    2 s after it, as a share of the rate before.
    """
    spans = [
        span
        for link in run.setup.links
        for direction in (link.up, link.down)
        for span in direction.outages
    ]
    if not spans or run.flow_samples.height == 0 or run.link_samples.height == 0:
        return {}
    begin, end = min(spans)
    stop = float(run.info["virtual_s"])
    if stop <= begin:
        return {}
    link = run.setup.links[0].name
    rows = run.link_samples.filter((pl.col("link") == link) & (pl.col("direction") == "up"))
    # What arrived at the link: sent and dropped; sent bytes are counted in packets of full size.
    sent = 8 * rows["sent_bytes"].to_numpy() / PACKET_BITS + rows["dropped_packets"].to_numpy()
    until = min(end, stop)
    at = np.interp([begin, (begin + until) / 2, until], rows["time_s"].to_numpy(), sent)
    found: dict[str, float | None] = {
        "outage_packets": float(at[2] - at[0]),
        "outage_late_packets": float(at[2] - at[1]),
    }
    times, got = rate_of(run, 0, BIN_S)
    before = got[(times >= begin / 2) & (times < begin - BIN_S)]
    had = float(before.mean()) if before.size else 0.0
    later = held(got[times >= end])
    if had <= 0 or later.size == 0:
        return found
    first = got[times >= end][: later.size]
    back = np.flatnonzero((first >= RECOVERED * had) & (later >= RECOVERED * had))
    found["recovery_s"] = (
        float(times[times >= end][back[0]] + BIN_S - end) if back.size else stop - end
    )
    found["recovered"] = float(later.max() / had)
    return found


def changes(run: Run) -> dict[str, float | None]:
    """Return how the first flow follows steps of the bottleneck's rate or delay.

    `before`: share of the capacity before the last step that it has in the second half of the time until then,
    `followed`: of the capacity after it, in the last quarter of what follows, `rising`: its rate then, over
    that in the second quarter,
    `follow_s`: time after the last step in which it has less than four fifths of that capacity (means over
    2 s: a flow that is slow to go wrong, or to come back, counts with all of that time), `step_drops`:
    packets dropped within 2 s of any step, `step_queue_s`: worst queueing delay after the last step.
    """
    link = next((k for k in run.setup.links if steps(k)), None)
    if link is None or run.flow_samples.height == 0:
        return {}
    times = steps(link)
    last, end = times[-1], float(run.info["virtual_s"])
    rate = link.up.rate
    rates = [float(s.rate_bps) for s in rate.steps if s.time_s <= last]
    rates = rates or ([float(rate.constant_bps)] if rate.constant_bps else [])
    if not rates or end <= last:
        return {}
    at, got = rate_of(run, 0, BIN_S)
    # Without headers: the most that a flow alone can have of the capacity.
    once, most = (r * 1448 / 1500 for r in (rates[-2:] * 2)[:2])
    early = got[(at >= last / 2) & (at < last - BIN_S)]
    quarter = (end - last) / 4
    tail = got[at >= last + 3 * quarter]
    second = got[(at >= last + quarter) & (at < last + 2 * quarter)]
    after = held(got[at >= last])
    rows = run.link_samples.filter((pl.col("link") == link.name) & (pl.col("direction") == "up"))
    drops = np.interp(
        [t + d for t in times for d in (0.0, 2.0)],
        rows["time_s"].to_numpy(),
        rows["dropped_packets"].to_numpy().astype(float),
    )
    queue = rows.filter(pl.col("time_s") >= last)["queue_delay_s"]
    return {
        "before": float(early.mean() / once) if early.size else None,
        "followed": float(tail.mean() / most) if tail.size else None,
        "rising": float(tail.mean() / second.mean())
        if tail.size and second.size and second.mean() > 0
        else None,
        "follow_s": float((after < RECOVERED * most).mean() * (end - last)) if after.size else None,
        "step_drops": float((drops[1::2] - drops[0::2]).sum()),
        "step_queue_s": float(queue.max()) if queue.len() else None,  # type: ignore[arg-type]
    }


def ramp(run: Run) -> dict[str, float | None]:
    """Return how long flows with the label `new` need to their byte 1500 * 10^n, `reach_n_s.new`.

    Flows that do not get there count with the time they had (tcpeval-01 section 5.2).
    """
    if "new" not in run.flows["label"].to_list() or run.flow_samples.height == 0:
        return {}
    ids = run.flows.filter(pl.col("label") == "new")["id"].to_list()
    rows = run.flow_samples.filter(pl.col("flow") == ids[0]).sort("time_s")
    start = float(run.flows.filter(pl.col("id") == ids[0])["start_s"][0])
    times, had = rows["time_s"].to_numpy(), rows["delivered_bytes"].to_numpy().astype(float)
    left = float(run.info["virtual_s"]) - start
    found: dict[str, float | None] = {}
    for n in range(1, 7):
        size = 1500.0 * 10**n
        there = np.flatnonzero(had >= size)
        if there.size == 0:
            found[f"reach_{n}_s.new"] = left
            continue
        k = int(there[0])
        at = (
            float(np.interp(size, had[k - 1 : k + 1], times[k - 1 : k + 1]))
            if k
            else float(times[0])
        )
        found[f"reach_{n}_s.new"] = at - start
    return found


def transient(run: Run) -> dict[str, float | None]:
    """Return how soon the first flow's window grows when flows with the label `cross` have ended.

    `window_60_s`, `window_80_s`, `window_90_s`: time to these percentages of the capacity times its base round
    trip, or the time there was; `window_leap_bytes`: the most that it grows in such a time (tcpeval-01 section
    5.3).
    """
    if "cross" not in run.flows["label"].to_list():
        return {}
    cross = run.flows.filter(pl.col("label") == "cross")
    link, stop = busiest(run), float(run.info["virtual_s"])
    rtt = run.flows["rtt_min_s"][0] if run.flows.height else None
    if link is None or not rtt or run.flow_samples.height == 0:
        return {}
    ended = float(cross["end_s"].max())  # type: ignore[arg-type]
    if ended >= stop - 1.0:
        return {}
    rows = run.flow_samples.filter((pl.col("flow") == 0) & (pl.col("time_s") >= ended))
    rows = rows.drop_nulls("congestion_window_bytes").sort("time_s")
    times = rows["time_s"].to_numpy()
    window = rows["congestion_window_bytes"].to_numpy().astype(float)
    if times.size == 0:
        return {}
    whole = float(link["capacity_bps"]) * rtt / 8
    found: dict[str, float | None] = {}
    for percent in (60, 80, 90):
        there = np.flatnonzero(window >= percent / 100 * whole)
        found[f"window_{percent}_s"] = (
            float(times[there[0]] - ended) if there.size else stop - ended
        )
    later = np.interp(times + rtt, times, window)
    found["window_leap_bytes"] = float(np.max(later - window))
    return found


def steps(link: Link) -> list[float]:
    """Return the instants after the start at which the rate or delay of a link's `up` direction changes."""
    found = {s.time_s for s in link.up.rate.steps} | {s.time_s for s in link.up.delay.steps}
    return sorted(t for t in found if t > 0)
