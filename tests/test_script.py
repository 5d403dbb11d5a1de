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
    assert done.stderr == f"error: {tmp_path}/none.pkt: No such file or directory\n"


def test_json_has_a_verdict_for_each_script(tmp_path: Path):
    (tmp_path / "a.pkt").write_text(OPEN)
    (tmp_path / "b.pkt").write_text(OPEN + "+0 write(4, ..., 10) = 11\n")
    done = gargalo("script", "--json", tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert told["stack"] == "gargalo"
    a, b = told["scripts"]
    assert a == {"file": f"{tmp_path}/a.pkt", "verdict": "passed"}
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


def test_every_script_says_what_it_shows():
    for path in SCRIPTS:
        head = scripts.Head.of(path.read_text(encoding="utf-8"))
        assert head.text.startswith("RFC "), path
        text = path.read_text(encoding="utf-8")
        if re.search(r"^(ours|kernel): ", text, re.MULTILINE):
            assert head.notes.keys() & {"differs", "settings"}, path


def run_on_kernel(paths: list[Path]) -> None:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    verdicts = scripts.run(texts, kernel=True, tolerance_ms=100, jobs=32)
    failed = {
        str(path.relative_to(ROOT)): verdict
        for path, verdict in zip(paths, verdicts, strict=True)
        if verdict["verdict"] != "passed"
    }
    assert not failed, json.dumps(failed, indent=1)


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
