"""The workflows: they parse, wheels cover what is promised, and steps call what there is."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml
from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
JOBS = WORKFLOW["jobs"]


def rows(job: str) -> list[dict[str, str]]:
    return JOBS[job]["strategy"]["matrix"]["include"]


def test_every_promised_system_has_a_wheel():
    assert {(r["target"], r["compatibility"]) for r in rows("linux")} == {
        (f"{machine}-unknown-linux-{libc}", level)
        for machine in ("x86_64", "aarch64")
        for libc, level in (("gnu", "manylinux_2_17"), ("musl", "musllinux_1_2"))
    }
    assert {r["target"] for r in rows("elsewhere")} == {
        "aarch64-apple-darwin",
        "x86_64-apple-darwin",
        "x86_64-pc-windows-msvc",
    }
    assert set(JOBS["publish"]["needs"]) == set(JOBS) - {"publish"}
    # YAML reads the key "on" as a truth value.
    assert WORKFLOW[True]["push"]["tags"] == ["v*"]


@pytest.mark.parametrize(
    "workflow", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda p: p.stem
)
def test_steps_call_what_there_is(workflow):
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    steps = [s for job in jobs.values() for s in job["steps"]]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    called = [w for s in steps for w in re.findall(r"\bmake ([a-z-]+)", s.get("run", ""))]
    assert called
    assert set(called) <= targets
    named = [w for s in steps for w in re.findall(r"[\w./-]+\.(?:py|lock)", s.get("run", ""))]
    assert all((ROOT / n).is_file() for n in named)
    assert all("uses" in s or "run" in s for s in steps)


PUBLISHED = [
    "units",
    "settings",
    "wire",
    "link",
    "cc",
    "plugin",
    "tcp",
    "mptcp",
    "workload",
    "trace",
    "quic",
    "flow",
    "sim",
]
"""Crates that others can use: the simulator, and what it consists of."""


def test_crates_can_be_published(tmp_path: Path):
    for crate in PUBLISHED:
        text = (ROOT / "crates" / crate / "README.md").read_text()
        assert text.startswith(f"# gargalo-{crate}\n"), crate
    chosen = [a for crate in PUBLISHED for a in ("-p", f"gargalo-{crate}")]
    options = ["--no-verify", "--offline", "--locked", "--allow-dirty", "--target-dir", tmp_path]
    done = subprocess.run(
        ["cargo", "package", *options, *chosen],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert len(list((tmp_path / "package").glob("*.crate"))) == len(PUBLISHED)
