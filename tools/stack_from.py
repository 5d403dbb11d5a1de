"""Builds a QUIC stack of another folder: a checkout, beside the version that `make stacks` builds.

    python tools/stack_from.py quinn ~/src/quinn --build fix --into .venv/share/gargalo/stacks --target target/stacks

makes `quinn@fix.so`, which is `stack = "quinn@fix"` in scenarios. `make stacks QUINN=~/src/quinn BUILD=fix` calls it.

quinn, quiche: the folder has the crate, or a folder that has it; the glue in `stacks/NAME` is built against it.
picoquic: the folder is its checkout; that of picotls is beside it, or `--also` names it. Without a build's name it is
`stack = "picoquic"`: there is no other version of it.
neqo: the folder is its checkout, and its name as picoquic's. Those of NSS (with NSPR's beside it) and nss-rs are beside
it, or `--also` and `--nss-rs` name them.
ngtcp2: the folder is where that is installed (`--prefix`), with GnuTLS and static libraries made with -fPIC. The glue
is for the versions that are named there (ngtcp2: 0.12); what a later one has changed is an error of the compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from gargalo._toml import loads
from stack_neqo import build_neqo

ROOT = Path(__file__).resolve().parents[1]
CRATES = {"quinn": ("quinn-proto", "libquinn.so"), "quiche": ("quiche", "libquiche_stack.so")}
"""Of a stack in Rust: the crate that it is around, and the library that is built."""
UNPACKAGED = ("picoquic", "neqo")
"""Those of which there is no package: built of sources alone."""
NAME = re.compile(r"[\w.-]+")


def crate_in(folder: Path, name: str) -> Path:
    """Return the folder of a crate: this one, or one in it."""
    for manifest in (folder / "Cargo.toml", *sorted(folder.glob("*/Cargo.toml"))):
        if (
            manifest.is_file()
            and loads(manifest.read_text("utf-8")).get("package", {}).get("name") == name
        ):
            return manifest.parent
    sys.exit(
        f"{folder} has no crate {name}: give the folder of its Cargo.toml, or the one around it"
    )


def version_of(folder: Path) -> str:
    """Return the commit of a checkout, with + if files have changed since; empty if it is none."""
    told = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--exclude=*"]
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def glue(name: str, folder: Path, made: Path) -> None:
    """Write a copy of a stack's glue that is built against the crate of another folder."""
    crate, _ = CRATES[name]
    source = crate_in(folder.resolve(), crate)
    own = ROOT / "stacks" / name
    shutil.copytree(own, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
    manifest = (own / "Cargo.toml").read_text("utf-8")
    manifest = manifest.replace('path = "../', f'path = "{own.parent}/').replace(
        f'"{own.parent}/../', f'"{own.parent.parent}/'
    )
    dependency = re.compile(rf'^{re.escape(crate)} = \{{ version = "=([^"]+)"', re.MULTILINE)
    if not (found := dependency.search(manifest)):
        sys.exit(f"{own / 'Cargo.toml'}: no dependency {crate} with one version")
    manifest = dependency.sub(f'{crate} = {{ path = "{source}"', manifest)
    (made / "Cargo.toml").write_text(manifest, "utf-8")
    commit = version_of(source)
    version = loads((source / "Cargo.toml").read_text("utf-8"))["package"]["version"]
    if not isinstance(version, str):
        version = found[1]  # That of the workspace around it.
    library = made / "src" / "lib.rs"
    text = library.read_text("utf-8")
    told = f"{version} {commit}".strip()
    library.write_text(text.replace(f'version: "{found[1]}"', f'version: "{told}"', 1), "utf-8")


def build_rust(name: str, folder: Path, build: str, target: Path) -> Path:
    """Build a stack in Rust; return its library."""
    made = target / f"{name}@{build}.glue"
    glue(name, folder, made)
    # RUSTFLAGS of the caller would replace those of the folder's .cargo/config.toml.
    environment = {
        k: v for k, v in os.environ.items() if k not in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS")
    }
    # What is the same for all builds is compiled once.
    out = target / name
    subprocess.run(
        ["cargo", "build", "--release", "--quiet", "--target-dir", str(out)],
        cwd=made, env=environment, check=True,
    )  # fmt: skip
    return out / "release" / CRATES[name][1]


def build_picoquic(folder: Path, also: Path | None, target: Path) -> Path:
    """Build picoquic's glue with the sources of picoquic and picotls; return the library."""
    target.mkdir(parents=True, exist_ok=True)
    sources = [f"PICOQUIC={folder.resolve()}", f"OUT={target.resolve()}"]
    if also is not None:
        sources.append(f"PICOTLS={also.resolve()}")
    subprocess.run(
        ["make", "--no-print-directory", "--silent", "--jobs", str(os.cpu_count() or 1), *sources],
        cwd=ROOT / "stacks" / "picoquic", check=True,
    )  # fmt: skip
    return target / "picoquic.so"


def build_c(name: str, folder: Path, build: str, target: Path) -> Path:
    """Build ngtcp2's glue against an installed one; return its library."""
    places = sorted({str(pc.parent) for pc in folder.resolve().rglob("libngtcp2*.pc")})
    if not places:
        sys.exit(f"{folder} has no libngtcp2.pc: give the prefix where ngtcp2 is installed")
    made = target / f"{name}@{build}"
    shutil.copytree(ROOT / "stacks" / name, made, dirs_exist_ok=True)
    (made / "ngtcp2.so").unlink(missing_ok=True)
    # Within it: of two shared ones of one name a process has only the first.
    static = made / "static"
    static.mkdir(exist_ok=True)
    for name_of_one in ("libngtcp2.a", "libngtcp2_crypto_gnutls.a"):
        archive = next(folder.resolve().rglob(name_of_one), None)
        if archive is None:
            sys.exit(
                f"{folder} has no {name_of_one}: build ngtcp2 with static libraries and GnuTLS"
            )
        (static / name_of_one).unlink(missing_ok=True)
        (static / name_of_one).symlink_to(archive)
    flags = f"-O2 -g -L{static.resolve()} -Wl,--exclude-libs,ALL"
    subprocess.run(
        ["make", "--no-print-directory", f"INCLUDE={ROOT / 'crates/plugin/include'}", f"CFLAGS={flags}"],
        cwd=made, env={**os.environ, "PKG_CONFIG_PATH": os.pathsep.join(places)}, check=True,
    )  # fmt: skip
    return made / "ngtcp2.so"


def main() -> None:
    """Build one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("name", choices=(*CRATES, "ngtcp2", *UNPACKAGED))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--build", help="name of the build; default: that of the folder")
    parser.add_argument("--also", type=Path, help="the folder of picotls, or of NSS")
    parser.add_argument("--nss-rs", type=Path, help="neqo: the folder of nss-rs")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    asked = parser.parse_args()
    build = asked.build or asked.folder.resolve().name
    is_plain = asked.name in UNPACKAGED and not asked.build
    full = asked.name if is_plain else f"{asked.name}@{build}"
    if not (is_plain or NAME.fullmatch(build)):
        sys.exit(f"--build {build}: letters, digits, dots, hyphens and underscores")
    if not asked.folder.is_dir():
        sys.exit(f"{asked.folder} is no folder")
    try:
        if asked.name == "picoquic":
            library = build_picoquic(asked.folder, asked.also, asked.target / full)
        elif asked.name == "neqo":
            commit = version_of(asked.folder)
            made = asked.target / f"{full}.glue"
            library = build_neqo(asked.folder, asked.also, asked.nss_rs, commit, made)
        else:
            builder = build_rust if asked.name in CRATES else build_c
            library = builder(asked.name, asked.folder, build, asked.target)
    except subprocess.CalledProcessError as e:
        sys.exit(f"{asked.name} of {asked.folder} could not be built: exit code {e.returncode}")
    asked.into.mkdir(parents=True, exist_ok=True)
    made = asked.into / f"{full}.so"
    # Whoever has the old one open keeps it.
    shutil.copy(library, made.with_suffix(".new"))
    made.with_suffix(".new").replace(made)
    print(f'{made}: stack = "{full}"')


if __name__ == "__main__":
    main()
