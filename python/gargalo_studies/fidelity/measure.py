"""From a run to the study's metrics; called in the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gargalo import Run


def measure(run: Run) -> Mapping[str, float]:
    """Return the metrics of a run; times in s, rates in bit/s.

    `rate_bps`: goodput of the first flow. `completion_s`: from the opening of the connection to the last byte at the
    receiver. `share`: of the first of several flows in their goodput. `window`: mean packets in flight by Little's law,
    goodput times the round-trip time without queues over the payload of a packet. `retransmitted_packets`, `timeouts`:
    of the first flow.
    """
    flows = run.flows
    first = flows.row(0, named=True)
    found = {
        "rate_bps": first["goodput_bps"] or 0.0,
        "completion_s": first["completion_s"],
        "retransmitted_packets": first["retransmitted_packets"],
        "timeouts": first["timeouts"],
    }
    if flows.height > 1:
        rates = flows["goodput_bps"].fill_null(0.0).to_list()
        found["share"] = rates[0] / sum(rates) if sum(rates) > 0 else None
    if first["rtt_min_s"]:
        found["window"] = found["rate_bps"] / 8 * first["rtt_min_s"] / 1448
    return {k: float(v) for k, v in found.items() if v is not None}
