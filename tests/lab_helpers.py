"""What tests of the lab need: whether this machine can, and an ordinary user."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import gargalo
import pytest

USER = "gargalo-test"


@functools.cache
def why_no_namespaces() -> str | None:
    """Why the sandbox cannot be entered here; `None`: it can."""
    if sys.platform != "linux":
        return "the lab needs Linux"
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import _inside; "
        "_inside.engine(sys.argv[2]).enter_sandbox()"
    )
    package = Path(gargalo.__file__).parent
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, package, gargalo._core.__file__],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


needs_namespaces = pytest.mark.skipif(
    why_no_namespaces() is not None, reason=f"no namespaces here: {why_no_namespaces()}"
)


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip where a program is missing."""
    missing = [p for p in programs if shutil.which(p) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@functools.cache
def ordinary_user() -> tuple[int, str]:
    """Return uid and an interpreter of an ordinary user, who is created if we are root; else skip."""
    if os.geteuid() != 0:
        return os.geteuid(), sys.executable
    try:
        uid = pwd.getpwnam(USER).pw_uid
    except KeyError:
        if shutil.which("useradd") is None:
            pytest.skip("useradd is missing, so there is no ordinary user to be")
        subprocess.run(["useradd", "--no-create-home", USER], check=True)
        uid = pwd.getpwnam(USER).pw_uid
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", "/usr/bin/python3"):
        probe = [python, "-c", "import gargalo"]
        if as_user(uid, probe, timeout=120).returncode == 0:
            return uid, python
    pytest.skip(f"no interpreter here can be run by {USER} and import gargalo")


def packages() -> str:
    """Where an interpreter of another user finds what ours has."""
    return os.pathsep.join(p for p in sys.path if p)


def as_user(
    uid: int, command: list[object], *, cwd: Path | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command as a user."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": "/nonexistent",
        "PYTHONPATH": packages(),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        return subprocess.run(
            [str(c) for c in command],
            cwd=cwd or "/",
            env=environment,
            user=uid,
            group=uid,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except PermissionError as e:
        return subprocess.CompletedProcess([str(c) for c in command], 126, "", str(e))


def processes() -> dict[int, tuple[int, int]]:
    """Return the parent and the user of every process."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue  # it has just ended
        fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        found[int(status.parent.name)] = int(fields["PPid"]), int(fields["Uid"].split()[0])
    return found


def descendants(pid: int) -> set[int]:
    """Return the processes that a process has started, and they, and so on."""
    parents = {child: parent for child, (parent, _) in processes().items()}
    found: set[int] = set()
    while new := {c for c, p in parents.items() if (p == pid or p in found) and c not in found}:
        found |= new
    return found


def of_user(uid: int) -> set[int]:
    """Return the processes of a user."""
    return {pid for pid, (_, user) in processes().items() if user == uid}


def namespaces() -> dict[str, set[int]]:
    """Return the network namespaces of all processes, with who is there."""
    found: dict[str, set[int]] = {}
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.setdefault(str(link.readlink()), set()).add(int(link.parent.parent.name))
        except OSError:
            continue
    return found


def devices() -> set[str]:
    """Return the network devices here."""
    return {p.name for p in Path("/sys/class/net").iterdir()}
