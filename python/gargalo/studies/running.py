"""Running a study: what is missing in its store, then verdicts and the report."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import __version__, reporting
from gargalo.reporting.model import ClaimRow, Evidence, Report
from gargalo.scenario import to_toml
from gargalo.studies.model import Context, Finding, Profile, Study
from gargalo.sweeps import Job, Sweep, execute

if TYPE_CHECKING:
    from collections.abc import Callable

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

    def to_json(self) -> dict[str, Any]:
        """Return the facts: study, profile, runs, wall time, claims, report."""
        return {
            "study": self.study.name,
            "profile": self.profile.name,
            "runs": self.sweep.plan.height,
            "done": self.sweep.done,
            "reused": self.sweep.reused,
            "failed": len(self.sweep.failures),
            "packets": self.sweep.packets,
            "wall_s": self.sweep.wall_s,
            "claims": [
                {
                    "id": c.id,
                    "text": c.text,
                    "verdict": c.verdict,
                    "evidence": c.evidence
                    if isinstance(c.evidence, str)
                    else [evidence_json(e) for e in c.evidence],
                    "explanation": c.explanation,
                }
                for c in self.claims
            ],
            "report": str(self.page),
        }


def evidence_json(line: Evidence) -> dict[str, Any]:
    """Return a line of evidence as JSON knows it."""
    return {
        key: finite(value) if isinstance(value, float) else value
        for key, value in asdict(line).items()
    }


def finite(value: float) -> float | None:
    """Return a number, or None for what JSON cannot say."""
    return value if math.isfinite(value) else None


def jobs_of(study: Study, profile: Profile) -> list[Job]:
    """Return all runs of a study."""
    return [job for experiment in study.experiments for job in experiment.jobs(profile)]


def run_study(
    study: Study,
    profile: str = "quick",
    *,
    directory: Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    repeat: int | None = None,
    progress: Callable[[SweepProgress], object] | None = None,
    facts: dict[str, str | int | float] | None = None,
) -> Outcome:
    """Do what is missing of a study, decide its claims and write its report.

    Args:
        study: Which one.
        profile: `quick` or `full`.
        directory: For the store and the report; by default `runs/studies/NAME/PROFILE`.
        workers: Processes; by default one for each core.
        cluster: Address of a Dask scheduler, instead of processes.
        repeat: Runs per cell, instead of the profile's.
        progress: Called a few times a second.
        facts: More to say in the report, such as the date.

    Raises:
        KeyError: There is no such profile.
        SweepError: See `gargalo.sweeps.execute`, as for the other errors.

    """
    chosen = study.profile(profile)
    if repeat is not None:
        chosen = replace(chosen, repeat=repeat)
    root = directory or STORES / study.name / chosen.name
    jobs = jobs_of(study, chosen)
    sweep = execute(
        jobs,
        root / "store",
        measure=study.measure,
        workers=workers,
        cluster=cluster,
        progress=progress,
        name=f"{study.name}-{chosen.name}",
    )
    context = Context(chosen, sweep.frame())
    claims = verdicts(study, context)
    report = build_report(study, context, sweep, claims, jobs, facts or {})
    reporting.save(report, root / "report")
    page = root / f"{study.name}.html"
    reporting.write(report, page)
    outcome = Outcome(study, chosen, sweep, claims, page)
    (root / "study.json").write_text(
        json.dumps(outcome.to_json(), indent=1) + "\n", encoding="utf-8"
    )
    return outcome


def verdicts(study: Study, context: Context) -> list[ClaimRow]:
    """Decide every claim."""
    rows = []
    for claim in study.claims:
        found: Finding = claim.check(context)
        explanation = found.explanation
        if found.verdict == "contradicted" and claim.because:
            explanation = f"{explanation}. {claim.because}" if explanation else claim.because
        rows.append(ClaimRow(claim.id, claim.text, found.verdict, found.evidence, explanation))
    return rows


def build_report(
    study: Study,
    context: Context,
    sweep: Sweep,
    claims: list[ClaimRow],
    jobs: list[Job],
    facts: dict[str, str | int | float],
) -> Report:
    """Put the report together."""
    frame = context.frame
    counts = {v: sum(c.verdict == v for c in claims) for v in reporting.model.VERDICTS}
    packets = int(frame["packets"].sum()) if frame.height else 0
    examples: dict[str, str] = {}
    for job in jobs:
        name = f"{job.labels['experiment']}.toml"
        if name not in examples and isinstance(job.scenario, dict):
            examples[name] = to_toml(job.scenario)
    notes = [*study.notes]
    if sweep.failures:
        notes.append(f"{len(sweep.failures)} runs failed: {sweep.failures[0].reason}")
    return Report(
        title=study.title,
        subtitle=f"{study.description} Profile {context.profile.name}: {context.profile.description}",
        claims=claims,
        figures=study.figures(context),
        tables=study.tables(context),
        scenarios=examples,
        commands=[f"gargalo study {study.name} --profile {context.profile.name}"],
        facts={
            "source": study.source,
            "engine": f"gargalo {__version__}",
            "runs": sweep.plan.height,
            "repeats per cell": context.profile.repeat,
            "packets simulated": packets,
            "time of all runs, in s of one core": round(float(frame["wall_s"].sum()), 1)
            if frame.height
            else 0,
            **facts,
        },
        highlights={v: f"{n} of {len(claims)} claims" for v, n in counts.items() if n},
        notes=notes,
        algorithms=list(study.algorithms),
    )
