"""Metrics with their definitions and sources: pure functions on numbers and data frames.

Every figure is in SI with the unit in its name, and None where it is undefined. `definitions()`
returns what the docstrings say as a table, from which the page of the documentation is made.

>>> from gargalo import metrics
>>> metrics.jain_index([1, 1, 0, 0])
0.5
"""

from gargalo.extras import need

need("metrics", "numpy")

from gargalo.metrics.comparing import Difference, compare, difference, differences, holm
from gargalo.metrics.completion import completion_times, size_class, slowdown
from gargalo.metrics.convergence import (
    convergence_time,
    delivered_at,
    fairness_time,
    responsiveness,
    throughput_bins,
)
from gargalo.metrics.definitions import Definition, definitions
from gargalo.metrics.fairness import (
    epsilon_fairness,
    fair_share,
    harm,
    jain_index,
    product_fairness,
    relative_share,
    share,
    starved_share,
)
from gargalo.metrics.intervals import (
    ANY,
    ENOUGH,
    OPINION,
    POSITIVE,
    SHARE,
    Interval,
    bootstrap_interval,
    mean_interval,
)
from gargalo.metrics.multipath import (
    aggregation_benefit,
    duplicate_share,
    out_of_order_percentiles,
    path_bins,
    path_shares,
)
from gargalo.metrics.power import normalized_power, power
from gargalo.metrics.queueing import queue_delay_percentiles, standing_queue_delay
from gargalo.metrics.stability import (
    aggregate_variation,
    aggressiveness,
    coefficient_of_variation,
    smoothness,
)
from gargalo.metrics.utilization import (
    goodput,
    goodput_in,
    goodput_ratio,
    link_utilization,
    load,
    loss_event_rate,
    loss_rate,
    response_rate,
)
from gargalo.names import with_path

__all__ = [
    "ANY",
    "ENOUGH",
    "OPINION",
    "POSITIVE",
    "SHARE",
    "Definition",
    "Difference",
    "Interval",
    "aggregate_variation",
    "aggregation_benefit",
    "aggressiveness",
    "bootstrap_interval",
    "coefficient_of_variation",
    "compare",
    "completion_times",
    "convergence_time",
    "definitions",
    "delivered_at",
    "difference",
    "differences",
    "duplicate_share",
    "epsilon_fairness",
    "fair_share",
    "fairness_time",
    "goodput",
    "goodput_in",
    "goodput_ratio",
    "harm",
    "holm",
    "jain_index",
    "link_utilization",
    "load",
    "loss_event_rate",
    "loss_rate",
    "mean_interval",
    "normalized_power",
    "out_of_order_percentiles",
    "path_bins",
    "path_shares",
    "power",
    "product_fairness",
    "queue_delay_percentiles",
    "relative_share",
    "response_rate",
    "responsiveness",
    "share",
    "size_class",
    "slowdown",
    "smoothness",
    "standing_queue_delay",
    "starved_share",
    "throughput_bins",
    "with_path",
]
