#!/usr/bin/env python3
"""Compare what congestion controls achieve here and in ns-3, on the same paths.

    .venv/bin/python benches/crosscheck.py [--quick] [--only NAME] [--build wheel|debian|DIRECTORY]
    .venv/bin/python benches/crosscheck.py --fidelity runs/studies/fidelity/quick

Needs g++ for ns-3's side; for where ns-3 comes from see ns3_build.py. Runs whatever changed since
the last time (results are kept in .bench/crosscheck), writes the tables of docs/crosscheck.md and
exits 1 when a ratio lies outside 0.9..1.1 and crosscheck_plan.py does not say why.

With --fidelity it reads a finished store of `gargalo study fidelity` instead, and writes ns-3's results
beside the kernel's and ours into docs/studies/fidelity.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import crosscheck_fidelity
import gargalo
from crosscheck_plan import ALGORITHMS, CELLS, EXPLANATIONS, Algorithm, Cell
from ns3_build import BENCH, ROOT, BenchError, Build, build, compiled, run

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = ROOT / "benches" / "crosscheck" / "flow.cc"
PAGE = ROOT / "docs" / "crosscheck.md"
FIDELITY_PAGE = ROOT / "docs" / "studies" / "fidelity.md"
CACHE = BENCH / "crosscheck"
BOUNDS = (0.9, 1.1)
BUFFER_BYTES = 16_000_000
# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom.
STUDENT = tuple(
    float(t)
    for t in [
        "12.706",
        "4.303",
        "3.182",
        "2.776",
        "2.571",
        "2.447",
        "2.365",
        "2.306",
        "2.262",
        "2.228",
        "2.201",
        "2.179",
        "2.160",
        "2.145",
        "2.131",
        "2.120",
        "2.110",
        "2.101",
        "2.093",
    ]
)


@dataclass(frozen=True)
class Outcome:
    """One run in one simulator."""

    goodput_bps: float
    """Read by the receiving application after the warm-up, per second."""
    queue_delay_s: float
    """Mean time at the bottleneck after the warm-up."""
    lost: int
    """Data packets lost at random and dropped, in all."""
    timeouts: int


@dataclass(frozen=True)
class Row:
    """One algorithm on one path in both simulators, all seeds."""

    algorithm: Algorithm
    cell: Cell
    ours: list[Outcome]
    theirs: list[Outcome]

    @property
    def ratio(self) -> float:
        return mean_goodput(self.ours) / mean_goodput(self.theirs)

    @property
    def explanation(self) -> str:
        return EXPLANATIONS.get((self.algorithm.name, self.cell.name), "")

    @property
    def inside(self) -> bool:
        return BOUNDS[0] <= self.ratio <= BOUNDS[1]


def mean_goodput(outcomes: list[Outcome]) -> float:
    return statistics.mean(one.goodput_bps for one in outcomes)


# ---------------------------------------------------------------- the two simulators


def ns3_arguments(algorithm: Algorithm, cell: Cell, seed: int) -> list[str]:
    return [
        f"--congestion={algorithm.ns3}",
        f"--rate={cell.rate_bps}",
        f"--delayMs={cell.rtt_ms / 2:g}",
        f"--queuePackets={cell.queue_packets}",
        f"--loss={cell.loss:g}",
        f"--markAbove={cell.mark_above}",
        f"--duration={cell.duration_s:g}",
        f"--warmup={cell.warmup_s:g}",
        f"--bufferBytes={BUFFER_BYTES}",
        f"--run={seed}",
        f"--ns3::TcpSocket::DelAckCount={algorithm.ack_every}",
        *(f"--{name}={str(value).lower()}" for name, value in algorithm.attributes.items()),
    ]


def run_ns3(binary: Path, arguments: list[str]) -> Outcome:
    result = json.loads(run([str(binary), *arguments]).stdout)
    return Outcome(
        result["goodput_bps"],
        result["queue_delay_s"],
        result["lost"] + result["dropped"],
        result["timeouts"],
    )


def our_scenario(algorithm: Algorithm, cell: Cell, seed: int) -> dict[str, Any]:
    """The path of flow.cc, and ns-3's TCP: RFC 6675 recovery with PRR, least timeout one second."""
    queue: dict[str, Any] = {"droptail": f"{cell.queue_packets} packets"}
    if cell.mark_above:
        # Of the packets waiting, ns-3's device holds one that its queueing discipline does not see.
        limit, above = cell.queue_packets + 1, cell.mark_above
        queue = {"step": {"limit": f"{limit} packets", "mark_above": f"{above} packets"}}
    return {
        "name": f"crosscheck-{algorithm.name}-{cell.name}",
        "seed": seed,
        "duration": f"{cell.duration_s:g}s",
        "record": {"interval": "10ms"},
        "topology": {
            "dumbbell": {
                "access": {
                    "rate": "10Gbit/s",
                    "delay": "1us",
                    "queue": {"droptail": "1000000 packets"},
                },
                "bottleneck": {
                    "rate": f"{cell.rate_bps}bit/s",
                    "delay": f"{cell.rtt_ms / 2:g}ms",
                    "queue": queue,
                    "up": {"loss": cell.loss},
                },
            }
        },
        "flows": [
            {
                "from": "left0",
                "to": "right0",
                "transport": {
                    "tcp": {
                        "profile": "ns3-3.27",
                        "congestion": {algorithm.name: algorithm.params}
                        if algorithm.params
                        else algorithm.name,
                        "mss": "1448B",
                        "initial_window": "10 packets",
                        "send_buffer": f"{BUFFER_BYTES}B",
                        "receive_buffer": f"{BUFFER_BYTES}B",
                        "delayed_ack": {"every": algorithm.ack_every},
                        "pacing": "controller",
                        "prr": True,
                        "ecn": "dctcp" if cell.mark_above else "off",
                    }
                },
            }
        ],
    }


def run_ours(scenario: dict[str, Any], warmup_s: float) -> Outcome:
    result = gargalo.run(scenario)
    flow = result.flows.row(0, named=True)
    duration_s = float(scenario["duration"].removesuffix("s"))
    samples = result.flow_samples
    before = samples.filter(samples["time_s"] <= warmup_s + 1e-9)["delivered_bytes"].max()
    links = result.link_samples
    waiting = links.filter(
        (links["link"] == "bottleneck")
        & (links["direction"] == "up")
        & (links["time_s"] > warmup_s)
    )["queue_delay_s"].mean()
    timeouts = result.events.filter(result.events["kind"] == "timeout").height
    assert isinstance(before, int)
    assert isinstance(waiting, float)
    return Outcome(
        8 * (flow["delivered_bytes"] - before) / (duration_s - warmup_s),
        waiting,
        flow["lost_packets"],
        timeouts,
    )


# ---------------------------------------------------------------- run what changed


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def cached(key: str, compute: Callable[[], Outcome]) -> Outcome:
    file = CACHE / f"{key}.json"
    if file.exists():
        return Outcome(**json.loads(file.read_text(encoding="utf-8")))
    outcome = compute()
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(vars(outcome)), encoding="utf-8")
    partial.replace(file)
    return outcome


def our_version() -> str:
    """Of the compiled part that runs: the same name may be another build."""
    from gargalo import _core

    return hashlib.sha256(Path(str(_core.__file__)).read_bytes()).hexdigest()


def measure(plan: list[tuple[Algorithm, Cell]], ns3: Build, jobs: int) -> list[Row]:
    CACHE.mkdir(parents=True, exist_ok=True)
    binary = compiled(ns3, SOURCE)
    theirs_key = [ns3.version, SOURCE.read_text(encoding="utf-8")]
    ours_key = [our_version(), Path(__file__).read_text(encoding="utf-8")]

    def theirs(algorithm: Algorithm, cell: Cell, seed: int) -> Outcome:
        arguments = ns3_arguments(algorithm, cell, seed)
        return cached(digest(theirs_key, arguments), lambda: run_ns3(binary, arguments))

    def ours(algorithm: Algorithm, cell: Cell, seed: int) -> Outcome:
        scenario = our_scenario(algorithm, cell, seed)
        key = digest(ours_key, scenario, cell.warmup_s)
        return cached(key, lambda: run_ours(scenario, cell.warmup_s))

    with ThreadPoolExecutor(jobs) as pool:
        pending = [
            (
                algorithm,
                cell,
                [pool.submit(ours, algorithm, cell, seed + 1) for seed in range(cell.seeds)],
                [pool.submit(theirs, algorithm, cell, seed + 1) for seed in range(cell.seeds)],
            )
            for algorithm, cell in plan
        ]
        rows = []
        for algorithm, cell, mine, other in pending:
            row = Row(algorithm, cell, [f.result() for f in mine], [f.result() for f in other])
            print(f"  {algorithm.name:12} {cell.name:8} {row.ratio:.3f}", file=sys.stderr)
            rows.append(row)
    return rows


# ---------------------------------------------------------------- tables


def interval(values: list[float]) -> float:
    """Half the width of the 95 % confidence interval of the mean."""
    if len(values) < 2:
        return 0.0
    t = STUDENT[min(len(values) - 1, len(STUDENT)) - 1]
    return t * statistics.stdev(values) / math.sqrt(len(values))


def megabits(outcomes: list[Outcome]) -> str:
    values = [one.goodput_bps / 1e6 for one in outcomes]
    text = f"{statistics.mean(values):.2f}"
    return f"{text} ± {interval(values):.2f}" if len(values) > 1 else text


def ratio_text(row: Row) -> str:
    """The ratio of means; its error by first-order propagation."""
    text = f"{row.ratio:.3f}"
    if len(row.ours) > 1:
        relative = [
            interval([one.goodput_bps for one in side]) / mean_goodput(side)
            for side in (row.ours, row.theirs)
        ]
        text += f" ± {row.ratio * math.hypot(*relative):.3f}"
    return text if row.inside else f"**{text}**"


def pair(row: Row, show: Callable[[list[Outcome]], str]) -> str:
    return f"{show(row.ours)} / {show(row.theirs)}"


def delay_ms(outcomes: list[Outcome]) -> str:
    return f"{1e3 * statistics.mean(one.queue_delay_s for one in outcomes):.1f}"


def losses(outcomes: list[Outcome]) -> str:
    return f"{statistics.mean(one.lost for one in outcomes):.0f}"


def results_table(rows: list[Row]) -> str:
    """A section for each cell, its path in the heading's sentence."""
    sections = []
    for name in (cell.name for cell in CELLS):
        mine = [row for row in rows if row.cell.name == name]
        if not mine:
            continue
        cell = mine[0].cell
        seeds = f"; {cell.seeds} seeds, 95 % intervals" if cell.seeds > 1 else ""
        lines = [
            f"### {cell.name}",
            "",
            f"{cell.summary}; {cell.warmup_s:g} s to {cell.duration_s:g} s{seeds}.",
            "",
            "| algorithm | ours, Mbit/s | ns-3, Mbit/s | ratio | mean queueing, ms"
            " (ours / ns-3) | packets lost (ours / ns-3) |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {row.algorithm.name} | {megabits(row.ours)} | {megabits(row.theirs)}"
            f" | {ratio_text(row)} | {pair(row, delay_ms)} | {pair(row, losses)} |"
            for row in mine
        ]
        reasons = [
            f"- **{row.algorithm.name}**: {row.explanation or 'not explained.'}"
            for row in mine
            if row.explanation or not row.inside
        ]
        sections.append("\n".join(lines + (["", *reasons] if reasons else [])))
    return "\n\n".join(sections)


def settings_table() -> str:
    lines = [
        "| algorithm | ns-3 | our parameters | ns-3's attributes | segments per acknowledgement"
        " | why |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in ALGORITHMS:
        ours = ", ".join(f"`{name} = {toml(value)}`" for name, value in one.params.items())
        theirs = ", ".join(
            f"`{name.removeprefix('ns3::')} = {toml(value)}`"
            for name, value in one.attributes.items()
        )
        lines.append(
            f"| {one.name} | `{one.ns3}` | {ours} | {theirs} | {one.ack_every} | {one.note} |"
        )
    return "\n".join(lines)


def toml(value: object) -> str:
    return json.dumps(value)


def write_between(text: str, marker: str, content: str, page: Path = PAGE) -> str:
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    before, found, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise BenchError(f"{page}: no markers {begin} ... {end}")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


# ---------------------------------------------------------------- command


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--build", default="wheel", help="wheel (default), debian or a directory")
    parser.add_argument("--only", action="append", metavar="NAME", help="algorithm or cell")
    parser.add_argument("--quick", action="store_true", help="20 s, two seeds; the page stays")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument(
        "--fidelity", type=Path, metavar="DIRECTORY", help="of a finished study; writes its page"
    )
    return parser.parse_args()


def plan_for(options: argparse.Namespace) -> list[tuple[Algorithm, Cell]]:
    names = {one.name for one in (*ALGORITHMS, *CELLS)}
    wanted = set(options.only or [])
    if unknown := wanted - names:
        raise BenchError(
            f"--only {' '.join(sorted(unknown))}: choose from {', '.join(sorted(names))}"
        )
    cells = wanted & {cell.name for cell in CELLS}
    algorithms = wanted - cells
    plan = []
    for algorithm in ALGORITHMS:
        for cell in CELLS:
            if cell.name not in algorithm.cells:
                continue
            if (cells and cell.name not in cells) or (
                algorithms and algorithm.name not in algorithms
            ):
                continue
            if options.quick:
                cell = replace(cell, duration_s=min(cell.duration_s, 20), seeds=min(cell.seeds, 2))
            plan.append((algorithm, cell))
    return plan


def fidelity(options: argparse.Namespace) -> None:
    section = crosscheck_fidelity.section(options.fidelity, options.build, options.jobs)
    print(section)
    text = FIDELITY_PAGE.read_text(encoding="utf-8")
    text = write_between(text, "ns-3", section, FIDELITY_PAGE)
    FIDELITY_PAGE.write_text(text, encoding="utf-8")


def main() -> int:
    options = parse_arguments()
    if options.fidelity:
        fidelity(options)
        return 0
    plan = plan_for(options)
    ns3 = build(options.build)
    print(f"ns-3: {ns3.version}", file=sys.stderr)
    rows = measure(plan, ns3, options.jobs)
    print(results_table(rows))
    if not (options.quick or options.only):
        text = PAGE.read_text(encoding="utf-8")
        text = write_between(text, "settings", settings_table())
        text = write_between(text, "results", results_table(rows))
        PAGE.write_text(text, encoding="utf-8")
    unexplained = [row for row in rows if not row.inside and not row.explanation]
    for row in unexplained:
        print(
            f"crosscheck: {row.algorithm.name} on {row.cell.name}: ratio {row.ratio:.3f} is outside"
            f" {BOUNDS[0]}..{BOUNDS[1]} and crosscheck_plan.py does not say why",
            file=sys.stderr,
        )
    return 1 if unexplained and not options.quick else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"crosscheck: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
