"""The stub of the bindings says what the bindings have, and they say of what they were built."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from conftest import ROOT
from gargalo import _core


def test_names_parameters_and_defaults_are_those_of_the_stub(tmp_path):
    # The rest of the package is not read for the types that the stub has of it: they are not compared.
    alone = tmp_path / "mypy.ini"
    alone.write_text("[mypy]\n[mypy-gargalo.*]\nfollow_imports = skip\n")
    allowed = ROOT / "tools" / "stub-allowed.txt"
    words = ("gargalo._core", "--concise", "--allowlist", str(allowed), "--mypy-config-file", str(alone))  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_engine_is_named_by_its_sources():
    """As `crates/py/build.rs` does it: files by their paths, each with its length."""
    kept = [p for c in (ROOT / "crates").iterdir() for p in [c / "Cargo.toml", *c.glob("src/**/*")]]
    files = [ROOT / "Cargo.lock", ROOT / "Cargo.toml", *(p for p in kept if p.is_file())]
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda p: p.parts):
        data = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT).as_posix()} {len(data)}\n".encode() + data)
    version, _, named = _core.__engine__.partition("+")
    assert version == _core.__version__
    assert named == digest.hexdigest()[:8], "built from other sources than these: make setup"
