"""The page on the architecture says what the crates really stand on; no Python module is on a circle."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import quick
from gargalo import _toml

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / "python"


def test_the_table_of_crates_is_true():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", page, re.MULTILINE))
    told = {name: set(re.findall(r"`(\w+)`", cell)) for name, cell in rows.items()}
    real = {}
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        text = manifest.read_text(encoding="utf-8")
        own = text.split("[dependencies]")[1].split("[dev-dependencies]")[0]
        real[manifest.parent.name] = set(re.findall(r"^gargalo-(\w+)", own, re.MULTILINE))
    assert told == real


def test_no_crate_stands_on_one_above_it():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", page, re.MULTILINE)
    below: set[str] = set()
    for name, cell in rows:
        assert set(re.findall(r"`(\w+)`", cell)) <= below, name
        below.add(name)


def test_no_behaviour_of_tcp_follows_from_the_name_of_a_profile():
    source = ROOT / "crates/tcp/src"
    for path in sorted(source.rglob("*.rs")):
        if path.parent.name != "config" and path.name != "lib.rs":
            assert "Profile" not in path.read_text(encoding="utf-8"), path
    options = (source / "config/mod.rs").read_text(encoding="utf-8")
    # The defaults of what is not given, and which of two keys an error names.
    assert options.split("mod tests")[0].count("self.profile") == 1


class Imports(ast.NodeVisitor):
    """What a module imports anywhere, except for annotations."""

    def __init__(self, known: set[str]) -> None:
        self.known, self.found = known, set()

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.found |= self.known & {alias.name for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        named = {f"{node.module}.{alias.name}" for alias in node.names}
        self.found |= named & self.known
        if named - self.known - {"gargalo._core"} and node.module in self.known:
            self.found.add(node.module)


def python_imports() -> dict[str, set[str]]:
    files = {
        quick.module_of(path.relative_to(ROOT)): path
        for path in sorted(PYTHON.rglob("*.py"))
        if "examples" not in path.parts
    }
    found = {}
    for name, path in files.items():
        imports = Imports(set(files))
        imports.visit(ast.parse(path.read_text(encoding="utf-8")))
        found[name] = imports.found - {name}
    return found


def test_no_python_module_is_on_a_circle():
    imports = python_imports()
    assert len(imports) > 200
    assert imports["gargalo.terminal.progress"] == {
        "gargalo.terminal.detection",
        "gargalo.terminal.screen",
        "gargalo.terminal.text",
    }
    TopologicalSorter(imports).prepare()  # raises CycleError with the modules of a circle


def test_only_commands_stand_on_the_commands():
    for name, imported in python_imports().items():
        if not name.startswith(("gargalo.cli", "gargalo.__main__", "gargalo._reference")):
            assert not any(i.startswith("gargalo.cli") for i in imported), name


PUBLIC = (
    "gargalo",
    "gargalo.interop",
    "gargalo.metrics",
    "gargalo.reporting",
    "gargalo.studies",
    "gargalo.studies.drawing",
    "gargalo.studies.pages",
    "gargalo.sweeps",
)
"""Modules whose `__all__` a package with studies may use."""


def names_used(tree: ast.Module) -> set[tuple[str, str]]:
    """Return what a module takes of others: pairs of a module and a name in it."""
    used, modules = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                used.add((str(node.module), alias.name))
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            used |= {(module, node.attr)} if module in PUBLIC else set()
    return used


def test_studies_stand_on_public_names():
    for path in sorted((PYTHON / "gargalo_studies").rglob("*.py")):
        for module, name in names_used(ast.parse(path.read_text(encoding="utf-8"))):
            if module.split(".")[0] == "gargalo" and f"{module}.{name}" not in PUBLIC:
                assert module in PUBLIC, f"{path}: {module} is not public"
                assert name in importlib.import_module(module).__all__, f"{path}: {module}.{name}"


def test_nothing_but_entry_points_knows_the_studies():
    for name, imported in python_imports().items():
        if not name.startswith("gargalo_studies"):
            assert not any(i.startswith("gargalo_studies") for i in imported), name
    project = _toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = project["entry-points"]["gargalo.studies"]
    folders = (PYTHON / "gargalo_studies").glob("*/__init__.py")
    assert set(declared.values()) == {f"gargalo_studies.{f.parent.name}:STUDY" for f in folders}


def test_the_table_of_python_rooms_has_each_room():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    front = page.split("## The Python front")[1].split("## ")[0]
    told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)\|", front, re.MULTILINE))))
    real = {p.name for p in (PYTHON / "gargalo").iterdir() if p.is_dir() and p.name[0] != "_"}
    assert told == real


MOST_COLUMNS = 120
GENERATED = {"python/gargalo/row_types.py", "python/gargalo/scenario_types.py"}


def texts_of(source: str) -> set[int]:
    """Return the lines of a Python file in texts of several lines that are no docstrings: pages, scripts, scenarios."""
    tree = ast.parse(source)
    docstrings = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    lines = source.splitlines()
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in docstrings:
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if any('"""' in lines[i - 1] for i in span):
                found |= set(span)
    return found


def raw_texts_of(source: str) -> set[int]:
    """Return the lines of a Rust file that have a part of a raw string: scenarios, JSON, scripts."""
    found: set[int] = set()
    for text in re.finditer(r'\bb?r(#*)".*?"\1', source, re.DOTALL):
        first = source.count("\n", 0, text.start()) + 1
        found |= set(range(first, first + text.group(0).count("\n") + 1))
    return found


def test_no_line_of_code_is_longer_than_120_columns():
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.pyi", "*.rs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    assert len(files) > 1000
    long = []
    for name in files:
        source = (ROOT / name).read_text(encoding="utf-8")
        lines = source.splitlines()
        over = {i for i, line in enumerate(lines, 1) if len(line) > MOST_COLUMNS}
        if not over or name in GENERATED:
            continue
        if name.endswith(".py"):
            over -= texts_of(source)
        elif name.endswith(".rs"):
            over -= raw_texts_of(source)
        long += [f"{name}:{i}" for i in sorted(over)]
    assert long == [], "\n".join(long)


@pytest.mark.xdist_group("together")
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process runs all tests")
def test_tests_of_a_group_run_in_one_worker(request):
    """Real time, browsers and cargo's locks need it; a group is the end of a test's name."""
    assert request.node.nodeid.endswith("@together"), "pytest-xdist keeps no groups together"
