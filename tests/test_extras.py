"""The base package without the libraries of its extras: what works, and what says how to get the rest."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

import gargalo
import pytest
from conftest import ROOT
from gargalo._toml import loads
from gargalo.extras import EXTRAS, ORDER, MissingExtraError, need

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = loads((ROOT / "pyproject.toml").read_text())["project"]
LARGEST_MB = 250
BASE = f"""
import sys
sys.modules.update(dict.fromkeys({[*EXTRAS, "dask"]}))
from gargalo.cli.app import main
main()
"""
GUARDED = {
    "evaluation",
    "explaining",
    "exploring",
    "fitting",
    "judging.py",
    "metrics",
    "pictures",
    "reporting",
    "studies",
    "sweeps",
}
"""Parts that say what is missing before they import it."""
DISTRIBUTIONS = {"uplot": "uplot-python"}
"""Libraries whose package has another name."""


def base(*args: object, cwd: Path) -> subprocess.CompletedProcess:
    """Run the command as if nothing but the base were installed."""
    command = [sys.executable, "-c", BASE, *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[A-Za-z0-9_.-]+(\[\w+\])?", r)[0] for r in requirements}


def test_a_run_has_its_tables_and_says_how_to_get_pictures(tmp_path: Path):
    for example in ("cellular-race", "mptcp"):
        done = base("run", ROOT / f"examples/{example}.toml", "--set", "duration=4s", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        note = (
            "note: no pictures: pictures need matplotlib and numpy, which are not installed: pip "
            "install 'gargalo[plots]'"
        )
        assert note in done.stderr.splitlines()
        directory = tmp_path / "runs" / f"{example}-1"
        assert (directory / "flows.parquet").exists()
        assert not list(directory.glob("*.png"))
        assert "results: " in done.stderr + done.stdout
    assert base("report", "runs/mptcp-1", cwd=tmp_path).stderr == (
        "error: pages of runs need matplotlib, numpy and uplot, which are not installed: "
        "pip install 'gargalo[explore]'\n"
    )
    assert base("run", ROOT / "examples/mptcp.toml", "--json", cwd=tmp_path).stderr == ""
    # The name of a study is known where there is an example of it.
    assert "no such file" in base("run", "fidelity", cwd=tmp_path).stderr.lower()
    assert "gargalo example nsquic" in base("run", "nsquic", cwd=tmp_path).stderr
    for args in (["list", "congestion"], ["example"], ["new", "mine.toml"], ["schema"]):
        assert base(*args, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("args", "extra"),
    [
        (["plot", "run"], "plots"),
        (["explain", "run"], "plots"),
        (["compare", "a", "b"], "report"),
        (["sweep", "a.toml"], "report"),
        (["study", "nsquic"], "report"),
        (["evaluate", "cubic"], "report"),
        (["fit", "a.pcap"], "report"),
        (["identify", "a.pcap"], "report"),
    ],
    ids=lambda v: v[0] if isinstance(v, list) else None,
)
def test_a_command_says_in_one_sentence_what_it_needs(tmp_path: Path, args, extra):
    done = base(*args, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    sentence = (
        rf"error: [\w ]+ need [\w, ]+, which are not installed: pip install 'gargalo\[{extra}\]'\n"
    )
    assert re.fullmatch(sentence, done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_from_python_it_is_an_import_error(monkeypatch: pytest.MonkeyPatch):
    need("pictures", "matplotlib", "numpy")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        MissingExtraError,
        match=r"clusters need distributed, which is not installed: pip install 'gargalo\[cluster\]'",
    ):
        need("clusters", "numpy", "distributed")
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(
        ImportError, match=r"need scipy, which is not installed: pip install 'gargalo\[report\]'"
    ):
        gargalo.metrics.difference([1.0, 2.0, 3.0, 4.5], [2.0, 3.0, 4.0, 9.0], seed=1)


def test_extras_are_those_of_the_package():
    extras = PROJECT["optional-dependencies"]
    for library, extra in EXTRAS.items():
        assert DISTRIBUTIONS.get(library, library) in names(extras[extra])
    has = {"explore": "plots", "report": "plots", "cluster": "report"}
    assert set(ORDER) == has.keys() | {"plots"}
    for extra, before in has.items():
        assert ORDER.index(before) < ORDER.index(extra)
        assert f"gargalo[{before}]" in names(extras[extra])
    assert names(extras["all"]) == {"gargalo[cluster]", "gargalo[explore]"}
    known = {DISTRIBUTIONS.get(library, library) for library in EXTRAS}
    outside = {n for e in ORDER for n in names(extras[e]) if "[" not in n} - known
    assert outside == {"dask"}  # Of distributed.


def test_only_parts_that_say_so_import_them():
    package = ROOT / "python" / "gargalo"
    for file in package.rglob("*.py"):
        part = file.relative_to(package).parts[0]
        if part in GUARDED or part == "examples":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            found = []
            if isinstance(node, ast.Import):
                found = [a.name for a in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = [node.module or ""]
            assert not {f.partition(".")[0] for f in found} & EXTRAS.keys(), file


def test_the_base_is_light():
    """The package and what it depends on, without extras, as installed here."""
    todo, seen, size = ["gargalo"], set(), 0
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # For another system or another Python.
        size += sum(f.locate().stat().st_size for f in found.files or [] if f.locate().exists())
        for requirement in found.requires or []:
            what, _, marker = requirement.partition(";")
            if "extra" not in marker:
                todo.append(re.match(r"[A-Za-z0-9_.-]+", what)[0])
    assert {"polars", "click"} <= seen
    assert not seen & EXTRAS.keys()
    assert size < LARGEST_MB * 1_000_000, f"{size / 1e6:.0f} MB"
