"""Runs the tests of what has changed: `make quick`, or `make quick SINCE=main`.

    crates/NAME/...           the tests of that crate
    python/...                the test files that import the module, and those named after it
    tests/test_NAME.py        that file
    docs, README              the options of the commands on the pages

Always: formatting, ruff, and the tests of the structure. What a change may break elsewhere is for `make test`.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
STRUCTURE = {"test_architecture.py", "test_modules.py"}
PAGES = {
    "test_docs.py::test_commands_have_the_options_that_are_written",
    "test_docs.py::test_the_command_has_one_spelling",
}


def changed(since: str) -> list[Path]:
    """Return the files that differ from a commit, and those that git does not know yet."""
    lists = (
        ["git", "diff", "--name-only", "--diff-filter=d", since],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    done = (subprocess.run(c, cwd=ROOT, capture_output=True, text=True, check=True) for c in lists)
    return [Path(line) for d in done for line in d.stdout.splitlines()]


def crates_of(files: list[Path]) -> list[str]:
    """Return the packages of crates with changed files."""
    found = {f.parts[1] for f in files if f.parts[0] == "crates" and len(f.parts) > 2}
    return [f"gargalo-{name}" for name in sorted(found)]


def module_of(file: Path) -> str:
    """Return the name of a module by its file below `python`."""
    return ".".join(file.relative_to("python").with_suffix("").parts).removesuffix(".__init__")


def imports_of(test: Path) -> set[str]:
    """Return the modules that a test file imports, with the names that it takes from them."""
    found = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def tests_of(files: list[Path]) -> list[Path]:
    """Return the test files for what has changed outside of crates."""
    modules = {module_of(f) for f in files if f.parts[0] == "python" and f.suffix == ".py"}
    names = {part for m in modules for part in m.split(".")[1:]}
    found = {TESTS / name for name in STRUCTURE}
    found |= {ROOT / f for f in files if f.parts[0] == "tests" and f.name.startswith("test_")}
    if any(f.suffix == ".md" for f in files):
        found |= {TESTS / name for name in PAGES}
    for test in sorted(TESTS.rglob("test_*.py")):
        if modules & imports_of(test) or test.stem.removeprefix("test_") in names:
            found.add(test)
    return sorted(found)


def main() -> int:
    """Run the tests; return the exit code of the first step that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--since", default="HEAD", help="a commit; default: the last one")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    options = parser.parse_args()
    files = changed(options.since)
    crates, tests = crates_of(files), tests_of(files)
    python = sys.executable
    steps = [
        ["cargo", "fmt", "--all", "--check"],
        [python, "-m", "ruff", "check", "--quiet", "."],
        [python, "-m", "ruff", "format", "--quiet", "--check", "."],
        [
            python,
            "-m",
            "pytest",
            "--quiet",
            "--numprocesses",
            "2",
            "--dist",
            "loadgroup",
            *map(str, tests),
        ],
    ]
    if crates:
        packages = [word for name in crates for word in ("--package", name)]
        steps.append(["cargo", "test", "--locked", "--quiet", *packages])
    for step in steps:
        shown = " ".join(
            str(Path(w).relative_to(ROOT)) if w.startswith(str(TESTS)) else w for w in step
        )
        print(f"quick: {shown.replace(python, 'python')}", flush=True)
        if options.dry_run:
            continue
        start = time.monotonic()
        code = subprocess.run(step, cwd=ROOT, check=False).returncode
        print(f"quick: {time.monotonic() - start:.0f} s", flush=True)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
