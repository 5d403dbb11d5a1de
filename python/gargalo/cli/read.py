"""`gargalo read`: captures and logs of real traffic as a run."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    INTERRUPTED,
    PATH,
    fail,
    json_option,
    quiet_option,
    refuse_another,
)
from gargalo.cli.help import command
from gargalo.cli.plot import seconds
from gargalo.cli.run import directory, no_empty_parent, report
from gargalo.recording import INTERVAL_S, UNNAMED, concluded, name_of, read
from gargalo.terminal.detection import in_terminal
from gargalo.terminal.text import count, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@command(
    name="read",
    examples=[
        ("gargalo read upload.pcap", "Flows, and in runs/upload tables and pictures."),
        ("gargalo read sender.pcapng receiver.pcapng.gz", "The same traffic at both ends."),
        ("gargalo read upload.pcapng keys.log", "QUIC, decrypted with the secrets of its sender."),
        ("gargalo read ss.log", "What the kernel says of its sockets: windows, rates."),
        ("gargalo read upload.pcap --json", "Figures as one JSON object, no files."),
        ("gargalo read upload.pcap --anonymise", "Without addresses, to give it to others."),
        ("gargalo explain runs/upload", "What happened, of a recording that was read."),
    ],
)
@click.argument(
    "files", nargs=-1, required=True, type=PATH, metavar="FILE",
    help="A capture (pcap, pcapng) or a log (qlog, iperf3 --json, ss -ti with times, tcp_probe, mahimahi), plain or "
    "compressed with gzip; several are of the same traffic. A key log (SSLKEYLOGFILE) decrypts QUIC in captures.",
)  # fmt: skip
@click.option(
    "--interval", default=f"{INTERVAL_S:g}s", show_default=True, metavar="TIME",
    help="Time between two samples of a flow.",
)  # fmt: skip
@click.option(
    "--anonymise",
    is_flag=True,
    help="Name hosts, ports and files by numbers: what is written can be given to others.",
)
@click.option(
    "--packets",
    is_flag=True,
    help="Keep each packet with data of TCP in a table: 100 bytes of memory for each.",
)
@click.option(
    "--output",
    type=PATH,
    metavar="DIR",
    help="Directory for results; must not exist. Default: runs/NAME, or with -2, -3, … if that exists.",
)
@click.option("--overwrite", is_flag=True, help="Replace the results in DIR, if there are.")
@json_option("Print one JSON object; no files unless --output is given.")
@quiet_option
@click.option("--no-plots", is_flag=True, help="No pictures.")
def read_(
    files: tuple[Path, ...],
    interval: str,
    anonymise: bool,
    packets: bool,
    output: Path | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    no_plots: bool,
) -> None:
    """Read captures and logs of real traffic: what its flows did, and what kept them from doing more."""
    for file in files:
        if file.is_dir() or not file.exists():
            refuse_another(file, "capture", "log")
    name = UNNAMED if anonymise else name_of(files[0])
    target = directory(name, output, overwrite=overwrite, as_json=as_json)
    work: partial[Any] = partial(
        read,
        files,
        interval_s=seconds("--interval", interval),
        anonymise=anonymise,
        packets=packets,
        output=target,
        existing="replace" if overwrite else "refuse",
    )
    try:
        with no_empty_parent(target), bar(shown=not quiet) as tell:
            done = work(progress=tell)
    except _core.RunError as e:
        refuse_another(files[0], "capture", "log")
        fail(str(e), FAILED)
    except KeyboardInterrupt:
        say("interrupted; no results were written")
        raise Exit(INTERRUPTED) from None
    report(
        done, as_json=as_json, quiet=quiet, plots=not (no_plots or as_json),
        more={"concluded": concluded(done)},
    )  # fmt: skip


@contextmanager
def bar(*, shown: bool) -> Iterator[Callable[[float, int], None] | None]:
    """Show the share of the files that is read, on a terminal."""
    if not (shown and in_terminal()):
        yield None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    from gargalo.terminal.screen import err

    columns = (
        BarColumn(bar_width=30),
        TaskProgressColumn(),
        TextColumn("{task.fields[packets]}packets"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=err, transient=True) as view:
        task = view.add_task("", total=1.0, packets="0 ")

        def tell(fraction: float, packets: int) -> None:
            view.update(task, completed=fraction, packets=count(packets))

        yield tell
