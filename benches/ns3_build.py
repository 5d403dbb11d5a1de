"""Where ns-3 comes from, and how a program of ours is compiled against it.

ns-3 is one of

  debian     Debian's libns3-dev: logging compiled in, assertions not; needs apt-get, not root
  wheel      the PyPI package ns3: logging and assertions compiled in
  DIRECTORY  an installation of one's own: include/ns3/ and lib/libns3*-core.so

The first two are unpacked under .bench/ and leave the system alone.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import venv
import zlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / ".bench"
WHEEL = "ns3==3.44.post0"
MODULES = [
    "applications",
    "point-to-point",
    "internet",
    "traffic-control",
    "network",
    "stats",
    "bridge",
    "core",
]


class BenchError(Exception):
    """Something the user can act on; printed without a traceback."""


def run(command: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command; its output only matters when it fails."""
    try:
        return subprocess.run(command, check=True, text=True, capture_output=True, cwd=cwd)
    except FileNotFoundError:
        raise BenchError(f"{command[0]}: command not found") from None
    except subprocess.CalledProcessError as error:
        tail = (error.stderr or error.stdout or "").strip()[-2000:]
        raise BenchError(f"{shlex.join(map(str, command))}\n{tail}") from None


@dataclass(frozen=True)
class Build:
    """Where one ns-3 build lies and how to compile against it."""

    name: str
    version: str
    include: Path
    lib: Path
    prefix: str
    flags: tuple[str, ...]
    suffix: str = ""


def debian_build() -> Build:
    """Debian's package, fetched and unpacked by an unprivileged user."""
    root = BENCH / "debian" / "root"
    include = root / "usr" / "include"
    if not (include / "ns3").is_dir():
        packages = debian_closure("libns3-dev")
        root.parent.mkdir(parents=True, exist_ok=True)
        run(["apt-get", "download", *packages], cwd=root.parent)
        for package in sorted(root.parent.glob("*.deb")):
            run(["dpkg", "-x", str(package), str(root)])
    core = core_library(root, "usr/lib/*")
    version = next(iter(sorted(core.parent.glob("libns3-core.so.*")))).suffix.lstrip(".")
    return Build(
        "debian", f"3.{version} (Debian)", include, core.parent, prefix(core), ("-std=c++17",)
    )


def own_build(directory: Path) -> Build:
    """An installation of the user's: whatever profile it was built with."""
    if not (directory / "include" / "ns3").is_dir():
        raise BenchError(f"no include/ns3 in {directory}")
    core = core_library(directory, "lib*")
    tag = f"own-{zlib.crc32(str(directory).encode()):08x}"
    # ns-3 puts version and profile into the library's name.
    return Build(
        tag,
        core.stem,
        directory / "include",
        core.parent,
        prefix(core),
        ("-std=c++20",),
        suffix(core),
    )


def core_library(root: Path, where: str) -> Path:
    found = sorted(root.glob(f"{where}/libns3*core*.so"))
    if not found:
        raise BenchError(f"no libns3*core*.so in {root}/{where}")
    return found[0]


def prefix(core: Path) -> str:
    """What precedes the module's name in the library's: ns3.44- of libns3.44-core.so."""
    return core.stem.removeprefix("lib").partition("core")[0]


def debian_closure(package: str) -> list[str]:
    """The package, its ns-3 library and the GSL libraries that one needs."""
    wanted = re.compile(r"libns3|libgsl")
    closure: list[str] = []
    queue = [package]
    while queue:
        name = queue.pop()
        closure.append(name)
        depends = run(["apt-cache", "depends", name]).stdout
        for other in re.findall(r"Depends: (\S+)", depends):
            if wanted.match(other) and other not in closure and other not in queue:
                queue.append(other)
    return closure


def wheel_build() -> Build:
    """PyPI's wheel, in a virtual environment of its own."""
    home = BENCH / "venv"
    python = home / "bin" / "python"
    if not list(home.glob("lib/python*/site-packages/ns3/include/ns3")):
        venv.create(home, with_pip=True)
        run([str(python), "-m", "pip", "install", "--quiet", WHEEL])
    found = sorted(home.glob("lib/python*/site-packages/ns3"))
    if not found:
        raise BenchError(f"{WHEEL} installed no ns3 directory under {home}")
    site = found[0]
    core = core_library(site, "lib*")
    # The definitions the wheel was built with: inline code in its headers depends on them.
    flags = ("-std=c++20", "-DNS3_LOG_ENABLE", "-DNS3_ASSERT_ENABLE", "-DNS3_BUILD_PROFILE_RELEASE")
    return Build(
        "wheel",
        f"{WHEEL.split('==')[1]} (PyPI)",
        site / "include",
        core.parent,
        prefix(core),
        flags,
    )


def suffix(core: Path) -> str:
    """What follows the module's name: the profile, in builds that name it (-optimized)."""
    return core.stem.partition("core")[2]


def build(name: str) -> Build:
    """The build called "debian" or "wheel", or the one installed in a directory."""
    BENCH.mkdir(exist_ok=True)
    (BENCH / ".gitignore").write_text("*\n", encoding="utf-8")
    makers = {"debian": debian_build, "wheel": wheel_build}
    return makers[name]() if name in makers else own_build(Path(name).resolve())


def compiled(against: Build, source: Path) -> Path:
    """The program made of `source`, newer than it."""
    binary = BENCH / f"{source.stem}-{against.name}"
    if binary.exists() and binary.stat().st_mtime > source.stat().st_mtime:
        return binary
    partial = binary.with_suffix(".partial")
    run(
        ["g++", "-O3", *against.flags, f"-I{against.include}", str(source), "-o", str(partial)]
        + [f"-L{against.lib}", f"-Wl,-rpath,{against.lib}", "-Wl,--disable-new-dtags"]
        + [f"-l{against.prefix}{module}{against.suffix}" for module in MODULES]
    )
    partial.replace(binary)
    return binary
