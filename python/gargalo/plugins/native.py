"""Congestion controls compiled to shared libraries."""

from __future__ import annotations

import base64
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import _core, reading
from gargalo.plugins._trial import REFUSED
from gargalo.plugins.registry import adopt_stack, register

if TYPE_CHECKING:
    from gargalo._core import NativeCongestion, NativeStack
    from gargalo.plugins.registry import Classes

SUFFIXES = (".so", ".dylib", ".dll")
"""What the names of shared libraries end in."""


BEGINS = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
"""How shared libraries begin."""
MOST_LOADING_S = 60
LOADING = "loading it crashed"
"""In what the engine prints when a library ends the process that loads it."""
LOADER = "detected by ld.so"
"""In what the loader of Linux prints when it ends the process."""
_tried: set[bytes] = set()
"""Libraries that did no harm."""


class PluginError(ValueError):
    """A plug-in cannot be loaded; the text names its file."""


def is_library(file: str | Path) -> bool:
    """Whether a plug-in is a shared library, by its name."""
    return Path(file).suffix in SUFFIXES


def load(file: str | Path) -> tuple[list[NativeCongestion], NativeStack | None]:
    """Return the congestion controls and the QUIC stack of a shared library.

    Raises:
        PluginError: It cannot be read, or is no such library.

    """
    try:
        library = reading.data(file)
    except FileNotFoundError:
        msg = f"{file}: no such file"
        raise PluginError(msg) from None
    except OSError as e:
        msg = f"{file}: cannot be read: {reading.reason(e)}"
        raise PluginError(msg) from None
    try_out(str(file), library)
    try:
        controls = _core.native_congestion(str(file), library)
        stack = _core.native_stack(str(file), library)
    except ValueError as e:
        raise PluginError(str(e)) from None
    own = {name for c in _core.congestion() for name in (c["name"], *c["aliases"])}
    for control in controls:
        if control.name in own:
            msg = f'{file}: "{control.name}" is the name of a built-in congestion control; choose another'
            raise PluginError(msg)
    return controls, stack


def try_out(file: str, library: bytes) -> None:
    """Load a library and use it in a process of its own, once for its content.

    Raises:
        PluginError: That process crashed, did not get beyond loading it, or could not load it. Then it is not loaded
            here: what the loader makes of damaged tables depends on the memory of a process.

    """
    if library in _tried or not library.startswith(BEGINS) or not sys.executable:
        return
    import subprocess

    script = Path(__file__).with_name("_trial.py")
    # A crash in one of its functions is reported by a run, and ends that run alone; a long run is not awaited. But
    # such a trial does not tell how a process ends that only loads it.
    for runs in ("with runs", ""):
        words = [sys.executable, "-I", str(script), str(_core.__file__), file, runs]
        try:
            done = subprocess.run(
                words, input=library, capture_output=True, timeout=MOST_LOADING_S, check=False
            )
        except subprocess.TimeoutExpired:
            msg = f"{file}: loading it takes more than {MOST_LOADING_S} s: its initialization does not end"
            raise PluginError(msg) from None
        except OSError:
            return  # No process can be started: it is loaded untried.
        printed, _, refusal = done.stdout.decode(errors="replace").partition(REFUSED)
        errors = done.stderr.decode(errors="replace")
        if refusal:
            sys.stderr.write(errors)
            raise PluginError(refusal)
        stages = printed.splitlines()
        told = errors.strip().splitlines()
        if not stages or not done.returncode:
            break
        in_a_run = any(" crashed (SIG" in line and LOADING not in line for line in told)
        if not in_a_run and done.returncode != -signal.SIGALRM:
            raise PluginError(_crash(file, done.returncode, stages[-1], told))
    _tried.add(library)


def _crash(file: str, code: int, stage: str, told: list[str]) -> str:
    """Return the sentence about a library that ends the process which uses it."""
    refusal = next((line for line in told if LOADER in line), None)
    if refusal is not None:
        return (
            f'{file}: {stage} ended the process: the system\'s loader says "{refusal.strip()}": the file is damaged; '
            "build it again from its source"
        )
    if code > 0:
        return f"{file}: {stage} ended the process with exit code {code}: a plug-in must not call exit()"
    said = "".join(f": {line}" for line in told[-1:] if LOADING not in line)
    return (
        f"{file}: {stage} ended the process ({signal.Signals(-code).name}{said}): the file is damaged, or it writes "
        "to memory that is not its own; build it again from its source"
    )


def packed(classes: Classes) -> list[tuple[str, str]]:
    """Return the shared libraries of congestion controls and stacks: name, and what the file has in base 64."""
    found = (*classes["congestion"].values(), *classes["stack"].values())
    native = (_core.NativeCongestion, _core.NativeStack)
    libraries = {c.digest: c for c in found if isinstance(c, native)}
    return [(c.file, base64.b64encode(c.library).decode()) for c in libraries.values()]


def load_plugin(file: str | Path) -> tuple[list[NativeCongestion], NativeStack | None]:
    """Load a shared library and make its congestion controls and QUIC stack known to scenarios of this process.

    `run`, `sweep` and `evaluate` then know them by name.

    Raises:
        PluginError: It cannot be read, or is no such library.

    """
    controls, stack = load(file)
    for control in controls:
        register(control.name, control)
    if stack is not None:
        try:
            adopt_stack(stack)
        except ValueError as e:
            raise PluginError(str(e)) from None
    return controls, stack
