"""Compiles plug-ins in C."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

LINUX = re.compile(r"^\s*#\s*include\s*<(?:linux|net)/", re.MULTILINE)
"""What a module of Linux has."""
OPTIONS = ("-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fvisibility=hidden")
"""For all: results that do not depend on the compiler's liberties with real numbers, and one exported name."""
OF_C = ("-std=c11", "-Wall", "-Wextra")
OF_LINUX = ("-std=gnu11", "-Wall", "-Wno-unused-function", "-Wno-sign-compare")


class CompilerError(RuntimeError):
    """A plug-in could not be compiled; `told` is what the compiler said."""

    def __init__(self, message: str, told: str = "") -> None:
        super().__init__(message)
        self.told = told


def is_linux(source: str) -> bool:
    """Whether a source is a module of Linux."""
    return LINUX.search(source) is not None


def build_plugin(
    file: str | Path,
    output: str | Path | None = None,
    *,
    cc: Sequence[str] = ("cc",),
    kernel: str | None = None,
    options: Sequence[str] = (),
) -> Path:
    """Compile a congestion control in C, or a module of Linux, to a shared library; return its path.

    Args:
        file: The source; one that includes headers of Linux is compiled as a module.
        output: The library; by default beside the source, with the ending .so.
        cc: The compiler, and options before all others.
        kernel: The version of Linux that a module is for, like "6.1"; by default 6.12.
        options: More options of the compiler.

    Raises:
        CompilerError: There is no compiler, or it refuses the source.
        OSError: The source cannot be read.

    """
    file = Path(file)
    text = file.read_text(encoding="utf-8", errors="replace")
    library = file.with_suffix(".so") if output is None else Path(output)
    with tempfile.TemporaryDirectory(prefix="gargalo-headers-") as place:
        headers = Path(place)
        for path, header in _core.plugin_headers().items():
            target = headers / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(header, encoding="utf-8")
        command = [*cc, *OPTIONS, f"-I{headers}"]
        if is_linux(text):
            linux = headers / "linux"
            command += [*OF_LINUX, f"-I{linux}", *version(kernel), str(file)]
            command.append(str(linux / "gargalo_linux.c"))
        else:
            command += [*OF_C, str(file)]
        command += [*options, "-o", str(library), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as e:
            msg = f"the compiler {cc[0]} cannot be started: {e.strerror or e}; install one (apt install gcc), or name it with --cc"
            raise CompilerError(msg) from None
    told = (done.stdout + done.stderr).replace(f"{place}/", "").strip()
    if done.returncode != 0:
        msg = f"{file} was not compiled: {cc[0]} ended with exit code {done.returncode}"
        raise CompilerError(msg, told)
    return library


def version(kernel: str | None) -> list[str]:
    """Return the option that says for which kernel a module is."""
    if kernel is None:
        return []
    match = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", kernel)
    if match is None:
        msg = f"{kernel!r} is no version of Linux; write one like 6.1"
        raise CompilerError(msg)
    return [f"-DLINUX_VERSION_CODE={(int(match[1]) << 16) + (int(match[2]) << 8)}"]
