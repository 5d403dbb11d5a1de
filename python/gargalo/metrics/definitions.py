"""The definitions of all metrics, read from their docstrings, and the page made from them."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import dataclass

TOPICS = {
    "utilization": "Use of a link",
    "fairness": "Fairness",
    "convergence": "Convergence",
    "stability": "Stability",
    "queueing": "Queueing",
    "completion": "Completion",
    "multipath": "Several paths",
    "power": "Power",
    "intervals": "Intervals",
    "comparing": "Comparing",
}
PART = re.compile(r"^(Formula|Range|Unit|None|Source|Example|Raises): ?", re.MULTILINE)


@dataclass(frozen=True)
class Definition:
    """What a metric is."""

    name: str
    topic: str
    """Title of its section."""
    summary: str
    """First line of the docstring."""
    formula: str
    unit: str
    undefined: str
    """When the result is None; empty if never."""
    source: str


def definitions() -> list[Definition]:
    """Return the definition of every metric, by topic."""
    found = []
    for module, topic in TOPICS.items():
        content = vars(importlib.import_module(f"gargalo.metrics.{module}"))
        for name, function in content.items():
            text = inspect.getdoc(function) or ""
            if not inspect.isfunction(function) or "Formula:" not in text:
                continue
            if function.__module__ == f"gargalo.metrics.{module}":
                found.append(_parse(name, topic, text))
    return found


def _parse(name: str, topic: str, text: str) -> Definition:
    # Parts may begin within a line ("Unit: s. None: …").
    text = re.sub(r"\. (Range|None): ", r".\n\1: ", text)
    summary, _, rest = text.partition("\n")
    pieces = PART.split(rest)
    parts = {
        key: " ".join(value.split("\n\n")[0].split()).removesuffix(".")
        for key, value in zip(pieces[1::2], pieces[2::2], strict=True)
    }
    missing = {"Formula", "Unit", "Source"} - set(parts)
    if missing:
        msg = f"the docstring of {name} has no {', '.join(sorted(missing))}"
        raise ValueError(msg)
    formula = parts["Formula"] + (f". Range: {parts['Range']}" if "Range" in parts else "")
    return Definition(
        name, topic, summary.strip().removesuffix("."), formula, parts["Unit"],
        parts.get("None", ""), parts["Source"],
    )  # fmt: skip


def markdown() -> str:
    """Write the tables of definitions for the documentation."""

    def cell(value: str) -> str:
        return value.replace("|", "\\|")

    text = ""
    everything = definitions()
    for topic in TOPICS.values():
        text += f"## {topic}\n\n| metric | what it is | definition | unit | None where | source |\n"
        text += "| --- | --- | --- | --- | --- | --- |\n"
        for d in everything:
            if d.topic == topic:
                row = (f"`{d.name}`", d.summary, d.formula, d.unit, d.undefined, d.source)
                text += f"| {' | '.join(map(cell, row))} |\n"
        text += "\n"
    return text.rstrip() + "\n"


def page() -> str:
    """Write the page `docs/metrics.md`."""
    return (
        "# Metrics\n\n"
        "`gargalo.metrics` has the usual metrics of the field as pure functions of numbers and of the "
        "[results tables](reference/tables.md). Everything is in SI, with the unit in the name; a figure that "
        "is undefined is `None`, never a guess. This page is made from the docstrings by "
        "`python -m gargalo.metrics`.\n\n"
        "```python\n"
        "import gargalo\n"
        "from gargalo import metrics\n\n"
        'run = gargalo.run("examples/cubic-vs-bbr.toml")\n'
        'metrics.jain_index(run.flows["goodput_bps"])\n'
        'metrics.share(run.flows["measured_bytes"], run.flows["congestion"], "cubic")\n'
        "bins = metrics.throughput_bins(run.flow_samples, 1.0, flows=run.flows)\n"
        "metrics.convergence_time(bins, flow=1, target_bps=metrics.fair_share(100e6, 2), start_s=5.0)\n"
        "```\n\n"
        "Repeated runs with different seeds are summarised by `mean_interval`; fewer than three have no interval, and "
        "the result says so. A figure's range (`bounds`) is part of its declaration. Two "
        "algorithms are compared by `difference`, or by `compare` straight from a "
        "sweep's table, which pairs runs of equal seeds. The verdict is *A higher*, *B higher*, *no "
        "difference shown* (which is not equality: more runs may show one) or, if a margin was given within "
        "which a difference does not matter, *equivalent*. Many metrics at once go through `differences`, "
        "which corrects for their number.\n\n"
        "```python\n"
        "runs = sweep.frame()                     # a row per run: labels, seed, metrics\n"
        'metrics.compare(runs, "goodput_bps", "congestion", "cubic", "reno", margin=1e6).verdict\n'
        "```\n\n" + markdown()
    )
