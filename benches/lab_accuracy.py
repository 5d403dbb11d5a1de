"""How exact the lab is: delay, rate and traces of its links, between two kernels.

    .venv/bin/python benches/lab_accuracy.py [--seconds 10] [--busy-poll 100us]

Take it on a machine that does nothing else: a loaded one is late, and the last column says how much.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import gargalo
import polars as pl
from gargalo import _core

KERNELS: dict[str, Any] = {"stack": "kernel"}
HEADERS = 1500 / 1448
"""A full packet on the link for each byte that the application gets."""


def scenario(
    link: dict[str, Any], flow: dict[str, Any], seconds: float, busy_poll: str | None
) -> dict[str, Any]:
    """Return one flow over one link."""
    lab = KERNELS if busy_poll is None else {**KERNELS, "busy_poll": busy_poll}
    return {
        "name": "accuracy",
        "duration": f"{seconds}s",
        "lab": lab,
        "topology": {"simple": {"link": link}},
        "flows": [{"from": "client", "to": "server", **flow}],
        "record": {"interval": "100ms"},
    }


def late(run: gargalo.Run) -> str:
    """Say how late packets left the network."""
    p50, p99 = (run.info[f"late_{q}_s"] * 1e6 for q in ("p50", "p99"))
    return f"{p50:.0f} / {p99:.0f} us"


def delay(seconds: float, busy_poll: str | None) -> None:
    """One-way delay as the receiving program sees it."""
    for ms in (0, 25, 100):
        flow = {
            "transport": {"udp": {}},
            "workload": {"cbr": {"rate": "1Mbit/s", "packet_size": "100B"}},
        }
        run = gargalo.run(scenario({"delay": f"{ms}ms"}, flow, seconds, busy_poll), world="lab")
        row = run.flows.row(0, named=True)
        error = [(row[f"rtt_{q}_s"] - ms / 1e3) * 1e6 for q in ("p50", "p99", "max")]
        told = " / ".join(f"{e:.0f}" for e in error)
        print(f"| delay {ms} ms, error p50 / p99 / max | {told} us | {late(run)} |")


def rate(seconds: float, busy_poll: str | None) -> None:
    """What gets through a saturated link, against its rate."""
    link = {"rate": "12Mbit/s", "delay": "5ms", "queue": {"droptail": "20 packets"}}
    flow = {
        "transport": {"udp": {}},
        "workload": {"cbr": {"rate": "15Mbit/s", "packet_size": "1472B"}},
    }
    run = gargalo.run(scenario(link, flow, seconds, busy_poll), world="lab")
    row = run.flows.row(0, named=True)
    packets = row["delivered_bytes"] / 1472
    # The time of the first packet's transmission is not seen; the last one's is.
    error = (packets - 1) * 1500 * 8 / (seconds - row["first_byte_s"]) / 12e6 - 1
    print(f"| rate 12 Mbit/s, error | {error * 100:+.3f}% | {late(run)} |")
    link = {"rate": "1Gbit/s", "delay": "5ms", "queue": {"droptail": "2500 packets"}}
    flow = {"transport": {"tcp": {"congestion": "cubic"}}}
    run = gargalo.run(scenario(link, flow, seconds + 2, busy_poll), world="lab")
    steady = run.flow_samples.filter(pl.col("time_s") >= 2)
    first, last = steady.row(0, named=True), steady.row(-1, named=True)
    got = (last["delivered_bytes"] - first["delivered_bytes"]) * 8 * HEADERS
    error = got / (last["time_s"] - first["time_s"]) / 1e9 - 1
    print(f"| rate 1 Gbit/s (one TCP connection), error | {error * 100:+.2f}% | {late(run)} |")


def trace(seconds: float, busy_poll: str | None) -> None:
    """Bytes sent over a traced link, against the simulator's, in steps of 100 ms."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "cellular.down"
        path.write_text(_core.trace_generate(seed=7, duration="30s"))
        link = {"rate": {"trace": str(path)}, "delay": "10ms", "queue": {"droptail": "50 packets"}}
        flow = {
            "transport": {"udp": {}},
            "workload": {"cbr": {"rate": "40Mbit/s", "packet_size": "1472B"}},
        }
        text = scenario(link, flow, seconds, busy_poll)
        lab = gargalo.run(text, world="lab")
        sim = gargalo.run({k: v for k, v in text.items() if k != "lab"})
        up = pl.col("direction") == "up"
        a, b = (r.link_samples.filter(up)["sent_bytes"].to_list() for r in (lab, sim))
        n = min(len(a), len(b))
        errors = sorted(abs(x - y) for x, y in zip(a[:n], b[:n], strict=True))
        mean = b[n - 1] / seconds
        p99, most = errors[int(0.99 * (n - 1))], errors[-1]
        print(
            f"| trace, bytes sent by any instant, error p99 / max | {p99 / mean * 1e3:.2f} / "
            f"{most / mean * 1e3:.2f} ms of the mean rate | {late(lab)} |"
        )


def quic(seconds: float, busy_poll: str | None) -> None:
    """Goodput of QUIC in twelve cells, against the simulator's."""
    worst = 0.0
    for stack in ("kernel", "gargalo"):
        for mbit, ms in ((10, 10), (10, 50), (50, 10), (50, 50), (100, 5), (100, 25)):
            rate, delay = f"{mbit}Mbit/s", f"{ms}ms"
            link = {"rate": rate, "delay": delay, "queue": {"droptail": "1BDP"}}
            text = scenario(link, {"transport": {"quic": {}}}, seconds, busy_poll)
            text["lab"] = {**text["lab"], "stack": stack}
            lab = gargalo.run(text, world="lab")
            sim = gargalo.run({k: v for k, v in text.items() if k != "lab"})
            a, b = (r.flows["goodput_bps"].item() for r in (lab, sim))
            worst = max(worst, abs(a / b - 1))
            what = f"QUIC, {stack}'s sockets, {mbit} Mbit/s, {ms} ms: goodput, lab to simulator"
            print(f"| {what} | {a / b:.3f} | {late(lab)} |")
    print(f"| QUIC, largest difference of the twelve | {worst * 100:.1f}% | |")


def dumbbell(
    pairs: int, each: int, mbit: int, bottleneck_mbit: int, seconds: float, busy_poll: str | None
) -> dict[str, Any]:
    """Return flows between the two sides of a dumbbell, as many between each pair of hosts."""
    flow = {"transport": {"tcp": {"congestion": "cubic"}}}
    text = scenario({}, flow, seconds, busy_poll)
    text["topology"] = {
        "dumbbell": {
            "pairs": pairs,
            "access": {"rate": f"{mbit}Mbit/s", "delay": "1ms"},
            "bottleneck": {
                "rate": f"{bottleneck_mbit}Mbit/s",
                "delay": "5ms",
                "queue": {"droptail": "1BDP"},
            },
        }
    }
    text["flows"] = [{"from": "left*", "to": "right*", "count": pairs, **flow}] * each
    return text


def many(seconds: float, busy_poll: str | None) -> None:
    """Many hosts, and many flows over many links: what gets through, and how late packets are."""
    for pairs, each, mbit, bottleneck_mbit in ((10, 1, 500, 5_000), (25, 8, 100, 1_000)):
        text = dumbbell(pairs, each, mbit, bottleneck_mbit, seconds, busy_poll)
        run = gargalo.run(text, world="lab")
        steady = run.flow_samples.filter(pl.col("time_s") >= seconds / 2)
        ends = steady.group_by("flow").agg(
            pl.col("time_s", "delivered_bytes").last() - pl.col("time_s", "delivered_bytes").first()
        )
        got = (ends["delivered_bytes"] * 8 * HEADERS / ends["time_s"]).sum()
        what = f"{2 * pairs} hosts, {2 * pairs + 1} links, {pairs * each} TCP connections"
        share = f"{got / bottleneck_mbit / 1e4:.1f}%"
        print(f"| {what}: got of {bottleneck_mbit} Mbit/s | {share} | {late(run)} |")


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--busy-poll", default=None)
    given = parser.parse_args()
    print("| what | measured | packets late p50 / p99 |\n| --- | --- | --- |")
    try:
        for measure in (delay, rate, trace, quic, many):
            measure(given.seconds, given.busy_poll)
    except gargalo.RunError as e:
        print(f"not measured: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
