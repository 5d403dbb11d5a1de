"""`gargalo report`: one self-contained HTML page from results."""

from __future__ import annotations

import datetime
import os
import sys
from typing import TYPE_CHECKING

import click

from gargalo import reading
from gargalo.cli.common import PATH, because, fail, lacks, refuse_another
from gargalo.cli.help import command

if TYPE_CHECKING:
    from pathlib import Path


@command(
    examples=[
        ("gargalo report runs/race-1", "Write runs/race-1/report.html."),
        ("gargalo report sweeps/buffers --output buffers.html", "Of a sweep, elsewhere."),
        ("gargalo report runs/race-1 --open", "Show it in the browser."),
    ]
)
@click.argument(
    "directory", type=PATH, metavar="DIR", help="Results of a run, store of a sweep, or a study."
)
@click.option("--output", type=PATH, metavar="FILE.html", help="Default: DIR/report.html.")
@click.option("--name", metavar="NAME", help="Which sweep of the store. Default: the latest.")
@click.option("--open", "open_", is_flag=True, help="Show it in the browser.")
@click.option("--overwrite", is_flag=True, help="Replace FILE.html even if it is not a report.")
@click.option(
    "--date", metavar="DATE", help="Date on the page. Default: $SOURCE_DATE_EPOCH, or today."
)
def report(
    directory: Path,
    output: Path | None,
    name: str | None,
    open_: bool,
    overwrite: bool,
    date: str | None,
) -> None:
    """Write a page with figures, tables and how to run it again; it needs no network."""
    write_page(directory, output, name=name, open_=open_, overwrite=overwrite, date=date)


def write_page(
    directory: Path,
    output: Path | None = None,
    *,
    name: str | None = None,
    open_: bool = False,
    overwrite: bool = False,
    date: str | None = None,
) -> None:
    """Write the page of a directory of results, print where it is, and show it."""
    target = output if output is not None else directory / "report.html"
    if not directory.is_dir():
        refuse_another(directory, "run", "store", "study results")
        told = lacks(directory, "has no results")
        fail(f"{told}; give the results of a run, the store of a sweep, or a study")
    if target.is_dir():
        fail(f"{target} is a directory; name a file, as in --output {target}/report.html")
    if not target.parent.is_dir():
        fail(f"{target.parent} does not exist; make it, or choose another --output")
    if os.path.lexists(target) and not overwrite and not is_report(target):
        fail(f"{target} exists and is not a report; choose another --output or add --overwrite")
    found = read(directory, name, date or today())
    from gargalo.writing import replace

    try:
        replace(target, found)
    except OSError as e:
        fail(f"{target}: cannot be written: {because(e, target)}", code=1)
    print(target)
    if open_ and not show(target):
        print(f"warning: no browser was found; open {target} yourself", file=sys.stderr)


def is_report(path: Path) -> bool:
    """Whether a file is a page that this command made."""
    try:
        reading.check(path)  # A named pipe would be waited for.
        with path.open("rb") as file:
            return b'<meta name="generator" content="gargalo report' in file.read(2048)
    except OSError:
        return False


def today() -> str:
    """Return the date; $SOURCE_DATE_EPOCH fixes it, so that equal results give equal pages."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch:
        return datetime.date.today().isoformat()
    try:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).date().isoformat()
    except (ValueError, OverflowError, OSError):
        fail(f"SOURCE_DATE_EPOCH is {epoch!r}: it must be a number of seconds since 1970")


def read(directory: Path, name: str | None, date: str) -> str:
    """Find out what a directory holds, and return its page."""
    facts = {"date": date}
    if (directory / "report" / "report.json").is_file():
        directory /= "report"  # The directory of a study, with its store beside.
    sweep = (directory / "store.json").is_file()
    if not sweep:
        refuse_another(directory, "run", "store", "study results")
    if not sweep and not any((directory / f).is_file() for f in ("run.json", "report.json")):
        fail(
            f"{directory} has no results: run.json (a run), store.json (a sweep) and report.json (a study) are missing"
        )
    if name is not None and not sweep:
        fail(f"--name chooses a sweep of a store, and {directory} is not a store")
    try:
        if not sweep and not (directory / "report.json").is_file():
            from gargalo import exploring, load

            return exploring.page(load(directory), facts=facts)
        from gargalo import reporting

        if sweep:
            made = reporting.report_of_sweep(directory, name=name, facts=facts)
        else:
            made = reporting.report_of_study(directory, facts=facts)
        return reporting.html(made)
    except FileNotFoundError as e:
        fail(f"{directory}: {e.filename or e} is missing: the results are incomplete")
    except (OSError, ValueError, RuntimeError) as e:
        fail(str(e))


def show(path: Path) -> bool:
    """Open a file in the browser."""
    return browse(path.resolve().as_uri())


def browse(link: str) -> bool:
    """Open a page in the browser; False if there is none."""
    import webbrowser

    return webbrowser.open(link)
