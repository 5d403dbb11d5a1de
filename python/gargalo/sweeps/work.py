"""What a worker does with a task: run it, measure, pack."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import math
import os
import pickle
import platform
import tempfile
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core
from gargalo.diagnostics import sentence
from gargalo.names import CEILING, DRAIN, ROUND_TRIP, TRANSFER
from gargalo.plugins import discovery, registry, source
from gargalo.results import TABLES, Run
from gargalo.sweeps.ceiling import drain_time, goodput_ceiling, least_completion, least_round_trip
from gargalo.sweeps.rows import RUNS, Row, Stream, files

if TYPE_CHECKING:
    from collections.abc import Callable

    from gargalo.sweeps.job import Task
    from gargalo.sweeps.rows import Table

LARGE_BYTES = 64 << 10
"""A kept table above this size becomes a file where the run was done."""
WHOLE = (
    "packets", "events", "flows", "peak_flows", "completed_flows", "completed_objects",
    "pings_sent", "pings_answered", "pings_lost", "ping_duplicates",
)  # fmt: skip
"""Standard figures that are counts."""
TEXT = ("bottleneck", "kernel")
FACTS = ("virtual_s", "flows", "peak_flows", "packets", "events", "wall_s")
"""What the row of a run has of the run itself."""

MULTIPATH = (
    "subflows",
    "reinjected_packets",
    "opportunistic_packets",
    "copied_packets",
    "duplicate_bytes",
)
"""What the row of a run with flows over several paths has of them: sums."""
LATE = ("late_p99_s", "late_max_s")
"""How late packets were in the lab."""


class MeasureError(RuntimeError):
    """The function that measures a run failed, or returned something that is not a figure."""


@dataclass(frozen=True)
class Setup:
    """What all tasks of a sweep have in common; sent to workers as bytes."""

    keep: tuple[str, ...] = ()
    measure: bytes | str | None = None
    """A pickled function, or its name as `module:function`."""
    measure_table: str | None = None
    """The folder for what it returns."""
    plugins: tuple[tuple[str, str], ...] = ()
    """Name and text of Python files that register classes."""
    classes: bytes | None = None
    """Pickled classes by kind and name, of those that are in no such file."""
    memory_limit: int | None = None
    """Bytes that a run may take."""
    files: bool = False
    """Runs have files while they are measured."""

    def dumps(self) -> bytes:
        """Return it as bytes."""
        return pickle.dumps(self)


@dataclass(frozen=True)
class Ready:
    """A setup, unpacked in a worker."""

    keep: tuple[str, ...]
    measure: Callable[[Run], Mapping[str, Any]] | None
    measure_table: str | None
    classes: registry.Classes
    memory_limit: int | None
    files: bool


_ready: dict[str, Ready] = {}
_preparing = threading.Lock()


def prepare(setup: bytes) -> Ready:
    """Load plugins and the measuring function, once in a process."""
    digest = hashlib.sha256(setup).hexdigest()
    with _preparing:
        if digest not in _ready:
            given: Setup = pickle.loads(setup)
            _ready[digest] = Ready(
                given.keep,
                load_measure(given.measure),
                given.measure_table,
                _classes(given),
                given.memory_limit,
                given.files,
            )
        return _ready[digest]


def _classes(given: Setup) -> registry.Classes:
    found: registry.Classes = {kind: {} for kind in registry.KINDS}
    parts = [] if given.classes is None else [pickle.loads(given.classes)]
    parts += [source.execute(text, name) for name, text in given.plugins]
    for part in parts:
        for kind, classes in part.items():
            found[kind].update(classes)
    return found


def load_measure(measure: bytes | str | None) -> Callable[[Run], Mapping[str, Any]] | None:
    """Return the measuring function.

    Raises:
        MeasureError: There is none of that name.

    """
    if measure is None:
        return None
    if isinstance(measure, bytes):
        loaded: Callable[[Run], Mapping[str, Any]] = pickle.loads(measure)
        return loaded
    module, colon, name = measure.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as e:
        hint = "" if colon else '; write it as "module:function"'
        msg = f'the measuring function "{measure}" cannot be imported: {e}{hint}'
        raise MeasureError(msg) from None
    if not callable(found):
        msg = f'"{measure}" is not a function'
        raise MeasureError(msg)
    return found  # type: ignore[no-any-return]


def perform(
    task: Task,
    ready: Ready,
    progress: Callable[..., bool] | None = None,
) -> tuple[dict[str, Table], dict[str, float]] | None:
    """Do a run; return what it leaves by table and figures for progress; None if it was stopped."""
    if not ready.files:
        return packed(task, ready, performed(task, ready, progress, None))
    with tempfile.TemporaryDirectory(prefix="gargalo-run-") as folder:
        return packed(task, ready, performed(task, ready, progress, Path(folder) / "run"))


@lru_cache(maxsize=256)
def _load_named(text: str, overrides: tuple[tuple[str, str], ...]) -> None:
    """Load the stacks that a scenario names, once for its repeats."""
    discovery.load_named(text, overrides)


def performed(
    task: Task, ready: Ready, progress: Callable[..., bool] | None, output: Path | None
) -> Run:
    """Do a run, with files if there is a folder for them."""
    path = None if task.path is None else Path(task.path)
    overrides = [*task.overrides, ("seed", str(task.seed))]
    _load_named(task.text, task.overrides)
    if task.world == "lab":
        from gargalo import lab
        from gargalo.running import needs_kernel

        if needs_kernel(task.text, path, overrides, registry.registered(ready.classes)):
            run, _ = lab.run(
                task.text,
                path,
                overrides,
                classes=ready.classes,
                progress=progress,
                output=output,
                memory_limit=ready.memory_limit,
            )
            return run
    result = _core.run(
        task.text,
        path,
        overrides,
        with_stacks(ready.classes),
        progress=progress,
        output=output,
        world=task.world,
        memory_limit=ready.memory_limit,
    )
    return Run.of(result, None if output is None else result.directory)


def packed(task: Task, ready: Ready, run: Run) -> tuple[dict[str, Table], dict[str, float]] | None:
    """Return what a run leaves by table and figures for progress; None if it was stopped."""
    if run.ended_early is not None:
        raise _core.RunError(run.ended_early)
    if run.interrupted:
        return None
    tables: dict[str, Table] = {name: kept(task.run, name, run) for name in ready.keep}
    if ready.measure is not None and ready.measure_table is not None:
        tables[ready.measure_table] = measured(ready.measure(run))
    tables[RUNS] = row(run)
    return tables, {"packets": run.info.get("packets", 0)}


def kept(identifier: str, name: str, run: Run) -> Table:
    """Return a table of a run."""
    if run._stream is None:
        file = io.BytesIO()
        run.table(name).write_ipc_stream(file)
        data = file.getvalue()
    else:
        data = run._stream(name)
    if len(data) <= LARGE_BYTES:
        return Stream(data)
    return files({name: Stream(data)}, identifier)[name]


def with_stacks(classes: registry.Classes) -> registry.Classes:
    """Return classes and the installed stacks that this process has loaded."""
    known = registry.registered()["stack"]
    installed = {name: known[name] for name in discovery.loaded()}
    return {**classes, "stack": {**installed, **classes["stack"]}}


def row(run: Run) -> Row:
    """Return the row of a run: facts and all figures of its summary."""
    figures = {**{k: run.info.get(k) for k in FACTS}, **run.summary, **multipath(run)}
    figures[CEILING] = goodput_ceiling(run)
    figures[DRAIN] = drain_time(run)
    figures[ROUND_TRIP] = least_round_trip(run)
    figures[TRANSFER] = least_completion(run)
    if run.info.get("world") == "lab":
        late = {k: run.info.get(k) for k in LATE}
        figures |= {**late, "kernel": platform.release()}
    columns: dict[str, tuple[str, Any]] = {
        "version": ("s", _core.__engine__),
        "scenario_hash": ("s", run.info.get("scenario_hash")),
        "results_hash": ("s", run.info.get("results_hash")),
    }
    for name, value in figures.items():
        if isinstance(value, (dict, list)):
            continue
        kind = "f"
        if name in WHOLE or name in MULTIPATH:
            kind = "i"
        elif name in TEXT or isinstance(value, str):
            kind = "s"
        elif isinstance(value, bool):
            kind = "b"
        columns[name] = kind, value
    columns["warnings"] = "s", "; ".join(run.warnings) or None
    findings = json.dumps(run.findings, ensure_ascii=False) if run.findings else None
    columns["findings"] = "s", findings
    return Row.of(columns)


def multipath(run: Run) -> dict[str, Any]:
    """Return the figures of a run's flows over several paths; none if there are no such flows.

    A sum is missing if one of them does not have it, as over QUIC, or its stack does not report it.
    """
    if not run._rows("subflows", 1):
        return {}
    from gargalo import metrics
    from gargalo.metrics._numbers import summed

    flows = run.flows.drop_nulls("subflows")
    # Of the measured window, as all shares and rates of the row.
    shares = metrics.path_shares(run.subflows.with_columns(delivered_bytes="measured_bytes"))
    return {
        **{name: summed(flows[name]) for name in MULTIPATH},
        "out_of_order_max_bytes": flows["out_of_order_max_bytes"].max(),
        "path_share_max": shares["share"].max(),
    }


def measured(figures: Any) -> Row:
    """Return the row of what a user's function measured."""
    if not isinstance(figures, Mapping):
        msg = f"the measuring function must return a mapping of names to numbers, not {figures!r}"
        raise MeasureError(msg)
    columns: dict[str, tuple[str, Any]] = {}
    for name, value in figures.items():
        if isinstance(value, str):
            columns[str(name)] = "s", value
            continue
        try:
            number = None if value is None else float(value)
        except (TypeError, ValueError):
            msg = f"the measuring function returned {name} = {value!r}, which is not a number"
            raise MeasureError(msg) from None
        columns[str(name)] = "f", None if number is None or math.isnan(number) else number
    return Row.of(columns)


def reason_of(e: BaseException) -> str:
    """Return what an exception says, and where in a user's code it was raised."""
    told = one_line(e)
    frames = traceback.extract_tb(e.__traceback__)
    inside = [f for f in frames if "gargalo/sweeps/" not in f.filename.replace(os.sep, "/")]
    if inside and not isinstance(e, MeasureError):
        told += f" ({inside[-1].filename}:{inside[-1].lineno})"
    return told


def trace_of(e: BaseException) -> str:
    """Return the traceback of an exception, without the frames of the sweep itself."""
    frames = traceback.extract_tb(e.__traceback__)
    inside = [f for f in frames if "gargalo/sweeps/" not in f.filename.replace(os.sep, "/")]
    told = traceback.format_list(inside) + traceback.format_exception_only(e)
    return "Traceback (most recent call last):\n" + "".join(told).rstrip("\n")


def one_line(e: BaseException) -> str:
    """Return an exception's kind and text on one line."""
    text = sentence(e)
    return f"{type(e).__name__}: {text}" if text else type(e).__name__


def check_keep(keep: tuple[str, ...]) -> None:
    """Check that the tables exist."""
    from gargalo.sweeps.errors import SweepError

    for name in keep:
        if name not in TABLES:
            msg = f'keep: there is no table "{name}"; tables are {", ".join(TABLES)}'
            raise SweepError(msg)
