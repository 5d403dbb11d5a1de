"""The unit of work of a sweep: one run, and the identifier that its results are stored under."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gargalo import _core
from gargalo.plugins import discovery
from gargalo.plugins.registry import registered
from gargalo.running import override, read
from gargalo.scenarios.scenario import plain
from gargalo.scenarios.setup import with_copies

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gargalo.plugins.registry import Kind
    from gargalo.running import ScenarioLike

    Overrides: TypeAlias = tuple[tuple[str, str], ...]

Label: TypeAlias = str | int | float | bool
Labels: TypeAlias = dict[str, Label]
World: TypeAlias = Literal["sim", "lab"]
"""The simulator, or real time on this machine."""
SEED_BITS = 53
"""Bits of derived seeds, so that every tool reads them exactly: Parquet, TOML, JSON, spreadsheets."""


@dataclass(frozen=True)
class Source:
    """A scenario as text, and where it was written: traces are found beside that file."""

    text: str
    path: Path | None = None

    @classmethod
    def of(cls, scenario: ScenarioLike | Source) -> Source:
        """Read a scenario.

        Raises:
            ScenarioError: It cannot be read.

        """
        if isinstance(scenario, Source):
            return scenario
        text, path = read(scenario)
        return cls(text, None if path is None else path.absolute())

    def resolve(
        self, changes: Mapping[str, Any], names: Mapping[str, Iterable[str]]
    ) -> tuple[dict[str, Any], Overrides]:
        """Check the scenario with some changes; return it with everything filled in.

        `names` are those of classes written in Python.

        Raises:
            ScenarioError: It is wrong.

        """
        overrides = tuple((str(k), override(v)) for k, v in changes.items())
        text = _core.setup(
            self.text, self.path, list(overrides), {k: sorted(n) for k, n in names.items()}
        )
        return with_copies(json.loads(text)), overrides


@dataclass(frozen=True)
class Job:
    """A run that a sweep plans.

    >>> Job({"congestion": "bbr", "buffer_bdp": 0.5}, "race.toml", seed=7,
    ...     changes={"flows.*.transport.tcp.congestion": "bbr"})
    """

    labels: Mapping[str, Label]
    """What distinguishes this run from others of the sweep; each label becomes a column."""
    scenario: ScenarioLike | Source
    """Path of a TOML file, its text, a dictionary or a `gargalo.Scenario`."""
    seed: int
    """Instead of the scenario's."""
    repeat: int | None = None
    """Which repeat of its cell this is, from 0; by default counted among jobs of the same labels."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings to change, by dotted key, as `set` of `gargalo.run`."""
    world: World = "sim"
    """`lab` for real time."""


@dataclass(frozen=True)
class Task:
    """A job as it is sent to a worker: only text."""

    run: str
    """The run's identifier, 32 hexadecimal digits."""
    text: str
    path: str | None
    overrides: tuple[tuple[str, str], ...]
    seed: int
    world: World = "sim"


def derive_seed(seed: int, repeat: int) -> int:
    """Return the seed of a repeat: a hash of both, so that it depends on nothing else of the sweep.

    All cells of a sweep use the same seeds (common random numbers): differences between cells are
    then less noisy, and a new value of an axis changes no other run.
    """
    digest = hashlib.sha256(f"gargalo sweep seed {seed} repeat {repeat}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS)


def derive_seeds(seed: int, repeats: int) -> list[int]:
    """Return the seeds of repeats 0, 1, …."""
    return [derive_seed(seed, r) for r in range(repeats)]


class Identifier:
    """Gives runs their identifiers; remembers scenarios, since repeats differ in the seed alone.

    The identifier is a hash of the resolved scenario (every default filled in, contents of traces included, name and
    description not), the seed, the engine (its version and a digest of its sources), the world unless it is the
    simulator and, where a congestion control, a scheduler, a path manager or a stack is not built in, its source or
    file. Equal identifiers mean equal results, in the lab as equal as real time lets them be.
    """

    def __init__(self, digests: Mapping[Kind, Mapping[str, str]] | None = None) -> None:
        """`digests` are those of the source of classes written in Python, by kind and name."""
        self.digests = {kind: dict(of_kind) for kind, of_kind in (digests or {}).items()}
        self._sources: dict[int, tuple[object, Source]] = {}
        self._digests: dict[tuple[Source, str], tuple[str, Overrides]] = {}

    def task(self, job: Job) -> Task:
        """Check a job and make a task of it.

        Raises:
            ScenarioError: The scenario is wrong.

        """
        known = self._sources.get(id(job.scenario))
        if known is None:
            # Kept with the scenario itself, so that no other object gets its id.
            known = self._sources[id(job.scenario)] = (job.scenario, Source.of(job.scenario))
        source = known[1]
        key = (source, repr(list(job.changes.items())))
        if key not in self._digests:
            self._digests[key] = self._digest(source, job.changes)
        cell, overrides = self._digests[key]
        parts = [
            cell,
            str(job.seed),
            _core.__engine__,
            *([] if job.world == "sim" else [job.world]),
        ]
        whole = hashlib.sha256(" ".join(parts).encode()).hexdigest()
        path = None if source.path is None else str(source.path)
        return Task(whole[:32], source.text, path, overrides, job.seed, job.world)

    def _digest(self, source: Source, changes: Mapping[str, Any]) -> tuple[str, Overrides]:
        discovery.load_named(source.text, [(k, override(v)) for k, v in changes.items()])
        digests = dict(self.digests)
        digests["stack"] = {**discovery.loaded(), **digests.get("stack", {})}
        stacks = registered()["stack"]
        names: dict[str, set[str]] = {kind: set(of_kind) for kind, of_kind in digests.items()}
        # Stacks have congestion controls of their own.
        own = (n for s in digests["stack"] if s in stacks for n in stacks[s].congestion)
        names["congestion"] = names.get("congestion", set()).union(own)
        resolved, overrides = source.resolve(changes, names)
        used = {
            f"{kind} {name}": of_kind[name]
            for kind, of_kind in digests.items()
            if of_kind  # Mostly there are none, and the scenario need not be searched.
            for name in sorted(set(of_kind) & _names(resolved, kind))
        }
        for key in ("name", "description", "seed"):
            resolved.pop(key, None)
        canonical = json.dumps(
            [resolved, used], sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        return hashlib.sha256(canonical.encode()).hexdigest(), overrides


def label_of(value: Any) -> Label:
    """Return a short label for a value of an axis: numbers and text as they are, tables in words."""
    value = plain(value)
    if isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping):
        return " ".join(_words(k, v) for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(str(label_of(v)) for v in value)
    return str(value)


def _words(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        inside = " ".join(f"{k}={label_of(v)}" for k, v in value.items())
        return f"{key} {inside}".rstrip()
    return f"{key} {label_of(value)}"


def _names(node: Any, kind: Kind) -> set[str]:
    """Return all names of congestion controls, schedulers, path managers or stacks of a resolved scenario."""
    if isinstance(node, list):
        return {name for item in node for name in _names(item, kind)}
    if not isinstance(node, dict):
        return set()
    here = node.get(kind)
    if kind == "stack" and isinstance(here, dict):
        here = dict.fromkeys(here.values())  # One for each end.
    names = {here} if isinstance(here, str) else set(here) if isinstance(here, dict) else set()
    return names.union(*(_names(v, kind) for v in node.values()))
