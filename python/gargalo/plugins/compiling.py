"""Compiles plug-ins in C."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import _core, reading
from gargalo.plugins import kernel_modules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTIONS = ("-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fvisibility=hidden")
"""For all: results that do not depend on the compiler's liberties with real numbers, and one exported name."""
OF_C = ("-std=c11", "-Wall", "-Wextra")
OF_LINUX = ("-std=gnu11", "-Wall", "-Wno-unused-function", "-Wno-sign-compare")
STRICT = (
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
)
"""What would crash in a run is reported by the compiler: a function or a field of another kernel."""

NEWEST = "6.12"
"""The kernel that a module is for, if nothing is said."""
UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(\w+)")
OTHER_KERNEL = re.compile(r"incompatible[ -](?:function )?pointer type")


class CompilerError(RuntimeError):
    """A plug-in could not be compiled.

    Attributes:
        told: What the compiler said.
        missing: What a module of Linux uses that is not there.

    """

    def __init__(
        self, message: str, told: str = "", missing: Sequence[kernel_modules.Missing] = ()
    ) -> None:
        super().__init__(message)
        self.told = told
        self.missing = list(missing)


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
        file: The source; one that includes headers of Linux is compiled as a module, with the sources beside it whose
            headers it includes (tcp_yeah.c with tcp_vegas.c).
        output: The library; by default beside the source, with the ending .so.
        cc: The compiler, and options before all others.
        kernel: The version of Linux that a module is for, like "6.1"; by default 6.12.
        options: More options of the compiler.

    Raises:
        CompilerError: There is no compiler, or it refuses the source.
        OSError: The source cannot be read.

    """
    file = Path(file)
    text = reading.text(file, errors="replace")
    library = file.with_suffix(".so") if output is None else Path(output)
    linux = kernel_modules.is_module(text)
    headers = _core.plugin_headers()
    with tempfile.TemporaryDirectory(prefix="gargalo-headers-") as place:
        command = [*cc, *OPTIONS, f"-I{place}"]
        if linux:
            files = kernel_modules.sources(file)
            for name in kernel_modules.kernel_headers(files):
                headers.setdefault(f"linux/{name}", kernel_modules.FORWARD)
            command += [*OF_LINUX, *STRICT, f"-I{place}/linux", *version(kernel)]
            command += [f'-DGARGALO_BUILT_IN="{built_in()}"', *map(str, files)]
            command += [f"{place}/linux/gargalo_linux.c"]
        else:
            command += [*OF_C, str(file)]
        for path, header in headers.items():
            target = Path(place, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(header, encoding="utf-8")
        if sys.platform == "linux":  # Elsewhere it is the linker's default.
            command.append("-Wl,--no-undefined")
        command += [*options, "-o", str(library), "-lm"]
        env = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        except OSError as e:
            msg = (
                f"the compiler {cc[0]} cannot be started: {e.strerror or e}; install one (apt "
                "install gcc), or name it with --cc"
            )
            raise CompilerError(msg) from None
    told = (done.stdout + done.stderr).replace(f"{place}/", "").strip()
    if done.returncode != 0:
        raise refused(file, cc[0], done.returncode, told, headers if linux else None, kernel)
    library.write_bytes(_core.seal_library(library.read_bytes()))
    return library


def refused(
    file: Path,
    cc: str,
    code: int,
    told: str,
    shim: Mapping[str, str] | None,
    kernel: str | None,
) -> CompilerError:
    """Return the error of a source that was not compiled; for a module of Linux it says what is missing."""
    msg = f"{file} was not compiled: {cc} ended with exit code {code}"
    if shim is None:
        if names := ", ".join(dict.fromkeys(UNDEFINED.findall(told))):
            msg += f": it uses {names}, which nothing defines"
        return CompilerError(msg, told)
    lacking = kernel_modules.missing(told, shim)
    if lacking:
        lines = "".join(f"\n  {item}" for item in lacking)
        msg = (
            f"{file} needs what the shim of Linux does not have:{lines}\n  what it has: "
            "docs/plugins.md, and gargalo plugin headers DIR writes it"
        )
    elif OTHER_KERNEL.search(told):
        msg += (
            f"; its functions have other arguments than those of Linux {kernel or NEWEST}: say "
            "which version it is for (--kernel 6.1; cong_control changed in 6.10)"
        )
    return CompilerError(msg, told, lacking)


def built_in() -> str:
    """Return the names of the built-in congestion controls, each between blanks."""
    names = (name for c in _core.congestion() for name in (c["name"], *c["aliases"]))
    return f" {' '.join(names)} "


def version(kernel: str | None) -> list[str]:
    """Return the option that says for which kernel a module is."""
    if kernel is None:
        return []
    match = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", kernel)
    if match is None:
        msg = f"{kernel!r} is no version of Linux; write one like 6.1"
        raise CompilerError(msg)
    return [f"-DLINUX_VERSION_CODE={(int(match[1]) << 16) + (int(match[2]) << 8)}"]
