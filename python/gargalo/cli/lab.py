"""`gargalo lab`: what the lab can do on this machine."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import Any

from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import FAILED, json_option, to_json
from gargalo.cli.help import command
from gargalo.diagnostics import sentence
from gargalo.terminal.text import definitions, printable, say

PROGRAMS = ("iperf3", "curl", "nginx", "tcpdump", "tshark", "nft")
TRIAL: dict[str, Any] = {
    "name": "trial",
    "duration": "2s",
    "lab": {"stack": "kernel"},
    "topology": {"simple": {"link": {"rate": "100Mbit/s", "delay": "10ms"}}},
    "flows": [
        {
            "from": "client",
            "to": "server",
            "transport": {"udp": {}},
            "workload": {"cbr": {"rate": "1Mbit/s", "packet_size": "100B"}},
        }
    ],
}


@command(
    examples=[
        ("gargalo lab", "Are namespaces allowed, which kernel, how exact are delays?"),
        ("gargalo lab --json", "The same for a program."),
    ]
)
@json_option("Print one JSON object.")
def lab(
    as_json: bool,
) -> None:
    """Say what the lab can do here: try namespaces and devices, measure how exact a delay is."""
    facts = examine()
    if as_json:
        print(to_json(facts))
    else:
        show(facts)
    if facts["problem"] is not None:
        raise Exit(FAILED)


def examine() -> dict[str, Any]:
    """Return what is available, and the result of a trial run."""
    from gargalo import run

    facts: dict[str, Any] = {
        "system": f"{platform.system()} {platform.release()}",
        "root": hasattr(os, "geteuid") and os.geteuid() == 0,
        "tun": os.access("/dev/net/tun", os.R_OK | os.W_OK),
        "congestion": setting("net/ipv4/tcp_available_congestion_control").split(),
        "default_congestion": setting("net/ipv4/tcp_congestion_control"),
        "mptcp": setting("net/mptcp/enabled") == "1",
        "programs": {name: shutil.which(name) is not None for name in PROGRAMS},
        "problem": None,
    }
    try:
        done = run(TRIAL, world="lab")
    except (_core.RunError, _core.ScenarioError) as e:
        facts["problem"] = sentence(e)
        return facts
    row = done.flows.row(0, named=True)
    facts["device"] = done.info["device"]
    base = 0.01 + 128 * 8 / 100e6
    facts["delay_error_p50_s"] = row["delay_p50_s"] - base
    facts["delay_error_p99_s"] = row["delay_p99_s"] - base
    facts["late_p50_s"] = done.info["late_p50_s"]
    facts["late_p99_s"] = done.info["late_p99_s"]
    return facts


def setting(name: str) -> str:
    """Read a value under /proc/sys, empty where there is none."""
    try:
        return Path("/proc/sys", name).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def show(facts: dict[str, Any]) -> None:
    """Print it for people."""
    rows: list[tuple[str, str]] = []

    def row(name: str, value: str) -> None:
        rows.append((name, value))

    def micro(seconds: float) -> str:
        return f"{seconds * 1e6:,.0f} us"

    row("system", facts["system"] + (", root" if facts["root"] else ", ordinary user"))
    if facts["problem"] is None:
        kinds = {
            "tun": "TUN devices",
            "veth": "pairs of Ethernet devices: /dev/net/tun is closed (chmod 666 /dev/net/tun is faster)",
        }
        row("namespaces", "yes")
        row("devices", kinds[facts["device"]])
        p50, p99 = facts["delay_error_p50_s"], facts["delay_error_p99_s"]
        row("error of a 10 ms delay", f"p50 {micro(p50)}, p99 {micro(p99)} (between programs)")
        p50, p99 = facts["late_p50_s"], facts["late_p99_s"]
        row("packets late by", f"p50 {micro(p50)}, p99 {micro(p99)}")
    else:
        row("namespaces", "no")
    names = [
        f"{c} (default)" if c == facts["default_congestion"] else c for c in facts["congestion"]
    ]
    row("kernel's congestion controls", ", ".join(names) or "unknown")
    row("kernel's MPTCP", "yes" if facts["mptcp"] else "no")
    there = [name for name, found in facts["programs"].items() if found]
    row("programs", ", ".join(there) or "none of " + ", ".join(PROGRAMS))
    print(printable(definitions(rows)))
    if facts["problem"] is not None:
        say(f"error: {facts['problem']}")
