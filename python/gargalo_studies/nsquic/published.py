"""The figures of the work, and how levels of factors are written."""

from __future__ import annotations

import polars as pl

from gargalo_studies.nsquic.transports import CUBIC, QUIC

RECEIVE_RATES = (
    (5.0, 1000.0, QUIC, 4.17e6),
    (5.0, 1000.0, CUBIC, 2.87e6),
    (1000.0, 1000.0, QUIC, 11.07e6),
    (1000.0, 1000.0, CUBIC, 3.99e6),
    (10.0, 210000.0, QUIC, 9.96e6),
    (10.0, 210000.0, CUBIC, 9.89e6),
)
"""Mean receive rate of one flow by bandwidth (Mbit/s), size (kB) and protocol, in bit/s."""
USED = ((0.01, QUIC, 0.90), (0.2, QUIC, 0.23), (0.01, CUBIC, 0.78), (0.2, CUBIC, 0.10))
"""Share of a link of 10 Mbit/s that a transfer of 1 MB uses, from the start of the connection, by one-way delay
in s."""
TITLES = {"mbps": "bandwidth", "delay_s": "delay", "loss": "packet error rate", "kb": "size"}
"""Factors in words."""
SHARE_100_KB = 3.6
"""One QUIC beside one CUBIC, 100 kB: QUIC's rate over CUBIC's."""


def receive_rates() -> pl.DataFrame:
    """Return the published receive rates."""
    return pl.DataFrame(
        RECEIVE_RATES, schema=["mbps", "kb", "protocol", "published_bps"], orient="row"
    )


def level_text(factor: str, level: float) -> str:
    """Write a level of a factor with its unit.

    >>> level_text("kb", 210000.0), level_text("delay_s", 0.05), level_text("mbps", 1000.0)
    ('210 MB', '50 ms', '1 Gbit/s')
    """
    if factor == "mbps":
        return f"{level / 1000:g} Gbit/s" if level >= 1000 else f"{level:g} Mbit/s"
    if factor == "delay_s":
        return f"{1e3 * level:g} ms"
    if factor == "kb":
        if level >= 1e6:
            return f"{level / 1e6:g} GB"
        return f"{level / 1000:g} MB" if level >= 1000 else f"{level:g} kB"
    return f"{factor} {level:g}" if level else f"no {factor}"
