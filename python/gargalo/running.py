"""Running scenarios from Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from gargalo import _core, reading
from gargalo.diagnostics import unreadable
from gargalo.plugins import discovery, registry
from gargalo.results import Run
from gargalo.scenarios import picoquic
from gargalo.scenarios.scenario import Scenario, plain, to_toml

if TYPE_CHECKING:
    from typing import TypeAlias

    from gargalo._core import NativeCongestion
    from gargalo.plugins.controller import Controller
    from gargalo.plugins.multipath import PathManager, Scheduler
    from gargalo.plugins.stack import QuicStack
    from gargalo.scenarios.setup import Setup

    ScenarioLike: TypeAlias = str | Path | Mapping[str, Any] | Scenario | "Text"


class Text(NamedTuple):
    """The text of a scenario, and the file that messages name and beside which traces are."""

    text: str
    path: Path


class Sample(NamedTuple):
    """The state of a flow at an instant of a run that goes on."""

    flow: int
    time_s: float
    received_bytes: int
    """What its receiver has."""
    srtt_s: float | None
    congestion_window_bytes: int


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    now_s: float
    end_s: float
    packets: int
    events: int
    phase: Literal["building", "running", "writing"] = "running"
    """Flows are made, virtual time passes, results are written."""
    fraction: float = 0.0
    """Share of the phase that is done, 0 to 1."""
    samples: Sequence[Sample] = ()
    """In the lab: samples of flows since the last call."""


class Interrupted(KeyboardInterrupt):
    """The user interrupted a run; `run` has what was done until then."""

    def __init__(self, run: Run) -> None:
        super().__init__("the run was interrupted; the partial results are in .run")
        self.run = run


def read(scenario: ScenarioLike) -> tuple[str, Path | None]:
    """Return a scenario's text and its path, if it has one."""
    if isinstance(scenario, Text):
        return _own(scenario.text, scenario.path), scenario.path
    if isinstance(scenario, Scenario):
        return scenario.to_toml(), None
    if isinstance(scenario, Mapping):
        return to_toml(scenario), None
    if isinstance(scenario, str) and "\n" in scenario:
        return scenario, None
    path = Path(scenario)
    try:
        return _own(reading.text(path), path), path
    except UnicodeDecodeError as e:
        what = f"not UTF-8 text (byte {e.start})"
        raise unreadable(path, what, "a scenario is a TOML file") from None
    except OSError as e:
        why, _, remedy = reading.reason(e).partition("; ")
        raise unreadable(path, f"cannot be read: {why}", remedy) from None


def _own(text: str, path: Path) -> str:
    """Return a scenario's text in TOML, whatever language it is in."""
    return to_toml(picoquic.scenario_of(text, path)) if picoquic.is_one(text) else text


def changed(
    scenario: ScenarioLike, changes: Mapping[str, Any] | None
) -> tuple[str, Path | None, list[tuple[str, str]]]:
    """Return a scenario's text, its path, and changes as TOML; load the stacks that it names."""
    text, path = read(scenario)
    overrides = [(str(k), override(v)) for k, v in (changes or {}).items()]
    discovery.load_named(text, overrides)
    return text, path, overrides


def override(value: Any) -> str:
    """Write a value for `set` as TOML; text as it is, as on the command line."""
    value = plain(value)
    if isinstance(value, str):
        return value
    return to_toml({"v": {"v": value}})[len("\n[v]\nv = ") :].rstrip("\n")


def run(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    output: str | Path | None = None,
    existing: Literal["refuse", "replace"] = "refuse",
    progress: Callable[[Progress], object] | None = None,
    controllers: Mapping[str, type[Controller] | NativeCongestion] | None = None,
    schedulers: Mapping[str, type[Scheduler]] | None = None,
    path_managers: Mapping[str, type[PathManager]] | None = None,
    stacks: Mapping[str, type[QuicStack]] | None = None,
    world: Literal["sim", "lab"] = "sim",
    memory_limit: int | str | None = None,
) -> Run:
    """Run a scenario.

    Args:
        scenario: Path of a TOML file, its text (if it has line ends), a dictionary or a `Scenario`.
        seed: Instead of the scenario's.
        set: Changes of settings, as `{"topology.simple.link.rate": "5Mbit/s", "flows.0.start": "1s"}`.
        output: Directory to write results to; without it they stay in memory.
        existing: What to do if `output` exists.
        progress: Called a few times a second, also while flows are made and results are written; returning
            False stops the run.
        controllers: Congestion controls by name, in addition to those registered.
        schedulers: Schedulers of Multipath TCP by name, in addition to those registered.
        path_managers: Path managers of Multipath TCP by name, in addition to those registered.
        stacks: QUIC stacks by name, in addition to those registered or installed.
        world: `sim` simulates it; `lab` runs it in real time on this machine (Linux).
        memory_limit: What a run may take of memory, records and their tables included, in bytes or
            like `"4GB"`; by default half of what the machine has left. A scenario that would record more
            is refused; one that grows beyond it ends early, as if interrupted, with a warning, and
            `Run.ended_early` says so.

    Raises:
        ScenarioError: The scenario is wrong; nothing was written.
        RunError: The run could not be done.
        Interrupted: A keyboard interrupt; the partial results are with it.
        Exception: Whatever a class written in Python or `progress` raised.

    """
    if output is not None:
        _core.recover(Path(output).parent)  # Remove or restore what killed runs left there.
    text, path, overrides = changed(scenario, set)
    if seed is not None:
        overrides.append(("seed", str(int(seed))))
    report = None
    if progress is not None:
        tell = progress

        def report(*told: Any) -> bool:
            now_s, end_s, packets, events, phase, fraction, samples = told
            seen = [Sample(*s) for s in samples]
            now = Progress(now_s, end_s, packets, events, phase, fraction, seen)
            return tell(now) is not False

    target = None if output is None else Path(output)
    replace = existing == "replace"
    classes = registry.registered(
        {
            "congestion": controllers,
            "scheduler": schedulers,
            "path_manager": path_managers,
            "stack": stacks,
        }
    )
    if world == "lab" and needs_kernel(text, path, overrides, classes):
        from gargalo import lab

        done, interrupted = lab.run(
            text,
            path,
            overrides,
            classes=classes,
            progress=report,
            output=target,
            replace=replace,
            memory_limit=memory_bytes(memory_limit),
        )
        if interrupted:
            raise Interrupted(done)
        return done
    result = _core.run(
        text,
        path,
        overrides,
        discovery.with_installed(classes),
        progress=report,
        output=target,
        replace=replace,
        world=world,
        memory_limit=memory_bytes(memory_limit),
    )
    done = Run.of(result, result.directory)
    if result.keyboard_interrupt:
        raise Interrupted(done)
    return done


def memory_bytes(limit: int | str | None) -> int | None:
    """Return an amount of memory in bytes.

    Raises:
        ValueError: It is not an amount.

    """
    if limit is None or isinstance(limit, int):
        return limit
    try:
        return _core.memory_bytes(limit)
    except ValueError as e:
        msg = f"memory limit: {e}"
        raise ValueError(msg) from None


def needs_kernel(
    text: str,
    path: Path | None,
    overrides: list[tuple[str, str]],
    classes: registry.Classes | None = None,
) -> bool:
    """Whether a host has the kernel's stack, so that the run needs a sandbox."""
    from gargalo.scenarios.setup import Setup

    made = json.loads(_core.setup(text, path, overrides, discovery.names(classes)))
    return bool(Setup.read(made).hosts)


def resolve(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    color: bool = False,
) -> dict[str, Any]:
    """Check a scenario and return it with every default written out: a scenario that runs the same.

    `color` is for error messages.
    """
    given = changed(scenario, set)
    resolved: dict[str, Any] = json.loads(_core.resolve(*given, discovery.names(), color=color))
    return resolved


def resolve_toml(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    color: bool = False,
) -> str:
    """Return what `resolve` does as the text of a file."""
    return _core.resolve(*changed(scenario, set), discovery.names(), color=color, toml=True)


def setup(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002
    color: bool = False,
) -> Setup:
    """Check a scenario and return what the engine makes of it: nodes, links and flows in SI."""
    from gargalo.scenarios.setup import Setup

    made = _core.setup(*changed(scenario, set), discovery.names(), color=color)
    return Setup.read(json.loads(made))
