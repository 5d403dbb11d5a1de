"""Wheels of the packages that are installed here, so that pip can install them elsewhere without a network.

    python tools/wheelhouse.py DIRECTORY 'gargalo[all]'

Writes a wheel of each package that a requirement needs, its extras included, but of the package itself. A wheel has the
files of the installed package, uncompressed. Scripts are not in it: pip makes them again.
"""

from __future__ import annotations

import argparse
import zipfile
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NOT_OF_THE_WHEEL = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"}
"""What an installer adds to `.dist-info`."""


def needed(requirement: str) -> list[metadata.Distribution]:
    """Return the installed packages that a requirement needs, without the package that it names."""
    first = Requirement(requirement)
    found: dict[str, metadata.Distribution] = {}
    todo = [(first.name, frozenset(first.extras))]
    seen = set(todo)
    while todo:
        name, extras = todo.pop()
        package = metadata.distribution(name)
        found[canonicalize_name(name)] = package
        for line in package.requires or []:
            needs = Requirement(line)
            wanted = [{"extra": e} for e in (extras or {""})]
            if needs.marker is None or any(needs.marker.evaluate(e) for e in wanted):
                below = (needs.name, frozenset(needs.extras))
                if below not in seen:
                    seen.add(below)
                    todo.append(below)
    del found[canonicalize_name(first.name)]
    return list(found.values())


def write_wheel(package: metadata.Distribution, directory: Path) -> Path:
    """Write the wheel of an installed package; return its file."""
    files = package.files or []
    wheel_file = next(f for f in files if f.name == "WHEEL" and f.parent.suffix == ".dist-info")
    facts = wheel_file.read_text().splitlines()
    tags = [f.removeprefix("Tag: ").split("-") for f in facts if f.startswith("Tag: ")]
    name = canonicalize_name(package.name).replace("-", "_")
    tag = "-".join(".".join(sorted(set(part))) for part in zip(*tags, strict=True))
    target = directory / f"{name}-{package.version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as wheel:
        for file in files:
            is_metadata = file.parts[0].endswith(".dist-info")
            if is_metadata and file.name in NOT_OF_THE_WHEEL:
                continue
            if file.parts[0] == ".." or file.suffix == ".pyc":
                continue
            wheel.write(str(file.locate()), str(file))
            digest = "" if file.hash is None else f"{file.hash.mode}={file.hash.value}"
            record.append(f"{file},{digest},{file.size or ''}")
        record_file = f"{wheel_file.parent}/RECORD"
        wheel.writestr(record_file, "\n".join([*record, f"{record_file},,"]) + "\n")
    return target


def make(directory: Path, requirement: str) -> list[Path]:
    """Write the wheels of all packages that a requirement needs; return their files."""
    directory.mkdir(parents=True, exist_ok=True)
    return [write_wheel(package, directory) for package in needed(requirement)]


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("requirement")
    given = parser.parse_args()
    for wheel in make(given.directory, given.requirement):
        print(wheel)


if __name__ == "__main__":
    main()
