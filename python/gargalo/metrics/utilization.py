"""How much of a link is used, and how much of that is useful."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gargalo.metrics._numbers import array, direction_of, finite
from gargalo.metrics.convergence import delivered_at
from gargalo.quantities import decimal

if TYPE_CHECKING:
    from gargalo.metrics._numbers import Numbers


def link_utilization(
    link_samples: pl.DataFrame,
    link: str,
    direction: str = "up",
    *,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> float | None:
    """Share of a link's capacity that was used, headers and repetitions included.

    Formula: Σ uᵢ·Δtᵢ / Σ Δtᵢ over the samples i of the window, where uᵢ is the share used since the
    sample before (for a link of constant rate this is bits sent over capacity times time).
    Unit: none. None: the link has no rate, or the window no sample.
    Source: RFC 5166 section 2.1.1; draft-irtf-iccrg-tcpeval-01 (utilization of the centre link).

    Raises:
        KeyError: there is no such link direction.

    """
    rows = direction_of(link_samples, link, direction)
    times = rows["time_s"].to_numpy()
    steps = np.diff(times)
    # The first sample covers one interval, as the others do.
    first = min(float(times[0]), float(np.median(steps))) if steps.size else float(times[0])
    inside = rows["utilization"].is_not_null().to_numpy() & (
        times > start_s if start_s > 0 else True
    )
    inside &= times <= (np.inf if end_s is None else end_s)
    used, step = rows["utilization"].to_numpy()[inside], np.concatenate(([first], steps))[inside]
    return finite((used * step).sum() / step.sum()) if step.sum() > 0 else None


def load(rates_bps: Numbers, capacity_bps: float) -> float | None:
    """Share of a link's capacity that some flows use: utilization by the flows under study alone.

    Formula: Σx / C.
    Unit: none. None: there is no capacity.
    Source: RFC 5166 section 2.1.1.
    """
    return finite(array(rates_bps).sum() / capacity_bps) if capacity_bps > 0 else None


def goodput(delivered_bytes: float, span_s: float) -> float | None:
    """Rate at which data reached the application, each byte once.

    Formula: 8 · bytes / seconds.
    Unit: bit/s. None: the span is empty.
    Source: RFC 5166 section 2.1.1.
    """
    return finite(8 * delivered_bytes / span_s) if span_s > 0 else None


def goodput_in(
    flow_samples: pl.DataFrame,
    start_s: float,
    end_s: float,
    *,
    flows: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Goodput of each flow in a window of time, for measuring after a warm-up.

    Formula: 8 · (D(end) - D(start)) / (end - start), where D is data delivered, linear between
    samples. Give `flows` as well to take exact starts and ends of flows into account.
    Unit: bit/s. Returns columns `flow`, `goodput_bps`.
    Source: RFC 5166 section 2.1.1; draft-irtf-iccrg-tcpeval-01 (the warm-up is cut off).

    Raises:
        ValueError: the window is empty.

    """
    if not end_s > start_s:
        msg = f"the window from {decimal(start_s)} s to {decimal(end_s)} s is empty"
        raise ValueError(msg)
    curves = delivered_at(flow_samples, [start_s, end_s], flows=flows)
    rates = [8 * (d[1] - d[0]) / (end_s - start_s) for d in curves.values()]
    return pl.DataFrame(
        {"flow": list(curves), "goodput_bps": rates},
        schema={"flow": pl.UInt64, "goodput_bps": pl.Float64},
    )


def goodput_ratio(goodput_bps: float, throughput_bps: float) -> float | None:
    """Useful data over all payload sent; what is missing to 1 are repetitions and what is on its way.

    Formula: goodput / throughput, the latter without headers as in the results tables.
    Unit: none. None: nothing was sent.
    Source: RFC 5166 section 2.4 (useful data over all data sent).
    """
    return finite(goodput_bps / throughput_bps) if throughput_bps > 0 else None


def loss_rate(dropped_packets: float, offered_packets: float) -> float | None:
    """Share of the packets offered to a link (or sent by a flow) that were lost.

    Formula: lost / offered.
    Unit: none. None: nothing was offered.
    Source: RFC 5166 section 2.1.3; RFC 7680.
    """
    return finite(dropped_packets / offered_packets) if offered_packets > 0 else None


def loss_event_rate(event_times_s: Numbers, rtt_s: float, sent_packets: float) -> float | None:
    """Congestion events per packet: all losses or marks within one round-trip time are one event.

    Formula: events / packets, an event beginning with the first loss later than one RTT after the
    beginning of the event before.
    Unit: none (events per packet). None: nothing was sent.
    Source: RFC 5166 section 2.1.3; RFC 5348 section 5.2.
    """
    if sent_packets <= 0:
        return None
    events, begun = 0, float("-inf")
    for t in sorted(array(event_times_s)):
        if t > begun + rtt_s:
            events, begun = events + 1, t
    return finite(events / sent_packets)


def response_rate(
    rtt_s: float, loss_event_rate: float, packet_bytes: float = 1500.0
) -> float | None:
    """Rate a conforming TCP would reach at this loss-event rate: the check of TCP-friendliness.

    Formula: 1.2 · B · 8 / (RTT · √p), without timeouts; good for p below about 0.01.
    Unit: bit/s. None: no loss or no delay, so no limit.
    Source: RFC 5166 section 2.1.3; Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997; Floyd, RFC 3649 section 3.
    """
    if rtt_s <= 0 or loss_event_rate <= 0:
        return None
    return finite(1.2 * packet_bytes * 8 / (rtt_s * loss_event_rate**0.5))
