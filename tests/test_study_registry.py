"""Studies are found by entry points: those of this distribution, and those of any other."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT, TINY, command, environment
from gargalo import _toml
from gargalo.studies import STUDIES, StudyError
from gargalo.studies.registry import Installed

if TYPE_CHECKING:
    from pathlib import Path

GUEST = f"""\
from gargalo.metrics import POSITIVE
from gargalo.studies import Claim, Experiment, Profile, Study, reproduced
from gargalo.sweeps import Job

TINY = {TINY!r}

def jobs(profile):
    return [Job({{"experiment": "alone"}}, TINY, seed) for seed in range(profile.repeat)]

def measure(run):
    return {{"flows": len(run.flows)}}

def check(context):
    assert context.frame["flows"].to_list() == [2.0]
    return reproduced("two flows")

STUDY = Study(
    name="guest", title="A guest", summary="from elsewhere", source="nobody", description="None.",
    measure="guests:measure", bounds={{"flows": POSITIVE}}, profiles={{"quick": Profile("quick", "", 1)}},
    experiments=[Experiment("alone", "alone", jobs)], claims=[Claim("c", "There are two.", check)],
    figures=lambda context: [], tables=lambda context: [],
)
"""


def distribution(folder: Path, name: str, *entries: str) -> None:
    """Declare studies as an installed distribution does."""
    place = folder / f"{name}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("\n".join(["[gargalo.studies]", *entries, ""]))


def test_the_studies_of_this_distribution_are_declared():
    project = _toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["gargalo.studies"].keys() <= set(STUDIES), "run make setup"


def test_a_study_of_another_distribution_is_listed_and_done(tmp_path):
    (tmp_path / "guests.py").write_text(GUEST)
    distribution(tmp_path, "guests", "guest = guests:STUDY", "lost = guests.lost:STUDY")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]

    def gargalo(*words: str) -> str:
        done = subprocess.run(
            command(*words),
            cwd=tmp_path,
            env=environment() | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = {s["name"]: s["summary"] for s in json.loads(gargalo("list", "studies", "--json"))}
    assert listed["guest"] == "from elsewhere"
    assert "cannot be imported from guests.lost:STUDY: ModuleNotFoundError" in listed["lost"]
    outcome = json.loads(gargalo("study", "guest", "--workers", "1", "--json"))
    assert [c["verdict"] for c in outcome["claims"]] == ["reproduced"]


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        (("guest = guests:measure",), "guests:measure is not a study called"),
        (("other = guests:STUDY",), "guests:STUDY is not a study called"),
        (("guest = guests:NONE",), "AttributeError"),
        (("guest = guests:STUDY", "guest = rivals:STUDY"), "several studies are called"),
    ],
)
def test_what_cannot_be_used_says_why(tmp_path, monkeypatch, entries, why):
    (tmp_path / "guests.py").write_text(GUEST)
    for i, entry in enumerate(entries):
        distribution(tmp_path, f"guests{i}", entry)
    monkeypatch.syspath_prepend(tmp_path)
    name = entries[0].partition(" ")[0]
    found = Installed()
    assert name in found
    with pytest.raises(StudyError, match=why):
        found[name]
    with pytest.raises(KeyError):
        found["nobody"]
