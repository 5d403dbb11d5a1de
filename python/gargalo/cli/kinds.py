"""What a word on the command line names, and the command that takes it."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gargalo import _core, reading
from gargalo._toml import TOMLDecodeError, loads
from gargalo.extras import MissingExtraError
from gargalo.scenarios import picoquic


@dataclass(frozen=True)
class Kind:
    """A kind of file or name."""

    name: str
    what: str
    """With its article."""
    remedy: str
    """What to do with one; `{}` is its place."""
    form: str = ""
    """What makes a file one."""


SCENARIO = Kind("scenario", "a scenario", "gargalo run {}")
SWEEP = Kind(
    "sweep",
    "a sweep",
    "gargalo sweep {}",
    'a sweep has scenario = "FILE.toml" and a table [axes]',
)
STUDY = Kind("study", "a study", "gargalo study {}")
FIRST_FIGURE = Kind(
    "study", STUDY.what, "gargalo study {}; gargalo example {} copies a first figure of it here"
)
"""A study of which an example has the name."""
ALGORITHM = Kind("algorithm", "a congestion control", "gargalo evaluate {}")
CLASSES = Kind(
    "classes",
    "a Python file that registers classes",
    "gargalo run FILE.toml --plugin {}, or gargalo evaluate {} for a congestion control",
)
PYTHON = Kind("program", "a Python program", "python {}")
SCRIPT = Kind("script", "a packet script", "gargalo script {}")
TRACE = Kind(
    "trace", "a packet-delivery trace", "gargalo trace info {}; a link names it in a scenario"
)
CAPTURE = Kind(
    "capture",
    "a packet capture",
    "gargalo read {} tells what its flows did, gargalo fit {} the path of one; Wireshark shows its packets",
)
KNOWN = Kind(
    "known",
    "a file of known failures",
    "gargalo stacks --matrix --known {}, or gargalo evaluate ALGORITHM --known {}",
)
LOG = Kind("log", "a log of connections", "gargalo read {} tells what they did")
RUN = Kind(
    "run",
    "the results of a run",
    "gargalo report {} makes a page of it, gargalo plot {} a picture, gargalo explain {} tells "
    "what happened; gargalo run {}/scenario.toml does the run again",
)
STORE = Kind(
    "store",
    "the store of a sweep",
    "gargalo report {} makes a page of it, gargalo plot {} a picture, gargalo export {} --csv tables",
)
STUDIED = Kind("study results", "the results of a study", "gargalo report {} makes a page of it")
SCORECARD = Kind("scorecard", "a scorecard", "open {}/scorecard.html")
SCORES = Kind(
    "scores",
    "the figures of a scorecard",
    "gargalo evaluate ALGORITHM --baseline {} compares with it",
)
EXAMPLE = Kind("example", "an example that comes with gargalo", "gargalo example {} copies it here")

_PLACES = (RUN, STORE, STUDIED, SCORECARD)
_FILES = (SCENARIO, SWEEP, CLASSES, PYTHON, SCRIPT, TRACE, CAPTURE, KNOWN, LOG, SCORES)
_NAMES = (STUDY, ALGORITHM, EXAMPLE)
KINDS = {k.name: k for k in (*_PLACES, *_FILES, *_NAMES)}
"""Kinds by name."""

MOST_NAMES = 3
LOOKED_AT = 1 << 16
"""Bytes at the beginning of a log by which it is known."""
CLUES = {
    "run.json": RUN,
    "store.json": STORE,
    "report.json": STUDIED,
    "report/report.json": STUDIED,
    "scorecard.json": SCORECARD,
}
"""The file that a directory of results has."""
REGISTERS = (
    "gargalo.congestion(",
    "gargalo.scheduler(",
    "gargalo.path_manager(",
    "gargalo.register(",
)


@dataclass(frozen=True)
class Found:
    """What was found at a place."""

    kind: Kind
    place: str
    """What the command takes: the path, or another if the file is a part of something."""

    @property
    def remedy(self) -> str:
        """What to do with it."""
        return self.kind.remedy.replace("{}", shlex.quote(self.place))


def instead(path: Path, *wanted: Kind, text: str | None = None) -> str | None:
    """Say what a place has that should have something else, and what takes it; None if that is not known.

    `text` is what was read from standard input instead.
    """
    if text is not None:
        kind = kind_of_text(text)
        if kind is None or kind in wanted:
            return None
        remedy = kind.remedy.replace("{}", "-")
        return f"standard input has {kind.what}, not {wanted[0].what}: {remedy}"
    found = find(path)
    if found is None and path.is_dir():
        return inside(path)
    if found is None:
        return unknown(path, wanted[0]) if path.exists() else similar(path)
    if found.kind in wanted:
        return None
    if not path.exists():
        named = f"there is no {path} here, but that is the name of {found.kind.what}"
        if found.kind is EXAMPLE:
            named = f"there is no {path} here; {found.place} is {found.kind.what}"
        return f"{named}: {found.remedy}"
    if found.place != str(path):
        return f"{path} belongs to {found.kind.what}: {found.remedy}"
    verb = "has" if path.is_dir() else "is"
    form = f"; {wanted[0].form}" if wanted[0].form else ""
    return f"{path} {verb} {found.kind.what}, not {wanted[0].what}: {found.remedy}{form}"


def unknown(path: Path, wanted: Kind) -> str | None:
    """Say what a file is that is of no kind and is not called as a scenario or a sweep; None of others."""
    if wanted not in (SCENARIO, SWEEP) or path.suffix == ".toml" or not path.is_file():
        return None
    try:
        loads(reading.text(path))
    except OSError:
        return None
    except UnicodeDecodeError:
        what = "it is not a text"
    except TOMLDecodeError:
        what = "it is a text, but not TOML"
    else:
        return None
    remedy = f"give {wanted.what}, a file in TOML"
    if wanted is SCENARIO:
        remedy = (
            "give a scenario in TOML (`gargalo new FILE.toml` writes a first one), or for explain, "
            "report and plot the directory of a run"
        )
    return f"{path} is not {wanted.what}: {what}; {remedy}"


def told(path: Path) -> str:
    """Say what takes a file that was given in the place of a command."""
    found = find(path)
    if found is not None:
        return found.remedy
    return SCENARIO.remedy.replace("{}", shlex.quote(str(path)))


def find(path: Path) -> Found | None:
    """Return what a place has, or what a name that is not a file is the name of."""
    if path.is_dir():
        kind = next((k for clue, k in CLUES.items() if (path / clue).is_file()), None)
        if kind is None and {p.suffix for p in path.iterdir()} & {".pkt", ".toml"} == {".pkt"}:
            kind = SCRIPT
        return None if kind is None else Found(kind, str(path))
    if path.is_file():
        return of_file(path)
    return of_name(str(path))


def of_file(path: Path) -> Found | None:
    """Return what a file is."""
    whole = CLUES.get(path.name)
    if whole is SCORECARD:
        return Found(SCORES, str(path))
    if path.suffix in (".parquet", ".json") and whole is None:
        beside = find(path.parent)
        return None if beside is None else Found(beside.kind, beside.place)
    if whole is not None:
        return Found(whole, str(path.parent))
    if path.name.removesuffix(".gz").endswith((".pcapng", ".pcap", ".cap")):
        return Found(CAPTURE, str(path))
    try:
        text = reading.text(path)
    except (OSError, UnicodeDecodeError):
        return None
    if path.suffix == ".py":
        return Found(CLASSES if any(r in text for r in REGISTERS) else PYTHON, str(path))
    kind = SCRIPT if path.suffix == ".pkt" else kind_of_text(text)
    return None if kind is None else Found(kind, str(path))


def kind_of_text(text: str) -> Kind | None:
    """Return what a text is."""
    if picoquic.is_one(text):
        return SCENARIO
    try:
        table: dict[str, Any] = loads(text)
    except TOMLDecodeError:
        try:
            _core.trace_info(text)
        except ValueError:
            return LOG if _core.kind_of_log(text[:LOOKED_AT].encode()[:LOOKED_AT]) else None
        return TRACE
    if "axes" in table or ("scenario" in table and "flows" not in table):
        return SWEEP
    if table.keys() == {"known"}:
        return KNOWN
    return SCENARIO if table.keys() & {"flows", "topology"} else None


def of_name(name: str) -> Found | None:
    """Return what a name that is not a file is the name of."""
    from gargalo.cli import bundled

    example = bundled.find(name)
    if example is not None:
        of_study = example.kind == "studies" and name == example.name
        return Found(FIRST_FIGURE if of_study else EXAMPLE, example.name)
    if Path(name).suffix or Path(name).name != name:
        return None
    if any(name in (a["name"], *a["aliases"]) for a in _core.congestion()):
        return Found(ALGORITHM, name)
    try:
        from gargalo.studies import STUDIES
    except MissingExtraError:
        return None  # A hint less.
    return Found(STUDY, name) if name in STUDIES else None


def inside(path: Path) -> str | None:
    """Say of a directory of nothing in particular what in it can be named."""
    try:
        names = [
            p for p in sorted(path.iterdir()) if p.suffix == ".toml" or (p.is_dir() and find(p))
        ]
    except OSError:
        names = []
    some = ", ".join(shlex.quote(str(p)) for p in names[:MOST_NAMES])
    return f"{path} is a directory; name what is in it, like {some}" if some else None


def similar(path: Path) -> str | None:
    """Say which files beside a place that does not exist have a similar name."""
    parent = path.parent
    if not parent.is_dir():
        return f"{path}: there is no directory {parent}" if path.parts[1:] else None
    names = sorted(p.name for p in parent.iterdir() if p.suffix == ".toml")
    stems = {Path(n).stem: n for n in names}
    close = [stems[s] for s in difflib.get_close_matches(path.stem, stems)]
    if not close:
        return None
    wanted = ", ".join(shlex.quote(str(parent / n)) for n in close)
    return f"there is no {path}; did you mean {wanted}?"
