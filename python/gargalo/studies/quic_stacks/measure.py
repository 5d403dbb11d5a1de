"""From a run to the study's metrics; called in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gargalo import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo.results import Run

WARM_UP = 0.25
"""Share of the run before rates are taken."""


def measure(run: Run) -> Mapping[str, float]:
    """Return the metrics of a run; times in s, rates in bit/s.

    After the warm-up, a quarter of the run: `goodput_bps` of all flows, `share` of the first one in it, `queue_s`, the mean
    queueing delay of packets of the bottleneck over the whole run, `utilization`. `lost_share`: packets that the senders
    declared lost, of those that they sent; missing where a stack does not tell both. `object_p50_s`, `object_p95_s`,
    `page_s`: from the start to the end of objects; an object that did not arrive counts with the length of the run.
    """
    end = float(run.info["virtual_s"])
    found: dict[str, float | None] = {}
    if run.objects.height:
        times = (run.objects["completed_s"] - run.flows["start_s"][0]).fill_null(end).to_numpy()
        found |= {
            "object_p50_s": float(np.percentile(times, 50)),
            "object_p95_s": float(np.percentile(times, 95)),
            "page_s": float(times.max()),
        }
    else:
        rows = metrics.goodput_in(run.flow_samples, WARM_UP * end, end, flows=run.flows).sort(
            "flow"
        )
        rates = rows["goodput_bps"].to_list()
        total = float(sum(rates))
        found["goodput_bps"] = total
        if len(rates) > 1 and total > 0:
            found["share"] = rates[0] / total
    link = max(run.links, key=lambda k: float(k["utilization"] or 0.0))
    found["queue_s"], found["utilization"] = link["queue_delay_mean_s"], link["utilization"]
    sent, lost = run.flows["sent_packets"], run.flows["lost_packets"]
    if not sent.null_count() and not lost.null_count() and sent.sum():
        found["lost_share"] = float(lost.sum()) / float(sent.sum())
    return {k: float(v) for k, v in found.items() if v is not None}
