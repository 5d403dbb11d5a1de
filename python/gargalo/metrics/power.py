"""Throughput against delay in one number."""

from __future__ import annotations

from gargalo.metrics._numbers import finite


def power(throughput_bps: float, delay_s: float, *, exponent: float = 1.0) -> float | None:
    """Power of a flow or a network: how much rate each second of delay buys.

    Formula: x^k / d, exponent k = 1 unless given (above 1 values rate more). Only for comparing algorithms on
    the same network; show rate and delay beside it.
    Unit: bit/s². None: there is no delay.
    Source: Giessler, Haenle, König, Pade, Computer Networks 2, 1978; Kleinrock, ICC 1979; RFC 5166 section 2.1.
    """
    return finite(throughput_bps**exponent / delay_s) if delay_s > 0 else None


def normalized_power(
    throughput_bps: float, capacity_bps: float, delay_s: float, base_delay_s: float
) -> float | None:
    """Power over the greatest possible: full rate at the delay of the empty path.

    Formula: (x / C) · (d₀ / d).
    Unit: none, 0 to 1. None: no capacity or no delay.
    Source: Kleinrock, ICC 1979; Cardwell and others, ACM Queue 14(5), 2016 (the optimal operating point).
    """
    if capacity_bps <= 0 or delay_s <= 0:
        return None
    return finite(throughput_bps / capacity_bps * base_delay_s / delay_s)
