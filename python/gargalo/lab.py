"""Runs in real time, with the kernel's stack beside our own."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, _inside
from gargalo.diagnostics import scenario_error, sentence
from gargalo.plugins import native, registry
from gargalo.results import TABLES, Run, load, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gargalo.plugins.registry import Classes


class DiedError(_core.RunError):
    """The process of a run was killed, or failed to tell how it ended."""


class Inside:
    """A process inside the sandbox."""

    def __init__(self, request: dict[str, Any], **options: Any) -> None:
        request = {"engine": _core.__file__, **request}
        to_read, to_write = os.pipe()
        events, tell = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", _inside.__file__, str(to_read), str(tell)],
                pass_fds=(to_read, tell),
                **options,
            )
        finally:
            os.close(to_read)
            os.close(tell)
        self._events = os.fdopen(events, encoding="utf-8")
        with os.fdopen(to_write, "w", encoding="utf-8") as file:
            json.dump(request, file)

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield its events until it ends."""
        with self._events:
            for line in self._events:
                yield json.loads(line)
        self.process.wait()


def run(
    text: str,
    path: Path | None,
    overrides: Sequence[tuple[str, str]],
    *,
    classes: Classes | None = None,
    progress: Callable[..., bool] | None = None,
    output: Path | None = None,
    replace: bool = False,
    memory_limit: int | None = None,
) -> tuple[Run, bool]:
    """Run a scenario in the sandbox; return also whether the keyboard interrupted it.

    Of `classes`, congestion controls of shared libraries go with it.

    Raises:
        ScenarioError: The lab cannot do what the scenario asks for.
        RunError: The system refused something.

    """
    with _place(output) as target:
        request = {
            "text": text,
            "path": None if path is None else str(path),
            "overrides": list(overrides),
            "output": str(target.absolute()),
            "replace": replace,
            "memory_limit": memory_limit,
            "plugins": native.packed(classes or registry.registered()),
        }
        inside = Inside(request, stdin=subprocess.DEVNULL)
        facts, interrupted, place = _follow(inside, progress)
        done = load(place)
        table = _in_memory(done) if output is None else done._table
        done = Run(
            summary=facts["summary"],
            info=facts["run"],
            scenario=done.scenario,
            _setup=done._setup,
            source=done.source,
            interrupted=done.interrupted,
            directory=None if output is None else output.with_name(place.name),
            _table=table,
            _rows=rows_of(table),
            _commands=facts.get("commands"),
        )
    return done, interrupted


@contextmanager
def _place(output: Path | None) -> Iterator[Path]:
    """Yield where results are written.

    Without `output` a temporary directory, of which a killed run leaves what the next removes.
    """
    if output is not None:
        yield output
        return
    folder = Path(tempfile.gettempdir())
    with suppress(_core.RunError):
        _core.recover(folder)
    place = folder / f"gargalo-lab-{os.urandom(8).hex()}"
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _in_memory(run: Run) -> Callable[[str], Any]:
    tables = {name: run._table(name) for name in TABLES}
    return tables.__getitem__


def _follow(
    inside: Inside, progress: Callable[..., bool] | None
) -> tuple[dict[str, Any], bool, Path]:
    """Pass progress on until the end; an interrupt from the terminal also reaches the process inside.

    SIGTERM is passed on: it is an interrupt inside, too.
    """
    result: dict[str, Any] | None = None
    signals = {
        signal.SIGINT: signal.SIG_IGN,
        signal.SIGTERM: lambda *_: inside.process.send_signal(signal.SIGTERM),
    }
    if signal.getsignal(signal.SIGTERM) is not signal.default_int_handler:
        del signals[signal.SIGTERM]
    before: dict[signal.Signals, Any] = {}
    # Not the main thread: signals go elsewhere.
    with suppress(ValueError):
        for number, handler in signals.items():
            if signal.getsignal(number) is not None:
                before[number] = signal.signal(number, handler)  # type: ignore[arg-type]
    try:
        for event in inside.events():
            if "progress" in event:
                if progress is not None and progress(*event["progress"]) is False:
                    inside.process.send_signal(signal.SIGTERM)
            elif "error" in event:
                if event["error"] == "run":
                    raise _core.RunError(event["message"])
                found = (_core.Diagnostic(**d) for d in event["diagnostics"])
                raise scenario_error(event["message"], found)
            else:
                result = event
    finally:
        if inside.process.poll() is None:
            inside.process.kill()
            inside.process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    if result is None:
        msg = f"the lab ended without a result (exit code {inside.process.returncode})"
        raise DiedError(msg)
    return result["done"], bool(result["keyboard_interrupt"]), Path(result["directory"])


@functools.cache
def refusal(congestion: str = "cubic") -> str | None:
    """Return why this machine cannot do runs with the kernel's stack; None if it can.

    This does a run of some milliseconds.

    Args:
        congestion: The congestion control of the kernel that is needed.

    """
    probe = PROBE.format(congestion=json.dumps(congestion))
    try:
        done, interrupted = run(probe, None, [])
    except (_core.ScenarioError, _core.RunError, OSError) as e:
        return sentence(e)
    if interrupted:
        raise KeyboardInterrupt
    if done.flows["completion_s"][0] is None:
        return "a flow between two hosts of the kernel's stack did not get through"
    return None


PROBE = """
name = "probe"
duration = "5s"
topology.simple.link = {{ rate = "100Mbit/s", delay = "1ms" }}
lab.stack = "kernel"
record = {{ flows = false, links = false, events = false }}
[[flows]]
from = "client"
to = "server"
transport.tcp.congestion = {congestion}
workload.bulk.bytes = "10kB"
"""
