"""From a run to the study's metrics; called in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from gargalo import metrics
from gargalo.studies import summed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo import Run

WARM_UP = 0.25
"""Share of the run before rates are taken."""


def measure(run: Run) -> Mapping[str, float]:
    """Return the metrics of a run; times in s, rates in bit/s.

    Of the bottleneck, in the direction of the data and over the whole run: `queue_s`, the mean queueing delay of
    packets, `utilization`, `packet_bytes`, the mean size of packets with IP header, `acks`, packets the other way for
    each of them, `dropped_share` of what came to it, by its queue or at random, and `lost_share`: packets that the
    senders declared lost, of what came to it. `drops`: packets that any link dropped. `timeouts`: probe timeouts,
    missing where a stack does not tell.

    Of a transfer, after the warm-up, a quarter of the run: `goodput_bps` of all flows, `share` of the first one in it;
    over the whole run `sent_ratio`: bytes that the bottleneck sent for each byte that arrived in order.

    Of a page, from the start of the connection: `page_s` to the end of the last object, `object_p50_s`, `object_p95_s`
    to the end of objects; an object that did not arrive counts with the length of the run. `object_span`: median of the
    time from an object's first byte to its last, as a share of `page_s`.
    """
    end = float(run.info["virtual_s"])
    link = max(run.links, key=lambda k: float(k["utilization"] or 0.0))
    back = next(k for k in run.links if k["name"] == link["name"] and k is not link)
    found: dict[str, float | None] = {
        "queue_s": link["queue_delay_mean_s"],
        "utilization": link["utilization"],
        "drops": sum(k["dropped_packets"] for k in run.links),
    }
    if link["sent_packets"]:
        found["packet_bytes"] = link["sent_bytes"] / link["sent_packets"]
        found["acks"] = back["sent_packets"] / link["sent_packets"]
    found["timeouts"], lost = summed(run.flows["timeouts"]), summed(run.flows["lost_packets"])
    if offered := link["offered_packets"]:
        found["dropped_share"] = link["dropped_packets"] / offered
        found["lost_share"] = None if lost is None else lost / offered
    found |= page(run, end) if run.objects.height else transfer(run, end, link["sent_bytes"])
    return {k: float(v) for k, v in found.items() if v is not None}


def page(run: Run, end: float) -> dict[str, float]:
    """Return the metrics of objects."""
    start = run.flows["start_s"][0]
    done = (run.objects["completed_s"] - start).fill_null(end).to_numpy()
    first = (run.objects["requested_s"] + run.objects["first_byte_s"] - start).fill_null(end)
    whole = float(done.max())
    return {
        "object_p50_s": float(np.percentile(done, 50)),
        "object_p95_s": float(np.percentile(done, 95)),
        "object_span": float(np.median(done - first.to_numpy())) / whole,
        "page_s": whole,
    }


def transfer(run: Run, end: float, sent_bytes: int) -> dict[str, float]:
    """Return the metrics of transfers."""
    rows = metrics.goodput_in(run.flow_samples, WARM_UP * end, end, flows=run.flows).sort("flow")
    rates = rows["goodput_bps"].to_list()
    total = float(sum(rates))
    found = {"goodput_bps": total}
    if len(rates) > 1 and total > 0:
        found["share"] = rates[0] / total
    if delivered := float(run.flows["delivered_bytes"].sum()):
        found["sent_ratio"] = sent_bytes / delivered
    return found
