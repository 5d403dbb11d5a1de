"""Recordings: what is read from captures is what the run that they are of has measured itself."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import gargalo as package
import pytest
from captures import tshark
from click.testing import CliRunner
from conftest import ROOT
from gargalo.cli.app import app
from gargalo.recording import name_of

EXAMPLES = ROOT / "examples"
WITHIN = 0.01
FIGURES = (
    "goodput_bps", "throughput_bps", "sent_packets", "retransmitted_packets", "lost_packets", "timeouts",
    "rtt_min_s", "rtt_mean_s", "rtt_p50_s", "rtt_p95_s", "delivered_bytes",
)  # fmt: skip
COMPARED = {"tcp", "mptcp", "quic"}
DATAGRAMS = (
    "sent_packets", "delivered_bytes", "loss", "delay_min_s", "delay_mean_s", "delay_p50_s", "delay_p95_s",
    "delay_p99_s", "delay_max_s",
)  # fmt: skip
#: A byte more or less in an episode, and a bucket of the histogram, are no difference: 1.6% is a bucket's width.
BUCKET = {"rtt_p50_s": 0.016, "rtt_p95_s": 0.016}
#: Examples in which flows start late.
WHOLE = {"lossy-wifi", "media", "page-load", "ping-under-load", "quic"}
#: Figures of the run that its packets do not show, and why. What `background.toml` has in groups has no rows.
NOT_SHOWN = {
    # The application has stopped writing; what was written is still being sent.
    ("ping-under-load", "upload"): {"goodput_bps", "throughput_bps"},
    # The sender has declared a packet lost, and the run ends before it is sent again.
    ("lossy-wifi", "cubic"): {"lost_packets"},
    # After the response comes what TLS has to say, which is data of TCP.
    ("page-load", "in turns, TLS with early data"): {"goodput_bps", "throughput_bps"},
    # The loss of a call has the packets that came too late to be played.
    ("background", "call"): {"loss"},
    # A flow that waits at the end of the run is as long as the run; in a capture it ends with its last packet.
    ("background", "cubic"): {"goodput_bps", "throughput_bps"},
    ("background", "video"): {"goodput_bps", "throughput_bps"},
    # That of a ping is of the requests whose timeout has passed.
    ("ping-under-load", "ping"): {"loss"},
}


def recorded(tmp_path: Path, example: str, **settings: Any) -> tuple[package.Run, package.Run]:
    """Run an example with captures at both ends of all links, and read them."""
    out = tmp_path / "run"
    capture = {"record.captures": ["*"], "record.capture_ends": "both"}
    package.run(EXAMPLES / f"{example}.toml", set={**capture, **settings}, output=out)
    # As anybody would have it: from files.
    return package.load(out), package.read(out / "capture.pcapng")


def same_datagrams(example: str, own: dict[str, Any], read: dict[str, Any]) -> None:
    """Compare a flow of UDP with what was read of it. Without RTP there is neither jitter nor a workload."""
    for figure in DATAGRAMS:
        if own[figure] is None or figure in NOT_SHOWN.get((example, own["label"]), ()):
            continue
        close = math.isclose(own[figure], read[figure], rel_tol=WITHIN, abs_tol=1e-6)
        assert close, (own["label"], figure, own[figure], read[figure])


def test_flows_among_many_short_ones_have_the_figures_of_the_run(tmp_path):
    run, recording = recorded(tmp_path, "background", duration="5s")
    # What is in groups has no rows in the run.
    assert recording.flows.height > 1_000
    rows = recording.flows.to_dicts()
    for own in run.flows.to_dicts():
        # Names are not in packets; no other flow is as long.
        same = [
            r for r in rows if r["transport"] == own["transport"] and r["start_s"] >= own["start_s"]
        ]
        read = min(
            same, key=lambda row: abs((row["delivered_bytes"] or 0) - own["delivered_bytes"])
        )
        if own["transport"] == "udp":
            same_datagrams("background", own, read)
            continue
        for figure in set(FIGURES) - NOT_SHOWN.get(("background", own["label"]), set()):
            within = BUCKET.get(figure, WITHIN)
            close = math.isclose(own[figure], read[figure], rel_tol=within, abs_tol=0.1)
            assert close, (own["label"], figure, own[figure], read[figure])
    assert recording.warnings == []


@pytest.mark.parametrize(
    "example",
    [
        "cellular-race", "cubic-vs-bbr", "graph", "l4s", "lossy-wifi", "media", "mptcp", "mptcp-five-paths",
        "page-load", "parking-lot", "ping-under-load", "quic", "request", "round-trips",
    ],
)  # fmt: skip
def test_the_capture_of_an_example_has_the_figures_of_the_run(tmp_path, example):
    settings = {} if example in WHOLE else {"duration": "10s"}
    run, recording = recorded(tmp_path, example, **settings)
    order = ["start_s", "id"]
    pairs = zip(
        run.flows.sort(order).iter_rows(named=True),
        recording.flows.sort(order).iter_rows(named=True),
        strict=True,
    )
    compared = 0
    for own, read in pairs:
        assert read["transport"] == own["transport"]
        if own["transport"] not in COMPARED:
            same_datagrams(example, own, read)
            continue
        if own["start_s"] > run.setup.duration_s - 1:
            # The run ends within its first round trips, and with it what is on the way.
            continue
        for figure in FIGURES:
            if figure in NOT_SHOWN.get((example, own["label"]), ()):
                continue
            within = BUCKET.get(figure, WITHIN)
            close = math.isclose(own[figure], read[figure], rel_tol=within, abs_tol=0.1)
            assert close, (own["label"], figure, own[figure], read[figure])
            compared += 1
    assert compared >= 8
    told = recording.info["recording"]["flows"]
    sizes = ("full_segment_bytes", "full_packet_bytes")
    assert {f["captured_at"] for f in told if any(f[s] for s in sizes)} == {"both"}
    assert recording.warnings == []


def test_a_log_in_another_place_is_told_what_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ss.log").write_text(
        "1767323045.6\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic rto:204 mss:1448 cwnd:10 bytes_acked:12 \n"
    )
    for command in ("run", "explain", "plot", "report", "fit"):
        done = CliRunner().invoke(app, [command, "ss.log"])
        assert done.exit_code != 0
        assert "gargalo read ss.log" in done.output, (command, done.output)
    named = {"a.qlog": "a", "b.sqlog.gz": "b", "ss.log": "ss", "up.pcapng": "up", ".log": ".log"}
    assert {file: name_of(Path(file)) for file in named} == named


def test_subflows_are_joined_and_data_that_two_of_them_carried_counts_once(tmp_path):
    run, recording = recorded(tmp_path, "mptcp")
    assert recording.flows["transport"].to_list() == ["mptcp"]
    (own,), (read,) = run.flows.to_dicts(), recording.flows.to_dicts()
    assert read["subflows"] == own["subflows"] == 3
    # At the end of the run a little is acknowledged that was not delivered, or the reverse.
    assert math.isclose(own["duplicate_bytes"], read["duplicate_bytes"], rel_tol=0.05)
    figures = ("sent_packets", "retransmitted_packets", "delivered_bytes", "rtt_mean_s")
    for one, other in zip(
        run.subflows.iter_rows(named=True), recording.subflows.iter_rows(named=True), strict=True
    ):
        for figure in figures:
            assert math.isclose(one[figure], other[figure], rel_tol=WITHIN), (figure, one, other)
    assert recording.subflow_samples.height > 100
    # At any time what was acknowledged at the level of the connection, not the sum of the subflows.
    for at in (5.0, 15.0, 25.0):
        acked, delivered = (
            float(r.flow_samples.filter(r.flow_samples["time_s"] <= at)["delivered_bytes"][-1])
            for r in (recording, run)
        )
        assert math.isclose(acked, delivered, rel_tol=0.01), at


def test_the_qlog_of_a_run_has_its_figures(tmp_path):
    out = tmp_path / "run"
    run = package.run(
        EXAMPLES / "quic.toml",
        set={"record.qlog": True, "record.captures": [], "topology.simple.link.loss": "2%"},
        output=out,
    )
    own = [row for row in run.flows.to_dicts() if row["transport"] == "quic"]
    assert len(own) == 2
    of_end = {
        side: package.read(sorted((out / "qlog").glob(f"*-{side}.sqlog")))
        for side in ("client", "server")
    }
    read = {row["label"]: row for one in of_end.values() for row in one.flows.to_dicts()}
    both = package.read(sorted((out / "qlog").iterdir()))
    joined = {row["label"]: row for row in both.flows.to_dicts()}
    assert joined.keys() == {row["label"] for row in own}
    # The server answers: its end has sent the data, and the client's has seen it arrive.
    for row in own:
        sender, receiver = read[f"{row['label']} server"], read[f"{row['label']} client"]
        # Of both ends it is one flow, as of captures at both.
        one = joined[row["label"]]
        for figure in ("sent_packets", "retransmitted_packets", "lost_packets", "rtt_mean_s"):
            assert one[figure] == sender[figure], figure
        for figure in ("start_s", "end_s", "handshake_s", "first_byte_s", "delivered_bytes"):
            assert math.isclose(one[figure], row[figure], abs_tol=1e-9), figure
        assert math.isclose(one["goodput_bps"], row["goodput_bps"], rel_tol=1e-6)
        assert row["lost_packets"] > 0
        for figure in ("sent_packets", "retransmitted_packets", "lost_packets"):
            assert sender[figure] == row[figure], figure
            assert receiver[figure] is None
        assert math.isclose(sender["rtt_min_s"], row["rtt_min_s"], rel_tol=WITHIN)
        for figure in ("start_s", "end_s", "handshake_s", "first_byte_s", "delivered_bytes"):
            assert math.isclose(receiver[figure], row[figure], abs_tol=1e-9), figure
    sides = [told["captured_at"] for told in both.info["recording"]["flows"]]
    assert sides == ["both", "both"]
    recording = of_end["server"]
    lost = recording.events.filter(recording.events["kind"] == "loss")["detail"].to_list()
    assert sum(int(d.removeprefix("packets=")) for d in lost) == sum(r["lost_packets"] for r in own)
    assert recording.warnings == []


QUIC_OF_ONE = """\
name     = "quic"
duration = "60s"
record   = { captures = ["*"], capture_ends = "both" }

[topology.simple]
link.rate    = "20Mbit/s"
link.delay   = "20ms"
link.loss    = { independent = 0.01 }
link.reorder = { probability = 0.01, late = "3ms" }

[[flows]]
label          = "up"
from           = "client"
to             = "server"
transport.quic = {}
workload.bulk  = { bytes = "2MB" }
"""
#: What a capture shows of QUIC as exactly as the stack counts it.
EXACT = (
    "sent_packets",
    "retransmitted_packets",
    "lost_packets",
    "timeouts",
    "delivered_bytes",
    "ce_marks",
)
TIMES = ("start_s", "handshake_s", "first_byte_s", "completion_s", "rtt_min_s", "rtt_max_s")  # fmt: skip


def quic_run(tmp_path: Path, **settings: Any) -> tuple[package.Run, Path]:
    """Run a transfer over QUIC with losses and reordering; return it and its folder."""
    (tmp_path / "quic.toml").write_text(QUIC_OF_ONE)
    return package.run(
        tmp_path / "quic.toml", set=settings, output=tmp_path / "run"
    ), tmp_path / "run"


def of_one(run: package.Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the row of the only flow of a recording, and what was concluded of it."""
    (row,), (told,) = run.flows.to_dicts(), run.info["recording"]["flows"]
    return row, told


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"retry": True},
        {"congestion": "bbr", "streams": 4},
        {"migration": {"after": "300ms", "change": "port"}},
    ],
    ids=["plain", "retry", "bbr", "migration"],
)
def test_quic_is_decrypted_and_counted_as_its_sender_counts(tmp_path, settings):
    keys = {f"flows.0.transport.quic.{key}": value for key, value in settings.items()}
    run, out = quic_run(tmp_path, **keys)
    (own,) = run.flows.to_dicts()
    row, told = of_one(package.read(out / "capture.pcapng"))
    assert own["lost_packets"] > 10
    for figure in EXACT:
        assert row[figure] == own[figure], figure
    for figure in TIMES:
        assert math.isclose(row[figure], own[figure], abs_tol=1e-6), figure
    assert math.isclose(row["goodput_bps"], own["goodput_bps"], rel_tol=1e-6)
    assert math.isclose(row["rtt_mean_s"], own["rtt_mean_s"], rel_tol=0.002)
    assert told["encrypted_packets"] == {"without_key": 0, "cut": 0, "damaged": 0}
    assert told["captured_at"] == "both"


@pytest.mark.parametrize("stack", ["aioquic", "neqo", "ngtcp2", "picoquic", "quiche", "quinn"])
def test_quic_of_other_stacks_is_read_as_they_count_it(tmp_path, stack):
    from gargalo.plugins import discovery

    if stack not in discovery.installed():
        pytest.skip(f"{stack} is not installed (make stacks): its packets were not read")
    run, out = quic_run(tmp_path, **{"flows.0.transport.quic.stack": stack, "record.qlog": True})
    (own,) = run.flows.to_dicts()
    row, told = of_one(package.read(out / "capture.pcapng"))
    assert told["encrypted_packets"] == {"without_key": 0, "cut": 0, "damaged": 0}
    assert row["delivered_bytes"] == own["delivered_bytes"] == 2_000_000
    assert math.isclose(row["completion_s"], own["completion_s"], abs_tol=1e-6)
    # Counts and round trips of a stack are its own; what it does not tell is missing. quiche takes back some of the
    # losses that were none.
    for figure in ("sent_packets", "rtt_min_s", "rtt_mean_s"):
        if own[figure] is not None:
            assert math.isclose(row[figure], own[figure], rel_tol=0.02, abs_tol=2), figure
    least = row["lost_packets"] - told["spurious_losses"]
    assert least - 2 <= own["lost_packets"] <= row["lost_packets"] + 2
    # Its log has the same: what none of its events tells is missing.
    logged, _ = of_one(package.read(out / "qlog" / "flow0-client.sqlog"))
    of_packets = {"retransmitted_packets": row, "lost_packets": own, "delivered_bytes": own}
    for figure, expected in {"sent_packets": row, **of_packets}.items():
        if logged[figure] is not None:
            assert math.isclose(logged[figure], expected[figure], rel_tol=0.02, abs_tol=2), figure
    assert logged["sent_packets"] is not None
    assert math.isclose(logged["rtt_min_s"], row["rtt_min_s"], rel_tol=0.02)
    assert (logged["lost_packets"] is None) == (stack == "quiche")
    assert (logged["delivered_bytes"] is None) == (stack == "quinn")


def test_keys_of_quic_come_in_a_file_of_their_own_or_are_missing(inside, tmp_path):
    run, out = quic_run(tmp_path)
    (own,) = run.flows.to_dicts()
    whole, bare = out / "capture.pcapng", tmp_path / "bare.pcapng"
    subprocess.run(
        [program("editcap"), "--discard-all-secrets", whole, bare], check=True, timeout=60
    )
    # Whichever file is first.
    for files in ([bare, out / "keys.log"], [out / "keys.log", bare]):
        assert package.read(files).flows.equals(package.read(whole).flows)
    sealed = package.read(bare)
    row, told = of_one(sealed)
    assert (row["transport"], told["captured_at"]) == ("quic", "both")
    for figure in (
        "goodput_bps",
        "delivered_bytes",
        "sent_packets",
        "lost_packets",
        "completion_s",
    ):
        assert row[figure] is None, figure
    # Some are of acknowledgements alone.
    assert 0 <= told["datagrams"] - own["sent_packets"] <= 3
    assert told["encrypted_packets"]["without_key"] > 2_000
    # noq-proto's packets spin: the bit tells one round trip in each.
    assert told["spin_round_trips"] > 5
    assert math.isclose(row["rtt_min_s"], own["rtt_min_s"], rel_tol=0.02)
    assert own["rtt_min_s"] < row["rtt_p50_s"] < row["rtt_max_s"] < own["rtt_max_s"] * 1.02
    assert sealed.flow_samples["srtt_s"].null_count() == 0 < sealed.flow_samples.height
    assert any("1 flow of QUIC was not decrypted" in w for w in sealed.warnings)
    # The beginnings of packets are not enough, whatever keys there are.
    subprocess.run(
        [program("editcap"), "-s", "200", bare, tmp_path / "cut.pcapng"], check=True, timeout=60
    )
    cut = package.read([tmp_path / "cut.pcapng", out / "keys.log"])
    row, told = of_one(cut)
    assert row["delivered_bytes"] is None
    assert told["encrypted_packets"]["cut"] > 1_000
    assert any("the capture has not kept all of them" in w for w in cut.warnings)
    done = inside("read", "bare.pcapng", "run/keys.log", "--no-plots", "--output", "told")
    assert done.returncode == 0, done.stderr
    explained = inside("explain", "told")
    assert explained.returncode == 0, explained.stderr
    assert f"lost {own['lost_packets']} of" in explained.stdout


def test_what_a_capture_cannot_show_is_missing(tmp_path):
    _, recording = recorded(tmp_path, "lossy-wifi")
    samples = recording.flow_samples
    for column in ("congestion_window_bytes", "slow_start_threshold_bytes", "pacing_rate_bps"):
        assert samples[column].null_count() == samples.height > 0
    assert samples["bytes_in_flight"].null_count() == 0
    (row,) = recording.flows.to_dicts()
    assert row["congestion"] == ""
    assert row["workload"] == ""
    assert recording.is_recording
    assert recording.info["seed"] is None
    assert recording.scenario == {}
    assert recording.links == []


def test_retransmissions_are_those_that_tshark_finds(tmp_path):
    out = tmp_path / "run"
    package.run(EXAMPLES / "lossy-wifi.toml", set={"record.captures": ["*"]}, output=out)
    (row,) = package.read(out / "capture.pcapng").flows.to_dicts()
    # All of them by the order of sequence numbers at the sender; what it calls them is a guess by time.
    names = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
    again = " || ".join(f"tcp.analysis.{name}" for name in names)
    found = tshark(out / "capture.pcapng", again, "frame.number")
    assert len(found) == row["retransmitted_packets"] > 10


def program(name: str) -> str:
    """Return a program of Wireshark; the test is skipped without it."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed: captures of other programs were not read")
    return name


def test_every_way_to_write_a_capture_is_read(tmp_path):
    out = tmp_path / "run"
    package.run(
        EXAMPLES / "lossy-wifi.toml", set={"record.captures": ["*"], "duration": "5s"}, output=out
    )
    whole = out / "capture.pcapng"
    expected = package.read(whole).flows.drop("id")
    # Of one interface: the older format has no others.
    names = {}
    for form in ("pcap", "nsecpcap", "pcapng"):
        file = tmp_path / f"{form}.cap"
        subprocess.run([program("editcap"), "-F", form, whole, file], check=True, timeout=60)
        names[form] = file
    compressed = tmp_path / "capture.pcap.gz"
    compressed.write_bytes(gzip.compress(names["nsecpcap"].read_bytes()))
    cut = tmp_path / "snap.pcapng"
    subprocess.run([program("editcap"), "-s", "96", whole, cut], check=True, timeout=60)
    for file in (names["nsecpcap"], names["pcapng"], compressed, cut):
        assert package.read(file).flows.drop("id").equals(expected), file
    micro = package.read(names["pcap"]).flows
    assert micro["retransmitted_packets"].to_list() == expected["retransmitted_packets"].to_list()


def test_two_files_of_both_ends_are_one_flow_whatever_their_clocks(tmp_path):
    out = tmp_path / "run"
    both = {"record.captures": ["*"], "record.capture_ends": "both", "duration": "5s"}
    package.run(EXAMPLES / "lossy-wifi.toml", set=both, output=out)
    whole = out / "capture.pcapng"
    (expected,) = package.read(whole).flows.to_dicts()
    assert package.read(whole).info["recording"]["flows"][0]["clock_offset_s"] is None
    ends = []
    for interface in (0, 1):
        file = tmp_path / f"{interface}.pcapng"
        chosen = f"frame.interface_id == {interface}"
        words = [program("tshark"), "-r", whole, "-Y", chosen, "-w", file]
        subprocess.run(words, check=True, timeout=60)
        ends.append(file)
    for ahead in (0.0, 3.5):
        other = tmp_path / f"{ahead}.pcapng"
        subprocess.run(
            [program("editcap"), "-t", f"{ahead}", ends[1], other], check=True, timeout=60
        )
        joined = package.read([ends[0], other])
        (row,) = joined.flows.to_dicts()
        for figure in FIGURES:
            assert math.isclose(row[figure], expected[figure], rel_tol=WITHIN), figure
        # The path is longer one way than the other only by what jitter and acknowledgements add.
        (told,) = joined.info["recording"]["flows"]
        assert math.isclose(told["clock_offset_s"], ahead, abs_tol=0.003)
        assert abs(told["clock_drift_ppm"] or 0.0) < 1000
        assert told["captured_at"] == "both"
        assert math.isclose(row["first_byte_s"], expected["first_byte_s"], abs_tol=0.003)


CALL = """\
name     = "call"
duration = "10s"
record   = { captures = ["*"], capture_ends = "both" }

[topology.simple]
link = { rate = "4Mbit/s", delay = "20ms", loss = "1%", queue = { droptail = "100ms" } }

[[flows]]                                         # its receiver reports back
from           = "client"
to             = "server"
transport.udp  = {}
workload.media = {}

[[flows]]
from           = "client"
to             = "server"
transport.udp  = {}
workload.onoff = { rate = "200kbit/s", packet_size = "200B", on = "400ms", off = "100ms" }
"""
UPLOAD = """
[[flows]]
from          = "client"
to            = "server"
transport.tcp = {}
workload.bulk = { bytes = "500kB" }
"""


@pytest.mark.parametrize("with_tcp", [True, False])
def test_datagrams_in_two_files_are_matched_whatever_their_clocks(tmp_path, with_tcp):
    (tmp_path / "call.toml").write_text(CALL + UPLOAD * with_tcp)
    package.run(tmp_path / "call.toml", output=tmp_path / "run")
    whole = tmp_path / "run" / "capture.pcapng"
    expected = package.read(whole).flows.to_dicts()
    ends = []
    for interface in (0, 1):
        ends.append(tmp_path / f"{interface}.pcapng")
        shown = f"frame.interface_id == {interface}"
        words = [program("tshark"), "-r", whole, "-Y", shown, "-w", ends[-1]]
        subprocess.run(words, check=True, timeout=60)
    ahead = tmp_path / "ahead.pcapng"
    # The sender's clock is ahead: by their times, packets arrive before they are sent.
    subprocess.run([program("editcap"), "-t", "3.5", ends[0], ahead], check=True, timeout=60)
    joined = package.read([ahead, ends[1]])
    found = {row["label"]: row for row in joined.flows.to_dicts()}
    told = {f["id"]: f for f in joined.info["recording"]["flows"]}
    assert found.keys() == {row["label"] for row in expected}
    for one in expected:
        row = found[one["label"]]
        assert row["sent_packets"] == one["sent_packets"]
        if one["transport"] == "tcp":
            continue
        assert 0 < one["loss"] < 0.1
        assert math.isclose(row["loss"], one["loss"], rel_tol=WITHIN)
        assert told[row["id"]]["matched_by"] == "content"
        is_one_way = told[row["id"]]["reverse_bytes"] == 0
        for figure in ("delay_min_s", "delay_mean_s", "delay_p95_s", "delay_max_s"):
            if is_one_way and not with_tcp:
                # Nothing tells how far the clocks are apart.
                assert row[figure] is None
                continue
            assert math.isclose(row[figure], one[figure], abs_tol=0.005), (
                figure,
                row[figure],
                one[figure],
            )
        if row["delay_min_s"] is not None:
            assert math.isclose(told[row["id"]]["clock_offset_s"], -3.5, abs_tol=0.005)


def test_a_recording_is_read_written_and_shown_as_a_run(inside, tmp_path):
    made = inside(
        "run", EXAMPLES / "lossy-wifi.toml", "--capture", "*", "--no-plots", "--quiet", "--output", "made",
        "--set", "duration=5s",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    capture = Path("made") / "capture.pcapng"
    done = inside("read", capture)
    assert done.returncode == 0, done.stderr
    assert "10.0.0.1:49152 > 10.0.0.2:5001" in done.stdout
    assert "seed" not in done.stdout
    directory = tmp_path / "runs" / "capture"
    kept = {p.name for p in directory.iterdir()}
    assert {
        "flows.parquet",
        "flow_samples.parquet",
        "goodput.png",
        "in_flight.png",
        "rtt.png",
    } <= kept
    # What was not recorded has no picture, and what was not given no file.
    assert not kept & {"scenario.toml", "congestion_window.png", "queue.png"}
    again = inside("read", capture, "--quiet", "--no-plots")
    assert again.returncode == 0
    assert (tmp_path / "runs" / "capture-2").is_dir()
    loaded = package.load(directory)
    assert loaded.flows.equals(package.read(tmp_path / capture).flows)
    assert "recorded" in repr(loaded)

    told = inside("explain", "runs/capture")
    assert told.returncode == 0, told.stderr
    assert "by fast retransmission" in told.stdout
    assert "was limited by" in told.stdout
    for words in (
        ["report", "runs/capture"],
        ["plot", "runs/capture", "--metric", "in-flight"],
        ["export", "runs/capture", "--csv"],
        ["compare", "runs/capture", "made"],
    ):
        shown = inside(*words)
        assert shown.returncode == 0, shown.stderr
    assert "This was recorded" in (directory / "report.html").read_text(encoding="utf-8")
    explored = inside("explore", "runs/capture", "--no-open")
    assert explored.returncode == 0, explored.stderr
    assert "report.html" in explored.stdout


def test_figures_of_a_recording_as_json(inside, tmp_path):
    package.run(
        EXAMPLES / "lossy-wifi.toml",
        set={"record.captures": ["*"], "duration": "5s"},
        output=tmp_path / "run",
    )
    done = inside("read", "run/capture.pcapng", "--json", "--interval", "50ms")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    (flow,), (told,) = facts["flows"], facts["concluded"]
    assert flow["goodput_bps"] > 0
    assert told["base_rtt_s"] == flow["rtt_min_s"]
    spent = sum(told["limited_by"].values())
    assert math.isclose(spent, flow["end_s"] - flow["start_s"], rel_tol=0.05)
    assert not (tmp_path / "runs").exists()


def test_a_damaged_file_gives_what_it_has_and_says_where_it_ended(inside, tmp_path):
    package.run(
        EXAMPLES / "lossy-wifi.toml",
        set={"record.captures": ["*"], "duration": "5s"},
        output=tmp_path / "run",
    )
    whole = (tmp_path / "run" / "capture.pcapng").read_bytes()
    (tmp_path / "cut.pcapng").write_bytes(whole[: len(whole) // 2])
    done = inside("read", "cut.pcapng", "--no-plots")
    assert done.returncode == 0, done.stderr
    assert "warning: cut.pcapng: the file ends within a packet (byte " in done.stderr
    packed = gzip.compress(whole)
    (tmp_path / "cut.pcapng.gz").write_bytes(packed[: len(packed) // 2])
    done = inside("read", "cut.pcapng.gz", "--no-plots", "--output", "half")
    assert done.returncode == 0, done.stderr
    assert "its compressed data is damaged" in done.stderr
    assert package.load(tmp_path / "half").flows.height == 1


def test_what_is_no_capture_is_refused_with_a_remedy(inside, tmp_path):
    (tmp_path / "text.pcap").write_text("no capture")
    for words, why in (
        (
            ["text.pcap"],
            "text.pcap is no recording that is known: it begins as none of pcap, pcapng",
        ),
        (["absent.pcap"], "absent.pcap"),
        ([EXAMPLES / "lossy-wifi.toml"], "gargalo run"),
        (["text.pcap", "--interval", "0s"], "--interval 0s"),
    ):
        done = inside("read", *words)
        assert done.returncode in (1, 2), done.stderr
        assert why in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
    with pytest.raises(ValueError, match="no file"):
        package.read([])
    with pytest.raises(ValueError, match="interval_s"):
        package.read(tmp_path / "text.pcap", interval_s=0)


def test_anonymous_results_have_no_address_no_port_and_no_file(inside, tmp_path):
    short = {"record.captures": ["*"], "duration": "5s"}
    package.run(EXAMPLES / "lossy-wifi.toml", set=short, output=tmp_path / "private")
    done = inside("read", "private/capture.pcapng", "--anonymise", "--no-plots")
    assert done.returncode == 0, done.stderr
    assert "host1:1 > host2:1" in done.stdout
    out = tmp_path / "runs" / "recording"
    for file in out.iterdir():
        content = file.read_bytes()
        for secret in (b"10.0.0.", b"49152", b"private", b"pcapng"):
            assert secret not in content, (file.name, secret)
    plain, hidden = (
        package.read(tmp_path / "private" / "capture.pcapng", anonymise=a) for a in (False, True)
    )
    names = ["label", "from", "to"]
    assert hidden.flows.drop(names).equals(plain.flows.drop(names))
    assert hidden.flow_samples.equals(plain.flow_samples)


def ss_answer(time_s: float, acked: int, cwnd: int) -> str:
    """Return what `date +%s.%N; ss -tin` prints of a socket that sends."""
    return (
        f"{time_s:.9f}\n"
        "State Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n"
        "ESTAB 0      231680     10.0.0.1:40000     10.0.0.2:5201\n"
        f"\t ts sack cubic wscale:7,7 rto:221 rtt:20.5/1.25 mss:1448 pmtu:1500 cwnd:{cwnd} ssthresh:{cwnd} "
        f"bytes_sent:{acked} bytes_acked:{acked} segs_out:90 data_segs_out:80 send 11300488bps "
        f"pacing_rate 22.6Mbps delivery_rate 10.1Mbps unacked:{cwnd} retrans:0/{cwnd - 7} rcv_space:14480 minrtt:20\n"
    )


def test_answers_of_ss_are_samples_of_a_flow(inside, tmp_path):
    answers = [ss_answer(1767323045 + n / 10, 100_000 * (n + 1), 10 + n) for n in range(5)]
    (tmp_path / "ss.log").write_text("".join(answers))
    done = inside("read", "ss.log", "--no-plots")
    assert done.returncode == 0, done.stderr
    run = package.load(tmp_path / "runs" / "ss")
    (row,) = run.flows.to_dicts()
    assert (row["label"], row["congestion"]) == ("10.0.0.1:40000 > 10.0.0.2:5201", "cubic")
    assert math.isclose(row["goodput_bps"], 400_000 * 8 / 0.4, rel_tol=1e-6)
    assert (row["rtt_min_s"], row["retransmitted_packets"], row["lost_packets"]) == (0.02, 4, None)
    samples = run.flow_samples
    windows = [n * 1448 for n in range(10, 15)]
    for column in ("congestion_window_bytes", "slow_start_threshold_bytes", "bytes_in_flight"):
        assert samples[column].to_list() == windows
    assert samples["pacing_rate_bps"].to_list() == [22_600_000] * 5
    # What was acknowledged before the first answer was not delivered in the time of the recording.
    assert samples["delivered_bytes"].to_list() == [0, 100_000, 200_000, 300_000, 400_000]
    assert row["delivered_bytes"] == 400_000
    told = inside("explain", "runs/ss")
    assert told.returncode == 0, told.stderr
    assert "round trips took at least 20 ms." in told.stdout
    shown = inside("plot", "runs/ss", "--metric", "cwnd")
    assert shown.returncode == 0, shown.stderr


def test_lines_of_tcp_probe_are_samples_in_bytes(tmp_path):
    lines = ["# tracer: nop\n"]
    for n in range(20):
        una = 0xFFFF0000 + n * 1448
        lines.append(
            f"  <idle>-0 [001] ..s2. 4711.{n:02}0000: tcp_probe: family=AF_INET src=10.0.0.1:40000 "
            f"dest=10.0.0.2:5201 mark=0x0 data_len=0 snd_nxt={(una + (10 + n) * 1448) % 2**32:#x} "
            f"snd_una={una % 2**32:#x} snd_cwnd={10 + n} ssthresh=2147483647 snd_wnd=65160 srtt=20500 "
            "rcv_wnd=64256 sock_cookie=d skbaddr=0 skaddr=0\n"
        )
    file = tmp_path / "probe.log.gz"
    file.write_bytes(gzip.compress("".join(lines).encode()))
    coarse = package.read(file).flow_samples
    # One in each interval, and the last.
    assert [round(t, 3) for t in coarse["time_s"]] == [0.0, 0.09, 0.18, 0.19]
    run = package.read(file, interval_s=0.01)
    windows = [n * 1448 for n in range(10, 30)]
    assert run.flow_samples["congestion_window_bytes"].to_list() == windows
    assert run.flow_samples["bytes_in_flight"].to_list() == windows
    assert run.flow_samples["slow_start_threshold_bytes"].null_count() == 20
    assert run.flows["delivered_bytes"].to_list() == [19 * 1448]
    assert run.warnings == []


def test_a_log_of_mahimahi_is_a_link_without_flows(inside, tmp_path):
    heading = (
        "# mahimahi mm-link (Uplink) [12mbps.trace] > up.log\n# queue: droptail [packets=2]\n"
        "# init timestamp: 1767323045000\n# base timestamp: 100\n"
    )
    events = [f"{100 + n} {what}\n" for n in range(400) for what in ("+ 752", "# 752", "- 752 0")]
    events += ["500 d 2 3008\n", "no line\n"]
    (tmp_path / "up.log").write_text(heading + "".join(events))
    done = inside("read", "up.log")
    assert done.returncode == 0, done.stderr
    run = package.load(tmp_path / "runs" / "up")
    assert run.flows.height == 0
    assert [link.name for link in run.setup.links] == ["12mbps.trace"]
    samples = run.link_samples
    assert samples["direction"].unique().to_list() == ["up"]
    assert samples["time_s"].to_list() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert samples["dropped_packets"].to_list() == [0, 0, 0, 0, 2]
    assert samples["utilization"].to_list() == [1.0, 1.0, 1.0, 1.0, 1.0]
    assert run.warnings == ["lines of logs that could not be used: 1"]


def test_pictures_are_those_of_what_was_recorded(inside, tmp_path):
    ss = "1767323045.{}\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic rto:204 rtt:{}/1 mss:1448 cwnd:10 \n"
    (tmp_path / "ss.log").write_text(ss.format(0, 20) + ss.format(5, 30))
    link = "".join(f"{ms} # 1504\n{ms} + 1504\n{ms + 1} - 1504 1\n" for ms in range(0, 400, 2))
    (tmp_path / "mm.log").write_text(f"# mahimahi mm-link\n# base timestamp: 0\n{link}")
    for log, expected in (("ss.log", {"congestion_window", "rtt"}), ("mm.log", {"queue"})):
        done = inside("read", log, "--output", f"{log}.run")
        assert done.returncode == 0, done.stderr
        assert {p.stem for p in (tmp_path / f"{log}.run").glob("*.png")} == expected
