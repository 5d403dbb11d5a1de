#!/usr/bin/env python3
"""Draw where the instructions of a program go, as a flame graph.

    .venv/bin/python benches/flame.py OUT.svg [--packets N] [--width N] [--title TEXT] -- COMMAND [ARGUMENT ...]

Runs the command under valgrind's callgrind and draws the calls with their instructions: a function stands on its
caller, as wide as its share. The top level has the source files whose code is in a function, where the compiler has
put it inline. With --packets the labels are instructions a packet, else shares; with --width, the picture is that many
instructions a packet wide, so that two can be compared.
The command needs debug information (CARGO_PROFILE_RELEASE_DEBUG=1).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

# Frames below this share of all instructions are left out.
LEAST = 0.004
# Longest chain of callers that callgrind keeps apart.
CALLERS = 24
COLOURS = {
    "sim": "#e76f51",
    "link": "#f4a261",
    "tcp": "#2a9d8f",
    "cc": "#8ab17d",
    "wire": "#7fb7be",
    "flow": "#e9c46a",
    "workload": "#e9c46a",
    "trace": "#e9c46a",
}
OTHERS = "#c9c9c9"


@dataclass
class Frame:
    """A function in one place of the tree: what it executes itself, by source file, and what it calls."""

    own: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    calls: dict[str, Frame] = field(default_factory=dict)

    def total(self) -> int:
        """Instructions with those of everything called."""
        return sum(self.own.values()) + sum(f.total() for f in self.calls.values())


def callgrind(command: list[str]) -> list[str]:
    """Run a command; the lines that callgrind writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        options = [f"--callgrind-out-file={out}", f"--separate-callers={CALLERS}"]
        subprocess.run(
            ["valgrind", "--tool=callgrind", "--quiet", *options, *command],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return out.read_text(encoding="utf-8").splitlines()


def tree(lines: list[str]) -> Frame:
    """Build the tree of calls from the costs of each function with its chain of callers."""
    names: dict[tuple[str, str], str] = {}

    def name(kind: str, text: str) -> str:
        number, _, given = text.partition(" ")
        key = (kind, number)
        if given:
            names[key] = given
        return names.get(key, given)

    root, frame, file, is_call = Frame(), Frame(), "", False
    for line in lines:
        kind, _, rest = line.partition("=")
        match kind:
            case "fn":
                frame = root
                # The function comes first, its callers after it, the outermost last.
                for function in reversed(name("fn", rest).split("'")):
                    frame = frame.calls.setdefault(short(function), Frame())
            case "fl" | "fi" | "fe":
                file = source(name("fl", rest))
            case "cfn":
                name("fn", rest)
            case "cfi" | "cfl":
                name("fl", rest)
            case "calls":
                is_call = True
            case _:
                cost = re.match(r"(?:[+-]?\d+|\*) (\d+)$", line)
                if cost and not is_call:
                    frame.own[file] += int(cost[1])
                is_call = is_call and not cost
    return root


def short(function: str) -> str:
    """Leave out what a reader of the picture does not need."""
    function = re.sub(r"<impl ([^<>]|<[^<>]*>)*?([A-Za-z_]+)(<[^<>]*>)?>", r"\2", function)
    function = re.sub(r"gargalo_(\w+)::", r"\1::", function)
    parts = re.sub(r"::<[^<>]*>|<[^<>]*>$", "", function).split("::")
    crate = [parts[0]] if parts[0] in COLOURS else []
    return "::".join(crate + parts[-2:] if len(parts) > len(crate) + 1 else parts)


def source(path: str) -> str:
    """Name a source file by crate and file, those of other libraries together."""
    found = re.search(r"(\w+)/src/(.+)\.rs$", path)
    return f"{found[1]}/{found[2]}" if found and found[1] in COLOURS else ""


def colour(name: str) -> str:
    """By crate."""
    return COLOURS.get(re.split(r"::|/", name)[0], OTHERS)


def draw(root: Frame, packets: int | None, width_of: float | None, title: str) -> Figure:
    """Draw the tree, the outermost caller at the bottom."""
    whole = root.total()
    # What starts the program is of no interest: down to the first function that does something itself.
    while not root.own or max(root.own.values()) < LEAST * whole:
        root = max(root.calls.values(), key=Frame.total)
    root = Frame(calls={"all": root})
    boxes: list[tuple[float, int, float, str, str]] = []

    def put(frame: Frame, left: float, level: int) -> None:
        for name, part in sorted(frame.calls.items(), key=lambda c: -c[1].total()):
            width = part.total() / whole
            if width >= LEAST:
                boxes.append((left, level, width, name, colour(name)))
                put(part, left, level + 1)
            left += width
        for name, count in sorted(frame.own.items(), key=lambda c: -c[1]):
            width = count / whole
            if width >= LEAST and name:
                boxes.append((left, level, width, name, colour(name)))
            left += width

    put(root, 0.0, 0)
    height = 1 + max(level for _, level, *_ in boxes)
    scale = width_of * packets if width_of and packets else whole
    figure = Figure(figsize=(14, 0.32 * height + 0.6), layout="tight")
    axes = figure.add_subplot()
    for start, level, share, name, fill in boxes:
        left, width = start * whole / scale, share * whole / scale
        axes.add_patch(
            Rectangle((left, level), width, 0.94, facecolor=fill, edgecolor="white", linewidth=0.4)
        )
        amount = f"{share * whole / packets:,.0f}" if packets else f"{share:.1%}"
        fits = int(width * 230)
        label = f"{name} {amount}"
        if fits >= 4:
            shown = label if len(label) <= fits else name[: fits - 1] + "…"
            axes.text(left + 0.001, level + 0.45, shown, fontsize=7, va="center", clip_on=True)
    unit = f"{whole / packets:,.0f} instructions a packet" if packets else f"{whole:,} instructions"
    axes.set(xlim=(0, 1), ylim=(0, height), title=f"{title}: {unit}")
    axes.set_axis_off()
    return figure


def main() -> int:
    """Run the command and write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--packets", type=int)
    parser.add_argument("--width", type=float)
    parser.add_argument("--title", default="instructions")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    figure = draw(tree(callgrind(args.command)), args.packets, args.width, args.title)
    figure.savefig(args.out, metadata={"Date": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
