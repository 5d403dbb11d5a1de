"""What commands that pass or fail have in common: known failures, and results for CI servers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from gargalo.cli.common import PATH, because, fail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gargalo.checking.known import Known

junit_option = click.option(
    "--junit", type=PATH, metavar="FILE", help="Write the results as JUnit's XML, for CI servers."
)
known_option = click.option(
    "--known",
    type=PATH,
    metavar="FILE.toml",
    help="Failures that are known: tables [[known]]. The exit code is 1 for others, and for known ones that are gone.",
)


def known_failures(file: Path | None, kind: str) -> list[Known]:
    """Read known failures of a kind; end the command if the file is wrong."""
    from gargalo.checking import known

    try:
        return [] if file is None else known.read(file, kind)
    except known.KnownError as e:
        fail(f"--known {e}")


@contextmanager
def writing(file: Path) -> Iterator[None]:
    """End the command if a file cannot be written."""
    try:
        yield
    except OSError as e:
        fail(f"{file}: cannot be written: {because(e)}")
