"""`gargalo identify`: which congestion control sent a flow of a recording."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    INTERRUPTED,
    PATH,
    fail,
    json_option,
    load_plugin,
    plugin_option,
    refuse_another,
    to_json,
)
from gargalo.cli.help import command
from gargalo.terminal.detection import in_terminal
from gargalo.terminal.text import printable, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gargalo.fitting import Identified, Ranked

SHOWN = 8
"""Candidates in the table, if no more are tied."""
MOST_GROUPS = 3


@command(
    examples=[
        ("gargalo identify upload.pcap", "Which congestion control was it?"),
        ("gargalo identify upload.pcap --json", "All candidates with their distances."),
        ("gargalo identify upload.pcap --plugin mine.so", "Perhaps one of your own?"),
    ]
)
@click.argument(
    "files", nargs=-1, required=True, type=PATH, metavar="FILE",
    help="A capture (pcap, pcapng) made where the data was sent; several are of the same traffic.",
)  # fmt: skip
@click.option(
    "--flow",
    type=click.IntRange(min=0),
    metavar="N",
    help="Number of the flow, as `gargalo read` has it. Default: the one with most packets.",
)
@plugin_option
@json_option("Print one JSON object: the answer, all candidates, the fitted path.")
@click.option("--quiet", "-q", is_flag=True, help="The answer only: no progress, no table.")
def identify(
    files: tuple[Path, ...],
    flow: int | None,
    plugin: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Tell which congestion control sent a TCP flow: all that are known are simulated over its path and compared."""
    for path in plugin:
        load_plugin(path)
    from gargalo import fitting

    for file in files:
        if file.is_dir() or not file.exists():
            refuse_another(file, "capture")
    try:
        with bar(shown=not (quiet or as_json)) as tell:
            found = fitting.identify(files, flow=flow, progress=tell)
    except fitting.FitError as e:
        fail(f"{files[0]}: {e}")
    except _core.RunError as e:
        refuse_another(files[0], "capture")
        fail(str(e), FAILED)
    except KeyboardInterrupt:
        say("interrupted")
        raise Exit(INTERRUPTED) from None
    if as_json:
        print(to_json(found.to_json()))
        return
    print(printable(answer(found)))
    if not quiet:
        show(found)


def answer(found: Identified) -> str:
    """Return the answer as a sentence."""
    nearest = found.ranking[0]
    if not found.answer:
        return (
            f"{found.flow}: unknown. Nothing behaves as it did; the nearest is {nearest.congestion}, at a distance of "
            f"{nearest.distance:.2f} (near: below {found.bound:g})"
        )
    if len(found.answer) == 1:
        return f"{found.flow}: {nearest.congestion}{started(nearest)}"
    return f"{found.flow}: one of {', '.join(found.answer)}: on this path they cannot be told apart"


def started(ranked: Ranked) -> str:
    """Return which slow start it was, if that is known."""
    if not ranked.slow_start:
        return ""
    return f", slow start {' or '.join(ranked.slow_start)}"


def show(found: Identified) -> None:
    """Print the candidates from the nearest, the path and the notes."""
    from gargalo.quantities import measured
    from gargalo.terminal.fitting import NONE, Column, show_table
    from gargalo.terminal.screen import Screen

    out = Screen(highlight=False)
    rows = []
    for r in found.ranking[: max(SHOWN, sum(r.tied for r in found.ranking) + 2)]:
        most = sorted(r.apart, key=lambda name: -r.apart[name])[:MOST_GROUPS]
        told = ", ".join(f"{name} {r.apart[name]:.1f}" for name in most)
        mark = "•" if r.congestion in found.answer else ""
        rows.append(
            [mark, r.congestion, f"{r.distance:.2f}", " or ".join(r.slow_start) or NONE, told]
        )
    columns = [
        Column("", justify="left"),
        Column("congestion control", justify="left"),
        Column("distance"),
        Column("slow start", 2, justify="left", least=12),
        Column("most apart in", 1, justify="left", least=20),
    ]
    show_table(None, columns, rows, out)
    path = found.path
    lost = f", {path.loss:.2%} lost" if path.loss else ""
    say(
        f"over a path of {measured(path.rate_bps, 'bit/s')}, {measured(path.base_rtt_s, 's')} and a buffer of "
        f"{path.buffer_bytes / 1000:.4g} kB{lost}, fitted to the flow"
    )
    for note in found.notes:
        say(f"note: {note}")


@contextmanager
def bar(*, shown: bool) -> Iterator[Callable[[float], None] | None]:
    """Show the share of the work that is done, on a terminal."""
    if not (shown and in_terminal()):
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    from gargalo.terminal.screen import err

    columns = (BarColumn(bar_width=30), TaskProgressColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=err, transient=True) as view:
        task = view.add_task("", total=1.0)
        yield lambda share: view.update(task, completed=share)
