"""One run of a study, chosen by its labels, as a scenario of its own."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gargalo import _core, judging, running
from gargalo.scenarios.scenario import to_toml
from gargalo.studies.running import jobs_of, prepared
from gargalo.sweeps.job import Source
from gargalo.sweeps.model import label_names
from gargalo.sweeps.running import repeats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gargalo.judging import Profile
    from gargalo.studies.model import Study
    from gargalo.sweeps import Job
    from gargalo.sweeps.job import Label

MOST_VALUES = 12
"""Values of a label that a message lists."""


class CellError(ValueError):
    """No run has the labels that were requested, or several have."""


def cell(study: Study, profile: Profile, wanted: Mapping[str, str], root: Path) -> Job:
    """Return the run of a study that has some labels, given as text.

    Files that it reads are written into the directory, as `run_study` does.

    Raises:
        CellError: No run or several have them; the message has the labels and values there are.
        KeyError: There is no such reading.
        ValueError: The files that runs read cannot be made.

    """
    return choose(jobs_of(study, narrowed(study, prepared(study, profile, root), wanted)), wanted)


def narrowed(study: Study, profile: Profile, wanted: Mapping[str, str]) -> Profile:
    """Leave other experiments and readings than those that are named out: some plans take a minute to make."""
    known = {
        "experiment": [e.name for e in study.experiments_of(profile)],
        "reading": [r.name for r in study.readings_of(profile)],
    }
    named = {f"{k}s": (wanted[k],) for k, names in known.items() if wanted.get(k) in names}
    return replace(profile, settings=replace(profile.settings, **named))


def choose(jobs: Sequence[Job], wanted: Mapping[str, str]) -> Job:
    """Return the run that has some labels, given as text; each run has the label `repeat`, too.

    Raises:
        CellError: No run or several have them.

    """
    counted = zip(jobs, repeats(jobs, label_names(jobs)), strict=True)
    left = [replace(j, labels={**j.labels, "repeat": r}, repeat=r) for j, r in counted]
    names = dict.fromkeys(name for job in left for name in job.labels)
    for i, (name, text) in enumerate(wanted.items()):
        try:
            judging.find("label", name, names)
        except KeyError as e:
            raise CellError(e.args[0]) from None
        found = [j for j in left if name in j.labels and is_written(j.labels[name], text)]
        if not found:
            given = ", ".join(f"{k} = {v}" for k, v in list(wanted.items())[:i])
            raise CellError(without(left, name, text, given))
        left = found
    if len(left) > 1:
        raise CellError(ambiguous(left))
    return left[0]


def is_written(value: Label, text: str) -> bool:
    """Whether text stands for a label: numbers may be written in any form, as 5 for 5.0."""
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if isinstance(value, str):
        return text == value
    try:
        return float(text) == value
    except ValueError:
        return False


def without(jobs: Sequence[Job], name: str, text: str, given: str) -> str:
    """Say that no run has a label, and what the nearest are."""
    runs = f"none of the runs with {given}" if given else "no run"
    values = values_of(jobs, name)
    if not values:
        known = dict.fromkeys(k for j in jobs for k in j.labels)
        return f'{runs} has a label "{name}"; they have {", ".join(known)}'
    near = nearest(text, values)
    hint = f"did you mean {written(near)}?" if near is not None else f"there are {listed(values)}"
    return f"{runs} has {name} = {text}; {hint}"


def nearest(text: str, values: Sequence[Label]) -> Label | None:
    """Return the label that text was probably meant for: the next number, or a similar word."""
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    try:
        wanted = float(text)
    except ValueError:
        words = {str(v): v for v in values}
        found = _core.nearest(text, list(words))
        return None if found is None else words[found]
    if not numbers or not math.isfinite(wanted):
        return None
    return min(numbers, key=lambda v: abs(v - wanted))


def ambiguous(jobs: Sequence[Job]) -> str:
    """Say which labels still differ among runs, and their values, those of the most runs first."""
    told = [f"{len(jobs)} runs match; choose with --cell among"]
    for name in dict.fromkeys(name for job in jobs for name in job.labels):
        values = values_of(jobs, name)
        everywhere = all(name in j.labels for j in jobs)
        if len(values) > 1 or not everywhere:
            told.append(f"  {name} = {listed(values)}")
    return "\n".join(told)


def values_of(jobs: Sequence[Job], name: str) -> list[Label]:
    """Return the values of a label: numbers in their order, others in that of the runs."""
    found = dict.fromkeys(j.labels[name] for j in jobs if name in j.labels)
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in found):
        return sorted(found)
    return list(found)


def listed(values: Sequence[Label]) -> str:
    """Write the first values, and how many more there are."""
    shown = ", ".join(map(written, values[:MOST_VALUES]))
    more = len(values) - MOST_VALUES
    return f"{shown}, … ({more} more)" if more > 0 else shown


def written(value: Label) -> str:
    """Write a label as `--cell` takes it in a shell."""
    if isinstance(value, str):
        return shlex.quote(value)
    return str(value).lower() if isinstance(value, bool) else f"{value:.12g}"


def scenario_of(job: Job) -> tuple[Any, dict[str, Any]]:
    """Return the scenario of a run and what is changed in it, as `gargalo.run` takes them."""
    given = job.scenario
    if isinstance(given, Source):
        given = given.text if given.path is None else running.Text(given.text, given.path)
    return given, {**job.changes, "seed": job.seed}


def toml(job: Job, about: str) -> str:
    """Return a run as a scenario that runs as it is: its text, below comments on what it is and how to run it."""
    scenario, changes = scenario_of(job)
    if isinstance(scenario, dict) and not job.changes:
        text = to_toml({**scenario, "seed": job.seed})
    else:
        text = running.resolve_toml(scenario, set=changes)
    labels = ", ".join(f"{k} = {written(v)}" for k, v in job.labels.items())
    where = " --world lab" if job.world == "lab" else ""
    return f"# {about}: {labels}\n# gargalo run FILE{where}\n{text}"
