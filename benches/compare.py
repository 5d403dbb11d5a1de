#!/usr/bin/env python3
"""Processor time a data packet on the same dumbbells: Gargalo, htsim and ns-3 in one run.

    python3 benches/compare.py [--htsim DIR] [--ns3 debian|wheel|none|DIR] [--quick] [SCENARIO ...]

Needs g++ and Python 3.11 or newer (3.10 with tomli). htsim is compiled from the directory named, ns-3 is

  debian     Debian's libns3-dev: logging compiled in, assertions not; needs apt-get, not root
  wheel      the PyPI package ns3: logging and assertions compiled in
  DIR        where you installed your own build: include/ns3/ and lib/libns3*-core.so
  none       left out

Everything that is made lies under .bench/. Without --ns3, Debian's is taken if it can be had. What is left out is said.

All take turns, round after round, so that whatever else the machine does meets all. Only event loops are timed. See
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import htsim_build
import ns3_build
from ns3_build import BENCH, ROOT, BenchError, run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOOP = ROOT / "benches" / "loop.py"
NS3_SOURCE = ROOT / "benches" / "ns3" / "dumbbell.cc"
SCENARIOS = ROOT / "benches" / "scenarios"
NS3_CONGESTION = {"cubic": "TcpCubic", "reno": "TcpNewReno"}
# IPv4 and TCP without options, and the option of timestamps with its padding.
HEADER_BYTES = 20 + 20 + 12
QUICK_S = 5.0
# This one has no round of minutes in ns-3: a published run of it took 76,342 s.
MANY_FLOWS = "many-flows"
MANY_FLOWS_QUICK_S = 2.0
FEW_FLOWS = 20
EVERYTHING = {"record.gauges": "true", "record.decisions": "true"}

OURS, ACK_EACH, ALL, ACK_EACH_ALL = (
    "gargalo",
    "gargalo, an ACK each",
    "gargalo, all recorded",
    "gargalo, an ACK each, all recorded",
)
FEW = f"gargalo, {FEW_FLOWS} flows"
HTSIM, HTSIM_ACCESS, NS3 = "htsim", "htsim, access links", "ns-3"

# Least ratio of packets per second of processor time, by scenario: (one of ours, peer) -> ratio.
# On the network that htsim has: one link, or access links for each flow.
AGAINST_LEAN = {(OURS, HTSIM): 1.0, (ACK_EACH, HTSIM): 0.8}
AGAINST_ACCESS = {(OURS, HTSIM_ACCESS): 2.0, (ACK_EACH, HTSIM_ACCESS): 1.6}
BUDGETS: dict[str, dict[tuple[str, str], float]] = {
    "one-link": AGAINST_LEAN,
    "large-windows": {**AGAINST_ACCESS, (OURS, NS3): 300},
    "large-windows-staggered": {(OURS, NS3): 300},
    "small-windows-cubic": {**AGAINST_ACCESS, (OURS, NS3): 40},
    "small-windows-reno": {**AGAINST_ACCESS, (OURS, NS3): 40},
    # A packet of 1,040 flows costs at most 1.3 times one of 20.
    MANY_FLOWS: {(OURS, FEW): 1 / 1.3},
}
# Least packets of ours per second of processor time.
RATES = {"large-windows": 2_000_000, "large-windows-staggered": 2_000_000}
# The whole of many-flows, 100 s of virtual time.
MANY_FLOWS_CPU_S = 60
MANY_FLOWS_KIB = 2 << 20


# ---------------------------------------------------------------- what a scenario says

RATE_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def quantity(text: str, pattern: str, units: dict[str, float]) -> float:
    """Read a number and its unit.

    Raises:
        BenchError: It is none.

    """
    match = re.fullmatch(rf"([\d.]+)\s*{pattern}", text.strip())
    if not match or match[2] not in units:
        raise BenchError(f"cannot read {text!r}")
    return float(match[1]) * units[match[2]]


def bits_per_second(text: str) -> float:
    """Read a rate."""
    return quantity(text, r"([kMG]?)bit/s", RATE_UNITS)


def seconds(text: str) -> float:
    """Read a time."""
    return quantity(text, r"(s|ms|us)", TIME_UNITS)


def size(text: str) -> int:
    """Read bytes."""
    return round(quantity(text, r"([kMG]?B)", SIZE_UNITS))


def packets(text: str) -> int:
    """Read a number of packets."""
    return round(quantity(text, r"(packets)", {"packets": 1}))


@dataclass(frozen=True)
class Dumbbell:
    """The numbers of a scenario that the other simulators are given; times in s, rates in bit/s."""

    name: str
    duration_s: float
    groups: int
    flows: int
    stagger_s: float
    congestion: str
    rate: float
    delay_s: float
    queue_packets: int
    access_rate: float
    """0: hosts are at the bottleneck itself, which is the only link."""
    access_delay_s: float
    initial_window: int
    mss: int
    buffer_bytes: int

    @classmethod
    def read(cls, scenario: dict) -> Dumbbell:
        """Take the numbers from a scenario.

        Raises:
            BenchError: It is not a dumbbell, or a link, of equal flows.

        """
        try:
            topology, flows = scenario["topology"], scenario["flows"]
            if "simple" in topology:
                bottleneck, access = topology["simple"]["link"], {"rate": "0bit/s", "delay": "0s"}
            else:
                bottleneck, access = (topology["dumbbell"][k] for k in ("bottleneck", "access"))
            tcp = flows[0]["transport"]["tcp"]
            if any(flow["transport"]["tcp"] != tcp for flow in flows):
                raise BenchError("flows with different transports: the others have one for all")
            starts_s = [seconds(flow.get("start", "0s")) for flow in flows]
            stagger_s = starts_s[1] - starts_s[0] if len(flows) > 1 else 0.0
            if any(abs(start_s - i * stagger_s) > 1e-9 for i, start_s in enumerate(starts_s)):
                raise BenchError("starts must be at 0 and equally far apart")
            return cls(
                name=scenario["name"],
                duration_s=seconds(scenario["duration"]),
                groups=len(flows),
                flows=sum(flow.get("count", 1) for flow in flows),
                stagger_s=stagger_s,
                congestion=tcp["congestion"],
                rate=bits_per_second(bottleneck["rate"]),
                delay_s=seconds(bottleneck["delay"]),
                queue_packets=packets(bottleneck["queue"]["droptail"]),
                access_rate=bits_per_second(access["rate"]),
                access_delay_s=seconds(access["delay"]),
                initial_window=packets(tcp["initial_window"]),
                mss=size(tcp["mss"]),
                buffer_bytes=size(tcp["receive_buffer"]),
            )
        except KeyError as key:
            raise BenchError(f"not a scenario to compare: it has no {key}") from None

    @property
    def rtt_s(self) -> float:
        """Round-trip time without queues."""
        return 2 * (self.delay_s + 2 * self.access_delay_s)

    @property
    def packet_bytes(self) -> int:
        """A full packet on the wire."""
        return self.mss + HEADER_BYTES

    def ns3_arguments(self, virtual_s: float) -> list[str]:
        """The options of benches/ns3/dumbbell.cc."""
        if self.congestion not in NS3_CONGESTION:
            raise BenchError(f"no ns-3 equivalent of congestion = {self.congestion!r}")
        return [
            f"--flows={self.flows}",
            f"--staggerMs={self.stagger_s * 1e3:.6f}",
            f"--congestion={NS3_CONGESTION[self.congestion]}",
            f"--rate={self.rate:.0f}bps",
            f"--accessRate={self.access_rate:.0f}bps",
            f"--accessDelayMs={self.access_delay_s * 1e3:.6f}",
            f"--rttMs={self.rtt_s * 1e3:.6f}",
            f"--queuePackets={self.queue_packets}",
            f"--initialWindow={self.initial_window}",
            f"--mss={self.mss}",
            f"--bufferBytes={self.buffer_bytes}",
            f"--seconds={virtual_s:g}",
        ]

    def htsim_arguments(self, virtual_s: float, *, access: bool) -> list[str]:
        """The options of benches/htsim/dumbbell.cpp.

        Flows begin one after the other over a round trip, each with its share of the path as window and slow start
        threshold: the link is full at once and nothing is lost. From the losses of a slow start htsim's TCP recovers
        with one packet a round trip, so that in `large-windows` its link would be idle for most of the time.
        """
        share = int(self.rate * self.rtt_s / (8 * self.packet_bytes) / self.flows)
        given = {
            "flows": self.flows,
            "rate": self.rate,
            "delay-ms": self.delay_s * 1e3,
            "queue-packets": self.queue_packets,
            "access-rate": self.access_rate if access else 0,
            "access-delay-ms": self.access_delay_s * 1e3,
            "packet-bytes": self.packet_bytes,
            "initial-window": max(share, self.initial_window),
            "slow-start-packets": max(share, self.initial_window),
            "stagger-ms": max(self.stagger_s, self.rtt_s / self.flows) * 1e3,
            "seconds": virtual_s,
        }
        return [word for name, value in given.items() for word in (f"--{name}", f"{value:.12g}")]

    def gargalo_changes(self, virtual_s: float, *, ack_each: bool, everything: bool) -> dict:
        """The settings that differ from the scenario's file."""
        changes = {"duration": f"{virtual_s:g}s"}
        if ack_each:
            for i in range(self.groups):
                changes[f"flows.{i}.transport.tcp.delayed_ack"] = "false"
        link = "bottleneck" if self.access_rate else "link"
        captures = {"record.captures": f'["{link}"]'}
        return changes | (EVERYTHING | captures if everything else {})

    def few_flows_changes(self, virtual_s: float) -> dict:
        """Twenty flows with the same rate and the same share of the buffer each, for ten times as long."""
        part = FEW_FLOWS / self.flows
        return {
            "duration": f"{10 * virtual_s:g}s",
            "topology.dumbbell.pairs": str(FEW_FLOWS),
            "topology.dumbbell.bottleneck.rate": f"{round(self.rate * part)}bit/s",
            "topology.dumbbell.bottleneck.queue.droptail": f"{round(self.queue_packets * part)} packets",
            "flows.0.count": str(FEW_FLOWS),
        }


def read(file: Path) -> Dumbbell:
    """Read a scenario's file.

    Raises:
        BenchError: It cannot be read, or is not a dumbbell of equal flows.

    """
    try:
        return Dumbbell.read(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, BenchError) as reason:
        raise BenchError(f"{file}: {reason}") from None


# ---------------------------------------------------------------- who runs it


@dataclass(frozen=True)
class Runner:
    """One column of measurements: a name and the command that prints its JSON."""

    name: str
    command: list[str]

    def measure(self) -> dict:
        """Run once."""
        text = run(self.command).stdout
        try:
            return json.loads(text)
        except ValueError:
            raise BenchError(f"{self.name}: no JSON but {text[:200]!r}") from None


@dataclass(frozen=True)
class Peers:
    """What is there to compare with; None is left out."""

    gargalo: Path
    also: dict[str, Path]
    htsim: Path | None
    ns3: Path | None


def ours(name: str, python: Path, file: Path, changes: dict[str, str]) -> Runner:
    """One of our builds with settings changed."""
    pairs = [f"{key}={value}" for key, value in changes.items()]
    return Runner(name, [str(python), str(LOOP), str(file), *pairs])


def runners(file: Path, bell: Dumbbell, virtual_s: float, peers: Peers) -> list[Runner]:
    """All that take turns on a scenario."""
    many = bell.name == MANY_FLOWS
    variants = {OURS: (False, False), ACK_EACH: (True, False)}
    if not many:  # A capture of it would be 10 GB.
        variants |= {ALL: (False, True), ACK_EACH_ALL: (True, True)}
    found = []
    for name, (ack_each, everything) in variants.items():
        changes = bell.gargalo_changes(virtual_s, ack_each=ack_each, everything=everything)
        found.append(ours(name, peers.gargalo, file, changes))
        if not everything:
            found += [
                ours(name.replace(OURS, label), python, file, changes)
                for label, python in peers.also.items()
            ]
    if many:
        changes = bell.few_flows_changes(virtual_s)
        found += [
            ours(FEW.replace(OURS, label), python, file, changes)
            for label, python in {OURS: peers.gargalo, **peers.also}.items()
        ]
    if peers.htsim:
        for name, access in ((HTSIM, False), (HTSIM_ACCESS, True)):
            if access and not bell.access_rate:
                continue
            arguments = bell.htsim_arguments(virtual_s, access=access)
            found.append(Runner(name, [str(peers.htsim), *arguments]))
    if peers.ns3 and bell.access_rate and not many:
        found.append(Runner(NS3, [str(peers.ns3), *bell.ns3_arguments(virtual_s)]))
    return found


def ns_per_packet(one: dict) -> float:
    """Processor time of the event loop a data packet of the bottleneck, ns."""
    return 1e9 * one["cpu_s"] / one["packets"]


def summary(runs: list[dict]) -> dict:
    """What one runner gave in all rounds."""
    prices = [ns_per_packet(one) for one in runs]
    return {
        "ns_per_packet_least": min(prices),
        "ns_per_packet_median": statistics.median(prices),
        "events_per_packet": runs[0]["events"] / runs[0]["packets"],
        "packets": runs[0]["packets"],
        "dropped": runs[0]["dropped"],
        "delivered_bytes": runs[0]["delivered_bytes"],
        "peak_kib": max(one["peak_kib"] for one in runs),
        "runs": runs,
    }


def compare(file: Path, peers: Peers, options: argparse.Namespace) -> dict:
    """Run everything on one scenario, in turns."""
    bell = read(file)
    quick_s = MANY_FLOWS_QUICK_S if bell.name == MANY_FLOWS else QUICK_S
    virtual_s = options.seconds or (quick_s if options.quick else bell.duration_s)
    whole = virtual_s >= bell.duration_s
    # Seven minutes a round.
    rounds = 1 if bell.name == MANY_FLOWS and whole else options.rounds
    takes_turns = runners(file, bell, virtual_s, peers)
    measured: dict[str, list[dict]] = {runner.name: [] for runner in takes_turns}
    for number in range(rounds):
        for runner in takes_turns:
            one = runner.measure()
            measured[runner.name].append(one)
            print(
                f"  {bell.name} {number + 1}/{rounds}: {runner.name}:"
                f" {one['cpu_s']:.3f} s, {ns_per_packet(one):,.0f} ns a packet",
                file=sys.stderr,
            )
    return {
        "scenario": bell.name,
        "virtual_s": virtual_s,
        "rounds": rounds,
        "whole": whole,
        "measured": {name: summary(runs) for name, runs in measured.items()},
    }


# ---------------------------------------------------------------- what is said of it


def ratio(result: dict, mine: str, theirs: str) -> float | None:
    """How many times the packets per second of processor time; least of each over all rounds."""
    measured = result["measured"]
    if mine not in measured or theirs not in measured:
        return None
    return measured[theirs]["ns_per_packet_least"] / measured[mine]["ns_per_packet_least"]


def missed_budgets(results: list[dict]) -> list[str]:
    """Return a line for each budget that is missed."""
    missed = []
    for result in results:
        for (mine, theirs), least in BUDGETS.get(result["scenario"], {}).items():
            found = ratio(result, mine, theirs)
            if found is not None and found < least:
                missed.append(
                    f"{result['scenario']}: {mine}: {found:.2f} times {theirs}, budget {least:.3g}"
                )
        rate = 1e9 / result["measured"][OURS]["ns_per_packet_least"]
        least = RATES.get(result["scenario"], 0)
        if rate < least:
            missed.append(f"{result['scenario']}: {rate:,.0f} packets/s, budget {least:,}")
        if result["scenario"] == MANY_FLOWS and result["whole"]:
            whole = result["measured"][OURS]
            took_s = min(one["whole_run_cpu_s"] for one in whole["runs"])
            if took_s > MANY_FLOWS_CPU_S:
                missed.append(f"{MANY_FLOWS}: {took_s:.0f} s, budget {MANY_FLOWS_CPU_S}")
            if whole["peak_kib"] > MANY_FLOWS_KIB:
                missed.append(f"{MANY_FLOWS}: {whole['peak_kib'] >> 10:,} MiB, budget 2,048")
    return missed


def table(result: dict) -> str:
    """One scenario as a table in Markdown: a row for each that ran, a column for each peer it is compared with."""
    measured = result["measured"]
    peers = [name for name in (HTSIM, HTSIM_ACCESS, NS3, FEW) if name in measured]
    heads = ["data packets", "dropped", "events a packet", "ns a packet, least", "median", "MiB"]
    heads += [f"times {peer}" for peer in peers]
    lines = [
        f"{result['scenario']}, {result['virtual_s']:g} virtual seconds:",
        f"| | {' | '.join(heads)} |",
        "| --- |" + " ---: |" * len(heads),
    ]
    for name, one in measured.items():
        cells = [
            f"{one['packets']:,}",
            f"{one['dropped']:,}",
            f"{one['events_per_packet']:.2f}",
            f"{one['ns_per_packet_least']:,.0f}",
            f"{one['ns_per_packet_median']:,.0f}",
            f"{one['peak_kib'] / 1024:,.0f}",
        ]
        times = [ratio(result, name, peer) for peer in peers]
        cells += [
            "" if name == peer or found is None else f"{found:.2f}"
            for peer, found in zip(peers, times, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


# ---------------------------------------------------------------- the command


def named_build(text: str) -> tuple[str, Path]:
    """Read NAME=PYTHON."""
    name, equals, python = text.partition("=")
    if not (name and equals and python):
        raise argparse.ArgumentTypeError(f"{text!r}: NAME=PYTHON is expected")
    return name, Path(python)


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("scenarios", nargs="*", type=Path, help="default: benches/scenarios/*.toml")
    add("--htsim", type=Path, metavar="DIR", help="a checkout of htsim's sources")
    add("--ns3", metavar="BUILD", help="debian (default), wheel, none or a directory")
    add("--rounds", type=int, default=3, help="each runs so many times, in turns (default 3)")
    add("--seconds", type=float, help="virtual seconds, instead of the file's")
    add("--quick", action="store_true", help="a few virtual seconds of each scenario")
    add(
        "--gargalo",
        type=Path,
        default=ROOT / ".venv/bin/python",
        metavar="PYTHON",
        help="the interpreter where our build is installed (default: .venv/bin/python)",
    )
    add(
        "--also",
        type=named_build,
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="another build of ours beside it; may be repeated",
    )
    add("--json", type=Path, metavar="FILE", help="write everything measured")
    add("--check", action="store_true", help="exit 1 when a budget is missed")
    options = parser.parse_args(words)
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.seconds is not None and options.seconds <= 0:
        parser.error("--seconds: more than 0")
    return options


def find_peers(options: argparse.Namespace) -> tuple[Peers, dict[str, str]]:
    """Build what there is; with what each is, or why it is left out.

    Raises:
        BenchError: What was named cannot be had.

    """
    BENCH.mkdir(exist_ok=True)
    (BENCH / ".gitignore").write_text("*\n", encoding="utf-8")
    for python in (options.gargalo, *(python for _, python in options.also)):
        if not python.is_file():
            raise BenchError(f"{python}: no such interpreter; `make setup` makes .venv/bin/python")
    said, htsim, ns3 = {}, None, None
    if options.htsim is None:
        said["htsim"] = "left out: name a checkout of its sources with --htsim DIR"
    else:
        htsim = htsim_build.compiled(options.htsim)
        commit = htsim_build.version(options.htsim)
        said["htsim"] = f"{commit}, g++ {' '.join(htsim_build.FLAGS)}"
    if options.ns3 == "none":
        said["ns-3"] = "left out as requested"
    else:
        try:
            against = ns3_build.build(options.ns3 or "debian")
            ns3 = ns3_build.compiled(against, NS3_SOURCE)
            said["ns-3"] = against.version
        except BenchError as reason:
            if options.ns3 is not None:
                raise
            said["ns-3"] = f"left out, Debian's package cannot be had: {reason}"
    return Peers(options.gargalo, dict(options.also), htsim, ns3), said


def processor() -> str:
    """Return the processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    match = re.search(r"model name\s*:\s*(.+)", text)
    return match[1] if match else platform.processor()


def main(words: list[str] | None = None) -> int:
    """Run the command."""
    options = parse_arguments(words)
    peers, said = find_peers(options)
    for name, what in said.items():
        print(f"{name}: {what}")
    files = options.scenarios or sorted(SCENARIOS.glob("*.toml"))
    results = []
    for file in files:
        results.append(compare(file, peers, options))
        print(f"\n{table(results[-1])}", flush=True)
        if results[-1]["scenario"] == MANY_FLOWS and peers.ns3:
            print("ns-3 is left out here: a published run of this scenario took it 76,342 s")
    missed = missed_budgets(results)
    for line in missed:
        print(f"budget missed: {line}")
    if options.json:
        machine = {"processor": processor(), "cores": os.cpu_count(), "load": os.getloadavg()}
        report = {
            "machine": machine,
            "peers": said,
            "results": results,
            "missed": missed,
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"compare: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
