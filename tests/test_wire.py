"""`gargalo iperf3` and `gargalo connect` against the kernel's stack, inside a network namespace."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from captures import CHECKSUMS, NEGATIVE_ZERO, tshark
from conftest import command, environment
from gargalo.plugins.compiling import build_plugin
from test_plugins_native import EXAMPLES, LOOP, broken

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MB = 1_000_000


class Network:
    """A network namespace with nothing in it, and commands that run there."""

    def __init__(self, holder: int, root: bool) -> None:
        users = [] if root else ["--user", "--preserve-credentials"]
        self.enter = ["nsenter", *users, "--net", "--target", str(holder)]

    def run(
        self, *args: object, timeout: float = 120, **more: object
    ) -> subprocess.CompletedProcess:
        more = {"capture_output": True, "text": True, **more}
        done = [*self.enter, *map(str, args)]
        return subprocess.run(done, env=environment(), timeout=timeout, check=False, **more)

    def gargalo(self, *args: object, **more: object) -> subprocess.CompletedProcess:
        return self.run(*command(*args), **more)

    @contextmanager
    def start(self, *args: object, **more: object) -> Iterator[subprocess.Popen]:
        more = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **more}
        process = subprocess.Popen([*self.enter, *map(str, args)], env=environment(), **more)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def server(self, *args: object, **more: object) -> Iterator[tuple[subprocess.Popen, str, str]]:
        """A gargalo command that listens: with its addresses, IPv4 and IPv6."""
        more = {"stderr": subprocess.PIPE, **more}
        with self.start(*command(*args), **more) as process:
            line = process.stderr.readline().decode()
            found = re.match(r"listening on (\S+) and (\S+) port", line)
            assert found, line + process.stderr.read().decode()
            yield process, found[1], found[2]

    def await_port(self, port: int) -> None:
        """Until a kernel socket listens."""
        for _ in range(100):
            if f":{port} " in self.run("ss", "-Hltn").stdout:
                return
            time.sleep(0.05)
        pytest.fail(f"nobody listens on {port}")


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    for tool in ("unshare", "nsenter", "ip", "ss"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("this user may not open /dev/net/tun")
    root = os.geteuid() == 0
    make = ["unshare", "-n"] if root else ["unshare", "-Urn"]
    probe = subprocess.run([*make, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"no network namespaces here: {probe.stderr.strip()}")
    holder = subprocess.Popen(
        [*make, "sh", "-c", "ip link set lo up && echo && exec sleep 1000"], stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout.readline() == b"\n"
        yield Network(holder.pid, root)
    finally:
        holder.kill()
        holder.wait()


def needs(tool: str) -> None:
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")


def report(done: subprocess.CompletedProcess) -> dict:
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def iperf3(net: Network) -> Iterator[Network]:
    """An ordinary iperf3 that serves."""
    needs("iperf3")
    with net.start("iperf3", "-s"):
        net.await_port(5201)
        yield net


@pytest.mark.parametrize(
    "options",
    [["-P", 4], ["-R", "-P", 4], ["--bidir"], ["-R", "-6"], ["-6", "-C", "bbr"], ["--no-offload"]],
    ids=str,
)
def test_an_ordinary_iperf3_measures_us(iperf3: Network, options):
    host = "::1" if "-6" in options else "127.0.0.1"
    r = report(iperf3.gargalo("iperf3", "-c", host, "-t", 2, "-J", *options))
    streams = 4 if 4 in options else 2 if "--bidir" in options else 1
    assert len(r["start"]["connected"]) == streams
    assert len(r["intervals"]) == 2
    end = r["end"]
    assert end["sum_received"]["bytes"] > 10 * MB
    # Both sides counted the same data: only what is under way at the end differs, a window of 16 MiB for each stream
    # (half of what tcp_rmem allows a kernel's receiver) and what waits to be sent.
    under_way = end["sum_sent"]["bytes"] - end["sum_received"]["bytes"]
    assert -MB <= under_way <= streams * 20 * MB
    if "-R" not in options:
        assert end["sender_tcp_congestion"] == ("bbr" if "bbr" in options else "cubic")
        for interval in r["intervals"]:
            for stream in interval["streams"]:
                if stream["sender"]:
                    assert stream["snd_cwnd"] > 0
                    assert stream["rtt"] < 1_000_000
                    assert stream["pmtu"] == 1500
    if "--bidir" in options:
        assert end["sum_received_bidir_reverse"]["bytes"] > 10 * MB


def test_bytes_sent_are_bytes_received(iperf3: Network):
    r = report(iperf3.gargalo("iperf3", "-c", "127.0.0.1", "-n", "20M", "-J"))
    sent, received = (r["end"][total]["bytes"] for total in ("sum_sent", "sum_received"))
    # All of it is acknowledged before the client says that the test ends; what a busy iperf3 has then not read out of
    # its socket (tcp_rmem allows 16 MiB) it does not count.
    assert sent == 20 << 20
    assert sent - (16 << 20) <= received <= sent
    # Our own server reads all of it.
    serve = ["iperf3", "-s", "-1", "-p", 5301]
    with iperf3.server(*serve, stdout=subprocess.PIPE) as (_, address, _):
        r = report(iperf3.gargalo("iperf3", "-c", address, "-p", 5301, "-n", "20M", "-J"))
    assert r["end"]["sum_sent"]["bytes"] == r["end"]["sum_received"]["bytes"] == 20 << 20


def test_a_rate_is_kept_and_the_table_reads_like_iperf3s(iperf3: Network):
    done = iperf3.gargalo("iperf3", "-c", "127.0.0.1", "-t", 2, "-b", "20M", "-O", 1, "-l", "10K")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "(omitted)" in lines[3]
    assert lines[2] == "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd"
    ends = [line for line in lines if line.endswith(("sender", "receiver"))]
    assert len(ends) == 2
    for line in ends:
        rate = float(re.search(r"([\d.]+) Mbits/sec", line)[1])
        assert 19 < rate < 21
    assert lines[-1] == "iperf Done."


@pytest.mark.parametrize(
    "options", [["-P", 3], ["-R"], ["--bidir"], ["-R", "-M", 500, "-w", "100K"]], ids=str
)
@pytest.mark.parametrize("family", [4, 6])
def test_we_measure_an_ordinary_iperf3(net: Network, options, family):
    needs("iperf3")
    serve = ["iperf3", "-s", "-1", "-J", "-p", 5300]
    with net.server(*serve, stdout=subprocess.PIPE) as (process, v4, v6):
        host = v4 if family == 4 else v6
        theirs = report(net.run("iperf3", "-c", host, "-p", 5300, "-t", 1, "-J", *options))
        out, err = process.communicate(timeout=10)
        assert process.returncode == 0, err
    ours = json.loads(out)
    assert theirs["end"]["sum_received"]["bytes"] > MB
    received = "sum_received" if "-R" not in options else "sum_sent"
    assert ours["end"][received]["bytes"] == theirs["end"][received]["bytes"]
    if "--bidir" in options:
        assert ours["end"]["sum_sent_bidir_reverse"]["bytes"] > MB
    if "-M" in options:
        # Twelve bytes of each segment are the timestamps option.
        assert ours["start"]["tcp_mss_default"] <= 500


KERNEL_SINK = """
import hashlib, socket, sys
listener = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
connection, _ = listener.accept()
digest, n = hashlib.sha256(), 0
while piece := connection.recv(1 << 20):
    digest.update(piece)
    n += len(piece)
connection.sendall(f"{n} {digest.hexdigest()}".encode())
"""

KERNEL_SOURCE = """
import random, socket, sys
listener = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
connection, _ = listener.accept()
connection.sendall(random.Random(7).randbytes(int(sys.argv[2])))
"""


def content(n: int) -> bytes:
    import random

    return random.Random(7).randbytes(n)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("offload", [True, False])
def test_what_is_sent_arrives(net: Network, tmp_path: Path, host, offload):
    data = content(50 * MB)
    (tmp_path / "data").write_bytes(data)
    with net.start(sys.executable, "-c", KERNEL_SINK, 5401):
        net.await_port(5401)
        options = [] if offload else ["--no-offload"]
        done = net.gargalo("connect", host, 5401, "--send", tmp_path / "data", *options)
    assert done.returncode == 0, done.stderr
    # The half-close was seen, and the answer after it too.
    assert done.stdout == f"{len(data)} {hashlib.sha256(data).hexdigest()}"
    assert f"{len(data)} bytes sent" in done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_comes_is_received(net: Network, tmp_path: Path, host):
    with net.start(sys.executable, "-c", KERNEL_SOURCE, 5402, 50 * MB):
        net.await_port(5402)
        done = net.gargalo(
            "connect", host, 5402, "--receive", tmp_path / "got", stdin=subprocess.DEVNULL
        )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "got").read_bytes() == content(50 * MB)


def test_a_pipe_in_and_a_pipe_out(net: Network):
    with net.start(sys.executable, "-c", KERNEL_SINK, 5403):
        net.await_port(5403)
        done = net.gargalo("connect", "127.0.0.1", 5403, input="hello\n")
    assert done.stdout == f"6 {hashlib.sha256(b'hello' + bytes([10])).hexdigest()}"


def test_curl_fetches_from_our_server(net: Network, tmp_path: Path):
    needs("curl")
    body = content(100 * MB)
    header = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    (tmp_path / "answer").write_bytes(header.encode() + body)
    serve = [
        "connect",
        "--listen",
        8080,
        "--send",
        tmp_path / "answer",
        "--receive",
        tmp_path / "request",
    ]
    with net.server(*serve) as (process, v4, _):
        got = net.run(
            "curl", "-s", "--max-time", 60, "-o", tmp_path / "body", f"http://{v4}:8080/file"
        )
        assert got.returncode == 0
        assert process.wait(timeout=10) == 0
    assert (tmp_path / "body").read_bytes() == body
    assert (tmp_path / "request").read_bytes().startswith(b"GET /file HTTP/1.1\r\n")


def test_we_fetch_from_nginx(net: Network, tmp_path: Path):
    needs("nginx")
    body = content(20 * MB)
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_bytes(body)
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log stderr;\n"
        f"events {{}} http {{ access_log off; client_body_temp_path {tmp_path}/b; "
        f"proxy_temp_path {tmp_path}/p; fastcgi_temp_path {tmp_path}/f; uwsgi_temp_path {tmp_path}/u; "
        f"scgi_temp_path {tmp_path}/s; server {{ listen 8081; root {tmp_path}; }} }}\n"
    )
    request = "GET /file HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    with net.start("nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"):
        net.await_port(8081)
        # nginx takes a half-closed connection for one whose client has gone.
        options = ["--keep-open", "--receive", tmp_path / "got"]
        done = net.gargalo("connect", "127.0.0.1", 8081, *options, input=request)
    assert done.returncode == 0, done.stderr
    header, _, got = (tmp_path / "got").read_bytes().partition(b"\r\n\r\n")
    assert header.startswith(b"HTTP/1.1 200 OK")
    assert got == body


def test_every_packet_of_a_capture_is_well_formed(net: Network, tmp_path: Path):
    (tmp_path / "data").write_bytes(content(2 * MB))
    with net.start(sys.executable, "-c", KERNEL_SINK, 5404):
        net.await_port(5404)
        capture = tmp_path / "wire.pcapng"
        done = net.gargalo(
            "connect", "127.0.0.1", 5404, "--send", tmp_path / "data", "--capture", capture
        )
    assert done.returncode == 0, done.stderr

    def count(shown: str) -> int:
        return len(tshark(capture, shown, "frame.number", options=CHECKSUMS))

    assert count("tcp.len > 0 && ip") >= 2 * MB // 1448
    right = f"(tcp.checksum.status == 1 || tcp.srcport == 5404 && tcp.checksum == {NEGATIVE_ZERO})"
    assert count(right) == count("tcp")
    bad = f"_ws.malformed || tcp && !{right} || ip.checksum.status == 0"
    assert count(f"{bad} || tcp.analysis.out_of_order || tcp.analysis.lost_segment") == 0


def test_what_fails_is_one_sentence(net: Network, tmp_path: Path):
    def says(code: int, text: str, *args: object) -> None:
        done = net.gargalo(*args, stdin=subprocess.DEVNULL)
        assert done.returncode == code, done.stderr
        assert text in done.stderr
        assert "Traceback" not in done.stderr

    says(1, "error: unable to connect: connection refused", "connect", "127.0.0.1", 9)
    says(1, "error: unable to connect to server: connection refused", "iperf3", "-c", "127.0.0.1")
    says(2, 'did you mean "cubic"?', "iperf3", "-c", "127.0.0.1", "-C", "cubik")
    says(2, "it must be a number", "connect", "127.0.0.1", 9, "-C", "reno", "--param", "beta=7")
    says(2, "give -c HOST", "iperf3")
    says(2, "UDP tests are not offered", "iperf3", "-c", "127.0.0.1", "-u")
    says(2, "-t -n: give one end", "iperf3", "-c", "127.0.0.1", "-t", 1, "-n", "1M")
    says(2, "-b 1M/10: bursts are not offered", "iperf3", "-c", "127.0.0.1", "-b", "1M/10")
    says(2, "no-such-file", "connect", "127.0.0.1", 9, "--send", tmp_path / "no-such-file")
    says(2, "give HOST PORT", "connect")


def test_a_reset_is_reported(net: Network):
    reset = (
        "import socket, struct; l = socket.create_server(('', 5405)); c, _ = l.accept(); c.recv(1); "
        "c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); c.close()"
    )
    with net.start(sys.executable, "-c", reset):
        net.await_port(5405)
        done = net.gargalo("connect", "127.0.0.1", 5405, input="x")
    assert done.returncode == 1
    assert "error: connection reset by peer" in done.stderr


def devices(net: Network) -> str:
    return net.run("ip", "-br", "link", "show", "type", "tun").stdout


def test_an_interrupt_reports_what_was_measured(iperf3: Network):
    run = command("iperf3", "-c", "127.0.0.1", "-t", 30, "-J")
    with iperf3.start(*run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(3)
        assert "gargalo" in devices(iperf3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert process.returncode == 130, err
    found = json.loads(out)
    assert found["end"]["sum_sent"]["bytes"] > MB
    assert "client has terminated" in found["error"]
    assert devices(iperf3) == ""


def test_nothing_is_left_after_a_kill(net: Network):
    with net.server("connect", "--listen", 7000) as (process, _, _):
        assert "gargalo" in devices(net)
        process.kill()
        process.wait()
        assert devices(net) == ""


def test_without_permission_the_remedy_is_printed():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can give its rights away")
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    run = [*drop, *command("connect", "127.0.0.1", "9")]
    done = subprocess.run(
        run,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if "Permission denied" in done.stderr and "gargalo shell" not in done.stderr:
        pytest.skip("nobody may not read the programs of this machine")
    assert done.returncode == 1
    assert "run it inside `gargalo shell`, or as root" in done.stderr


def test_a_compiled_congestion_control_sends(iperf3: Network, tmp_path: Path):
    needs("cc")
    library = build_plugin(EXAMPLES / "bbr.c", tmp_path / "bbr.so")
    chosen = ("-C", "bbr-c", "--plugin", library, "--param", "cwnd_gain=2.5")
    done = report(iperf3.gargalo("iperf3", "-c", "127.0.0.1", "-n", "10M", "-J", *chosen))
    assert done["end"]["sum_sent"]["bytes"] >= 10 << 20
    wrong = iperf3.gargalo("iperf3", "-c", "127.0.0.1", *chosen[:4], "--param", "cwnd_gian=2")
    assert wrong.returncode == 2
    assert 'bbr-c has no parameter "cwnd_gian" (did you mean "cwnd_gain"?)' in wrong.stderr


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        ("state->cwnd_bytes = NAN", "set cwnd_bytes to NaN"),
        (LOOP, "has computed for 1 s and not returned: a loop"),
    ],
)
def test_a_compiled_congestion_control_that_fails_is_named(
    iperf3: Network, tmp_path: Path, deed: str, told: str
):
    needs("cc")
    library = broken(tmp_path, deed)
    done = iperf3.gargalo(
        "iperf3", "-c", "127.0.0.1", "-t", 20, "-C", "broken", "--plugin", library
    )
    assert done.returncode == 1
    assert f"error: {library}: broken: on_ack() {told}" in done.stderr


def test_clients_one_after_the_other_are_all_served(net: Network):
    needs("iperf3")
    with net.server("iperf3", "-s", "-p", 5302) as (_, host, _):
        for i in range(60):
            done = net.run("iperf3", "-c", host, "-p", 5302, "-n", "100K")
            assert done.returncode == 0, f"client {i}: {done.stdout}{done.stderr}"
