"""Names by which flows and paths can be told apart, and names of columns: tables in the terminal need no more."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

CEILING = "ceiling_bps"
"""The column of what the network of a run can carry for all of its flows together: no goodput is more."""
DRAIN = "queue_drain_s"
"""The column of how long the full buffer of a run's bottleneck takes to drain: no packet waits longer."""
ROUND_TRIP = "least_rtt_s"
"""The column of the least propagation delay of a run there and back: no round trip takes less."""
TRANSFER = "least_completion_s"
"""The column of how long the smallest transfer of a run takes at what the network can carry: none takes less."""


def flow_names(flows: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return a name for each flow by its number: the label, and where others have it the number and the hosts.

    Args:
        flows: Rows of the table of flows.

    """
    rows = list(flows)
    labels = Counter(f["label"] for f in rows)
    ends: dict[str, set[tuple[str, str]]] = {}
    for f in rows:
        ends.setdefault(f["label"], set()).add((f["from"], f["to"]))
    names = {}
    for f in rows:
        name = str(f["label"])
        if labels[name] > 1:
            hosts = f" {f['from']} to {f['to']}" if len(ends[name]) > 1 else ""
            name = f"{name} ({f['id']}){hosts}"
        names[int(f["id"])] = name
    # A label may look like a name that was made.
    again = Counter(names.values())
    return {i: name if again[name] == 1 else f"{name} [flow {i}]" for i, name in names.items()}


def with_path(subflows: pl.DataFrame) -> pl.DataFrame:
    """Name the path of each subflow in a column `path`.

    That is the link by which its data leaves, and the one by which acknowledgements do if it is another,
    and the gateway if there is one: `wifi`, `wifi / lte`, `wifi by r1`.
    """
    import polars as pl

    link = (
        pl.when(pl.col("link") == pl.col("peer_link"))
        .then("link")
        .otherwise(pl.format("{} / {}", "link", "peer_link"))
    )
    gateway = (
        pl.when(pl.col("gateway").is_null())
        .then(pl.lit(""))
        .otherwise(pl.format(" by {}", pl.col("gateway").fill_null("")))
    )
    return subflows.with_columns((link + gateway).alias("path"))
