"""Cellular traces: generated ones, or a directory of recorded ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from gargalo import trace_generate
from gargalo.studies import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.studies import Profile


@dataclass(frozen=True, kw_only=True)
class Traces(Settings):
    """Settings of a study with cellular traces."""

    traces: str = ""
    """A directory of recorded ones. Default: generated."""
    trace_s: int
    """How long a trace is used."""
    trace_repeat: int
    """How many of each generated kind there are at least."""
    _files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Where traces are: files, one for each repeat, by name."""
    _set: Mapping[str, str] = field(default_factory=dict)
    """Where the traces are that the order is judged by: a file by name."""


@dataclass(frozen=True)
class Model:
    """A kind of cellular network in the model of Sprout (NSDI 2013)."""

    initial_rate: str
    max_rate: str
    volatility: float
    """In packets/s per square root of a second."""
    outage_escape: float
    """Per second."""

    def text(self, seed: int, duration: str) -> str:
        """Return a trace; the same for the same seed."""
        return trace_generate(
            seed=seed,
            duration=duration,
            initial_rate=self.initial_rate,
            max_rate=self.max_rate,
            volatility=self.volatility,
            outage_escape=self.outage_escape,
        )


MODELS = {
    "cellular-a": Model("16Mbit/s", "48Mbit/s", 1000.0, 10.0),
    "cellular-b": Model("3Mbit/s", "6Mbit/s", 100.0, 5.0),
}
"""One as fast and as variable as LTE, and a slow one with longer outages, as in older networks."""
MOST_MBPS = (6, 12, 24, 48)
VOLATILITIES = (100, 300, 1000)
ESCAPES = (1, 10)
SEEDS = 2
"""The set: all combinations around the values of Sprout's paper (11 Mbit/s, 200, 1), each with two seeds. It was chosen
before any run on it; that equal ones count once, later."""
DURATION = "300s"
SEED = 50


def prepare(profile: Profile, directory: Path) -> Profile:
    """Find the recorded traces that the setting `traces` names, or generate some in a directory.

    A recorded trace serves all repeats; of a generated kind each repeat has a trace of its own.

    Raises:
        ValueError: The directory has no traces.

    """
    settings = Traces.of(profile)
    repeats = max(profile.repeat, settings.trace_repeat)
    given = settings.traces
    files = recorded(Path(given)) if given else generated(directory / "traces", repeats)
    return replace(profile, settings=replace(settings, _files=files))


def prepare_all(profile: Profile, directory: Path) -> Profile:
    """Prepare traces as `prepare` does, and the set that the order is judged by: the recorded ones, or all generated.

    Raises:
        ValueError: The directory has no traces.

    """
    made = prepare(profile, directory)
    settings = Traces.of(made)
    files = (
        {name: f[0] for name, f in settings._files.items()}
        if settings.traces
        else generated_set(directory / "traces" / "set")
    )
    return replace(made, settings=replace(settings, _set=files))


def generated_set(directory: Path) -> dict[str, str]:
    """Write the set of traces, unless it is there; return the files by name.

    Two that are the same, because no outage came in them, count once.
    """
    directory.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    texts: set[str] = set()
    for most, volatility, escape in product(MOST_MBPS, VOLATILITIES, ESCAPES):
        model = Model(f"{most / 2:g}Mbit/s", f"{most}Mbit/s", volatility, escape)
        for seed in range(SEEDS):
            name = f"{most} Mbit/s, {volatility}, {escape}: {seed}"
            path = directory / f"{most}-{volatility}-{escape}-{seed}.trace"
            text = model.text(SEED + seed, "30s")
            if text in texts:
                continue
            texts.add(text)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            files[name] = str(path)
    return files


def set_of(profile: Profile) -> dict[str, str]:
    """Return the set of traces; none before `prepare_all`."""
    return dict(Traces.of(profile)._set)


def recorded(directory: Path) -> dict[str, list[str]]:
    """Return the traces of a directory: files named .down, .up or .trace, in the order of names."""
    found = sorted(p for p in directory.glob("*") if p.suffix in (".down", ".up", ".trace"))
    if not found:
        msg = f"traces = {directory}: no file there ends in .down, .up or .trace"
        raise ValueError(msg)
    return {p.name: [str(p)] for p in found}


def generated(directory: Path, repeats: int) -> dict[str, list[str]]:
    """Write a trace for each kind and repeat, unless it is there; return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[str]] = {}
    for name, model in MODELS.items():
        files[name] = []
        for repeat in range(repeats):
            path = directory / f"{name}-{repeat}.trace"
            text = model.text(SEED + repeat, DURATION)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            files[name].append(str(path))
    return files


def trace_of(profile: Profile, name: str, repeat: int) -> str:
    """Return the file of a trace in a repeat."""
    files = Traces.of(profile)._files[name]
    return files[repeat % len(files)]


def names(profile: Profile) -> list[str]:
    """Return the traces there are; none before `prepare`."""
    return list(Traces.of(profile)._files)
