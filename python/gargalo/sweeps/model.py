"""A sweep as planned: a scenario, axes, repeats; read from a file or given in Python."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, reading
from gargalo._toml import TOMLDecodeError, loads, tables
from gargalo.diagnostics import sentence
from gargalo.plugins import discovery
from gargalo.running import override
from gargalo.scenarios.scenario import to_toml
from gargalo.sweeps import axes as axes_module
from gargalo.sweeps.errors import SweepError
from gargalo.sweeps.job import Job, Source, derive_seeds
from gargalo.sweeps.keys import flat, named_flows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.running import ScenarioLike
    from gargalo.sweeps.axes import Axis
    from gargalo.sweeps.job import World

KEYS = (
    "name", "description", "scenario", "repeat", "seed", "start_jitter", "set", "axes", "keep", "measure", "expect",
)  # fmt: skip
START_JITTER = "1RTT"
"""The default of sweeps with repeats."""


@dataclass(frozen=True)
class SweepFile:
    """What a sweep file says."""

    name: str
    scenario: ScenarioLike | Source
    axes: Mapping[str, Any]
    repeat: int = 1
    seed: int | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    keep: tuple[str, ...] = ("flows",)
    measure: str | None = None
    description: str = ""
    start_jitter: str | None = None
    """How far starts of flows move from repeat to repeat; see `plan`."""
    expect: tuple[Mapping[str, Any], ...] = ()
    """What each cell has to show, as tables `[[expect]]` of scenarios, in addition to those of the scenario itself."""

    @classmethod
    def load(cls, path: str | Path) -> SweepFile:
        """Read a sweep file.

        Raises:
            SweepError: It cannot be read, or is wrong.

        """
        path = Path(path)
        try:
            text = reading.text(path)
        except UnicodeDecodeError as e:
            msg = f"{path}: not UTF-8 text (byte {e.start}); a sweep is a TOML file"
            raise SweepError(msg) from None
        except OSError as e:
            msg = f"{path}: cannot be read: {reading.reason(e)}"
            raise SweepError(msg) from None
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path) -> SweepFile:
        """Read the text of a sweep file; `path` is the file that messages name and beside which others are.

        Raises:
            SweepError: It is wrong.

        """
        try:
            return cls.of(loads(text), path)
        except TOMLDecodeError as e:
            raise _not_toml(e, text, path) from None
        except SweepError as e:
            raise _placed(str(e), text, path, _line_of(e.key, text), e.key) from None

    @classmethod
    def of(cls, table: Mapping[str, Any], path: Path) -> SweepFile:
        """Check the table of a sweep file."""
        for key in table:
            if key not in KEYS:
                raise SweepError(_unknown(key, table), key=key)
        scenario = table.get("scenario")
        if isinstance(scenario, str):
            scenario = path.parent / scenario
        elif isinstance(scenario, dict):
            scenario = Source(to_toml(scenario), path.absolute())
        else:
            msg = (
                'no scenario: write scenario = "FILE.toml", beside this file, or a table [scenario]'
            )
            raise SweepError(msg, key="scenario")
        repeat, seed, keep = table.get("repeat", 1), table.get("seed"), table.get("keep", ["flows"])
        if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
            msg = f"repeat = {repeat!r}: write how many runs each cell has, 1 or more"
            raise SweepError(msg, key="repeat")
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
            msg = f"seed = {seed!r}: write an integer, 0 or more"
            raise SweepError(msg, key="seed")
        if not isinstance(keep, list):
            msg = f'keep = {keep!r}: write a list of tables, like ["flows"]'
            raise SweepError(msg, key="keep")
        for key in ("set", "axes"):
            if not isinstance(table.get(key, {}), dict):
                msg = f"{key} must be a table: [{key}]"
                raise SweepError(msg, key=key)
        name = table.get("name", path.stem.strip("<>"))
        if (
            not isinstance(name, str)
            or not re.fullmatch(r"[\w.+-]+", name)
            or _core.bad_name(name) is not None
        ):
            msg = f"name = {name!r}: use letters, digits, - and _, 128 bytes at most"
            raise SweepError(msg, key="name")
        measure = table.get("measure")
        if measure is not None and not isinstance(measure, str):
            msg = f'measure = {measure!r}: write "module:function"'
            raise SweepError(msg, key="measure")
        jitter = table.get("start_jitter")
        if jitter is not None and not isinstance(jitter, str):
            msg = (
                f'start_jitter = {jitter!r}: write a time or round trips, like "20ms", "1RTT", "0s"'
            )
            raise SweepError(msg, key="start_jitter")
        expect = table.get("expect", [])
        if not isinstance(expect, list) or not all(isinstance(one, dict) for one in expect):
            msg = "expect must be tables: [[expect]]"
            raise SweepError(msg, key="expect")
        return cls(
            expect=tuple(expect),
            start_jitter=jitter,
            name=name,
            scenario=scenario,
            axes=table.get("axes", {}),
            repeat=repeat,
            seed=seed,
            changes=table.get("set", {}),
            keep=tuple(map(str, keep)),
            measure=measure,
            description=str(table.get("description", "")),
        )

    def plan(
        self,
        *,
        repeat: int | None = None,
        seed: int | None = None,
        set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
        world: World = "sim",
    ) -> list[Job]:
        """Return all runs; the arguments go before what the file says."""
        base = Source.of(self.scenario)
        if self.expect:
            tables = to_toml({"expect": [dict(one) for one in self.expect]})
            base = replace(base, text=f"{base.text.rstrip()}\n\n{tables}")
        return plan(
            base,
            self.axes,
            repeat=self.repeat if repeat is None else repeat,
            seed=self.seed if seed is None else seed,
            set={**flat(self.changes, base_tree(base)), **(set or {})},
            world=world,
            start_jitter=self.start_jitter,
        )


def _not_toml(error: Exception, text: str, path: Path) -> SweepError:
    """Return the error of a text that is not TOML: the engine's, which shows the place, if it agrees."""
    try:
        _core.setup(text, path, [], {})
    except _core.ScenarioError as e:
        if all(d.path is None for d in e.diagnostics):
            return SweepError(f"{path} is not TOML\n{e}".rstrip("\n"), e.diagnostics)
    return SweepError(f"{path}: this is not TOML: {error}")


def _line_of(key: str | None, text: str) -> tuple[int, int] | None:
    """Return line and column of a key at the top of a text, from 1; None if it is not there."""
    if key is None:
        return None
    own = re.compile(rf"\s*\[{{,2}}\s*(?P<key>{re.escape(key)})\b\s*[=.\]]")
    for number, line in enumerate(text.splitlines(), 1):
        if found := own.match(line):
            return number, found.start("key") + 1
    return None


def _placed(
    message: str, text: str, path: Path, place: tuple[int, int] | None, key: str | None = None
) -> SweepError:
    """Return an error of a sweep's file that shows the line and a caret, where there is one."""
    if place is None:
        return SweepError(f"{path}: {message}", key=key)
    line, column = place
    found = _core.Diagnostic(message, path=key, file=str(path), line=line, column=column)
    shown = [*text.splitlines(), ""][line - 1]
    margin = " " * len(str(line))
    caret = "".join("\t" if c == "\t" else " " for c in shown[: column - 1])
    picture = f"{line} | {shown}\n{margin} | {caret}^"
    return SweepError(f"{path}:{line}:{column}: {message}\n{picture}", [found], key)


def _unknown(key: str, table: Mapping[str, Any]) -> str:
    if "topology" in table:
        return (
            'this is a scenario, not a sweep: a sweep has scenario = "FILE.toml" and a table [axes]'
        )
    near = _core.nearest(key, KEYS)
    hint = f'did you mean "{near}"?' if near else f"known here: {', '.join(KEYS)}"
    return f'unknown key "{key}"; {hint}'


def base_tree(source: Source) -> dict[str, Any]:
    """Return a scenario as written, as a dictionary; empty if it is not TOML."""
    return tables(source.text)  # The engine's error shows the place.


def plan(
    base: ScenarioLike | Source,
    axes: Mapping[str, Any] | Sequence[Axis] = (),
    repeat: int = 1,
    seed: int | None = None,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    world: World = "sim",
    start_jitter: str | None = None,
) -> list[Job]:
    """Return the runs of a sweep: all combinations of the axes' values, each `repeat` times.

    Every cell is checked before anything runs.

    Args:
        base: The scenario.
        axes: As below `[axes]` in a sweep file (see `gargalo.sweeps.axes`), or `Axis` values.
        repeat: Runs per cell; their seeds are derived from `seed`, the same in all cells.
        seed: The sweep's; by default the scenario's own.
        set: Settings for all runs.
        world: `lab` for runs in real time.
        start_jitter: How far starts of flows move from repeat to repeat, as the scenario's key: "20ms",
            "0.5RTT", "0s" for not at all. By default 1RTT if there are repeats and neither the scenario,
            `set` nor an axis says it.

    Raises:
        SweepError: An axis or a key is wrong; the text names both.
        ScenarioError: The base itself is wrong.

    """
    if repeat < 1:
        msg = f"repeat = {repeat}: at least 1"
        raise SweepError(msg)
    source = Source.of(base)
    tree = base_tree(source)
    common = named_flows(set or {}, tree)
    found = axes_module.parse(axes, tree)
    if start_jitter is not None:
        common = {"start_jitter": start_jitter, **common}
    elif repeat > 1 and "start_jitter" not in tree:
        common = {"start_jitter": START_JITTER, **common}
    resolved = _resolved(source, common)
    points = [[_Cell(a, p.labels, _flows(a, p.changes, tree)) for p in a.points] for a in found]
    seeds = derive_seeds(resolved["seed"] if seed is None else seed, repeat)
    jobs = []
    for combination in itertools.product(*points):
        changes = dict(common)
        labels: dict[str, Any] = {}
        for cell in combination:
            changes.update(cell.changes)
            labels.update(cell.labels)
        try:
            _resolved(source, changes)
        except _core.ScenarioError as e:
            raise _blame(source, common, combination, e) from None
        jobs += [Job(labels, source, s, r, changes, world) for r, s in enumerate(seeds)]
    return jobs


@dataclass(frozen=True)
class _Cell:
    axis: Axis
    labels: Mapping[str, Any]
    changes: Mapping[str, Any]


def _resolved(source: Source, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Check a scenario with some changes, which may name installed stacks; return it with everything filled in."""
    discovery.load_named(source.text, [(k, override(v)) for k, v in changes.items()])
    resolved, _ = source.resolve(changes, discovery.names())
    return resolved


def _flows(axis: Axis, changes: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return named_flows(changes, tree)
    except SweepError as e:
        msg = f'axis "{axis.name}": {e}'
        raise SweepError(msg) from None


def _blame(
    source: Source,
    common: Mapping[str, Any],
    combination: Sequence[_Cell],
    error: _core.ScenarioError,
) -> SweepError:
    """Name the axis that is wrong alone, or all axes of the cell."""
    for cell in combination:
        try:
            _resolved(source, {**common, **cell.changes})
        except _core.ScenarioError as e:
            value = " ".join(str(v) for v in cell.labels.values())
            keys = ", ".join(cell.axis.keys)
            where = f'axis "{cell.axis.name}" at {value} (key {keys})'
            return SweepError(f"{where}: {sentence(e)}", e.diagnostics)
    shown = ", ".join(f"{k} = {v}" for c in combination for k, v in c.labels.items())
    return SweepError(f"the cell {shown}: {sentence(error)}", error.diagnostics)


def label_names(jobs: Sequence[Job]) -> list[str]:
    """Return the labels of all jobs, in order of appearance, without `repeat`."""
    names = dict.fromkeys(name for j in jobs for name in j.labels)
    names.pop("repeat", None)
    return list(names)
