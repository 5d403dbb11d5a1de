"""What studies found as pages of the documentation.

`python -m gargalo.studies.pages docs` takes what `gargalo study NAME` has left in `runs/studies` and writes
`docs/studies/results/NAME.json`, every verdict with its evidence and the tables of the report, and `NAME.md`, the same
as a page. With `--add` the study was run in part, and what it judged is added to what was published before, so that
long studies need not be run at once, or on one machine. With `--stored` the pages are written again from the data
beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from gargalo.quantities import measured
from gargalo.reporting import TableBlock, report_of_study
from gargalo.reporting.model import VERDICTS
from gargalo.reporting.tables import view
from gargalo.studies.registry import STUDIES
from gargalo.studies.running import STORES, command, profile_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gargalo.reporting.model import Verdict
    from gargalo.studies.model import Study

__all__ = ["anchor", "judgements", "page", "readings", "sign", "table", "written"]

MARK = "<!-- Made by `python -m gargalo.studies.pages`; do not edit. -->\n\n"
RUNS = ("runs", "failed", "all_packets", "missing")
LEFT_OUT = ("all cells", "all runs")
"""Groups of tables that are too long for a page."""
KEPT = ("study", "profile", "repeat", "command", "report_bytes", *RUNS, "claims")
"""Of what a study says of itself: not what depends on the machine, or on how often it was called."""


def data(outcome: Mapping[str, Any], report: Path | None = None) -> dict[str, Any]:
    """Return what is published of the facts, and of the report, that a study leaves in its directory."""
    found = {"made": f"by gargalo {outcome['engine']}"} | {key: outcome[key] for key in KEPT}
    if report is None:
        return found
    blocks = [b for b in report_of_study(report).tables if b.group and b.group not in LEFT_OUT]
    return found | {"tables": [stored_table(block) for block in blocks]}


def stored_table(block: TableBlock) -> dict[str, Any]:
    """Return a table as values in SI, by column."""
    columns = block.frame.to_dict(as_series=False)
    return {
        "title": block.title,
        "caption": block.caption,
        "columns": {
            name: [float(f"{v:.6g}") if isinstance(v, float) else v for v in values]
            for name, values in columns.items()
        },
    }


def joined(study: Study, published: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is published of a study, with what a part of its runs has judged: other readings, or other claims.

    What the part judged again is replaced. Its tables are added if it judged all claims in a reading that does: those
    of some experiments only have gaps.

    Raises:
        ValueError: The part is of another study or profile, or the study has one reading only.

    """
    for key in ("study", "profile", "repeat"):
        if part[key] != published[key]:
            msg = f"{key} {part[key]} cannot be added to results of {key} {published[key]}"
            raise ValueError(msg)
    if not study.readings:
        msg = f"{study.name} has one reading only: publish all of it at once"
        raise ValueError(msg)
    theirs = {c["id"]: judgements(c) for c in part["claims"]}
    claims = []
    for claim in published["claims"]:
        found = {
            j["reading"]: j for j in (*judgements(claim), *filter(decided, theirs[claim["id"]]))
        }
        first, *others = (
            {**found[r.title], "tried": r.claims is not None}
            for r in study.readings
            if r.title in found
        )
        del first["tried"]
        claims.append({**claim, **first, "others": others})
    whole = all(map(decided, chain.from_iterable(theirs.values())))
    added = part.get("tables", []) if whole else []
    tables = {t["title"]: t for t in (*published.get("tables", []), *added)}.values()
    new = described(part)
    parts = [
        p
        for p in published.get("parts", [described(published)])
        if not all(set(ids) <= set(new["judged"].get(r, [])) for r, ids in p["judged"].items())
    ] + [new]
    judged = {r for p in parts for r in p["judged"]}
    titles = {r.name: r.title for r in study.readings}
    usual = study.profile(part["profile"]).settings.readings or list(titles)
    chosen = [n for n in dict.fromkeys([*usual, *titles]) if titles[n] in judged]
    settings = {} if chosen == list(usual) else {"readings": json.dumps(chosen)}
    asked = profile_of(study, part["profile"], repeat=part["repeat"], settings=settings)
    return {
        **published,
        "command": command(study, asked),
        "report_bytes": max(published["report_bytes"], part["report_bytes"]),
        "runs": sum(p["runs"] for p in parts),
        "failed": sum(p["failed"] for p in parts),
        "all_packets": sum(p["all_packets"] for p in parts),
        "missing": {what: why for p in parts for what, why in p["missing"].items()},
        "claims": claims,
        "tables": [
            t for r in study.readings for t in tables if t["title"].endswith(f": {r.title}")
        ],
        "parts": parts,
    }


def decided(judgement: Mapping[str, Any]) -> bool:
    """Whether a claim was judged in a reading: if not all that it needs was to be run, there is no evidence."""
    return bool(judgement["reading"] and judgement["evidence"])


def described(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what made a part of the results, how much was run for it, and the claims that it judged, by reading."""
    judged: dict[str, list[str]] = {}
    for claim in found["claims"]:
        for j in filter(decided, judgements(claim)):
            judged.setdefault(j["reading"], []).append(claim["id"])
    return {key: found[key] for key in ("made", *RUNS)} | {"judged": judged}


def judgements(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the verdict on a claim in each reading, that of the first reading first."""
    first = {key: claim[key] for key in ("reading", "verdict", "evidence", "explanation")}
    return [first | {"tried": False}, *claim["others"]]


def readings(found: Mapping[str, Any]) -> list[str]:
    """Return the readings that judge all claims."""
    return list(
        dict.fromkeys(
            j["reading"] for c in found["claims"] for j in judgements(c) if not j["tried"]
        )
    )


def page(found: Mapping[str, Any]) -> str:
    """Return the page of a study: a table of verdicts, then the evidence of each claim."""
    name, judging = found["study"], readings(found)
    parts = found.get("parts", [])
    made = "in parts" if parts else found["made"]
    lines = [
        MARK + f"# Results of {name}",
        "",
        f"Profile `{found['profile']}`: {amount(found)}, made {made}. `{found['command']}` makes them again, with "
        f"pictures, all cells and their scenarios; [{name}](../{name}.md) says what was done and why it came out so.",
    ]
    if found["failed"]:
        lines += ["", f"**{found['failed']} runs failed.**"]
    for what, why in found["missing"].items():
        lines += ["", f"Not done: {what}. {why}"]
    lines += [""] if parts else []
    lines += [f"- {'; '.join(p['judged'])}: {amount(p)}, made {p['made']}" for p in parts]
    lines += ["", counted(found, judging), ""]
    lines += table(
        ["claim", *(j or "verdict" for j in judging), "tried on the first"],
        overview(found, judging),
    )
    for claim in found["claims"]:
        lines += ["", *section(claim)]
    tables = found.get("tables", [])
    lines += ["", "## Tables {#tables}"] if tables else []
    for stored in tables:
        block = TableBlock(stored["title"], "", pl.DataFrame(stored["columns"]))
        shown = view(block)
        lines += ["", f"### {stored['title']}", "", stored["caption"], ""]
        lines += table(
            [c.title for c in shown.columns], [[c.text for c in row] for row in shown.rows]
        )
    return "\n".join(lines) + "\n"


def amount(of: Mapping[str, Any]) -> str:
    """Return how much was run."""
    packets = of.get("all_packets")
    told = "" if packets is None else f", {packets:,} packets simulated"
    return f"{of['runs']:,} different runs{told}"


def counted(found: Mapping[str, Any], judging: Sequence[str]) -> str:
    """Return how many claims have which verdict, in each reading that judges all."""
    told = []
    for reading in judging:
        verdicts = [
            j["verdict"] for c in found["claims"] for j in judgements(c) if j["reading"] == reading
        ]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
        told.append(f"{reading}: {counts}" if reading else counts)
    return f"Of {len(found['claims'])} claims, {'; '.join(told)}."


def overview(found: Mapping[str, Any], judging: Sequence[str]) -> Iterable[list[str]]:
    """Return a row for each claim: verdicts, and hypotheses by their verdict."""
    for claim in found["claims"]:
        all_of = judgements(claim)
        by_reading = {j["reading"]: sign(j["verdict"]) for j in all_of if not j["tried"]}
        tried: dict[Verdict, list[str]] = {}
        for j in all_of:
            if j["tried"]:
                tried.setdefault(j["verdict"], []).append(j["reading"])
        told = "<br>".join(f"{sign(v)}: {'; '.join(r)}" for v, r in tried.items())
        link = f"[{claim['text']}](#{anchor(claim)})"
        yield [link, *(by_reading.get(r, "") for r in judging), told]


def section(claim: Mapping[str, Any]) -> list[str]:
    """Return a claim with the verdicts' reasons, and every figure in each reading that has it."""
    all_of = judgements(claim)
    lines = [f"## {claim['id']} {{#{anchor(claim)}}}", "", claim["text"], ""]
    for j in all_of:
        who = f"**{j['reading']}:** " if j["reading"] else ""
        why = j["explanation"] or (j["evidence"] if isinstance(j["evidence"], str) else "")
        lines.append(f"- {who}{sign(j['verdict'])}{f': {why}' if why else ''}")
    measured_in = [j for j in all_of if not isinstance(j["evidence"], str)]
    figures = [dict(numbered(j["evidence"])) for j in measured_in]
    labels = dict.fromkeys(key for found in figures for key in found)
    if not labels:
        return lines
    rows = [[key[0], *(f.get(key, "") for f in figures), key[1]] for key in labels]
    heads = ["figure", *(j["reading"] or "measured" for j in measured_in), "claimed"]
    return [*lines, "", *table(heads, rows)]


def numbered(
    evidence: Iterable[Mapping[str, Any]],
) -> Iterable[tuple[tuple[str, str, int], str]]:
    """Return figures by label, what is expected, and the number of those before with the same of both."""
    seen: Counter[tuple[str, str]] = Counter()
    for line in evidence:
        key = (line["label"], line["expected"])
        yield (*key, seen[key]), written(line)
        seen[key] += 1


def written(line: Mapping[str, Any]) -> str:
    """Write a figure with its interval."""
    if line["value"] is None:
        return "not measured"
    text, *ends = (measured(line[key], line["unit"]) for key in ("value", "low", "high"))
    if line["low"] is None or line["high"] is None or set(ends) == {text}:
        return text
    return f"{text} [{', '.join(ends)}]"


def sign(verdict: Verdict) -> str:
    """Return a verdict with its sign."""
    return f"{VERDICTS[verdict].sign} {verdict}"


def anchor(claim: Mapping[str, Any]) -> str:
    """Return the place of a claim on its page."""
    return f"claim-{claim['id']}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    cells = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(c.replace('|', '/') for c in row)} |" for row in cells]


def main() -> None:
    """Write data and pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Default: all that were run.")
    parser.add_argument("--profile", default="quick", help="Default: quick.")
    parser.add_argument(
        "--add", action="store_true", help="add a part of the runs to what was published"
    )
    parser.add_argument(
        "--stored", action="store_true", help="write pages from the data beside them"
    )
    given = parser.parse_args()
    folder = given.docs / "studies" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    for name in given.names or sorted(STUDIES):
        stored = folder / f"{name}.json"
        left = STORES / name / given.profile / "study.json"
        if not given.stored:
            if not left.is_file():
                print(f"not there: {left}; gargalo study {name} makes it", file=sys.stderr)
                continue
            found = data(json.loads(left.read_text(encoding="utf-8")), left.parent / "report")
            if given.add and stored.is_file():
                found = joined(STUDIES[name], json.loads(stored.read_text(encoding="utf-8")), found)
            text = json.dumps(found, indent=1, ensure_ascii=False)
            stored.write_text(text + "\n", encoding="utf-8")
        if stored.is_file():
            found = json.loads(stored.read_text(encoding="utf-8"))
            stored.with_suffix(".md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
