"""`gargalo script`: the command, its exit codes, and all scripts on the kernel."""

from __future__ import annotations

import json
import platform
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, command, environment
from gargalo import scripts
from lab_helpers import needs_namespaces

SCRIPTS = scripts.find([ROOT / "scripts"])
MULTIPATH = scripts.find([ROOT / "scripts" / "mptcp"])

OPEN = """// RFC 9293 3.5: a passive open.
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 65535
+0 accept(3, ..., ...) = 4
"""


def gargalo(*args: object, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args), capture_output=True, text=True, env=environment(), timeout=timeout
    )


def test_a_script_passes(tmp_path: Path):
    (tmp_path / "open.pkt").write_text(OPEN)
    done = gargalo("script", tmp_path / "open.pkt")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"passed  {tmp_path}/open.pkt\n"


def test_a_mismatch_shows_line_expectation_and_packets(tmp_path: Path):
    file = tmp_path / "open.pkt"
    file.write_text(OPEN + "+0 write(4, ..., 10) = 10\n+0 > P. 1:12(11) ack 1\n")
    done = gargalo("script", file)
    assert done.returncode == 1
    assert done.stdout.splitlines()[:3] == [
        f"failed  {file}:10:1",
        "  expected: +0.000000 > P. 1:12(11) ack 1",
        "  came:     > P. 1:11(10) ack 1 win 65535 (payload: expected 11, came 10)",
    ]
    assert "    0.000000 < S 0:0(0) win 65535 <mss 1000>" in done.stdout.splitlines()


def test_what_cannot_be_read_is_bad_input_with_line_and_remedy(tmp_path: Path):
    file = tmp_path / "open.pkt"
    file.write_text(OPEN + "+0 splice(4) = 0\n")
    done = gargalo("script", file)
    assert done.returncode == 2
    assert done.stdout.startswith(
        f"{file}:9:4: the call splice is not supported; supported: socket,"
    )
    done = gargalo("script", tmp_path / "none.pkt")
    assert done.returncode == 2
    assert (
        done.stderr
        == f"error: {tmp_path}/none.pkt: cannot be read: No such file or directory; check the path\n"
    )


def test_json_has_a_verdict_for_each_script(tmp_path: Path):
    (tmp_path / "a.pkt").write_text(OPEN)
    (tmp_path / "b.pkt").write_text(OPEN + "+0 write(4, ..., 10) = 11\n")
    done = gargalo("script", "--json", tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["stack"] == "gargalo"
    a, b = told["scripts"]
    assert a == {"file": f"{tmp_path}/a.pkt", "read": True, "verdict": "passed"}
    assert (b["verdict"], b["line"], b["came"]) == ("failed", 9, "write(...) = 10")
    assert len(b["packets"]) >= 3


def test_options_change_our_stack(tmp_path: Path):
    file = tmp_path / "open.pkt"
    text = OPEN.replace("<mss 1000>", "<mss 1000,sackOK>").replace(
        "<mss 1460>", "<mss 1460,nop,nop,sackOK>"
    )
    file.write_text(text)
    assert gargalo("script", file).returncode == 0
    done = gargalo("script", "--option", "sack=false", file)
    assert "came <mss 1460>" in done.stdout
    assert gargalo("script", "--option", "sack=maybe", file).returncode == 2


def suite(root: Path) -> Path:
    """Make scripts as public suites have them: directories of subjects, and shell files beside them."""
    for directory in ("common", "a", "b"):
        (root / directory).mkdir()
    (root / "common" / "defaults.sh").write_text(
        'sysctl -q net.ipv4.tcp_rmem="4096 540000 $((15*1024*1024))"\nsleep 1\n'
    )
    text = OPEN.replace("<mss 1000>", "<mss 1000,nop,wscale 7>").replace(
        "<mss 1460>", "<mss 1460,nop,wscale 8>"
    )
    (root / "a" / "open.pkt").write_text("`../common/defaults.sh`\n" + text)
    (root / "a" / "wrong.pkt").write_text(OPEN + "+0 write(4, ..., 10) = 11\n")
    (root / "b" / "splice.pkt").write_text(OPEN + "+0 splice(4) = 0\n")
    (root / "b" / "option.pkt").write_text(OPEN.replace("listen(3, 1)", "ioctl(3, SIOCINQ, [0])"))
    return root


def test_a_suite_ends_with_a_table_of_its_directories(tmp_path: Path):
    root = suite(tmp_path)
    done = gargalo("script", root)
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.lstrip().startswith("scripts  read"))
    rows = {line.split()[0]: line.split()[1:] for line in lines[start + 1 : start + 4]}
    assert rows[f"{root}/a"] == ["2", "2", "1", "1", "0", "0"]
    assert rows[f"{root}/b"][:2] == ["2", "1"]
    assert rows["all"][:2] == ["4", "3"]
    assert "    1  the call splice is not supported" in lines
    assert "note: defaults.sh:2: `sleep 1` is not run" in done.stderr


def test_json_counts_the_scripts_of_each_directory(tmp_path: Path):
    told = json.loads(gargalo("script", "--json", suite(tmp_path)).stdout)
    a, b = told["directories"]
    assert (a["directory"], a["scripts"], a["read"], a["passed"]) == (f"{tmp_path}/a", 2, 2, 1)
    assert b["reasons"]["the call splice is not supported"] == 1
    assert told["scripts"][0]["notes"] == ["defaults.sh:2: `sleep 1` is not run"]


def test_settings_of_a_file_and_words_are_given(tmp_path: Path):
    root = suite(tmp_path)
    file = root / "open.pkt"
    text = (root / "a" / "open.pkt").read_text()
    file.write_text(text.replace("mss 1000", "mss SIZE"))
    given = ("--init", root / "common" / "defaults.sh", "--define", "SIZE=1000")
    assert gargalo("script", *given, file).returncode == 0
    assert gargalo("script", file).returncode == 2
    done = gargalo("script", "--init", root / "none.sh", file)
    assert (done.returncode, done.stderr) == (
        2,
        f"error: {root}/none.sh: cannot be read: No such file or directory; check the path\n",
    )


def test_packets_before_the_end_are_a_fault_if_that_is_asked_for(tmp_path: Path):
    file = tmp_path / "open.pkt"
    file.write_text(OPEN + "+0 write(4, ..., 10) = 10\n+.1 fcntl(4, F_GETFL) = 2\n")
    assert gargalo("script", file).returncode == 0
    assert gargalo("script", "--strict-end", file).returncode == 1


@needs_namespaces
def test_every_congestion_control_of_the_kernel_can_be_that_of_a_script():
    """A namespace may set only some as its default, and its sockets may have any, of both versions."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    setting = "`sysctl -q net.ipv4.tcp_congestion_control=NAME`\n"
    asked = "+0 getsockopt(FD, SOL_TCP, TCP_CONGESTION, "
    opened = OPEN.split("\n", 1)[1]
    connects = "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5\n"
    texts = []
    for name in available:
        found = asked + f'"{name}", [16]) = 0\n'
        given = setting.replace("NAME", name)
        passive = opened + found.replace("FD", "4") + connects + found.replace("FD", "5")
        of_6 = passive.replace("mss 1460", "mss 1440")
        texts += [
            given + passive,
            f"--congestion={name}\n{passive}",
            f"--ip_version=ipv6\n{given}{of_6}",
            # The latest one counts.
            "".join(setting.replace("NAME", other) for other in (*available, name)) + passive,
        ]
    verdicts = scripts.run(texts, kernel=True, strict_end=True, tolerance_ms=100, jobs=8)
    for text, verdict in zip(texts, verdicts, strict=True):
        assert verdict["verdict"] == "passed", (text, verdict)


@needs_namespaces
def test_what_the_kernel_does_not_take_is_told_without_the_number_of_its_error(tmp_path: Path):
    for line, why in {
        "`sysctl -q net.ipv4.tcp_congestion_control=turtle`": "No such file or directory",
        "`sysctl -q net.ipv4.tcp_nonsense=1`": "No such file or directory",
        "`sysctl -q net.ipv4.tcp_sack=turtle`": "Invalid argument",
        "`echo 1 > /sys/module/tcp_nonsense/parameters/turtle`": "No such file or directory",
    }.items():
        file = tmp_path / "open.pkt"
        file.write_text(f"{line}\n{OPEN}")
        done = gargalo("script", "--stack", "kernel", file)
        assert done.returncode == 2, line
        assert why in done.stdout, done.stdout
        assert "os error" not in done.stdout


def test_every_script_says_what_it_shows():
    for path in SCRIPTS:
        head = scripts.Head.of(path.read_text(encoding="utf-8"))
        assert head.text.startswith("RFC "), path
        text = path.read_text(encoding="utf-8")
        if re.search(r"^(ours|kernel): ", text, re.MULTILINE):
            assert head.notes.keys() & {"differs", "settings"}, path


def run_on_kernel(paths: list[Path]) -> None:
    failed = failing_on_kernel(paths, jobs=32)
    # The kernel is in real time, beside other tests: a timer may have been first. What fails alone has failed.
    failed = failing_on_kernel(list(failed), jobs=1) if failed else {}
    shown = {str(path.relative_to(ROOT)): verdict for path, verdict in failed.items()}
    assert not failed, json.dumps(shown, indent=1)


def failing_on_kernel(paths: list[Path], jobs: int) -> dict[Path, object]:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    verdicts = scripts.run(texts, kernel=True, strict_end=True, tolerance_ms=100, jobs=jobs)
    verdict_of = zip(paths, verdicts, strict=True)
    return {path: verdict for path, verdict in verdict_of if verdict["verdict"] != "passed"}


needs_6_18 = pytest.mark.skipif(
    not platform.release().startswith("6.18."),
    reason=f"the scripts say what Linux 6.18 does, and this is {platform.release()}",
)


@needs_namespaces
@needs_6_18
def test_all_scripts_pass_on_the_kernel():
    run_on_kernel([path for path in SCRIPTS if path not in MULTIPATH])


@needs_namespaces
@needs_6_18
@pytest.mark.skipif(
    not Path("/proc/sys/net/mptcp").exists(), reason="this kernel has no Multipath TCP"
)
def test_all_scripts_with_multipath_tcp_pass_on_the_kernel():
    run_on_kernel(MULTIPATH)
