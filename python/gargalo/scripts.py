"""Packet scripts: read them, run them, and what their heads say."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from gargalo import _core, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

TOLERANCE_MS = 20
"""How early or late the kernel may be, in milliseconds; packetdrill's default of 4 fails on a loaded machine."""
JOBS = 16
"""Scripts at a time on the kernel, where they mostly wait."""
NOTES = ("differs", "settings", "fails on ours")


@dataclass
class Head:
    """The comment at the start of a script.

    Attributes:
        text: What the script shows, with RFC and section.
        notes: `differs`: how the two stacks differ, and the sentence that settles it; `settings`: what one of them is
            told, so that both can be compared; `fails on ours`: what our stack does wrong.

    """

    text: str
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, script: str) -> Head:
        """Read it from the text of a script."""
        lines = []
        for line in script.splitlines():
            if not line.startswith("//"):
                break
            lines.append(line.removeprefix("//").strip())
        head = cls("")
        here = ""
        for line in lines:
            found = re.match(rf"({'|'.join(NOTES)}): *(.*)", line)
            if found:
                here = found[1]
                head.notes[here] = found[2]
            elif here:
                head.notes[here] += f" {line}"
            else:
                head.text += f" {line}" if head.text else line
        return head


def page(root: Path) -> str:
    """Return the table of all scripts below a directory, and that of differences, in Markdown."""
    heads = {path.relative_to(root): Head.of(reading.text(path)) for path in find([root])}
    tables = []
    for title, note in (
        ("Where the two stacks differ", "differs"),
        ("What our stack does wrong", "fails on ours"),
    ):
        rows = [f"| `{p}` | {_cell(h.notes[note])} |" for p, h in heads.items() if note in h.notes]
        if rows:
            tables += [f"## {title}", "", "| script | |", "| --- | --- |", *rows, ""]
    tables += ["## All scripts", ""]
    for subject in dict.fromkeys(p.parent for p in heads):
        tables += [f"### {subject}", "", "| script | shows |", "| --- | --- |"]
        rows = [
            f"| `{p.name}` | {_cell(h.text)} |" for p, h in heads.items() if p.parent == subject
        ]
        tables += [*rows, ""]
    return "\n".join(tables)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def find(paths: Sequence[Path]) -> list[Path]:
    """Return the scripts among files and below directories, in order."""
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob("*.pkt")) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


class Verdict(TypedDict, total=False):
    """What became of a script."""

    verdict: Literal["passed", "failed", "unsupported", "broken"]
    read: bool
    """The script was read and everything in it is known."""
    line: int
    column: int
    """Where it failed, or is not supported, from 1."""
    expected: str
    came: str
    packets: list[str]
    """Those before it failed."""
    message: str
    """Why it is not supported or broken."""
    help: str | None
    notes: list[str]
    """Shell files that it names have commands that are not run, or settings that the stack does not have."""


@dataclass
class Counts:
    """What became of the scripts of a directory.

    Attributes:
        scripts: How many there are.
        read: How many were read: everything in them is known.
        passed: How many passed.
        failed: How many found something else.
        unsupported: How many could not be read, or ask for what the stack does not have.
        broken: How many the system refused.
        reasons: Why scripts were not supported or broken, each with how many.

    """

    scripts: int = 0
    read: int = 0
    passed: int = 0
    failed: int = 0
    unsupported: int = 0
    broken: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, verdict: Verdict) -> None:
        """Count a verdict."""
        self.scripts += 1
        self.read += bool(verdict.get("read"))
        kind = verdict["verdict"]
        setattr(self, kind, getattr(self, kind) + 1)
        if kind in ("unsupported", "broken"):
            reason = verdict["message"]
            self.reasons[reason] = self.reasons.get(reason, 0) + 1


def count(paths: Sequence[Path], verdicts: Sequence[Verdict]) -> dict[Path, Counts]:
    """Count verdicts for each directory, in the order of the paths."""
    directories: dict[Path, Counts] = {}
    for path, verdict in zip(paths, verdicts, strict=True):
        directories.setdefault(path.parent, Counts()).add(verdict)
    return directories


def run(
    texts: Sequence[str],
    *,
    paths: Sequence[Path] | None = None,
    init: Path | None = None,
    defines: Sequence[tuple[str, str]] = (),
    strict_end: bool = False,
    kernel: bool = False,
    tolerance_ms: int = TOLERANCE_MS,
    jobs: int | None = None,
    options: Sequence[tuple[str, str]] = (),
    done: Callable[[int, Verdict], object] | None = None,
) -> list[Verdict]:
    """Run scripts on our stack or on the kernel, and return their verdicts.

    Args:
        texts: The scripts.
        paths: Their files; paths of shell files in a script count from its directory. Default: scripts name no files.
        init: A shell file whose settings (lines `sysctl NAME=VALUE`) each script begins with.
        defines: Words of the scripts, and what stands for them.
        strict_end: What the stack sends before the last event and no event expects is a fault also at the end.
        kernel: Run on the kernel, in real time, in the sandbox, instead of our stack in virtual time.
        tolerance_ms: How early or late the kernel may be.
        jobs: Scripts at a time. Default: 16 on the kernel, 1 on our stack.
        options: Options of our stack: key and value.
        done: Is told each verdict when it is known, with the number of the script.

    Raises:
        RunError: The system does not permit it.
        OSError: The file of `init` cannot be read.

    """
    verdicts: dict[int, Verdict] = {}
    request = {
        "texts": list(texts),
        "directories": [str(p.resolve().parent) for p in paths] if paths else [None] * len(texts),
        "init": [str(init), reading.text(init)] if init else None,
        "defines": [list(pair) for pair in defines],
        "strict_end": strict_end,
        "kernel": kernel,
        "tolerance_ms": tolerance_ms,
        "jobs": jobs or (JOBS if kernel else 1),
        "options": [list(pair) for pair in options],
    }

    def told(i: int, text: str) -> None:
        verdicts[i] = json.loads(text)
        if done is not None:
            done(i, verdicts[i])

    if kernel:
        for i, text in inside(request):
            told(i, text)
    else:
        _core.scripts(json.dumps(request), told)
    missing: Verdict = {"verdict": "broken", "message": "the script was not run to its end"}
    return [verdicts.get(i, missing) for i in range(len(texts))]


def inside(request: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Run in the sandbox; yield number and verdict."""
    from gargalo.lab import Inside

    process = Inside({"scripts": request}, stdin=subprocess.DEVNULL)
    try:
        for event in process.events():
            if "error" in event:
                raise _core.RunError(event["message"])
            i, text = event["script"]
            yield i, text
    finally:
        if process.process.poll() is None:
            process.process.send_signal(signal.SIGKILL)
            process.process.wait()
