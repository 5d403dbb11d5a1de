#!/usr/bin/env python3
"""Compare the simulator's speed with ns-3 on the same scenarios, in the same run.

    python3 benches/compare_ns3.py [--json FILE] [--build debian|wheel|DIRECTORY] [SCENARIO ...]

Needs g++ and Python 3.11 or newer, no other package. ns-3 is one of

  debian     Debian's libns3-dev: logging compiled in, assertions not; needs apt-get, not root
  wheel      the PyPI package ns3: logging and assertions compiled in
  DIRECTORY  where you installed your own build: include/ns3/ and lib/libns3*-core.so

The first two are unpacked under .bench/ and leave the system alone.

The two simulators run alternately (A B A B ...), so that whatever else the machine does meets
both. Reported: bottleneck data packets per wall-clock second of the event loop alone, medians
and best, and their ratio. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import statistics
import sys
from pathlib import Path

import tomllib
from ns3_build import BENCH, ROOT, BenchError, build, compiled, run

SOURCE = ROOT / "benches" / "ns3" / "dumbbell.cc"
SCENARIOS = ROOT / "benches" / "scenarios"
NS3_CONGESTION = {"cubic": "TcpCubic", "reno": "TcpNewReno"}

# name -> (least packets per second of ours, least ratio to ns-3)
BUDGETS = {
    "large-windows": (2_000_000, 300),
    "large-windows-staggered": (2_000_000, 300),
    "small-windows-cubic": (None, 40),
    "small-windows-reno": (None, 40),
}


# ---------------------------------------------------------------- one scenario, two simulators

RATE_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
SIZE_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def quantity(text: str, pattern: str, units: dict[str, float]) -> float:
    match = re.fullmatch(rf"([\d.]+)\s*{pattern}", text.strip())
    if not match or match[2] not in units:
        raise BenchError(f"cannot read {text!r}")
    return float(match[1]) * units[match[2]]


def bits_per_second(text: str) -> float:
    return quantity(text, r"([kMG]?)bit/s", RATE_UNITS)


def seconds(text: str) -> float:
    return quantity(text, r"(s|ms|us)", TIME_UNITS)


def size(text: str) -> int:
    return round(quantity(text, r"([kMG]?B)", SIZE_UNITS))


def packets(text: str) -> int:
    return round(quantity(text, r"(packets)", {"packets": 1}))


def ns3_arguments(scenario: dict, virtual_s: float) -> list[str]:
    """The scenario's numbers as options of the ns-3 program."""
    dumbbell = scenario["topology"]["dumbbell"]
    bottleneck, access = dumbbell["bottleneck"], dumbbell["access"]
    flows = scenario["flows"]
    tcp = flows[0]["transport"]["tcp"]
    if any(flow["transport"]["tcp"] != tcp for flow in flows):
        raise BenchError("flows with different transports: dumbbell.cc has one for all")
    starts_s = [seconds(flow.get("start", "0s")) for flow in flows]
    stagger_s = starts_s[1] - starts_s[0] if len(flows) > 1 else 0.0
    if any(abs(start_s - i * stagger_s) > 1e-9 for i, start_s in enumerate(starts_s)):
        raise BenchError("starts must be at 0 and equally far apart")
    if tcp["congestion"] not in NS3_CONGESTION:
        raise BenchError(f"no ns-3 equivalent of congestion = {tcp['congestion']!r}")
    rtt_s = 2 * (seconds(bottleneck["delay"]) + 2 * seconds(access["delay"]))
    return [
        f"--flows={sum(flow.get('count', 1) for flow in flows)}",
        f"--staggerMs={stagger_s * 1e3:.6f}",
        f"--congestion={NS3_CONGESTION[tcp['congestion']]}",
        f"--rate={bits_per_second(bottleneck['rate']):.0f}bps",
        f"--accessRate={bits_per_second(access['rate']):.0f}bps",
        f"--accessDelayMs={seconds(access['delay']) * 1e3:.6f}",
        f"--rttMs={rtt_s * 1e3:.6f}",
        f"--queuePackets={packets(bottleneck['queue']['droptail'])}",
        f"--initialWindow={packets(tcp['initial_window'])}",
        f"--mss={size(tcp['mss'])}",
        f"--bufferBytes={size(tcp['receive_buffer'])}",
        f"--seconds={virtual_s:g}",
    ]


def measure_ns3(binary: Path, arguments: list[str]) -> dict:
    return json.loads(run([str(binary), *arguments]).stdout)


def measure_gargalo(command: list[str], scenario_file: Path) -> dict:
    """One run; the forward direction of the bottleneck, and the event loop's wall clock."""
    result = json.loads(run([*command, "run", str(scenario_file), "--json"]).stdout)
    links = [link for link in result["links"] if "bottleneck" in link["name"]]
    if not links:
        raise BenchError(f"no bottleneck among links {[link['name'] for link in result['links']]}")
    # Data outnumbers acknowledgements in bytes whichever direction is listed first.
    forward = max(links, key=lambda link: link["utilization"] or 0.0)
    loop = result["run"]
    return {
        "packets": forward["sent_packets"],
        "dropped": forward["dropped_packets"],
        "delivered_bytes": sum(flow["delivered_bytes"] for flow in result["flows"]),
        "events": loop["events"],
        "wall_s": loop["wall_s"],
        "cpu_s": loop.get("cpu_s"),
    }


def summary(runs: list[dict]) -> dict:
    rates = [one["packets"] / one["wall_s"] for one in runs]
    return {
        "packets_per_s_median": statistics.median(rates),
        "packets_per_s_best": max(rates),
        "wall_s_median": statistics.median(one["wall_s"] for one in runs),
        "packets": runs[0]["packets"],
        "dropped": runs[0]["dropped"],
        "delivered_bytes": runs[0]["delivered_bytes"],
        "runs": runs,
    }


def compare(file: Path, binary: Path, options: argparse.Namespace) -> dict:
    text = file.read_text(encoding="utf-8")
    scenario = tomllib.loads(text)
    virtual_s = options.seconds or seconds(scenario["duration"])
    ours_file = BENCH / file.name
    ours_file.write_text(
        re.sub(r"(?m)^duration\s*=.*$", f'duration = "{virtual_s:g}s"', text), encoding="utf-8"
    )
    arguments = ns3_arguments(scenario, virtual_s)
    ours, theirs = [], []
    for round_number in range(options.repeats):
        ours.append(measure_gargalo(options.command, ours_file))
        theirs.append(measure_ns3(binary, arguments))
        print(
            f"  {file.stem} {round_number + 1}/{options.repeats}:"
            f" gargalo {ours[-1]['wall_s']:.3f} s, ns-3 {theirs[-1]['wall_s']:.3f} s",
            file=sys.stderr,
        )
    ours_summary, theirs_summary = summary(ours), summary(theirs)

    def ratio(key: str) -> float:
        return ours_summary[key] / theirs_summary[key]

    return {
        "scenario": scenario["name"],
        "virtual_s": virtual_s,
        "gargalo": ours_summary,
        "ns3": theirs_summary,
        "ratio_median": ratio("packets_per_s_median"),
        "ratio_best": ratio("packets_per_s_best"),
    }


def missed_budgets(results: list[dict]) -> list[str]:
    missed = []
    for result in results:
        least_rate, least_ratio = BUDGETS.get(result["scenario"], (None, None))
        rate = result["gargalo"]["packets_per_s_median"]
        if least_rate and rate < least_rate:
            missed.append(f"{result['scenario']}: {rate:,.0f} packets/s, budget {least_rate:,}")
        ratio = result["ratio_median"]
        if least_ratio and ratio < least_ratio:
            missed.append(f"{result['scenario']}: {ratio:.0f} times ns-3, budget {least_ratio}")
    return missed


def table(results: list[dict]) -> str:
    lines = [
        "data packets through the bottleneck per wall-clock second, medians:",
        f"{'scenario':24} {'virtual':>8} {'gargalo':>12} {'ns-3':>10} {'ratio':>7}",
    ]
    for one in results:
        ours, theirs = (one[side]["packets_per_s_median"] for side in ("gargalo", "ns3"))
        lines.append(
            f"{one['scenario']:24} {one['virtual_s']:>6g} s {ours:>12,.0f} {theirs:>10,.0f}"
            f" {one['ratio_median']:>7.1f}"
        )
    return "\n".join(lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("scenarios", nargs="*", type=Path, help="default: benches/scenarios/*.toml")
    parser.add_argument("--build", default="debian", help="debian, wheel or a directory")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of A B (default 3)")
    parser.add_argument("--seconds", type=float, help="virtual seconds, instead of the file's")
    parser.add_argument("--gargalo", default=str(ROOT / ".venv/bin/gargalo"), help="our command")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--check", action="store_true", help="exit 1 when a budget is missed")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats: at least 1")
    if options.seconds is not None and options.seconds <= 0:
        parser.error("--seconds: more than 0")
    options.command = shlex.split(options.gargalo)
    return options


def main() -> int:
    options = parse_arguments()
    ns3 = build(options.build)
    print(f"ns-3: {ns3.version}", file=sys.stderr)
    binary = compiled(ns3, SOURCE)
    files = options.scenarios or sorted(SCENARIOS.glob("*.toml"))
    results = [compare(file, binary, options) for file in files]
    print(table(results))
    missed = missed_budgets(results)
    for line in missed:
        print(f"budget missed: {line}")
    if options.json:
        report = {
            "machine": {"processor": processor(), "cores": os.cpu_count(), "load": os.getloadavg()},
            "ns3": {"build": ns3.name, "version": ns3.version},
            "repeats": options.repeats,
            "results": results,
            "missed": missed,
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 1 if missed and options.check else 0


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    match = re.search(r"model name\s*:\s*(.+)", text)
    return match[1] if match else platform.processor()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        print(f"compare_ns3: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
