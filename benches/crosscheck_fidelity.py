"""ns-3 in the cells of `gargalo study fidelity`: what to run, and the tables beside the kernel's results.

Reads a finished store of the study. The cells, the settings of each and the numbers of the lost packets are those of
the study's own runs. Results of ns-3 are kept in crosscheck/fidelity.json: without a change of the cells nothing runs.
"""

from __future__ import annotations

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import gargalo
import polars as pl
from gargalo.studies.model import Context
from gargalo.sweeps import StoreError, Sweep
from gargalo_studies.fidelity import STUDY
from gargalo_studies.fidelity.cells import METRIC, Cell, cells, place_text
from gargalo_studies.fidelity.scenarios import DEEP, KERNEL, SIM, Stack
from ns3_build import ROOT, BenchError, build, compiled, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

SOURCE = ROOT / "benches" / "crosscheck" / "flow.cc"
KEPT = ROOT / "benches" / "crosscheck" / "fidelity.json"
NS3 = Stack("ns-3", "sim", kernel=False)
CONTROLS = {"reno": "TcpLinuxReno", "cubic": "TcpCubic", "bbr": "TcpBbr"}
"""ns-3's names of the kernel's congestion controls."""
GOODPUT = ("loss", "rate", "delay", "queue", "ecn", "pause")
EXPERIMENTS = (*GOODPUT, "short", "pair")
"""Those that flow.cc can run; it has no link whose rate changes and hosts of one round-trip time only."""
SETTINGS = {
    "TcpSocketBase::MinRto": "200ms",
    "TcpSocket::ConnTimeout": "1s",
    "TcpSocket::DelAckTimeout": "40ms",
    "TcpCubic::HyStartDelayMax": "16ms",
    "PieQueueDisc::MaxSize": "1000p",
}
"""Linux's values where ns-3's defaults are others, and the study's limit of the queue. flow.cc sets the segment size
of 1448 bytes, the initial window of 10, SACK, time stamps, an acknowledgement for two segments, and buffers of 16
MB."""
CLASSIC = {"TcpL4Protocol::RecoveryType": "ns3::TcpClassicRecovery"}
TIMEOUT = {"TcpSocketBase::MinRto": "1s"}
EACH = {"TcpSocket::DelAckCount": "1"}
VARIANTS = {
    "no PRR": CLASSIC,
    "least timeout of 1 s": TIMEOUT,
    "each segment acknowledged": EACH,
    "these three": {**CLASSIC, **TIMEOUT, **EACH},
    "no hybrid slow start": {"TcpCubic::HyStart": "false"},
}
"""Other settings, in the cells where ns-3 is not near the kernel."""
NEAR = {"goodput": 0.1, "completion": 0.05, "share": 0.1}
"""The bounds of the study's claims."""
QUEUES = {"codel": "CoDelQueueDisc", "fq-codel": "FqCoDelQueueDisc", "pie": "PieQueueDisc"}
PAYLOAD = 1448


@dataclass(frozen=True)
class Run:
    """A run of the study, for ns-3."""

    labels: Mapping[str, Any]
    repeat: int
    seed: int
    arguments: tuple[str, ...]
    loss: float
    packets: int
    """No run sends more."""

    @property
    def cell(self) -> str:
        """Where it is, as `Cell.text`."""
        place = place_text({k: v for k, v in self.labels.items() if v is not None})
        return f"{self.labels['control']}, {self.labels['experiment']}: {place}"

    def varied(self, attributes: Mapping[str, str]) -> Run:
        """Return it with other values of attributes."""
        options = {f"--ns3::{name}=": value for name, value in attributes.items()}
        others = [a for a in self.arguments if not a.startswith(tuple(options))]
        changed = [option + value for option, value in options.items()]
        return replace(self, arguments=(*others, *changed))

    def command(self) -> tuple[str, ...]:
        """Return all options of flow.cc."""
        if not self.loss:
            return self.arguments
        numbers = lost(self.seed, self.loss, self.packets)
        return (*self.arguments, f"--lost={','.join(map(str, numbers))}")


# ---------------------------------------------------------------- what to run


def number(text: str, unit: str) -> float:
    """Return what the study wrote with a unit.

    >>> number("12Mbit/s", "Mbit/s")
    12.0
    """
    if not text.endswith(unit):
        raise BenchError(f"{text!r} of the study's scenario is not in {unit}: mend {__file__}")
    return float(text.removesuffix(unit))


def queue_arguments(queue: str | Mapping[str, Any]) -> list[str]:
    """Return the options for the queue of the study's link."""
    name: str
    more: Any
    name, more = (queue, {}) if isinstance(queue, str) else next(iter(queue.items()))
    if name == "droptail":
        return [f"--queuePackets={number(more, ' packets'):.0f}"]
    if name not in QUEUES or set(more) - {"ecn"}:
        raise BenchError(f"flow.cc has no queue {queue}: mend {__file__}")
    found = [f"--queue={QUEUES[name]}"]
    if more.get("ecn"):
        found.append(f"--ns3::{QUEUES[name]}::UseEcn=true")
    return found


def planned(labels: Mapping[str, Any], scenario: Mapping[str, Any], repeat: int, seed: int) -> Run:
    """Return what flow.cc does for a run of the study."""
    link = scenario["topology"]["simple"]["link"]
    up, flows = link["up"], scenario["flows"]
    rate = 1e6 * number(up["rate"], "Mbit/s")
    seconds = number(scenario["duration"], "s")
    workload = flows[0]["workload"]
    arguments = [
        f"--congestion={CONTROLS[labels['control']]}",
        f"--rate={rate:.0f}",
        f"--delayMs={number(link['delay'], 'ms'):g}",
        f"--backRate={1e9 * number(link['down']['rate'], 'Gbit/s'):.0f}",
        f"--duration={seconds:g}",
        f"--warmup={number(scenario.get('measure', {}).get('from', '0s'), 's'):g}",
        *queue_arguments(up["queue"]),
        *(f"--ns3::{name}={value}" for name, value in SETTINGS.items()),
    ]
    packets = rate * seconds / 8 / PAYLOAD
    if "onoff" in workload:
        arguments.append(f"--onOffRate={1e6 * number(workload['onoff']['rate'], 'Mbit/s'):.0f}")
    elif "bytes" in workload["bulk"]:
        size = number(workload["bulk"]["bytes"], "B")
        arguments.append(f"--bytes={size:.0f}")
        packets = 1.5 * size / PAYLOAD
    if len(flows) > 1:
        arguments.append(f"--second={number(flows[1]['start'], 's'):g}")
    if flows[0]["transport"]["tcp"].get("ecn"):
        arguments.append("--ns3::TcpSocketBase::UseEcn=On")
    # Nothing else in ns-3 is random: PIE's drops, and where the cycle of BBR's gains begins.
    random = labels["control"] == "bbr" or up["queue"] == "pie"
    arguments.append(f"--run={repeat + 1 if random else 1}")
    return Run(labels, repeat, seed, tuple(arguments), up.get("loss", 0.0), round(packets) + 100)


def plan(rows: pl.DataFrame, labels: Sequence[str]) -> list[Run]:
    """Return what ns-3 does of a plan of the study, which is one row per run."""
    chosen = rows.filter(
        (pl.col("stack") == SIM.name)
        & pl.col("experiment").is_in(EXPERIMENTS)
        & pl.col("control").is_in(list(CONTROLS))
        # One run of these takes ns-3 minutes.
        & pl.col("queue").is_in(list(DEEP)).not_().fill_null(value=True)
    )
    return [
        planned(
            {name: row[name] for name in labels},
            tomllib.loads(row["_scenario"]),
            row["repeat"],
            row["seed"],
        )
        for row in chosen.iter_rows(named=True)
    ]


@cache
def lost(seed: int, loss: float, packets: int) -> tuple[int, ...]:
    """Return which packets the study's link loses with a seed, by number from 1.

    They are found with datagrams, one in a millisecond: what is dropped between two samples is the number.
    """
    result = gargalo.run(
        {
            "name": "lost",
            "seed": seed,
            "duration": f"{packets}ms",
            "record": {"flows": False, "events": False, "interval": "1ms"},
            "topology": {
                "simple": {
                    "link": {"delay": "1ms", "up": {"rate": "1Gbit/s", "loss": loss}},
                }
            },
            "flows": [
                {
                    "from": "client",
                    "to": "server",
                    "start": "500us",
                    "transport": {"udp": {}},
                    "workload": {"cbr": {"rate": "8Mbit/s", "packet_size": "1000B"}},
                }
            ],
        }
    )
    samples = result.link_samples.filter(pl.col("direction") == "up").sort("time_s")
    dropped = samples.select(
        (pl.col("time_s") * 1e3).round().cast(pl.Int64).alias("number"),
        pl.col("dropped_packets").cast(pl.Int64).diff().fill_null(pl.col("dropped_packets")),
    ).filter(pl.col("dropped_packets") > 0)
    return tuple(dropped["number"].to_list())


# ---------------------------------------------------------------- ns-3's results


def outcome(result: Mapping[str, float]) -> dict[str, float]:
    """Return the study's metrics of what flow.cc printed.

    >>> outcome({"goodput_bps": 3e6, "second_bps": 1e6})
    {'rate_bps': 3000000.0, 'share': 0.75}
    """
    found = {"rate_bps": result["goodput_bps"]}
    if "completion_s" in result:
        found["completion_s"] = result["completion_s"]
    if "second_bps" in result:
        total = result["goodput_bps"] + result["second_bps"]
        found["share"] = result["goodput_bps"] / total if total else 0.0
    return found


def key(arguments: Sequence[str]) -> str:
    """Return a run's name in the file of results."""
    return hashlib.sha256("\n".join(arguments).encode()).hexdigest()[:16]


class Results:
    """What ns-3 had, from a file or by running it."""

    def __init__(self, name: str, jobs: int, file: Path = KEPT) -> None:
        """`name` of the build, as ns3_build takes it."""
        self.name, self.jobs, self.file = name, jobs, file
        program = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
        self.made: dict[str, Any] = {"build": name, "program": program, "version": "", "runs": {}}
        if file.is_file():
            kept = json.loads(file.read_text(encoding="utf-8"))
            if (kept["build"], kept["program"]) == (name, program):
                self.made = kept

    def of(self, commands: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], dict[str, float]]:
        """Return the metrics of runs."""
        wanted = {command: key(command) for command in commands}
        runs = self.made["runs"]
        missing = [c for c, k in wanted.items() if k not in runs]
        if missing:
            ns3 = build(self.name)
            binary = compiled(ns3, SOURCE)
            print(f"ns-3 {ns3.version}: {len(missing)} runs", file=sys.stderr)
            self.made["version"] = ns3.version
            with ThreadPoolExecutor(self.jobs) as pool:
                texts = pool.map(lambda c: run([str(binary), *c]).stdout, missing)
                for command, text in zip(missing, texts, strict=True):
                    runs[wanted[command]] = outcome(json.loads(text))
        return {c: runs[k] for c, k in wanted.items()}

    def keep(self, used: Iterable[tuple[str, ...]]) -> None:
        """Write the file, with the runs that were used."""
        names = {key(c) for c in used}
        runs = {k: v for k, v in sorted(self.made["runs"].items()) if k in names}
        lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in runs.items())
        head = json.dumps({k: v for k, v in self.made.items() if k != "runs"})[:-1]
        self.file.write_text(f'{head}, "runs": {{\n{lines}\n}}}}\n', encoding="utf-8")


def merged(
    frame: pl.DataFrame,
    runs: Sequence[Run],
    found: Mapping[tuple[str, ...], Mapping[str, float]],
    stack: Stack = NS3,
) -> pl.DataFrame:
    """Return the study's runs with those of ns-3 among them."""
    rows = [
        {**r.labels, "stack": stack.name, "repeat": r.repeat, "seed": r.seed, **found[r.command()]}
        for r in runs
    ]
    theirs = pl.from_dicts(rows, infer_schema_length=None)
    shared = [c for c in theirs.columns if c in frame.columns]
    return pl.concat([frame, theirs.select(shared)], how="diagonal_relaxed")


# ---------------------------------------------------------------- tables


def pairs(context: Context) -> list[tuple[Cell, Cell]]:
    """Return the cells that all three have: ours over the kernel's, and ns-3's over the kernel's."""
    ours = {c.text: c for c in cells(context, SIM, KERNEL, EXPERIMENTS)}
    theirs = cells(context, NS3, KERNEL, EXPERIMENTS)
    return [(ours[t.text], t) for t in theirs if t.text in ours]


def metric(experiment: str) -> str:
    """Return by what an experiment is judged."""
    return {"completion_s": "completion", "share": "share"}.get(
        METRIC.get(experiment, ""), "goodput"
    )


def percent(found: Sequence[Cell], bound: float) -> str:
    """Return the share of cells within a bound.

    >>> percent([], 0.05)
    ''
    """
    if not found:
        return ""
    return f"{100 * sum(c.within(bound) for c in found) / len(found):.0f}%"


def summary_table(found: Sequence[tuple[Cell, Cell]]) -> str:
    """Return a line for each metric, and one for each control of it."""
    lines = [
        "| judged by | control | cells | ours within 5% | ours within 10% | ns-3 within 5% | ns-3 within 10% |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in ("goodput", "completion", "share"):
        for control in ("", *CONTROLS):
            mine = [
                both
                for both in found
                if metric(both[0].experiment) == name and control in ("", both[0].control)
            ]
            if mine:
                shown = [percent([b[i] for b in mine], x) for i in (0, 1) for x in (0.05, 0.1)]
                head = [name if not control else "", control or "**all**", str(len(mine))]
                lines.append(f"| {' | '.join([*head, *shown])} |")
    return "\n".join(lines)


def value(experiment: str, mean: float) -> str:
    """Write a mean in the unit of its metric."""
    if metric(experiment) == "goodput":
        return f"{mean / 1e6:.2f}"
    return f"{mean:.3f}" if metric(experiment) == "completion" else f"{100 * mean:.0f}%"


def difference(cell: Cell) -> str:
    """Write a ratio with its interval, or a difference of shares in points; bold where it is more than 10% off."""
    found = cell.difference
    if found.mean is None:
        return ""
    share = metric(cell.experiment) == "share"

    def written(x: float) -> str:
        return f"{100 * x:+.0f}" if share else f"{x:.2f}"

    text = written(found.mean)
    if found.low is not None and found.high is not None:
        low, high = written(found.low), written(found.high)
        if not low == high == text:
            text += f" ({low} to {high})"
    return text if cell.within(0.1) else f"**{text}**"


def cells_table(found: Sequence[tuple[Cell, Cell]]) -> str:
    """Return a line for each cell."""
    lines = [
        "| experiment | control | place | kernel | ours | ns-3 | ours to kernel | ns-3 to kernel |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for ours, theirs in found:
        name = ours.experiment
        means = [value(name, x) for x in (ours.under, ours.over, theirs.over)]
        shown = [name, ours.control, ours.place, *means, difference(ours), difference(theirs)]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


# ---------------------------------------------------------------- command


def loaded(directory: Path) -> Sweep:
    """Return the study's runs in a directory as `gargalo study fidelity` leaves it."""
    try:
        return Sweep.load(directory / "store")
    except StoreError as e:
        hint = "run `gargalo study fidelity` first, or name the directory that it wrote"
        raise BenchError(f"{directory} has no finished study: {e}\n{hint}") from None


def far(both: Sequence[tuple[Cell, Cell]]) -> list[Cell]:
    """Return the cells of single flows in which ns-3 is not near the kernel."""
    theirs = [c for _, c in both if metric(c.experiment) != "share"]
    return [c for c in theirs if not near(c)]


def near(cell: Cell) -> bool:
    """Whether it is within its metric's bound."""
    return cell.within(NEAR[metric(cell.experiment)])


def variants_table(outside: Sequence[Cell], changed: Mapping[str, Mapping[str, Cell]]) -> str:
    """Return ns-3's ratios in some cells with one setting changed; `changed` by variant and cell."""
    names = list(changed)
    lines = [
        f"| cell | ns-3 to kernel | {' | '.join(names)} |",
        f"| --- | --- |{' --- |' * len(names)}",
    ]
    counts = [sum(near(c) for c in changed[name].values()) for name in names]
    lines.append(f"| **near the kernel, of {len(outside)}** | 0 | {' | '.join(map(str, counts))} |")
    for cell in outside:
        found = [changed[name].get(cell.text) for name in names]
        shown = ["" if c is None or c.difference.mean is None else mean_text(c) for c in found]
        lines.append(f"| {cell.text} | {mean_text(cell)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def mean_text(cell: Cell) -> str:
    """Write a ratio; bold if it is near one."""
    text = f"{cell.difference.mean:.2f}"
    return f"**{text}**" if near(cell) else text


def section(directory: Path, name: str, jobs: int) -> str:
    """Return the tables for the page."""
    sweep = loaded(directory)
    frame = sweep.frame()
    runs = plan(sweep.plan, [c for c in sweep.labels if c != "stack"])
    results = Results(name, jobs)
    used = [r.command() for r in runs]
    profile = next(iter(STUDY.profiles.values()))

    def context(of: Sequence[Run], stack: Stack) -> Context:
        found = results.of([r.command() for r in of])
        return Context(profile, merged(frame, of, found, stack), bounds=STUDY.bounds)

    both = pairs(context(runs, NS3))
    if not both:
        raise BenchError(f"{directory} has no runs of the kernel: repeat the study with the lab")
    outside = far(both)
    places = {c.text for c in outside}
    changed: dict[str, dict[str, Cell]] = {}
    for variant, attributes in VARIANTS.items():
        cubic_only = all(a.startswith("TcpCubic::") for a in attributes)
        of = [
            r.varied(attributes)
            for r in runs
            if r.cell in places and (r.labels["control"] == "cubic" or not cubic_only)
        ]
        stack = Stack(variant, "sim", kernel=False)
        made = cells(context(of, stack), stack, KERNEL, EXPERIMENTS) if of else ()
        changed[variant] = {c.text: c for c in made}
        used += [r.command() for r in of]
        results.keep(used)
    text = f"ns-3 {results.made['version']}; {len(both)} cells, {len(runs)} runs."
    parts = [text, summary_table(both)]
    if outside:
        intro = (
            "ns-3 with other settings, in the cells of single flows whose goodput is more than 10% "
            "off or whose completion is more than 5% off; bold: within."
        )
        parts += [intro, variants_table(outside, changed)]
    return "\n\n".join(
        [*parts, "All cells; bold: more than 10% or 10 points off.", cells_table(both)]
    )
