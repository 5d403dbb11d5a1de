"""What a run produced: tables, a summary, pictures."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, reading
from gargalo.names import flow_names
from gargalo.quantities import decimal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from gargalo.explaining import Story
    from gargalo.notebook import Page
    from gargalo.plots import Plots
    from gargalo.scenarios.setup import Setup

MOST_TABLE = 1 << 40
"""Bytes of a table: no bound but that of a file which has an end."""
MOST_TOLD = 3
ALL = sys.maxsize
"""Rows of a table: all."""
TABLES = tuple(str(table["name"]) for table in _core.tables())


def table_of(result: _core.RunResult, name: str) -> pl.DataFrame:
    """Return a table of a finished run; the data-frame library is loaded with the first one."""
    import polars as pl

    return pl.read_ipc_stream(io.BytesIO(result.table(name)))


def rows_of(table: Callable[[str], pl.DataFrame]) -> Callable[[str, int], list[dict[str, Any]]]:
    """Return what reads the first rows of tables that are there as data frames."""
    return lambda name, most: table(name).head(most).to_dicts()


def empty() -> pl.DataFrame:
    """Return a table without rows and columns."""
    import polars as pl

    return pl.DataFrame()


@dataclass(frozen=True)
class Run:
    """A finished run; tables are Polars data frames in SI, as in the Parquet files."""

    summary: dict[str, Any]
    """Figures of the whole run."""
    info: dict[str, Any]
    """Seed, packets, events, wall time, warnings."""
    scenario: dict[str, Any]
    """The scenario with every default written out: `gargalo.run(run.scenario)` does the same."""
    _setup: Callable[[], Setup] = field(repr=False)
    source: dict[str, Any]
    """The scenario as it was given: `text`, `path` of its file or None, `set` with the changes."""
    interrupted: bool
    """The run was stopped before its end."""
    directory: Path | None = None
    """Where the files are, if they were written."""
    _table: Callable[[str], pl.DataFrame] = field(repr=False, default=lambda _: empty())
    _rows: Callable[[str, int], list[dict[str, Any]]] = field(repr=False, default=lambda _, __: [])
    """The first rows of a table, without the library of data frames if it is not needed."""
    _commands: Sequence[dict[str, Any]] | None = field(repr=False, default=None)
    _stream: Callable[[str], bytes] | None = field(repr=False, default=None)
    """A table as the engine's Arrow stream; None of what the engine did not just run."""

    @classmethod
    def of(cls, result: _core.RunResult, directory: Path | None) -> Run:
        """Wrap what the engine returned."""
        from gargalo.scenarios.setup import Setup

        facts = json.loads(result.json)
        return cls(
            summary=facts["summary"],
            info=facts["run"],
            scenario=json.loads(result.scenario),
            _setup=lambda: Setup.read(json.loads(result.setup)),
            source=json.loads(result.source),
            interrupted=result.interrupted,
            directory=directory,
            _table=lambda name: table_of(result, name),
            _rows=lambda name, most: json.loads(result.rows(name, most)),
            _commands=facts.get("commands"),
            _stream=result.table,
        )

    @cached_property
    def setup(self) -> Setup:
        """What the engine made of the scenario: nodes, links and flows in SI."""
        return self._setup()

    @cached_property
    def links(self) -> list[dict[str, Any]]:
        """Each link direction: utilization, drops, queueing delay; the rows of the table `links`."""
        return self._rows("links", ALL)

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per flow."""
        return self._table("flows")

    @cached_property
    def names(self) -> Mapping[int, str]:
        """Names by which the flows can be told apart, by number."""
        return flow_names(self.flows.select("id", "label", "from", "to").iter_rows(named=True))

    @cached_property
    def flow_samples(self) -> pl.DataFrame:
        """A row per flow and sampling instant: window, round-trip time, rates."""
        return self._table("flow_samples")

    @cached_property
    def link_samples(self) -> pl.DataFrame:
        """A row per link direction and sampling instant: queue, drops, utilization."""
        return self._table("link_samples")

    @cached_property
    def events(self) -> pl.DataFrame:
        """A row per protocol event: losses, timeouts, recoveries."""
        return self._table("events")

    @cached_property
    def gauges(self) -> pl.DataFrame:
        """A row per internal quantity of a congestion control and sample (with `record.gauges`)."""
        return self._table("gauges")

    @cached_property
    def objects(self) -> pl.DataFrame:
        """A row per object that a flow asked for: when, first and last byte."""
        return self._table("objects")

    @cached_property
    def datagrams(self) -> pl.DataFrame:
        """A row per datagram of flows over UDP that arrived: when, and how long it took (with `record.datagrams`)."""
        return self._table("datagrams")

    @cached_property
    def media_frames(self) -> pl.DataFrame:
        """A row per frame of a call's encoder (workload `media`): when it was encoded and when it had arrived."""
        return self._table("media_frames")

    @cached_property
    def pings(self) -> pl.DataFrame:
        """A row per echo request of a ping: when it was sent, its round trip, one-way delays, whether it was lost."""
        return self._table("pings")

    @cached_property
    def packets(self) -> pl.DataFrame:
        """A row per packet with data in a recording of TCP: when it was sent and acknowledged (`read --packets`)."""
        return self._table("packets")

    @cached_property
    def subflows(self) -> pl.DataFrame:
        """A row per subflow of Multipath TCP or path of multipath QUIC: its path, what it carried, round-trip times."""
        return self._table("subflows")

    @cached_property
    def subflow_samples(self) -> pl.DataFrame:
        """A row per subflow and sampling instant: window, round-trip time, rates."""
        return self._table("subflow_samples")

    def table(self, name: str) -> pl.DataFrame:
        """Return a table by its name, as `gargalo list tables` has them; `links` is a data frame here, too.

        Raises:
            ValueError: There is no such table.

        """
        if name not in TABLES:
            msg = f'there is no table "{name}"; tables are {", ".join(TABLES)}'
            raise ValueError(msg)
        found: pl.DataFrame = self._table(name) if name == "links" else getattr(self, name)
        return found

    @property
    def plot(self) -> Plots:
        """Pictures: `run.plot.congestion_window()`, `.goodput()`, `.rtt()`, `.queue()`, `.paths()`, …."""
        from gargalo.plots import Plots

        return Plots(self)

    def explain(self) -> Story:
        """Return what happened, in sentences, as `gargalo explain` prints it."""
        from gargalo.explaining import explain

        return explain(self)

    def explore(self, panels: Sequence[str] | None = None) -> Page:
        """Return the page of `gargalo explore` with this run, which a notebook shows; nothing in it can be changed.

        `panels` are names of metrics, as `gargalo plot --metric` has them; by default the usual ones.
        """
        from gargalo.exploring import page
        from gargalo.notebook import Page

        return Page(page(self, panels))

    @property
    def is_recording(self) -> bool:
        """Whether it was read from captures: there is no scenario, and no figure of links."""
        return self.info.get("world") == "recorded"

    @property
    def commands(self) -> list[dict[str, Any]]:
        """Programs that ran in the lab: host, line, exit code, what they printed."""
        return list(self._commands or ())

    @property
    def ended_early(self) -> str | None:
        """Why the run ended early without being interrupted: it reached its memory limit."""
        return self.info.get("ended_early")

    @property
    def warnings(self) -> list[str]:
        """What a reader of the results should know."""
        return list(self.info.get("warnings", []))

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What the auditor found, each with `code`, `severity`, `subject`, `text` and `figures`."""
        return list(self.info.get("findings", []))

    def __repr__(self) -> str:
        """Return one line."""
        name, span = self.setup.name, self.setup.duration_s
        how = "recorded" if self.is_recording else f"seed {self.info.get('seed')}"
        where = "" if self.directory is None else f" in {str(self.directory)!r}"
        return f"<Run {name!r}: {how}, {self.flows.height} flows, {decimal(span)} s{where}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from gargalo import notebook

        return notebook.of_run(self)

    def to_json(self) -> dict[str, Any]:
        """Return what `gargalo run --json` prints."""
        facts = {
            "summary": self.summary,
            "flows": self._rows("flows", ALL),
            "subflows": self._rows("subflows", ALL),
            "links": self.links,
            "run": self.info,
        }
        return facts if self._commands is None else {**facts, "commands": self.commands}


def load(directory: str | Path) -> Run:
    """Read the results of an earlier run from its directory.

    Each file is compared with the directory's manifest before it is read; results of
    versions that wrote no manifest are not checked.

    Raises:
        FileNotFoundError: The directory has no results.
        RunError: A file is not what was written, or another version wrote it.

    """
    import polars as pl

    from gargalo.scenarios.setup import Setup

    path = Path(directory)
    info, summary = (_described(path, name) for name in ("run.json", "summary.json"))
    why = "damaged, or of another version of gargalo; run the scenario again"
    try:
        scenario = info.pop("scenario")
    except (KeyError, AttributeError):
        msg = f"{path}/run.json is {why}"
        raise _core.RunError(msg) from None
    try:
        # Older results have no setup: their scenario is what the engine made of it.
        setup = Setup.read(info.pop("setup", scenario))
    except (TypeError, KeyError, AttributeError, ValueError) as e:
        msg = f"{path}/run.json: its setup is {why} ({e})"
        raise _core.RunError(msg) from None
    source = info.pop("source", {})
    interrupted = info.pop("interrupted", False)

    # Damage of these is reported now, not when they are looked at.
    read = {name: _table(path, name) for name in ("flows", "subflows", "links")}
    if (links := info.pop("links", None)) is not None:
        # Older results have no table of them.
        try:
            read["links"] = pl.DataFrame(links, infer_schema_length=None)
        except (TypeError, ValueError, pl.exceptions.PolarsError) as e:
            msg = f"{path}/run.json: its links are {why} ({e})"
            raise _core.RunError(msg) from None

    def table(name: str) -> pl.DataFrame:
        return read[name] if name in read else _table(path, name)

    return Run(
        summary=summary,
        info=info,
        scenario=scenario,
        _setup=lambda: setup,
        source=source,
        interrupted=interrupted,
        directory=path,
        _table=table,
        _rows=rows_of(table),
        _commands=info.pop("commands", None),
    )


def _described(directory: Path, name: str) -> dict[str, Any]:
    """Return what a file in JSON of a results directory has."""
    file = directory / name
    try:
        if file.exists():
            _core.verify(directory, [name])
        found = json.loads(reading.data(file))
    except FileNotFoundError:
        msg = f"{directory} has no results of a run ({name} is missing)"
        raise FileNotFoundError(msg) from None
    except OSError as e:
        msg = f"{file} cannot be read: {reading.reason(e)}"
        raise _core.RunError(msg) from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        msg = f"{file} is damaged: it is no object in JSON; run the scenario again"
        raise _core.RunError(msg)
    return found


def _table(directory: Path, name: str) -> pl.DataFrame:
    """Return a table of a results directory; one that was not recorded is empty."""
    import polars as pl

    file = directory / f"{name}.parquet"
    _core.verify(directory, [file.name])
    if not file.exists() and name != "flows":
        return pl.DataFrame()
    found = parquet(file)
    lacking = [c for c in _columns(name) if c not in found.columns]
    if lacking:
        some = ", ".join(lacking[:MOST_TOLD])
        msg = f"{file} is damaged, or of another version of gargalo: it lacks the columns {some}"
        msg = f"{msg}{' and more' if len(lacking) > MOST_TOLD else ''}; run the scenario again"
        raise _core.RunError(msg)
    return found


def _columns(table: str) -> list[str]:
    """Return the names of the columns that a table has."""
    return [str(c["name"]) for t in _core.tables() if t["name"] == table for c in t["columns"]]


def parquet(file: Path) -> pl.DataFrame:
    """Read a table that Gargalo wrote.

    Raises:
        RunError: It is damaged, or is not there.

    """
    import polars as pl

    try:
        reading.check(file, MOST_TABLE)
        return pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as e:
        raise damaged(file, e) from None


def damaged(file: Path, error: BaseException) -> _core.RunError:
    """Return the error for a table that cannot be read."""
    why = reading.reason(error) if isinstance(error, OSError) else " ".join(str(error).split())
    msg = f"{file} is damaged, and a table cannot be read from it: {why}; run it again"
    return _core.RunError(msg)
