"""Builds neqo's glue with the sources of neqo, nss-rs, NSS and NSPR; `tools/stack_from.py` calls it.

NSS and NSPR are built as static libraries, by NSS's own script, from a copy of their sources: it writes into them. The
glue is built beside links to neqo and nss-rs, so that neqo's dependency on nss-rs is the given folder, not a download.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from gargalo._toml import loads

GLUE = Path(__file__).resolve().parents[1] / "stacks" / "neqo"
LIBRARY = "libneqo_stack.so"
OPTIONS = ("tests", "dbm", "libpkix", "ckbi", "fips")
"""Parts of NSS that its script leaves out, as for nss-rs."""
UNUSED = shutil.ignore_patterns(".*", "gtests", "fuzz", "taskcluster", "out", "Release")
"""What need not be copied of the sources of NSS and NSPR."""


def folder_of(what: str, named: Path | None, neqo: Path, variable: str, has: str) -> Path:
    """Return the folder of something: that which is named, or the one beside neqo's.

    `has` is a file that must be in it.
    """
    folder = (named or neqo.parent / what).resolve()
    if not (folder / has).is_file():
        sys.exit(f"{folder} has no {has}: name the folder of {what}'s sources ({variable}=DIR)")
    return folder


def build_nss(nss: Path, into: Path) -> Path:
    """Build NSS and NSPR, of which the sources are beside each other; return the folder for nss-rs."""
    nspr = nss.parent / "nspr"
    if not (nspr / "configure").is_file():
        sys.exit(f"{nspr} has no configure: NSPR's sources must be beside those of NSS")
    if not (nss / "lib" / "sqlite" / "sqlite3.c").is_file():
        sys.exit(f"{nss} has no lib/sqlite/sqlite3.c: these sources of NSS are not complete")
    for tool, package in (("gyp", "gyp-next"), ("ninja", "ninja"), ("g++", "")):
        if shutil.which(tool) is None:
            remedy = f"pip install {package}" if package else f"apt install {tool}"
            sys.exit(f"{tool} is missing, which builds NSS: {remedy}")
    for source in (nss, nspr):
        # Times are kept: what has not changed is not compiled again.
        shutil.copytree(source, into / source.name, dirs_exist_ok=True, ignore=UNUSED)
    copy = into / "nss"
    if nss.name != "nss":
        shutil.rmtree(copy, ignore_errors=True)
        (into / nss.name).rename(copy)
    log = into / "build.log"
    command = ["bash", "build.sh", "--opt", "--static", *(f"-Ddisable_{o}=1" for o in OPTIONS)]
    with log.open("wb") as out:
        done = subprocess.run(command, cwd=copy, stdout=out, stderr=out, check=False)
    if done.returncode != 0:
        last = "\n".join(log.read_text("utf-8", "replace").splitlines()[-20:])
        sys.exit(
            f"{last}\nNSS of {nss} could not be built: exit code {done.returncode}; all of it is in {log}"
        )
    return copy


def link_all(source: Path, into: Path, manifest: str, but: str = "") -> None:
    """Make a folder with links to what is in another but this, and a manifest of its own."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name not in ("Cargo.toml", "Cargo.lock", "target", but):
            (into / entry.name).symlink_to(entry)
    (into / "Cargo.toml").write_text(manifest, "utf-8")


def write_glue(neqo: Path, nss_rs: Path, commit: str, made: Path) -> None:
    """Write a copy of the glue, beside links to neqo and nss-rs."""
    shutil.copytree(GLUE, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target", "mtu"))
    manifest = (GLUE / "Cargo.toml").read_text("utf-8")
    manifest = manifest.replace('"../common', f'"{GLUE.parent}/common')
    manifest = manifest.replace('"../../', f'"{GLUE.parent.parent}/')
    (made / "Cargo.toml").write_text(manifest, "utf-8")
    workspace = (neqo / "Cargo.toml").read_text("utf-8")
    dependency = re.search(r"^nss = \{(.*)\}", workspace, re.MULTILINE)
    if dependency is None:
        sys.exit(f"{neqo / 'Cargo.toml'}: no dependency nss in a line")
    kept = re.sub(r'\b(git|branch|rev|tag|path) = "[^"]*",?', "", dependency[1]).strip(" ,")
    ours = f'nss = {{ {kept}, path = "../nss-rs" }}'
    link_all(neqo, made / "neqo", workspace.replace(dependency[0], ours), "mtu")
    shutil.copytree(GLUE / "mtu", made / "neqo" / "mtu")
    link_all(nss_rs, made / "nss-rs", (nss_rs / "Cargo.toml").read_text("utf-8"))
    version = loads(workspace)["workspace"]["package"]["version"]
    library = made / "src" / "lib.rs"
    told = f'version: "{version} {commit}'.strip() + '"'
    text = re.sub(r'version: "[^"]*"', told, library.read_text("utf-8"), count=1)
    library.write_text(text, "utf-8")


def build_neqo(
    neqo: Path, nss: Path | None, nss_rs: Path | None, commit: str, target: Path
) -> Path:
    """Build the glue in a folder of this build; return the library."""
    neqo = neqo.resolve()
    if not (neqo / "neqo-transport" / "Cargo.toml").is_file():
        sys.exit(f"{neqo} has no neqo-transport: give the folder of neqo's sources")
    nss = folder_of("nss", nss, neqo, "NSS", "build.sh")
    nss_rs = folder_of("nss-rs", nss_rs, neqo, "NSS_RS", "Cargo.toml")
    built = build_nss(nss, target.parent / "neqo.nss")
    write_glue(neqo, nss_rs, commit, target)
    environment = {
        k: v for k, v in os.environ.items() if k not in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS")
    }
    # What is the same for all builds is compiled once.
    out = target.parent / "neqo"
    subprocess.run(
        ["cargo", "build", "--quiet", "--target-dir", str(out)],
        cwd=target, env={**environment, "NSS_DIR": str(built), "NSS_PREBUILT": "1"}, check=True,
    )  # fmt: skip
    return out / "debug" / LIBRARY
