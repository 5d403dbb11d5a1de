"""Whether what ran before in the same process changes what a stack does.

Generators, caches and tables of a whole process do that, and a comparison of two processes that do the same in the same
order does not show it: so a run is done alone, before another one, and after it.
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gargalo import _core
from gargalo.checking.processes import ENDED, alone
from gargalo.interop import traces
from gargalo.plugins import discovery, registry
from gargalo.running import run
from gargalo.scenarios.scenario import to_toml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.interop.model import Cell

Scenario: TypeAlias = "Mapping[str, Any]"
Hashes: TypeAlias = "tuple[str, ...]"
THREADS = Path("/proc/self/task")
OWN = "gargalo-"
LONGEST_S = 300.0
"""Runs that take longer are ended."""


@dataclass(frozen=True)
class Lived:
    """What a process did."""

    hashes: Hashes
    """A digest of each run."""
    threads: int
    """That the stack has begun in the first."""
    outside: dict[str, int]
    """What the stack's library asked the system for by itself, and how often; see `gargalo_native::outside`."""


@dataclass(frozen=True)
class Histories:
    """What runs before and after others show."""

    differ: dict[str, str]
    """For cells, by their names, why they are not the same whatever ran before; others are left out."""
    outside: dict[str, dict[str, int]]
    """By stack, what its library asked the system for by itself in a first run, and how often; others are left out."""


def differing(
    cells: Sequence[Cell], plugins: Sequence[Path] = (), workers: int | None = None
) -> Histories:
    """Return whether what ran before changes what stacks do.

    Of each stack two cells with itself are looked at: alone in a process, and before, between and after each other.

    Args:
        cells: Of a matrix; those that were not run are left out.
        plugins: Files that processes load.
        workers: Processes at the same time; by default one for each core.

    """
    of_stack: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.client == cell.server and cell.results_hash is not None:
            of_stack.setdefault(cell.client, []).append(cell)
    pairs = [(own[0], own[1] if len(own) > 1 else None) for own in of_stack.values()]
    found = Histories({}, {})
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for told in pool.map(lambda pair: _of_pair(pair[0], pair[1], tuple(plugins)), pairs):
            found.differ.update(told.differ)
            found.outside.update(told.outside)
    return found


def _of_pair(one: Cell, other: Cell | None, plugins: tuple[Path, ...]) -> Histories:
    """Return it for two cells of a stack; a second one is the first with another seed."""
    a: Scenario = one.scenario or {}
    b: Scenario = (other.scenario if other else None) or {**a, "seed": int(a["seed"]) + 1}
    try:
        first_runs = [_process([s], plugins) for s in (a, b)]
        between = [_process([s, t, s], plugins) for s, t in ((a, b), (b, a))]
    except TimeoutError:
        why = f"no end within {LONGEST_S:g} s when it was run after another one"
        return Histories({one.name: why}, {})
    except (_core.RunError, OSError, ValueError) as e:
        return Histories({one.name: f"could not be run again: {e}"}, {})
    found = {}
    first, last = between
    seen = (
        (one, {first_runs[0].hashes[0], first.hashes[0], first.hashes[2], last.hashes[1]}),
        (other, {first_runs[1].hashes[0], last.hashes[0], last.hashes[2], first.hashes[1]}),
    )
    for cell, hashes in seen:
        if cell is not None and len(hashes) > 1:
            found[cell.name] = "other results after another run in the same process"
    if (many := max(lived.threads for lived in first_runs)) and one.name not in found:
        threads = f"{many} threads" if many > 1 else "a thread"
        found[one.name] = f"the stack begins {threads}: what these do is not in virtual time"
    asked = first_runs[0].outside
    return Histories(found, {one.client: asked} if asked else {})


def _process(scenarios: Sequence[Scenario], plugins: tuple[Path, ...]) -> Lived:
    """Do runs one after the other in a process of their own."""
    lived = alone(live, scenarios, plugins, LONGEST_S)
    if lived is None:
        raise _core.RunError(ENDED)
    return lived


def live(scenarios: Sequence[Scenario]) -> Lived:
    """Do runs one after the other."""
    _watch(scenarios[0])
    # What the host has of threads is there after a run without the stack.
    usual = {**scenarios[0], "flows": [_inside(flow) for flow in scenarios[0]["flows"]]}
    _hash(usual)
    before = _threads()
    hashes = [_hash(scenarios[0])]
    more, asked = begun(before, _threads()), _core.calls_outside()
    hashes += [_hash(scenario) for scenario in scenarios[1:]]
    return Lived(tuple(hashes), more, asked)


def _watch(scenario: Scenario) -> None:
    """Have it noted what the libraries of a scenario's stacks ask the system for."""
    discovery.load_named(to_toml(scenario), [])
    stacks = registry.registered()["stack"]
    for flow in scenario["flows"]:
        named = flow["transport"]["quic"].get("stack", "")
        for name in [named] if isinstance(named, str) else named.values():
            if isinstance(stack := stacks.get(name), _core.NativeStack):
                stack.watch()


def _inside(flow: Scenario) -> Scenario:
    """Return a flow over the stack inside."""
    return {**flow, "transport": {"quic": {}}}


def _threads() -> dict[str, str]:
    """Return the threads of the process: their names by their numbers."""
    found = {}
    for thread in THREADS.iterdir() if THREADS.is_dir() else ():
        # One may end in the meantime.
        with suppress(OSError):
            found[thread.name] = (thread / "comm").read_text(encoding="utf-8", errors="replace")
    return found


def begun(before: Mapping[str, str], after: Mapping[str, str]) -> int:
    """Return how many threads there are now that there were not, but for those of the host and its libraries.

    The host's are named after it, and more of a pool have the names of those that were there. A thread without a name
    of its own has that of the process.
    """
    usual = before.get(str(os.getpid()), "")
    pools = {_pool_of(name) for name in before.values()} - {_pool_of(usual)}
    new = [name for number, name in after.items() if number not in before]
    return sum(not name.startswith(OWN) and _pool_of(name) not in pools for name in new)


def _pool_of(name: str) -> str:
    return name.strip().rstrip("0123456789")


def _hash(scenario: Scenario) -> str:
    """Do a run and return a digest of its results and packets."""
    with tempfile.TemporaryDirectory(prefix="gargalo-history-") as place:
        done = run(dict(scenario), output=Path(place) / "run")
        return f"{done.info['results_hash']} {traces.of_run(done).packets_hash}"
