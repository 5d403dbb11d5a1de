"""Tables in the terminal that fit its columns: what does not fit is left out and named, never cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rich import box
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.box import Box
    from rich.console import Console, JustifyMethod

NONE = "-"
"""A figure that there is not."""
ALWAYS = 0
"""The rank of columns that are never left out."""
UNBOUNDED = 100_000


class Column(NamedTuple):
    """A column of a table."""

    name: str
    rank: int = ALWAYS
    """Columns of the highest rank are left out first, those of one rank together."""
    justify: JustifyMethod = "right"
    least: int | None = None
    """Columns of a terminal that its text has at least where it may continue in the next line."""


class Fitted(NamedTuple):
    """A table that fits, and what was left out of it."""

    table: Table
    left_out: list[str]
    needed: int
    """Columns of a terminal in which nothing is left out."""


def fitted(
    title: str | None,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Text]],
    console: Console,
    *,
    frame: Box | None = box.SIMPLE_HEAD,
) -> Fitted:
    """Make a table of the columns that a terminal has room for; a file or a pipe has room for all.

    Columns without any figure are left out before others.
    """
    ranks: dict[tuple[bool, int], set[int]] = {}
    for i, c in enumerate(columns):
        if c.rank != ALWAYS:
            empty = all(r[i] == NONE for r in rows)
            ranks.setdefault((empty, c.rank), set()).add(i)
    order = [ranks[rank] for rank in sorted(ranks)]
    shown = set(range(len(columns)))

    def made(**more: Any) -> Table:
        return _table(title, columns, rows, sorted(shown), frame, **more)

    def fits() -> bool:
        return _width(made(least=True), console) <= console.width

    needed = _width(made(), console)
    if not console.is_terminal:
        console.width = max(console.width, needed)
    out: list[set[int]] = []
    while not fits() and order:
        out.append(order.pop())
        shown -= out[-1]
    for group in reversed(
        out
    ):  # A narrow column may fit where a wide one of a lower rank does not.
        shown |= group
        if not fits():
            shown -= group
    left_out = [c.name for i, c in enumerate(columns) if i not in shown]
    return Fitted(made(fold=not fits()), left_out, needed)


def show_table(
    title: str | None,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Text]],
    console: Console,
    *,
    frame: Box | None = box.SIMPLE_HEAD,
) -> None:
    """Print a table that fits, and which columns were left out."""
    table, left_out, needed = fitted(title, columns, rows, console, frame=frame)
    console.print(table)
    if left_out:
        names = ", ".join(left_out)
        console.print(
            f"Not shown: {names}. {needed} columns show all, and so does a pipe (| cat).\n",
            markup=False,
        )


def _table(
    title: str | None,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Text]],
    shown: Sequence[int],
    frame: Box | None,
    *,
    least: bool = False,
    fold: bool = False,
) -> Table:
    """Make a table of some columns.

    `least` is for measuring: columns whose text may continue below take no more than they must. With `fold` it
    goes on below in every column.
    """
    table = Table(
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        box=frame,
        collapse_padding=frame is not None,
        pad_edge=False,
    )
    for i in shown:
        c = columns[i]
        whole = c.least is None and not fold
        most = c.least if least else None
        table.add_column(
            Text(c.name), justify=c.justify, no_wrap=whole, overflow="fold", max_width=most
        )
    for row in rows:
        cells = [row[i] for i in shown]
        table.add_row(*(Text(c) if isinstance(c, str) else c for c in cells))
    return table


def _width(table: Table, console: Console) -> int:
    """Return the columns of a terminal that a table takes."""
    return Measurement.get(console, console.options.update(max_width=UNBOUNDED), table).maximum
