"""Changes the code in small ways, one at a time, and counts the changes that no test notices.

    make mutants                        # what has changed since the last commit on the main branch
    make mutants SINCE=HEAD~3
    make mutants PARTS="link metrics" SAMPLE=40 SEED=2

Changes of Rust are those that cargo-mutants lists, of Python those of the operators of Cosmic Ray. Without parts, what
is changed are the lines of the difference to SINCE; with parts, an even sample of all mutants of each, and another one
with another SEED: a score is of a sample for whose mutants no test was written. A mutant that makes the tests hang
counts as caught; one that does not compile is none. Mutants that change nothing that can be observed count as missed,
so 100% cannot be reached.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, TypeVar

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "mutants"

# Crates, and the packages whose tests are to notice, one after the other: a crate without a world of its own is tested
# in one.
CRATES = {
    "cc": ("cc",),
    "flow": ("flow", "sim", "scenario"),
    "link": ("link",),
    "mptcp": ("mptcp", "script"),
    "sim": ("sim", "scenario"),
    "tcp": ("tcp", "script"),
}
# Folders of the Python package, and the tests that are to notice.
PACKAGES = {
    # Others use them, too: it takes them minutes to notice what these notice in seconds.
    "metrics": ("test_metrics", "test_statistics"),
    "studies": ("test_study", "test_study_cell", "test_study_registry"),
    "sweeps": (
        "test_sweep_plan",
        "test_sweep_ceiling",
        "test_sweep_show",
        "test_sweep_files",
        "test_sweep_cells",
        "test_sweep_executors",
        "test_sweep",
    ),
}
# Slower tests, of single files.
SLOWER = {
    "sweeps/checksum": ("test_sweep_damage",),
    "sweeps/claims": ("test_sweep_store",),
    "sweeps/cluster": ("test_sweep_cluster",),
    "sweeps/compact": ("test_sweep_store",),
    "sweeps/local": ("test_sweep_workers",),
    "sweeps/picture": ("test_sweep_plot",),
    "sweeps/plugins": ("test_sweep_workers",),
    "sweeps/statistics": ("test_repeats",),
    "sweeps/store": ("test_sweep_damage",),
    "sweeps/worker": ("test_sweep_workers",),
}
# Left out are operators on bits, which are annotations here, and comparisons of identity: they change nothing or
# everything.
OPERATORS = re.compile(
    r"core/(ReplaceBinaryOperator_(Add_Sub|Sub_Add|Mul_Div|Div_Mul|FloorDiv_Mul|Mod_Mul|Pow_Mul)"
    r"|ReplaceComparisonOperator_(Eq|NotEq|Lt|LtE|Gt|GtE)_(Eq|NotEq|Lt|LtE|Gt|GtE)"
    r"|ReplaceUnaryOperator_(USub_UAdd|Delete_Not)|ReplaceAndWithOr|ReplaceOrWithAnd|ReplaceTrueWithFalse"
    r"|ReplaceFalseWithTrue|AddNot|NumberReplacer"
    r"|ReplaceContinueWithBreak|ReplaceBreakWithContinue|ZeroIterationForLoop)"
)
# A star that ends the parameters by position, or unpacks a table into another, is no multiplication.
NOT_BINARY = ("parameters", "lambdef", "dictorsetmaker")
# What is imported for annotations alone, and what nobody assigns to: these change nothing, either.
WITHOUT_EFFECT = re.compile(r"\s*if TYPE_CHECKING:|\s*@dataclass\(frozen=True\)")
M = TypeVar("M")


@dataclass
class Score:
    """What became of the mutants of a part."""

    part: str
    caught: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        """How many mutants the tests have run with."""
        return self.caught + len(self.missed)

    def interval(self) -> tuple[float, float]:
        """Return the 95% interval of the share caught (Wilson score)."""
        n, z = self.tried, 1.96
        p = self.caught / n
        middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return tuple((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))

    def line(self) -> str:
        """Return the row of a table in Markdown."""
        if not self.tried:
            return f"| {self.part} | 0 | - | - |"
        low, high = self.interval()
        share = self.caught / self.tried
        return f"| {self.part} | {self.tried} | {share:.0%} | {low:.0%} to {high:.0%} |"


# --- Rust ---


@dataclass(frozen=True)
class RustMutant:
    """A change of a file of Rust."""

    name: str
    file: Path
    # Line and column, from 1, of the first character that is replaced, and of the first after it.
    start: tuple[int, int]
    end: tuple[int, int]
    replacement: str

    @classmethod
    def of(cls, listed: dict[str, Any]) -> RustMutant:
        """Read a mutant of the list of cargo-mutants."""
        start, end = (
            (listed["span"][edge]["line"], listed["span"][edge]["column"])
            for edge in ("start", "end")
        )
        return cls(listed["name"], Path(listed["file"]), start, end, listed["replacement"])

    def applied(self, text: str) -> str:
        """Return the text of the file with the change."""
        lines = text.splitlines(keepends=True)
        first, last = (sum(map(len, lines[: n - 1])) + c - 1 for n, c in (self.start, self.end))
        return text[:first] + self.replacement + text[last:]


def mutants_of_crates(crates: list[str], *more: str) -> dict[str, list[RustMutant]]:
    """List the mutants of crates. cargo-mutants runs some that were not asked for, so that it only lists them."""
    command = ["cargo", "mutants", "--list", "--json", *more]
    command += [a for c in crates for a in ("--package", f"gargalo-{c}")]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, list[RustMutant]] = {c: [] for c in crates}
    for mutant in json.loads(listed.stdout or "[]"):
        found[mutant["package"].removeprefix("gargalo-")].append(RustMutant.of(mutant))
    return found


def of_crate(part: str, mutants: list[RustMutant]) -> Score:
    """Run the tests of a crate's packages with each mutant, the quickest to compile first, until some notice it."""
    tree, score, left = copy_of_the_tree(), Score(part), mutants
    for package in CRATES.get(part, (part,)):
        for targets in ("--lib", "--tests"):
            if not left:
                break
            seconds = duration_of_tests(package, targets, tree)
            survivors = []
            for mutant in left:
                ended = with_mutant(mutant, tree, package, targets, 30 + 4 * seconds)
                print(f"{ended} in {package}  {mutant.name}", flush=True)
                score.caught += ended in ("failed", "hung")
                survivors += [mutant] if ended == "passed" else []
            left = survivors
    score.missed = [m.name for m in left]
    return score


def with_mutant(mutant: RustMutant, tree: Path, package: str, targets: str, longest: float) -> str:
    """Run tests of a package with a mutant: they "passed", "failed" or "hung", or it has "no compilation"."""
    file = tree / mutant.file
    text = file.read_text()
    file.write_text(mutant.applied(text))
    try:
        if cargo_test(package, targets, tree, "--no-run") != "passed":
            return "no compilation"
        return cargo_test(package, targets, tree, seconds=longest)
    finally:
        file.write_text(text)


def duration_of_tests(package: str, targets: str, tree: Path) -> float:
    """Run the tests of a package without a mutant; return how many seconds they take when they are compiled."""
    cargo_test(package, targets, tree, "--no-run")
    begun = time.monotonic()
    if cargo_test(package, targets, tree) != "passed":
        # Seen after the end of a compiler in the middle of its work.
        hint = f"if they pass elsewhere, remove {BUILD / 'build/debug/incremental'}"
        sys.exit(f"mutants: the tests of {package} fail without a mutant; {hint}")
    return time.monotonic() - begun


def cargo_test(
    package: str, targets: str, tree: Path, *more: str, seconds: float | None = None
) -> str:
    """Run, or compile, tests of a package: they "passed" or "failed", or "hung" for longer than this."""
    command = ["cargo", "test", "--quiet", targets, "--package", f"gargalo-{package}", *more]
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(BUILD / "build"),
        "CARGO_INCREMENTAL": "1",
        # Of no use here, and a part of each compilation.
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    # A group of its own, which ends as a whole: cargo's end would leave the tests running.
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
    ) as process:
        try:
            return "failed" if process.wait(seconds) else "passed"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return "hung"


def copy_of_the_tree() -> Path:
    """Bring a copy of the repository up to date: always the same one, so that what was compiled of it is of use."""
    tree = BUILD / "tree"
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = {n for n in listed.split("\0") if n and (ROOT / n).is_file()}
    for old in [p for p in tree.rglob("*") if p.is_file()]:
        if str(old.relative_to(tree)) not in names:
            old.unlink()
    for name in names:
        source, copy = ROOT / name, tree / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    return tree


# --- Python ---


@dataclass(frozen=True)
class Mutant:
    """A change of a file: the n-th place where an operator applies."""

    file: Path
    line: int
    operator: str
    occurrence: int

    def __str__(self) -> str:
        """Name place and change."""
        name = self.operator.removeprefix("core/")
        return f"{self.file.relative_to(ROOT)}:{self.line}: {name} ({self.occurrence})"


def mutants_of(file: Path) -> list[Mutant]:
    """List the mutants of a file, by line."""
    found = []
    text = file.read_text()
    nodes = list(ast_nodes(get_ast(text)))
    unread = {i for i, x in enumerate(text.split("\n"), 1) if WITHOUT_EFFECT.match(x)}
    for name in sorted(n for n in operator_names() if OPERATORS.fullmatch(n)):
        operator = get_operator(name)()
        places = [(start[0], n) for n in nodes for start, _ in operator.mutation_positions(n)]
        found += [
            Mutant(file, line, name, i)
            for i, (line, node) in enumerate(places)
            if line not in unread
            and ("BinaryOperator" not in name or node.parent.type not in NOT_BINARY)
        ]
    return sorted(found, key=lambda m: m.line)


def copy_of_the_package(folder: Path) -> None:
    """Copy the sources and the compiled extension of the installed package."""
    shutil.copytree(ROOT / "python", folder, symlinks=False, dirs_exist_ok=True)
    find = "import gargalo._core as c; print(c.__file__)"
    python = str(ROOT / ".venv/bin/python")
    core = subprocess.run(
        [python, "-c", find], check=True, capture_output=True, text=True, cwd=folder.anchor
    )
    shutil.copy(core.stdout.strip(), folder / "gargalo")
    # Compiled once, not with every mutant; the file that a mutant changes is newer than its bytecode.
    subprocess.run([python, "-m", "compileall", "-q", str(folder)], check=True)


def tests_notice(folder: Path, tests: tuple[str, ...], limit_s: float | None) -> bool:
    """Whether the tests fail, or take too long, with the package in this folder."""
    command = [str(ROOT / ".venv/bin/python"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    command += [f"tests/{t}.py" for t in tests]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def of_python(part: str, mutants: list[Mutant], tests: tuple[str, ...]) -> Score:
    """Run the tests with each mutant in a copy of the package."""
    score = Score(part)
    with tempfile.TemporaryDirectory(prefix="gargalo-mutants-") as place:
        folder = Path(place)
        copy_of_the_package(folder)
        limits: dict[tuple[str, ...], float] = {}
        for mutant in mutants:
            own = (*tests, *SLOWER.get(f"{part}/{mutant.file.stem}", ()))
            if own not in limits:
                begun = time.monotonic()
                if tests_notice(folder, own, None):
                    sys.exit(
                        f"mutants: the tests of {part} fail without a mutant: {', '.join(own)}"
                    )
                limits[own] = 5 * (time.monotonic() - begun)
            file = folder / mutant.file.relative_to(ROOT / "python")
            text = mutant.file.read_text()
            changed = mutate_code(text, get_operator(mutant.operator)(), mutant.occurrence)
            if changed is None or changed == text:
                sys.exit(f"mutants: {mutant} changes nothing")
            file.write_text(changed)
            caught = tests_notice(folder, own, limits[own])
            file.write_text(text)
            score.caught += caught
            if not caught:
                score.missed.append(str(mutant))
            print(f"{'caught' if caught else 'MISSED'}  {mutant}", flush=True)
    return score


def mutants_of_package(part: str) -> list[Mutant]:
    """List the mutants of a folder of the package."""
    files = sorted((ROOT / "python/gargalo" / part).rglob("*.py"))
    return [m for f in files for m in mutants_of(f)]


# --- what has changed ---


def changed_lines(since: str) -> tuple[str, dict[Path, set[int]]]:
    """Return the difference to a commit, and the lines of Python files that are new in it."""
    command = ["git", "diff", "--unified=0", since, "--", "crates", "python/gargalo"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines: dict[Path, set[int]] = {}
    file = None
    for line in text.splitlines():
        if line.startswith("+++ "):
            file = ROOT / line.removeprefix("+++ b/")
        elif (
            (hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line))
            and file
            and file.suffix == ".py"
        ):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            lines.setdefault(file, set()).update(range(first, first + count))
    return text, lines


def of_changes(since: str) -> list[Score]:
    """Try the mutants of what has changed since a commit."""
    text, lines = changed_lines(since)
    scores = []
    crates = sorted(set(re.findall(r"^\+\+\+ b/crates/(\w+)/src/", text, re.MULTILINE)))
    if crates:
        BUILD.mkdir(parents=True, exist_ok=True)
        difference = BUILD / "changes.diff"
        difference.write_text(text)
        changed = mutants_of_crates(crates, "--in-diff", str(difference))
        scores += [of_crate(crate, mutants) for crate, mutants in changed.items() if mutants]
    for part, tests in PACKAGES.items():
        folder = ROOT / "python/gargalo" / part
        files = sorted(f for f in lines if f.is_relative_to(folder) and f.exists())
        mutants = [m for f in files for m in mutants_of(f) if m.line in lines[f]]
        if mutants:
            scores.append(of_python(part, mutants, tests))
    return scores


def even_sample(every: list[M], size: int, seed: int) -> list[M]:
    """Return a mutant of each of so many equal stretches: which, the seed says."""
    chosen, size = random.Random(seed), min(size, len(every))
    return [every[int((i + chosen.random()) * len(every) / size)] for i in range(size)]


def main() -> None:
    """Try mutants, and print the score of each part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts",
        nargs="*",
        choices=[[], *CRATES, *PACKAGES],
        metavar="PART",
        help="instead of what has changed",
    )
    parser.add_argument(
        "--since", default="HEAD", help="a commit: its difference to the files is what has changed"
    )
    parser.add_argument("--sample", type=int, default=40, help="mutants of each part")
    parser.add_argument("--seed", type=int, default=1, help="another one, for another sample")
    options = parser.parse_args()
    scores = [] if options.parts else of_changes(options.since)
    for part in options.parts:
        if part in CRATES:
            every = mutants_of_crates([part])[part]
            scores.append(of_crate(part, even_sample(every, options.sample, options.seed)))
        else:
            of_part = even_sample(mutants_of_package(part), options.sample, options.seed)
            scores.append(of_python(part, of_part, PACKAGES[part]))
    for missed in (m for s in scores for m in s.missed):
        print(f"missed: {missed}")
    print("| part | mutants | caught | 95% interval |\n| --- | --- | --- | --- |")
    print("\n".join(s.line() for s in scores))


if __name__ == "__main__":
    main()
