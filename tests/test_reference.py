"""Generated pages: commands and the Python package; the citation."""

from __future__ import annotations

import json
import re

import click
import gargalo
import yaml
from conftest import ROOT
from gargalo import _reference
from gargalo._generate import is_section, places
from gargalo.cli.app import app
from gargalo.scenarios.model import Model
from test_terminal import every_command


def test_the_page_of_commands_has_every_command_and_option():
    page = _reference.commands_page()
    for name, found in every_command().items():
        own = page.split(f"### gargalo {name}\n")[1].split("\n### ")[0]
        shown = [p for p in found.params if not getattr(p, "hidden", False)]
        for p in shown:
            assert _reference.cell(p.help) in own, (name, p.name)
            if isinstance(p, click.Option):
                assert max(p.opts, key=len) in own
        assert all(e.line in own for e in found.examples)
    told = re.findall(r"\(#(gargalo-[\w-]+)\)", page)
    assert {f"gargalo-{name}" for name in every_command() if " " not in name} == set(told)


def test_the_page_of_commands_follows_them(monkeypatch):
    """A page that was made before a change is found out by the test of derived files."""
    before = _reference.commands_page()
    run = app.get_command(click.Context(app), "run")
    monkeypatch.setattr(run.params[0], "help", "Something else.")
    assert _reference.commands_page() != before


def test_the_page_of_the_package_has_every_public_name():
    page = _reference.python_page()
    entries = re.findall(r"^### (\S+)$", page, re.MULTILINE)
    assert len(entries) == len(set(entries))
    documented = {e.rpartition(".")[2] for e in entries}
    assert set(gargalo.__all__) - {"__version__"} <= documented
    for part in page.split("\n### ")[1:]:
        name, _, text = part.partition("\n")
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        assert len(prose.split()) > 3, f"{name} says nothing"
    assert "existing: Literal['refuse', 'replace'] = 'refuse'" in page
    assert "- `ScenarioError`: The scenario is wrong; nothing was written." in page
    assert "| `flows` | `pl.DataFrame` | A row per flow. |" in page
    assert ">>>" not in page


def test_the_citation_is_valid_and_of_this_version():
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(told)  # What CFF 1.2.0 asks for.
    assert told["cff-version"] == "1.2.0"
    assert told["type"] == "software"
    assert told["authors"] == [{"name": "The Gargalo developers"}]
    assert told["version"] == gargalo.__version__
    assert told["license"] == ["MIT", "Apache-2.0"]
    page = (ROOT / "docs" / "cite.md").read_text(encoding="utf-8")
    assert f"version = {{{gargalo.__version__}}}" in page
    assert told["title"] in page


def test_the_page_of_files_has_every_key(tmp_path):
    """Of runs with all kinds of results, and no key that no run has."""
    text = (ROOT / "docs/reference/results.md").read_text(encoding="utf-8")
    parts = re.split(r"^#{2,3} (.+)\n", text, flags=re.MULTILINE)[1:]
    told = {
        name: [set(re.findall(r"^\| `([\w*]+)` \|", table,
            re.MULTILINE)) for table in re.split(r"^\| --- .*\n", body, flags=re.MULTILINE)[1:]]
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }  # fmt: skip

    def plain(keys):
        return {
            re.sub(r"^(rtt|delay|completion|page)_(min|mean|p50|p95|p99|max)_s$", r"\1_*_s", k)
            for k in keys
        }

    found = {}

    def see(part, one):
        found.setdefault(part, set()).update(one)

    for example in ("background", "mptcp"):
        run = gargalo.run(
            ROOT / f"examples/{example}.toml", set={"duration": "6s"}, output=tmp_path / example
        )
        summary = json.loads((run.directory / "summary.json").read_text())
        facts = json.loads((run.directory / "run.json").read_text())
        see("summary.json", summary)
        see("run.json", facts)
        for group in summary["groups"].values():
            see("groups", group)
        for load in summary.get("background", {}).get("loads", []):
            see("loads", load)
        for group in summary.get("background", {}).get("groups", []):
            see("background", plain(group))
    assert found["summary.json"] == told["summary.json"][0]
    assert found["groups"] == told["groups"][0]
    assert found["loads"] == told["background"][0]
    assert found["run.json"] == told["run.json"][0]
    # Kinds of traffic that this mix does not have have more.
    missing = told["background"][1] - found["background"]
    assert found["background"] <= told["background"][1]
    assert missing <= {
        "mos_mean", "startup_mean_s", "rebuffering_mean_s", "rebufferings", "bitrate_switches", "bitrate_mean_bps",
        "page_*_s", "pages", "sessions", "size_scale",
    }  # fmt: skip


def test_every_part_of_a_scenario_has_its_place():
    model = Model.load()
    at = places(model)
    parts = [name for name, node in model.definitions.items() if is_section(node)]
    assert all(at[name] for name in parts)
    assert "topology.simple.link.queue.codel" in at["CoDel"]
    assert at["Flow"] == ["flows.0"]
    assert "topology.dumbbell.bottleneck" in at["Link"]
