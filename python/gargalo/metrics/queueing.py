"""Time packets wait in a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gargalo.metrics._numbers import direction_of, name_of, quantile, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def queue_delay_percentiles(
    link_samples: pl.DataFrame,
    link: str,
    direction: str = "up",
    *,
    percentiles: Sequence[float] = (50, 95, 99),
    start_s: float = 0.0,
    end_s: float | None = None,
) -> dict[str, float | None]:
    """Percentiles of the queueing delay of a link, over time (not over packets).

    Formula: percentile with linear interpolation (Hyndman and Fan 1996, definition 7) of the delay
    an arriving packet would have at the equidistant sampling instants of the window. A run's summary
    has percentiles over packets instead: busy moments weigh more there.
    Unit: s; keys are `queue_delay_p50_s` and so on. None: the window has no sample.
    Source: RFC 5166 section 2.1.2; RFC 7928 section 2.6.

    Raises:
        KeyError: there is no such link direction.

    """
    rows = within(direction_of(link_samples, link, direction), start_s, end_s)
    delays = rows["queue_delay_s"].to_numpy()
    return {f"queue_delay_{name_of(p)}_s": quantile(delays, p) for p in percentiles}


def standing_queue_delay(
    link_samples: pl.DataFrame,
    link: str,
    direction: str = "up",
    *,
    window_s: float = 0.1,
    start_s: float = 0.0,
    end_s: float | None = None,
) -> float | None:
    """Delay that does not go away: the part of a queue that absorbs no burst.

    Formula: median over consecutive windows of the least queueing delay in each; choose windows of
    at least one round-trip time.
    Unit: s. None: the time has no sample.
    Source: Nichols, Jacobson, ACM Queue 10(5), 2012; RFC 8289 section 3.

    Raises:
        KeyError: there is no such link direction.
        ValueError: the window has no width.

    """
    if not window_s > 0:
        msg = f"the window must be longer than 0 s, not {window_s}"
        raise ValueError(msg)
    rows = within(direction_of(link_samples, link, direction), start_s, end_s)
    if rows.is_empty():
        return None
    # A sample at the end of a window belongs to it.
    window = np.floor((rows["time_s"].to_numpy() - start_s) / window_s - 1e-6)
    begins = np.flatnonzero(np.diff(window, prepend=-np.inf))
    return float(np.median(np.minimum.reduceat(rows["queue_delay_s"].to_numpy(), begins)))
