"""Unmodified programs in virtual time: the experiment."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / "experiments/virtual-time"
SERVER = """\
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 45555))
while True:
    data, peer = s.recvfrom(2000)
    s.sendto(data[::-1], peer)
"""
CLIENT = """\
import os, random, select, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", 45555))
begun = time.monotonic()
for n in range(4):
    sent = time.monotonic()
    s.send(bytes(random.randrange(100, 1000)))
    ready = select.select([s], [], [], 1)[0] if n % 2 else [s]
    data = s.recv(2000) if ready else b""
    print(n, len(data), round((time.monotonic() - sent) * 1e3, 4))
    time.sleep(0.5)
s.settimeout(0.25)
try:
    s.recv(1)
except TimeoutError:
    print("timeout")
print(time.strftime("%Y-%m-%d"), round(time.monotonic() - begun, 4), os.urandom(4).hex())
"""


@pytest.fixture(scope="module")
def program() -> Path:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("virtual time of programs is for Linux with x86-64")
    target = ROOT / "target/virtual-time"
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(target)],
        cwd=FOLDER,
        check=True,
    )
    made = target / "release/virtual-time"
    done = subprocess.run([str(made), "--", "true"], capture_output=True, text=True, check=False)
    if "trace" in done.stderr and done.returncode:
        pytest.skip(f"programs may not be traced here: {done.stderr}")
    return made


def run(program: Path, *words: object, code: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [str(program), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def python(folder: Path, name: str, text: str) -> list[str]:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return [sys.executable, "-I", str(file)]


def test_programs_see_the_time_of_the_link_only(program: Path, tmp_path: Path) -> None:
    words = ["--", *python(tmp_path, "s.py", SERVER), "--", *python(tmp_path, "c.py", CLIENT)]
    told, log = run(program, "--delay", 20, "--log", *words)
    *answers, timeout, last = told.splitlines()
    assert timeout == "timeout"
    day, took, _ = last.split()
    assert day == "2025-01-01"
    took_s = 0.0
    for line in answers:
        _, size, ms = line.split()
        # Two ways of 20 ms, and twice the size and 28 bytes at 10 Mbit/s.
        expected = 40 + 2 * (int(size) + 28) * 8 / 10e3
        assert float(ms) == pytest.approx(expected, abs=0.001)
        took_s += expected / 1e3 + 0.5
    assert float(took) == pytest.approx(took_s + 0.25, abs=0.001)
    assert log.count(" sends ") == 8
    # The same, whatever the machine does; other chance, other sizes.
    assert run(program, "--delay", 20, "--log", *words) == (told, log)
    assert run(program, "--delay", 20, "--seed", 2, *words)[0] != told


def test_what_cannot_be_is_said(program: Path, tmp_path: Path) -> None:
    threads = "import threading\nthreading.Thread(target=print).start()\n"
    _, why = run(program, "--", *python(tmp_path, "t.py", threads), code=2)
    assert "starts a thread" in why
    waits = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\ns.recv(1)\n"
    _, why = run(program, "--", *python(tmp_path, "w.py", waits), code=2)
    assert "all programs wait for ever" in why
    _, why = run(
        program,
        "--until",
        1,
        "--",
        *python(tmp_path, "l.py", "import time\ntime.sleep(2)\n"),
        code=2,
    )
    assert "not ended at 1 s" in why
    _, why = run(program, "--rate", 0, "--", "true", code=2)
    assert "--rate" in why
    _, why = run(program, "--", "no-such-program-anywhere", code=2)
    assert "could not be started" in why
    assert run(program, "--", *python(tmp_path, "e.py", "raise SystemExit(7)"), code=7)[0] == ""


def test_programs_of_the_system_are_the_same_twice(program: Path, tmp_path: Path) -> None:
    client, server = (
        shutil.which(n, path="/usr/bin:/usr/sbin") for n in ("gtlsclient", "gtlsserver")
    )
    if client is None or server is None:
        pytest.skip("gtlsclient and gtlsserver are not installed (ngtcp2-client, ngtcp2-server)")
    (tmp_path / "www").mkdir()
    (tmp_path / "www/a.bin").write_bytes(bytes(200_000))
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        f"openssl req -x509 -newkey ed25519 -nodes -subj /CN=x -days 9 -keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
    )
    words = ["--delay", 25, "--rate", 20, "--until", 30, "--log"]
    words += ["--", server, "-q", "-d", tmp_path / "www", "127.0.0.1", 45556, key, certificate]
    words += ["--", client, "-q", "--exit-on-all-streams-close", "127.0.0.1", 45556]
    words += ["https://127.0.0.1:45556/a.bin"]
    first = run(program, *words)
    assert first[1].count("program 0 sends") > 150
    assert run(program, *words) == first
