"""Prints what the BBRs of the installed QUIC stacks do in the cases of the BBR draft, as a table in Markdown.

`python tools/stack_conformance.py [RUNS [WORKERS]]`: three runs of each case by default. Counts and times go to the
standard error.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import evaluation, interop
from gargalo.evaluation.criteria.conformance import BBR
from gargalo.evaluation.stacks import INSIDE

if TYPE_CHECKING:
    from gargalo.evaluation.model import CaseResult

CRITERION = "conformance-bbr"
VERDICTS = ("conforms", "does not conform", "not decided", "not applicable")


def algorithms() -> list[tuple[str, str]]:
    """Return the BBRs of all installed stacks but the one inside."""
    stacks = [s for s in interop.known().values() if s.name != INSIDE and not s.broken]
    return sorted((s.name, c) for s in stacks for c in s.congestion if c.startswith("bbr"))


def judged(stack: str, name: str, runs: int, workers: int) -> dict[str, CaseResult]:
    """Return the results of one, by case."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as store:
        card = evaluation.evaluate(
            [name], stack=stack, only=[CRITERION], repeat=runs, store=Path(store), workers=workers
        ).scorecards[0]
    cases = card.results[0].cases
    counts = Counter(c.verdict for c in cases)
    told = ", ".join(f"{counts[v]} {v}" for v in VERDICTS)
    print(f"{stack}-{name}: {told}; {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return {c.id: c for c in cases}


def cell(case: CaseResult) -> str:
    """Return a cell of the table."""
    if case.verdict == "conforms":
        return "✓"
    if case.verdict == "not applicable":
        return case.verdict
    mark = "✗" if case.verdict == "does not conform" else "not decided"
    return f"{mark}: {case.seen}"


def table(runs: int, workers: int) -> str:
    """Return the table."""
    found = {f"{s}-{n}": judged(s, n, runs, workers) for s, n in algorithms()}
    rows = [f"| case | {' | '.join(found)} |", f"| --- |{' --- |' * len(found)}"]
    for case in BBR:
        cells = [cell(cases[case.id]) for cases in found.values()]
        rows.append(f"| `{case.id}` | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    given = [int(a) for a in sys.argv[1:]]
    print(table(*(given + [3, 2][len(given) :])))
