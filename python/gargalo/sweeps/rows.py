"""What workers send of finished runs: plain values and the engine's own bytes, of which files are made elsewhere.

So a worker does without the library of data frames unless it measures with it, and one file has many short runs.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gargalo.sweeps.checksum import to_parquet

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

RUNS = "runs"
"""The table that has the row of each finished run."""
RUN = "run"
"""The first column of every table."""


class Row(NamedTuple):
    """A table of one row, without the identifier of its run."""

    names: tuple[str, ...]
    kinds: str
    """A letter for each column: `f` a number, `i` a whole one, `b` true or false, `s` text."""
    values: tuple[Any, ...]

    @classmethod
    def of(cls, columns: Mapping[str, tuple[str, Any]]) -> Row:
        """Return the row of some columns, each with its kind and value."""
        kinds = "".join(kind for kind, _ in columns.values())
        return cls(tuple(columns), kinds, tuple(value for _, value in columns.values()))


class Stream(NamedTuple):
    """A table as an Arrow stream, without the identifier of its run."""

    data: bytes


Table: TypeAlias = Row | Stream | bytes
"""A table of a run; bytes are a whole file."""
Tables: TypeAlias = "Mapping[str, Table]"
"""Tables by name."""


def files(tables: Tables, run: str) -> dict[str, bytes]:
    """Return the files of a run by table."""
    return {
        name: table if isinstance(table, bytes) else to_parquet(frame_of(run, table))
        for name, table in tables.items()
    }


def frames(tables: Mapping[str, Row | Stream]) -> list[tuple[pl.DataFrame, list[str]]]:
    """Return the rows of a table of several runs, and which runs: a frame for each set of columns."""
    import polars as pl

    alike: dict[Any, list[tuple[str, Row]]] = {}
    found: dict[Any, list[tuple[str, pl.DataFrame]]] = {}
    for run, table in tables.items():
        if isinstance(table, Row):
            alike.setdefault((table.names, table.kinds), []).append((run, table))
        else:
            frame = frame_of(run, table)
            found.setdefault(tuple(frame.schema.items()), []).append((run, frame))
    return [
        *((_rows(given), [run for run, _ in given]) for given in alike.values()),
        *((pl.concat([f for _, f in some]), [run for run, _ in some]) for some in found.values()),
    ]


def frame_of(run: str, table: Row | Stream) -> pl.DataFrame:
    """Return a table of a run with its identifier."""
    if isinstance(table, Row):
        return _rows([(run, table)])
    import polars as pl

    frame = pl.read_ipc_stream(io.BytesIO(table.data))
    return frame.select(pl.lit(run).alias(RUN), pl.all())


def _rows(given: list[tuple[str, Row]]) -> pl.DataFrame:
    import polars as pl

    kinds = {"f": pl.Float64, "i": pl.Int64, "b": pl.Boolean, "s": pl.String}
    first = given[0][1]
    columns = zip(*(row.values for _, row in given), strict=True)
    return pl.DataFrame(
        [
            pl.Series(RUN, [run for run, _ in given], pl.String),
            *(
                pl.Series(name, values, kinds[kind], strict=False)
                for name, kind, values in zip(first.names, first.kinds, columns, strict=True)
            ),
        ]
    )
