"""Names by which flows can be told apart, without data frames: tables in the terminal need no more."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
