"""A report as files: what a study leaves behind, to be read by programs or made into a page again.

report.json              title, claims, captions, scenarios, commands, facts
figures/NN.json          Plotly figures
tables/NN.parquet        tables, in SI
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gargalo import _core, reading
from gargalo.reporting.model import (
    ClaimRow,
    Evidence,
    FigureBlock,
    Judgement,
    Report,
    TableBlock,
)
from gargalo.reporting.page import plain_figure
from gargalo.results import parquet

FORMAT = 1


def save(report: Report, directory: str | Path) -> Path:
    """Write a report as files, which `report_of_study` reads back; returns the path of report.json.

    The directory appears whole, with a manifest of its files, in the place of an earlier report.

    Raises:
        RunError: It cannot be written, or a file of the earlier report was changed or does not belong to a report.
        OSError: A file cannot be written.

    """
    made = _core.ResultsDir(Path(directory), replace=True)
    try:
        _save(report, made.path)
        return made.commit() / "report.json"
    finally:
        made.discard()


def _save(report: Report, root: Path) -> None:
    for name in ("figures", "tables"):
        (root / name).mkdir()
    figures = []
    for i, block in enumerate(report.figures):
        file = f"figures/{i:02}.json"
        (root / file).write_text(json.dumps(plain_figure(block.figure)), encoding="utf-8")
        rest = {"title": block.title, "caption": block.caption, "group": block.group}
        figures.append({**rest, "alt": block.alt, "restyle": block.restyle, "file": file})
    tables = []
    for i, table in enumerate(report.tables):
        file = f"tables/{i:02}.parquet"
        table.frame.write_parquet(root / file)
        about = {"title": table.title, "caption": table.caption, "units": dict(table.units)}
        more = {"group": table.group, "algorithm": table.algorithm, "shown": table.shown}
        tables.append({**about, **more, "file": file})
    facts = {
        "format": FORMAT,
        "title": report.title,
        "subtitle": report.subtitle,
        "claims": [asdict(c) for c in report.claims],
        "figures": figures,
        "tables": tables,
        "scenarios": dict(report.scenarios),
        "commands": list(report.commands),
        "facts": dict(report.facts),
        "highlights": dict(report.highlights),
        "notes": list(report.notes),
        "algorithms": list(report.algorithms),
    }
    path = root / "report.json"
    path.write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def report_of_study(
    directory: str | Path, *, facts: Mapping[str, str | int | float] | None = None
) -> Report:
    """Read a report that `save` wrote.

    Args:
        directory: With report.json.
        facts: More facts, such as the date.

    Raises:
        FileNotFoundError: The report, or a figure or table of it, is missing.
        RunError: A file is not what was written.
        ValueError: report.json is of another form; the text says where.

    """
    root = Path(directory)
    path = root / "report.json"
    if path.exists():
        _core.verify(root, [path.name])
    try:
        found = json.loads(reading.data(path))
    except json.JSONDecodeError as e:
        msg = f"{path}: not JSON (line {e.lineno}): run the study again"
        raise ValueError(msg) from None
    if not isinstance(found, Mapping) or found.get("format") != FORMAT:
        known = found.get("format") if isinstance(found, Mapping) else None
        msg = (
            f"{path}: format {known} is not {FORMAT}, which this version reads: run the study again"
        )
        raise ValueError(msg)
    try:
        _core.verify(
            root, [block["file"] for kind in ("figures", "tables") for block in found[kind]]
        )
        report = _report(root, found)
    except (KeyError, TypeError) as e:
        msg = f"{path}: {e} is missing or of another kind: run the study again"
        raise ValueError(msg) from None
    return replace(report, facts={**report.facts, **(facts or {})})


def _with_evidence(row: Mapping[str, Any]) -> dict[str, Any]:
    behind = row["evidence"]
    return {
        **row,
        "evidence": behind if isinstance(behind, str) else [Evidence(**e) for e in behind],
    }


def _report(root: Path, found: Mapping[str, Any]) -> Report:
    claims = []
    for c in found["claims"]:
        others = [Judgement(**_with_evidence(j)) for j in c.get("others", [])]
        claims.append(ClaimRow(**{**_with_evidence(c), "others": others}))
    figures = []
    for f in found["figures"]:
        drawn = json.loads(reading.data(root / f["file"]))
        figures.append(
            FigureBlock(f["title"], f["caption"], drawn, f["group"], f["alt"], f["restyle"])
        )
    tables = [
        TableBlock(
            t["title"], t["caption"], parquet(root / t["file"]), t["units"], t["group"], t["algorithm"], t["shown"]
        )
        for t in found["tables"]
    ]  # fmt: skip
    names = (
        "title",
        "subtitle",
        "scenarios",
        "commands",
        "facts",
        "highlights",
        "notes",
        "algorithms",
    )
    given = {n: found[n] for n in names}
    return Report(claims=claims, figures=figures, tables=tables, **given)
