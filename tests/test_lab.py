"""The lab: real kernels, our own stack, programs, an ordinary user, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Literal

import gargalo
import pytest
from captures import CHECKSUMS, HEADERS, NEGATIVE_ZERO, blocks, tshark
from conftest import ROOT, command, environment
from lab_helpers import (
    as_user,
    descendants,
    devices,
    namespaces,
    needs,
    needs_namespaces,
    of_user,
    ordinary_user,
    processes,
    why_no_namespaces,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RACE = """
name     = "race"
duration = "20s"

[topology.simple]
link = { rate = "50Mbit/s", delay = "5ms", queue = { droptail = "100 packets" } }

[[flows]]
from = "client"
to   = "server"
transport.tcp = { congestion = "cubic" }
workload.bulk = { bytes = "4MB" }

[[flows]]
from  = "server"
to    = "client"
label = "back"
transport.tcp = { congestion = "reno" }
workload.bulk = { bytes = "4MB" }

[record]
verify = true
"""

LONG = """
name     = "long"
duration = "100s"
lab      = { stack = "kernel" }

[topology.simple]
link = { rate = "5Mbit/s", delay = "5ms" }

[[flows]]
from = "client"
to   = "server"
transport.tcp = { congestion = "cubic" }

[[commands]]
host = "server"
run  = "sleep 1000"
background = true
"""


def gone(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


@needs_namespaces
@pytest.mark.parametrize(
    ("client", "server"),
    [("kernel", "kernel"), ("gargalo", "kernel"), ("kernel", "gargalo"), ("gargalo", "gargalo")],
)
def test_every_byte_arrives_between_all_stacks(client: str, server: str) -> None:
    stacks = {"hosts.client.stack": client, "hosts.server.stack": server}
    run = gargalo.run(RACE, set=stacks, world="lab")
    for flow in run.flows.iter_rows(named=True):
        assert flow["delivered_bytes"] == 4_000_000, flow
        assert flow["completion_s"] is not None
        # At 50 Mbit/s it takes 0.67 s and a round trip or two, even when two share.
        assert flow["completion_s"] < 10, flow
        assert 0.009 < flow["rtt_min_s"] < 0.1
    assert not [w for w in run.warnings if "differs" in w]
    assert run.info["world"] == "lab"
    assert {link["direction"] for link in run.links} == {"up", "down"}
    assert len(run.flow_samples) > 0
    assert len(run.link_samples) > 0


@needs_namespaces
@pytest.mark.parametrize("stacks", [("gargalo", "kernel"), ("kernel", "gargalo")])
def test_content_survives_loss_reordering_and_duplicates(stacks: tuple[str, str]) -> None:
    run = gargalo.run(
        RACE,
        set={
            "topology.simple.link.loss": "2%",
            "topology.simple.link.reorder": {"probability": "2%", "late": "2ms"},
            "topology.simple.link.duplicate": "1%",
            "flows.*.transport.tcp.congestion": "bbr",
            "duration": "60s",
            "hosts.client.stack": stacks[0],
            "hosts.server.stack": stacks[1],
        },
        world="lab",
    )
    assert run.flows["delivered_bytes"].to_list() == [4_000_000, 4_000_000]
    assert not [w for w in run.warnings if "differs" in w]
    assert min(run.flows["retransmitted_packets"]) > 20


@needs_namespaces
def test_captures_show_real_segments(tmp_path: Path) -> None:
    """Both stacks, IPv4: tshark finds nothing malformed and every checksum right."""
    changes = {
        "record.captures": ["link"],
        "record.capture_ends": "both",
        "record.capture_payload": True,
        "hosts.server.stack": "kernel",
    }
    gargalo.run(RACE, set=changes, output=tmp_path / "out", world="lab")
    fields = [
        "tcp.len",
        "ip.checksum.status",
        "_ws.malformed",
        "tcp.checksum.status",
        "tcp.checksum",
    ]
    rows = tshark(tmp_path / "out" / "capture.pcapng", "frame", *fields, options=CHECKSUMS)
    assert sum(int(length or 0) for length, *_ in rows) >= 2 * 2 * 4_000_000
    tcp = [row for row in rows if row[0]]
    assert all(row[1] == "1" for row in tcp), "a checksum of IP is wrong"
    # The kernel sends no data here.
    wrong = [row for row in tcp if row[3] != "1" and (row[0], row[4]) != ("0", NEGATIVE_ZERO)]
    assert not wrong, "a checksum of TCP is wrong"
    assert not any(row[2] for row in rows)


@needs_namespaces
def test_captures_have_headers_of_one_end(tmp_path: Path) -> None:
    changes = {"record.captures": ["link"], "hosts.server.stack": "kernel"}
    run = gargalo.run(RACE, set=changes, output=tmp_path / "out", world="lab")
    interfaces, packets = blocks(tmp_path / "out" / "capture.pcapng")
    assert interfaces == 1
    assert all(p.captured <= HEADERS for p in packets)
    # Whole lengths: what passed the client's end, both ways.
    sent = sum(link["sent_bytes"] for link in run.links)
    assert sum(p.original for p in packets) >= sent > 8_000_000
    size = (tmp_path / "out" / "capture.pcapng").stat().st_size
    assert size < 2_000 + len(packets) * (HEADERS + 32)


@needs_namespaces
@pytest.mark.parametrize(
    ("client", "transport"), [("gargalo", "tcp"), ("kernel", "tcp"), ("gargalo", "mptcp")]
)
def test_a_window_is_measured_as_long_as_the_counters_say(client: str, transport: str) -> None:
    """Bytes between two instants, whoever sends, over the time between them."""
    text = RACE.replace('workload.bulk = { bytes = "4MB" }', "").replace(
        "transport.tcp", f"transport.{transport}"
    )
    changes = {
        "duration": "3s",
        "measure.from": "1s",
        "measure.until": "2s",
        "hosts.client.stack": client,
    }
    run = gargalo.run(text, set=changes, world="lab")
    start, end = run.summary["measured_from_s"], run.summary["measured_until_s"]
    # The instants at which the counters were read: never too early.
    assert 1 <= start < 2 <= end <= 3
    flows = run.flows
    total = flows["measured_bytes"].sum()
    assert run.summary["goodput_bps"] == pytest.approx(8 * total / (end - start))
    assert total < 0.9 * flows["delivered_bytes"].sum()
    for f in flows.iter_rows(named=True):
        assert f["goodput_bps"] == pytest.approx(8 * f["measured_bytes"] / (end - start), abs=1)
        # What was sent in that time, by the counters of whichever stack: a full window more or less.
        assert f["throughput_bps"] * (end - start) / 8 == pytest.approx(
            f["measured_bytes"], abs=2e6
        )
        assert f["throughput_bps"] < 60e6
    if transport == "mptcp":
        own = run.subflows
        assert own.height == 2
        assert (own["measured_bytes"] > 0).all()
        assert (own["measured_bytes"] < own["delivered_bytes"]).all()


@needs_namespaces
def test_datagrams_and_requests() -> None:
    text = (
        RACE
        + """
[[flows]]
from = "client"
to   = "server"
transport.udp = {}
workload.cbr  = { rate = "1Mbit/s", packet_size = "1000B" }

[[flows]]
from = "client"
to   = "server"
label = "page"
transport.tcp    = { congestion = "cubic", tls = "1.3" }
workload.request = { objects = 5, size = "20kB" }
"""
    )
    changes = {"hosts.server.stack": "kernel", "duration": "4s"}
    run = gargalo.run(text, set=changes, world="lab")
    udp, page = run.flows.row(2, named=True), run.flows.row(3, named=True)
    assert udp["goodput_bps"] == pytest.approx(1e6, rel=0.1)
    # One-way delays: the link's at least.
    assert 0.005 <= udp["delay_min_s"] < 0.02
    assert udp["rtt_min_s"] is None
    assert page["delivered_bytes"] == 100_000
    assert run.objects["completion_s"].drop_nulls().len() == 5


@needs_namespaces
def test_programs_find_hosts_by_name_and_their_output_is_kept(tmp_path: Path) -> None:
    text = """
name     = "programs"
duration = "60s"
lab      = { stack = "kernel" }

[topology.dumbbell]
pairs      = 2
bottleneck = { rate = "20Mbit/s", delay = "5ms" }

[hosts."right*"]
stack      = "kernel"
congestion = "reno"
sysctl     = { "net.ipv4.tcp_sack" = "0" }

[[commands]]
host = "right1"
run  = "python3 -m http.server 80"
background = true

[[commands]]
host  = "left0"
start = "1s"
run   = '''
i=0
until python3 -c "import urllib.request as u; print(len(u.urlopen('http://right1/').read()) > 0)"
do sleep 0.3; i=$((i+1)); [ $i = 50 ] && exit 1
done
cat /proc/sys/net/ipv4/tcp_congestion_control
'''

[[commands]]
host = "right0"
run  = "cat /proc/sys/net/ipv4/tcp_congestion_control /proc/sys/net/ipv4/tcp_sack; exit 7"
"""
    run = gargalo.run(text, output=tmp_path / "out", world="lab")
    server, client, facts = run.to_json()["commands"]
    assert client["stdout"].startswith("True\n"), client["stderr"]
    assert client["exit_code"] == 0
    assert server["exit_code"] is None
    assert facts["stdout"] == "reno\n0\n"
    assert facts["exit_code"] == 7
    assert any("exit code 7" in w for w in run.warnings)
    assert (tmp_path / "out" / "command-2.out").read_text() == "reno\n0\n"
    # The run ended with the programs, not with its duration.
    assert run.info["virtual_s"] < 50


@needs_namespaces
def test_an_ordinary_user_runs_the_quickstart(tmp_path: Path) -> None:
    uid, python = ordinary_user()
    scenario = tmp_path / "quickstart.toml"
    scenario.write_text((ROOT / "examples" / "cubic-vs-bbr.toml").read_text())
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        # Pytest's own directories are closed to others.
        if parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o755)
    before = devices()
    arguments = ["run", scenario, "--world", "lab", "--stack", "kernel", "--json"]
    changes = ["--set", "duration=4s", "--set", "flows.1.start=1s"]
    done = as_user(uid, [python, "-m", "gargalo", *arguments, *changes], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert run["run"]["world"] == "lab"
    assert run["run"]["device"] in {"tun", "veth"}
    assert all(f["delivered_bytes"] > 100_000 for f in run["flows"]), run["flows"]
    assert gone(lambda: not of_user(uid))
    assert devices() == before


@needs_namespaces
@pytest.mark.parametrize("whom", ["command", "inside"])
def test_nothing_is_left_after_a_kill(tmp_path: Path, whom: str) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(LONG)
    before = devices()
    (temporary := tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        command("run", scenario, "--world", "lab", "--json"),
        cwd=tmp_path,
        env={**environment(), "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    started = lambda: descendants(process.pid)  # noqa: E731
    # Two of the sandbox, the shell of the program, the program.
    assert gone(lambda: len(started()) >= 4, 60)
    inside = started()
    there = {name for name, who in namespaces().items() if who & inside}
    there -= {name for name, who in namespaces().items() if os.getpid() in who}
    assert len(there) >= 2
    # The first process inside is the youngest but for what it has started.
    os.kill(process.pid if whom == "command" else sorted(inside)[1], signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    if whom == "inside":
        assert process.returncode == 1
        assert "the lab ended without a result" in errors
    assert gone(lambda: not (inside & processes().keys())), inside
    # Another process may get a number that has become free.
    assert gone(lambda: not (there & namespaces().keys()))
    assert devices() == before
    # The next run removes what this one had written; with an output there is nothing.
    gargalo._core.recover(temporary)
    assert list(temporary.iterdir()) == []


@needs_namespaces
@pytest.mark.parametrize("how", ["of the terminal", "by SIGTERM"])
def test_an_interrupt_keeps_what_was_done(tmp_path: Path, how: str) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(LONG)
    process = subprocess.Popen(
        command("run", scenario, "--world", "lab", "--output", "out"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert gone(lambda: bool(list(tmp_path.glob("*out*"))), 30)
    time.sleep(3)
    if how == "by SIGTERM":
        process.send_signal(signal.SIGTERM)
    else:
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted at" in errors
    assert not list(tmp_path.glob(".out.*"))
    run = gargalo.load(tmp_path / "out")
    assert run.interrupted
    assert run.flows["delivered_bytes"].item() > 0


@pytest.mark.parametrize(
    ("change", "world", "message"),
    [
        ({"lab.stack": "kernel"}, "sim", "run it with --world lab"),
        ({"hosts.sever.stack": "kernel"}, "lab", "did you mean `server`?"),
        ({"hosts.server.sysctl": {"a": "1"}}, "lab", "settings of the kernel, but not its stack"),
        ({"commands": [{"host": "client", "run": "true"}]}, "lab", "which programs cannot use"),
        ({"flows.0.transport.tcp.receiver": "optimistic"}, "lab", "are in the simulator only"),
        ({"record.captures": ["link"]}, "lab", "add --output DIR"),
    ],
)
def test_what_a_world_cannot_do_is_refused(
    change: dict[str, object], world: str, message: str
) -> None:
    with pytest.raises(gargalo.ScenarioError, match=re.escape(message)):
        gargalo.run(RACE, set=change, world=world)  # type: ignore[arg-type]


@needs_namespaces
def test_what_the_sandbox_refuses_has_its_diagnostics() -> None:
    moves = {"mptcp": {"changes": [{"after": "1s", "remove": "link"}]}}
    change = {"lab.stack": "kernel", "flows.0.transport": moves}
    with pytest.raises(gargalo.ScenarioError) as caught:
        gargalo.run(RACE, set=change, world="lab")
    (d,) = caught.value.diagnostics
    assert str(caught.value) == f"error: {d.message}"


@pytest.mark.parametrize("world", ["sim", "lab"])
def test_what_a_world_lacks_is_refused_at_its_key(
    tmp_path: Path, world: Literal["sim", "lab"]
) -> None:
    rows = [(c, getattr(c, world)) for c in gargalo.capabilities()]
    assert any(c.key == "flows.*.transport.tcp" and not why for c, why in rows)
    of_the_root = [(c, why) for c, why in rows if why and "*" not in c.key]
    assert of_the_root or world == "lab"
    file = tmp_path / "asks.toml"
    for c, why in of_the_root:
        file.write_text(f"{c.example}\n{RACE.split('[record]')[0]}")
        with pytest.raises(gargalo.ScenarioError) as caught:
            gargalo.run(file, world=world)
        told = [d for d in caught.value.diagnostics if d.message == why]
        assert [(d.path, d.line, d.column > 0) for d in told] == [(c.key, 1, True)]
        assert told[0].file.endswith("asks.toml")
        assert "not in the " in str(caught.value)


@needs_namespaces
def test_a_congestion_control_that_the_kernel_lacks_is_refused() -> None:
    change = {"lab.stack": "kernel", "flows.0.transport.tcp.congestion": "compound"}
    with pytest.raises(gargalo.ScenarioError, match=r"not in this kernel") as caught:
        gargalo.run(RACE, set=change, world="lab")
    (d,) = caught.value.diagnostics
    assert d.path == "flows.0.transport.tcp.congestion"
    assert d.file == "--set flows.0.transport.tcp.congestion=compound"
    assert d.message == "the kernel has no congestion control compound"
    assert "reno" in d.help
    assert 'stack = "gargalo"' in d.help
    written = RACE.replace('"reno"', '"compound"')
    with pytest.raises(gargalo.ScenarioError) as caught:
        gargalo.run(written, set={"lab.stack": "kernel"}, world="lab")
    (d,) = caught.value.diagnostics
    assert (d.path, d.line) == ("flows.1.transport.tcp.congestion", 18)


@needs_namespaces
@needs("iperf3")
def test_shells_nest_and_reach_the_outermost_end(gargalo: Callable[..., object]) -> None:
    line = "i=0; until iperf3 -t 3 -J -c $GARGALO_BASE; do i=$((i+1)); [ $i = 20 ] && exit 9; sleep 0.2; done"
    done = gargalo(
        *("shell", "--isolated", "--rate", "20Mbit/s", "--outside", "iperf3 -s >/dev/null", "--"),
        *command("shell", "--delay", "20ms", "--", "sh", "-c", f"{line}; exit 3"),
    )
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout[done.stdout.rindex('{\n\t"start"') :])
    assert report["end"]["sum_received"]["bytes"] > 2_000_000
    stream = report["end"]["streams"][0]["sender"]
    # Twice 20 ms one way, in microseconds.
    assert stream["min_rtt"] >= 40_000
    assert report["end"]["sum_received"]["bits_per_second"] < 21e6


@needs_namespaces
@pytest.mark.parametrize(("line", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("true", None)])
def test_a_shell_tells_when_what_runs_outside_has_failed(
    gargalo: Callable[..., object], line: str, code: int | None
) -> None:
    done = gargalo("shell", "--isolated", "--outside", line, "--", "sleep", "1")
    warning = f"warning: what --outside started has ended with exit code {code}\n"
    assert (done.returncode, done.stderr) == (0, warning if code else "")


@needs_namespaces
def test_an_inner_shell_says_that_outside_belongs_to_the_outermost(
    gargalo: Callable[..., object],
) -> None:
    inner = command("shell", "--outside", "iperf3 -s", "--", "true")
    done = gargalo("shell", "--isolated", "--delay", "20ms", "--", *inner)
    assert done.returncode == 2
    assert "give --outside to the outermost shell" in done.stderr


@needs_namespaces
def test_a_shell_has_its_programs_exit_code_and_logs(
    gargalo: Callable[..., object], tmp_path: Path
) -> None:
    ping = (
        "import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "[s.sendto(bytes(972), (os.environ['GARGALO_BASE'], 9)) for _ in range(20)]"
    )
    logs = ("--uplink-log", tmp_path / "up", "--downlink-log", tmp_path / "down")
    done = gargalo(
        *("shell", "--isolated", "--rate", "1Mbit/s", "--delay", "10ms", *logs, "--"),
        *("sh", "-c", f'python3 -c "{ping}"; sleep 0.5; exit 4'),
    )
    assert done.returncode == 4, done.stderr
    lines = (tmp_path / "up").read_text().splitlines()
    came = [line for line in lines if " + 1000" in line]
    left = [line.split() for line in lines if " - 1000 " in line]
    assert len(came) == len(left) == 20
    # The last of 20 packets of 8 ms each waits for those before it.
    delays = [int(fields[3]) for fields in left]
    assert delays == sorted(delays)
    assert 140 <= delays[-1] <= 165
    assert any(" # 1500" in line for line in lines)
    # Nobody listens at port 9: twenty refusals come back, as far as the kernel's limit goes.
    assert " + " in (tmp_path / "down").read_text()


def test_a_shells_options(gargalo: Callable[..., object], tmp_path: Path) -> None:
    done = gargalo(
        *("shell", "--rate", "12Mbit/s", "--delay", "25ms", "--down-loss", "0.1%"),
        *("--queue", "droptail=100 packets", "--print-scenario"),
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "link.toml").write_text(done.stdout)
    for arguments, message in [
        (("--rate", "12"), 'write the unit, like `rate = "12Mbit/s"`'),
        (("--rate", "1Mbit/s", "--trace", "x"), "exclude each other"),
        (("--graph",), "--graph needs a command"),
        (("--trace", "missing.down"), "missing.down"),
        (("--queue", "driptail"), "did you mean"),
    ]:
        bad = gargalo("shell", *arguments)
        assert bad.returncode == 2, arguments
        assert message in bad.stderr
        assert not bad.stdout


@needs_namespaces
def test_a_shell_reports_a_program_that_cannot_start(gargalo: Callable[..., object]) -> None:
    done = gargalo("shell", "--isolated", "--", "no-such-program")
    assert done.returncode == 1
    assert "starting no-such-program" in done.stderr


@needs_namespaces
def test_a_phone_moves_from_one_network_to_another() -> None:
    text = (ROOT / "examples" / "mptcp.toml").read_text()
    moves = [{"after": "1s", "remove": "wifi"}, {"after": "2s", "add": "wifi"}]
    run = gargalo.run(
        text,
        set={"duration": "4s", "flows.0.transport.mptcp.changes": moves, "record.verify": True},
        world="lab",
    )
    paths = run.subflows.select("link", "peer_link").rows()
    assert paths == [("wifi", "cable"), ("lte", "backhaul"), ("wifi", "cable")]
    assert run.subflows["closed_s"][0] == pytest.approx(1, abs=0.3)
    assert run.subflows["opened_s"][2] == pytest.approx(2, abs=1.5)
    assert min(run.subflows["delivered_bytes"]) > 50_000
    assert not [w for w in run.warnings if "differs" in w]
    # A node that forwards has no interfaces, and no stack of its own.
    routers = re.sub(r"^hosts = .*\n", "", text, flags=re.MULTILINE)
    with pytest.raises(
        gargalo.ScenarioError, match=r"phone forwards .*; name phone in topology.graph"
    ):
        gargalo.run(routers, world="lab")
    with pytest.raises(
        gargalo.ScenarioError, match=r"server forwards .*; name it in topology.graph"
    ):
        gargalo.run(routers, set={"hosts.server.stack": "kernel"})


@needs_namespaces
@needs("iperf3")
def test_kernels_discover_the_path_mtu() -> None:
    text = """
name     = "narrow"
duration = "60s"
lab      = { stack = "kernel" }

[topology.graph]
nodes = ["a", "router1", "router2", "b"]
links = [
  { from = "a", to = "router1", delay = "2ms" },
  { from = "router1", to = "router2", delay = "2ms", rate = "50Mbit/s", mtu = "1280B" },
  { from = "router2", to = "b", delay = "2ms" },
]

[[commands]]
host = "b"
run  = "iperf3 -s"
background = true

[[commands]]
host  = "a"
run   = '''
for family in -4 -6; do
  i=0; until out=$(iperf3 $family -J -t 1 -c b) && echo "$out" | grep -q sum_received; do
    sleep 0.3; i=$((i+1)); [ $i = 50 ] && exit 1
  done
  echo "$out"
done
'''
"""
    run = gargalo.run(text, world="lab")
    _, client = run.commands
    assert client["exit_code"] == 0, client
    printed, decoder, at, reports = client["stdout"], json.JSONDecoder(), 0, []
    while (at := printed.find("{", at)) >= 0:
        report, at = decoder.raw_decode(printed, at)
        reports.append(report)
    done = [r for r in reports if "sum_received" in r.get("end", {})]
    assert len(done) == 2
    for report in done:
        assert report["end"]["sum_received"]["bits_per_second"] > 1e6
        assert report["end"]["streams"][0]["sender"]["max_snd_cwnd"] > 0
    too_big = sum(link["too_big_packets"] for link in run.links)
    assert too_big > 0


def test_the_lab_reports_its_capabilities(gargalo: Callable[..., object]) -> None:
    done = gargalo("lab", "--json")
    facts = json.loads(done.stdout)
    assert facts["system"].split()[0] == os.uname().sysname
    if why_no_namespaces() is None:
        assert done.returncode == 0, done.stderr
        assert facts["device"] in {"tun", "veth"}
        assert facts["delay_error_p50_s"] > 0
    else:
        assert done.returncode == 1
        assert facts["problem"]
    shown = gargalo("lab")
    assert "congestion controls" in shown.stdout
