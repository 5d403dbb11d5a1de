"""Running a study: what is missing in its store, then verdicts and the report."""

from __future__ import annotations

import copy
import json
import os
import shlex
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from gargalo import _core, judging, lab, reporting, writing
from gargalo.metrics._numbers import finite
from gargalo.reporting.model import (
    ClaimRow,
    Evidence,
    FigureBlock,
    Judgement,
    Report,
    TableBlock,
)
from gargalo.scenarios.scenario import to_toml
from gargalo.studies.model import Claim, Context, Reading, Study, inconclusive
from gargalo.sweeps import Job, Sweep, SweepError, execute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gargalo.judging import Profile
    from gargalo.scenarios.tables import ScenarioTable
    from gargalo.sweeps.progress import SweepProgress

STORES = Path("runs") / "studies"


@dataclass(frozen=True)
class Outcome:
    """What a study found."""

    study: Study
    profile: Profile
    sweep: Sweep
    claims: list[ClaimRow]
    page: Path
    """The HTML report."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """What this machine cannot do, by what needs it, and why."""
    all_packets: int = 0
    """Packets of all simulated runs, whenever they were done."""

    @property
    def command(self) -> str:
        """What makes the same again."""
        return command(self.study, self.profile)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from gargalo import notebook

        return notebook.of_outcome(self)

    def to_json(self) -> dict[str, Any]:
        """Return the facts: study, profile, engine, verdicts, command, runs, wall time, claims with evidence, report.

        `repeat` is the number of runs per cell. `verdicts` has the verdict of each claim by its identifier and the
        title of the reading, of hypotheses too; the title is empty if the study has one reading only. A run that
        readings share counts once. `packets` and `wall_s` are of the runs done now, `all_packets` of all that were
        simulated.
        """
        return {
            "study": self.study.name,
            "profile": self.profile.name,
            "repeat": self.profile.repeat,
            "engine": _core.__engine__,
            "verdicts": {c.id: {j.reading: j.verdict for j in c.judgements()} for c in self.claims},
            "command": self.command,
            "runs": self.sweep.plan["run"].n_unique(),
            "done": self.sweep.done,
            "reused": self.sweep.reused,
            "failed": len(self.sweep.failures),
            "packets": self.sweep.packets,
            "wall_s": self.sweep.wall_s,
            "all_packets": self.all_packets,
            "missing": dict(self.missing),
            "claims": [
                {
                    "id": c.id,
                    "text": c.text,
                    **judgement_json(c.judgements()[0]),
                    "others": [judgement_json(j) | {"tried": j.tried} for j in c.others],
                }
                for c in self.claims
            ],
            "findings": [f.to_json() for f in judging.findings(self.sweep)],
            "report": str(self.page),
            "report_bytes": self.page.stat().st_size,
        }


def judgement_json(found: Judgement) -> dict[str, Any]:
    """Return a verdict with its evidence as JSON."""
    return {
        "reading": found.reading,
        "verdict": found.verdict,
        "evidence": found.evidence
        if isinstance(found.evidence, str)
        else [evidence_json(e) for e in found.evidence],
        "explanation": found.explanation,
    }


def evidence_json(line: Evidence) -> dict[str, Any]:
    """Return a line of evidence as JSON."""
    return {
        key: finite(value) if isinstance(value, float) else value
        for key, value in asdict(line).items()
    }


def jobs_of(study: Study, profile: Profile) -> list[Job]:
    """Return all runs of a study, in each of its readings."""
    if not study.readings:
        chosen = study.experiments_of(profile)
        return [job for experiment in chosen for job in experiment.jobs(profile)]
    return [
        read_as(reading, job)
        for reading in study.readings_of(profile)
        for experiment in study.experiments_of(profile, reading)
        for job in experiment.jobs(profile)
        if reading.cells is None or reading.cells(job.labels)
    ]


def read_as(reading: Reading, job: Job) -> Job:
    """Return a run in a reading."""
    if not isinstance(job.scenario, dict):
        msg = f"the scenario of {dict(job.labels)} is not a dictionary, which readings change"
        raise TypeError(msg)
    labels = {**job.labels, "reading": reading.name}
    scenario = cast("ScenarioTable", copy.deepcopy(job.scenario))
    return replace(job, labels=labels, scenario=reading.apply(scenario))


def run_study(
    study: Study,
    profile: str = "quick",
    *,
    directory: Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    at_once: int | None = None,
    repeat: int | None = None,
    settings: Mapping[str, str] | None = None,
    progress: Callable[[SweepProgress], object] | None = None,
    facts: dict[str, str | int | float] | None = None,
    repair: bool = False,
) -> Outcome:
    """Do what is missing of a study, decide its claims and write its report.

    Args:
        study: Which one.
        profile: `quick` or `full`.
        directory: For the store and the report; by default `runs/studies/NAME/PROFILE`.
        workers: Processes; by default one for each core.
        cluster: Address of a Dask scheduler, instead of processes.
        at_once: Runs in the lab at the same time, instead of as many as the study says.
        repeat: Runs per cell, instead of the profile's.
        settings: Instead of some of the profile's, as text.
        progress: Called a few times a second.
        facts: More to say in the report, such as the date.
        repair: Move damaged files of the store aside, and do again what they held of these runs.

    Raises:
        KeyError: There is no such profile, or setting.
        ValueError: A setting cannot have that value.
        SweepError: A file in the earlier report was changed, or is not of the study; nothing has run. See also
            `gargalo.sweeps.execute`, as for the other errors.

    """
    chosen = profile_of(study, profile, repeat=repeat, settings=settings)
    root = directory or STORES / study.name / chosen.name
    ours = ("store", "report", "traces", "study.json", f"{study.name}.html")
    begun = (root / "store" / "store.json").is_file()
    if not begun and root.is_dir() and any(p.name not in ours for p in root.iterdir()):
        msg = f"{root} is not empty and is not a study: choose another directory"
        raise SweepError(msg)
    saved = root / "report"
    _core.recover(root)
    if os.path.lexists(saved):
        try:
            _core.replaceable(saved)
        except _core.RunError as e:
            raise SweepError(str(e)) from None
    asked, chosen = chosen, prepared(study, chosen, root)
    planned = jobs_of(study, chosen)
    jobs, missing = possible(planned)
    sweep = execute(
        jobs,
        root / "store",
        measure=study.measure,
        workers=workers,
        at_once=at_once or study.at_once,
        cluster=cluster,
        progress=progress,
        name=f"{study.name}-{chosen.name}",
        repair=repair,
    )
    context = Context(chosen, sweep.frame(), missing, study.bounds)
    claims = verdicts(study, context)
    report = build_report(study, context, sweep, claims, jobs, facts or {}, asked)
    reporting.save(report, saved)
    page = root / f"{study.name}.html"
    reporting.write(report, page)
    packets = int(total(simulated(context.frame), "packets"))
    outcome = Outcome(study, asked, sweep, claims, page, missing, packets)
    writing.replace(root / "study.json", json.dumps(outcome.to_json(), indent=1) + "\n")
    return outcome


def profile_of(
    study: Study,
    name: str,
    *,
    repeat: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> Profile:
    """Return a profile of a study with another number of runs and other settings.

    Raises:
        KeyError: There is no such profile, or setting.
        ValueError: A setting cannot have that value.

    """
    return change(study.profile(name).with_repeat(repeat), settings or {})


def command(study: Study, profile: Profile) -> str:
    """Return what does a study with a profile, which may have another number of runs and other settings.

    >>> from gargalo.studies import STUDIES
    >>> study = STUDIES["nsquic"]
    >>> command(study, profile_of(study, "full", repeat=2))
    'gargalo study nsquic --profile full --repeat 2'
    """
    usual = study.profile(profile.name)
    before, now = (
        {k: setting_text(v) for k, v in settings_of(p).items()} for p in (usual, profile)
    )
    words = ["gargalo", "study", study.name]
    if profile.name != "quick":
        words += ["--profile", profile.name]
    if profile.repeat != usual.repeat:
        words += ["--repeat", str(profile.repeat)]
    for name, text in now.items():
        if text != before[name]:
            words += ["--set", f"{name}={text}"]
    return shlex.join(words)


def settings_of(profile: Profile) -> dict[str, Any]:
    """Return the settings of a profile by name."""
    return {k: v for k, v in vars(profile.settings).items() if not k.startswith("_")}


def prepared(study: Study, profile: Profile, root: Path) -> Profile:
    """Make the files that runs of a study read in its directory; return the profile that says where they are."""
    return profile if study.prepare is None else study.prepare(profile, root)


def change(profile: Profile, settings: Mapping[str, str]) -> Profile:
    """Return a profile with other settings, each of the kind of the one before it.

    Raises:
        KeyError: There is no such setting.
        ValueError: The text is of another kind.

    """
    known = settings_of(profile)
    changed = {k: typed(k, v, judging.find("setting", k, known)) for k, v in settings.items()}
    return replace(profile, settings=replace(profile.settings, **changed))


def setting_text(value: Any) -> str:
    """Write a setting as `typed` reads it."""
    return value if isinstance(value, str) else json.dumps(value)


def typed(name: str, text: str, before: Any) -> Any:
    """Read a setting as what it was before: text as it is, other things as JSON."""
    if isinstance(before, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(before, bool):
        fits = isinstance(value, bool)
    elif isinstance(before, int):
        fits = isinstance(value, int) and number
    elif isinstance(before, float):
        fits, value = number, float(value) if number else value
    else:
        fits = isinstance(value, list if isinstance(before, tuple) else type(before))
    if not fits:
        msg = f"the setting {name} is like {json.dumps(before)}, not {text}"
        raise ValueError(msg)
    return value


def possible(jobs: list[Job]) -> tuple[list[Job], dict[str, str]]:
    """Return the runs that this machine can do, and what it cannot do and why."""
    missing: dict[str, str] = {}
    found = []
    for job in jobs:
        controls = kernel_controls(job)
        for control in controls:
            reason = lab.refusal(control)
            if reason is not None:
                # If the kernel's default does not work either, nothing in the lab works.
                whole = lab.refusal() is not None
                missing["lab" if whole else f"lab: {control}"] = reason
                break
        else:
            found.append(job)
    return found, missing


def kernel_controls(job: Job) -> list[str]:
    """Return the congestion controls that a run in the lab needs of the kernel."""
    scenario = job.scenario
    if job.world != "lab" or not isinstance(scenario, dict):
        return []
    usual = scenario.get("lab", {}).get("stack")
    kernel = {n for n, h in scenario.get("hosts", {}).items() if h.get("stack") == "kernel"}
    if not kernel and usual != "kernel":
        return []
    named = (
        options.get("congestion", "cubic")
        for flow in scenario["flows"]
        if usual == "kernel" or flow["from"] in kernel
        for kind, options in flow["transport"].items()
        if kind in ("tcp", "mptcp")
    )
    return ["cubic", *dict.fromkeys(n if isinstance(n, str) else next(iter(n)) for n in named)]


def verdicts(study: Study, context: Context) -> list[ClaimRow]:
    """Decide every claim, in each reading that judges it."""
    readings = study.readings_of(context.profile)
    seen = [(r, context.of(r)) for r in readings]
    chosen = {e.name for e in study.experiments_of(context.profile)}
    rows = []
    for claim in study.claims:
        left_out = [e for e in claim.experiments if e not in chosen]
        found = [judged(claim, c, left_out, r) for r, c in seen if r.judges(claim)]
        first, *others = found or [judged(claim, context, left_out)]
        explanation = first.explanation
        of_work = not readings or first.reading == study.readings[0].title
        if of_work and first.verdict == "contradicted" and claim.because:
            explanation = f"{explanation}. {claim.because}" if explanation else claim.because
        row = ClaimRow(claim.id, claim.text, first.verdict, first.evidence, explanation)
        rows.append(replace(row, reading=first.reading, others=others))
    return rows


def judged(
    claim: Claim, context: Context, left_out: Sequence[str], reading: Reading | None = None
) -> Judgement:
    """Decide a claim by what there is of a reading, unless the profile leaves out experiments that it needs."""
    if left_out:
        found = inconclusive([], f"the profile leaves out {', '.join(left_out)}")
    else:
        found = claim.check(context)
    return Judgement(
        "" if reading is None else reading.title,
        found.verdict,
        found.evidence,
        found.explanation,
        tried=reading is not None and reading.claims is not None,
    )


def simulated(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that were not in the lab, each once: readings may share runs."""
    if "late_max_s" in frame.columns:
        frame = frame.filter(pl.col("late_max_s").is_null())
    return frame.unique("run", maintain_order=True)


def total(frame: pl.DataFrame, column: str) -> float:
    """Return the sum of a column, which is not there if no run was done."""
    return float(frame[column].sum()) if column in frame.columns else 0.0


def real_time(frame: pl.DataFrame) -> dict[str, str | int | float]:
    """Return what a report says of the runs in the lab."""
    if "late_max_s" not in frame.columns:
        return {}
    rows = frame.filter(pl.col("late_max_s").is_not_null()).unique("run", maintain_order=True)
    if rows.height == 0:
        return {}
    late = rows["late_p99_s"]
    return {
        "runs in real time": rows.height,
        "lateness of packets, p99 of a run, in ms: median": milliseconds(late.median()),
        "lateness of packets, p99 of a run, in ms: worst": milliseconds(late.max()),
        "kernel": ", ".join(sorted(set(rows["kernel"].drop_nulls()))),
    }


def warned(frame: pl.DataFrame) -> list[str]:
    """Return a note on runs that had warnings: some in the lab, if the machine was busy."""
    if "warnings" not in frame.columns:
        return []
    told = frame["warnings"].drop_nulls()
    if told.len() == 0:
        return []
    return [f"{told.len()} of {frame.height} runs had warnings, the first: {told[0]}."]


def milliseconds(seconds: Any) -> float:
    """Return a time for a report."""
    return round(1e3 * float(seconds or 0.0), 3)


def blocks(
    study: Study, context: Context, claims: list[ClaimRow]
) -> tuple[list[FigureBlock], list[TableBlock]]:
    """Return the figures and tables: of every reading that judges all claims, after the verdicts in all of them."""
    readings = study.readings_of(context.profile)
    if not readings:
        return study.figures(context), study.tables(context)
    figures: list[FigureBlock] = []
    rows = [{"claim": c.id, **{j.reading: j.verdict for j in c.judgements()}} for c in claims]
    columns = ["claim", *(r.title for r in readings)]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String))
    tables = [
        TableBlock("Verdicts by reading", "Empty where a hypothesis is not of a claim.", frame)
    ]
    for reading in readings:
        if reading.claims is None:
            seen = context.of(reading)
            figures += [
                replace(b, title=f"{b.title}: {reading.title}") for b in study.figures(seen)
            ]
            tables += [replace(b, title=f"{b.title}: {reading.title}") for b in study.tables(seen)]
    return figures, tables


def at_a_glance(claims: list[ClaimRow]) -> dict[str, str]:
    """Return how many claims have which verdict, in every reading that judges all of them."""
    counts: dict[str, int] = {}
    for claim in claims:
        for found in claim.judgements():
            if not found.tried:
                name = f"{found.reading}: {found.verdict}" if found.reading else found.verdict
                counts[name] = counts.get(name, 0) + 1
    return {name: f"{n} of {len(claims)} claims" for name, n in sorted(counts.items())}


def build_report(
    study: Study,
    context: Context,
    sweep: Sweep,
    claims: list[ClaimRow],
    jobs: list[Job],
    facts: dict[str, str | int | float],
    asked: Profile,
) -> Report:
    """Put the report together; `asked` is the profile before the study prepared files for it."""
    frame = context.frame
    virtual = simulated(frame)
    examples: dict[str, str] = {}
    for job in jobs:
        name = f"{job.labels['experiment']}.toml"
        if name not in examples and isinstance(job.scenario, dict):
            examples[name] = to_toml(job.scenario)
    figures, tables = blocks(study, context, claims)
    notes = [*study.notes]
    notes += [f"{r.title}: {r.description}" for r in study.readings_of(context.profile)]
    notes += map(str, judging.findings(sweep))
    notes += warned(frame)
    notes += [f"Not done here: {what}. {why}" for what, why in context.missing.items()]
    if sweep.failures:
        notes.append(f"{len(sweep.failures)} runs failed: {sweep.failures[0].reason}")
    return Report(
        title=study.title,
        subtitle=f"{study.description} Profile {context.profile.name}: {context.profile.description}",
        claims=claims,
        figures=figures,
        tables=tables,
        scenarios=examples,
        commands=[command(study, asked)],
        facts={
            "source": study.source,
            "engine": f"gargalo {_core.__engine__}",
            "runs": sweep.plan["run"].n_unique(),
            "repeats per cell": context.profile.repeat,
            "packets simulated": int(total(virtual, "packets")),
            "time of all simulations, in s of one core": round(total(virtual, "wall_s"), 1),
            **real_time(frame),
            **facts,
        },
        highlights=at_a_glance(claims),
        notes=notes,
        algorithms=list(study.algorithms),
    )
