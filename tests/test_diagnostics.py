"""What is wrong with a scenario comes as values: path, line, column, message, help; nobody takes texts apart."""

from __future__ import annotations

import ast
import json
import pickle
import re
from pathlib import Path

import gargalo
import pytest
from conftest import TINY
from gargalo import Diagnostic, ScenarioError, sweeps
from gargalo.diagnostics import sentence
from gargalo.sweeps.errors import SweepError

PACKAGE = Path(gargalo.__file__).parent

# How the text differs, the path that is told, and where its line and column point.
SLIPS = {
    "key": ("duration = ", "durration = ", "durration", "durration"),
    "key deep inside": ("loss = {", "losss = {", "topology.simple.link.losss", "losss"),
    "dotted key": ("workload.bulk", "workload.bluk", "flows.0.workload.bluk", "bluk"),
    "bare number": ('rate = "5Mbit/s"', "rate = 5", "topology.simple.link.rate", "5,"),
    "negative": ('"5Mbit/s"', '"-5Mbit/s"', "topology.simple.link.rate", '"-5Mbit'),
    "out of range": ("0.001", "7", "topology.simple.link.loss.independent", "7 }"),
    "host": ('to    = "server"', 'to    = "sever"', "flows.0.to", '"sever"'),
    "algorithm": ('"cubic"', '"cubik"', "flows.0.transport.tcp.congestion", '"cubik"'),
    "kind": ("seed     = 3", "seed = 1979-05-27", "seed", "1979"),
    "after the end": ('"500ms"', '"9s"', "flows.1.start", '"9s"'),
    "after letters of several bytes": (
        'label = "upload"',
        '"\u00e9\U0001f6a6" = 1',
        "flows.0.\u00e9\U0001f6a6",
        '"\u00e9',
    ),
    "no TOML": ('"tiny"', "tiny", None, "tiny"),
}


def found(scenario: object, **options: object) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        gargalo.run(scenario, **options)
    return caught.value


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_are_values_that_point_at_the_key(tmp_path, slip):
    old, new, path, here = SLIPS[slip]
    text = TINY.replace(old, new, 1)
    file = tmp_path / "slip.toml"
    file.write_text(text, encoding="utf-8")
    error = found(file)
    (d,) = error.diagnostics
    assert (d.path, d.file) == (path, str(file))
    line = text.split("\n")[d.line - 1]
    assert line[d.column - 1 :].startswith(here), (d, line)
    assert f"slip.toml:{d.line}:{d.column}" in str(error)
    assert " ".join(d.message.split()) in " ".join(str(error).replace("\u2502", " ").split())
    assert json.loads(json.dumps(d.to_json())) == {
        "path": path, "file": str(file), "line": d.line, "column": d.column,
        "message": d.message, "help": d.help,
    }  # fmt: skip


def test_an_error_has_all_its_diagnostics_wherever_it_goes():
    text = TINY.replace('"5Mbit/s"', "5").replace("duration", "durration")
    error = found(text)
    assert isinstance(error, ValueError)
    assert [d.path for d in error.diagnostics] == ["durration", "topology.simple.link.rate"]
    assert all(d.help for d in error.diagnostics)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.diagnostics) == (str(error), error.diagnostics)
    assert len({*error.diagnostics, *copy.diagnostics}) == 2
    assert eval(repr(error.diagnostics[0]), {"Diagnostic": Diagnostic}) == error.diagnostics[0]
    with pytest.raises(AttributeError):
        error.diagnostics[0].line = 7
    assert 'has no key "durration"; did you mean `duration`?' in sentence(error)
    assert sentence(error).endswith("(and 1 more)")
    assert ScenarioError("by others").diagnostics == ()


def test_overrides_dictionaries_and_files_have_their_own_places(tmp_path):
    (d,) = found(TINY, set={"flows.1.start": "soon"}).diagnostics
    assert (d.path, d.file, d.line, d.column) == ("flows.1.start", "--set flows.1.start=soon", None, None)  # fmt: skip
    (d,) = found(
        {
            "duration": "1s",
            "topology": {"simple": {"link": {"rate": "1Mbit/s"}}},
            "flows": [{"from": "client"}],
        }
    ).diagnostics[:1]
    assert (d.path, d.file) == ("flows.0.to", "scenario")
    (d,) = found(tmp_path / "nowhere.toml").diagnostics
    assert (d.path, d.file, d.line) == (None, str(tmp_path / "nowhere.toml"), None)
    assert d.help == "check the path"
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    assert "not UTF-8" in found(tmp_path / "binary.toml").diagnostics[0].message
    # Right in itself, and cannot be run.
    (d,) = found(TINY, set={"record.captures": ["*"]}).diagnostics
    assert "--output" in d.message


def test_a_sweep_says_which_axis_and_has_the_diagnostics():
    axes = {"start": {"key": "flows.1.start", "values": ["1s", "2"]}}
    with pytest.raises(SweepError, match='axis "start" at 2') as caught:
        sweeps.plan(TINY, axes)
    (d,) = caught.value.diagnostics
    assert d.path == "flows.1.start"
    assert d.sentence() in str(caught.value)
    assert "\n" not in str(caught.value)


def test_commands_that_answer_in_json_fail_in_json(inside, tmp_path):
    file = tmp_path / "slip.toml"
    file.write_text(TINY.replace("rate = ", "rat = "))
    done = inside("run", file, "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    (d,) = error["diagnostics"]
    assert (d["path"], d["line"], d["file"]) == ("topology.simple.link.rat", 6, str(file))
    assert error["exit_code"] == 2
    assert error["message"] == f"{d['message']}; {d['help']}"
    assert "slip.toml:6" in done.stderr, "people read standard error as before"
    assert inside("run", file).stdout == ""
    (tmp_path / "sweep.toml").write_text(f'scenario = "{file.name}"\n[axes]\nduration = ["1s"]\n')
    told = json.loads(inside("sweep", "sweep.toml", "--json").stdout)["error"]
    assert told == error
    for args in (
        ("run", "nowhere.toml", "--json"),
        ("run", file, "--json", "--set", "oops"),
        ("sweep", "nowhere.toml", "--json"),
        ("compare", "a", "b", "--json"),
        ("study", "none", "--json"),
        ("trace", "info", "nowhere.down", "--json"),
    ):
        done = inside(*args)
        assert done.returncode == 2, args
        told = json.loads(done.stdout)["error"]
        assert told["message"]
        assert told["exit_code"] == 2


# --- nobody takes a text apart

SEARCHES = {
    "partition", "rpartition", "splitlines", "find", "rfind", "index", "startswith", "endswith",
    "removeprefix", "removesuffix", "replace", "count",
}  # fmt: skip
DRAWN = re.compile(r"[\u00d7\u256d\u256f\u2570\u2502]|\\u(00d7|25)|help:|did you mean `")
"""What the engine draws its texts with."""


def scraped(source: str) -> list[str]:
    """Return the places of a module where the text of an exception is searched."""
    tree = ast.parse(source)
    found = []
    for handler in ast.walk(tree):
        errors = set()
        if isinstance(handler, ast.ExceptHandler) and handler.name:
            errors = {handler.name}
        elif isinstance(handler, (ast.FunctionDef, ast.AsyncFunctionDef)):
            args = [*handler.args.args, *handler.args.kwonlyargs]
            named = {
                a.arg
                for a in args
                if a.annotation and re.search(r"Error|Exception", ast.unparse(a.annotation))
            }
            errors = named
        if not errors:
            continue
        texts = {f"str({e})" for e in errors}
        for node in ast.walk(handler):  # Names that the text is given.
            if isinstance(node, ast.Assign) and ast.unparse(node.value) in texts:
                texts |= {ast.unparse(t) for t in node.targets}
        for node in ast.walk(handler):
            if isinstance(node, ast.Call):
                where = ast.unparse(node)
                if isinstance(node.func, ast.Attribute):
                    on, method = ast.unparse(node.func.value), node.func.attr
                    searched = method in SEARCHES or (method in ("split", "rsplit") and node.args)
                    if on in texts and searched:
                        found.append(where)
                    if on in ("re", "tomllib") or on.isupper():
                        found += [where for a in node.args if ast.unparse(a) in texts]
            elif isinstance(node, ast.Compare) and any(
                isinstance(o, (ast.In, ast.NotIn)) for o in node.ops
            ):
                found += [ast.unparse(node) for c in node.comparators if ast.unparse(c) in texts]
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) in texts:
                found.append(ast.unparse(node))
    return found


def drawn(source: str) -> list[str]:
    """Return the strings of a module that look for what the engine draws."""
    tree = ast.parse(source)
    searching = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in SEARCHES | {"split", "search", "match", "compile", "sub", "findall", "fullmatch"}:  # fmt: skip
                searching += node.args[:1]
        elif isinstance(node, ast.Compare):
            searching.append(node.left)
    texts = [n.value for n in searching if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return [t for t in texts if DRAWN.search(t)]


def test_no_module_searches_in_the_text_of_an_error():
    bad = "try: f()\nexcept E as e:\n    t = str(e)\n    {}\n"
    for search in ('t.partition(":")', '"x" in t', 'str(e).splitlines()[0]', 're.search("x", t)', "t[:3]"):  # fmt: skip
        assert scraped(bad.format(search)), search
    assert not scraped(bad.format('print(" ".join(t.split()))'))
    assert drawn('re.search(r"\\u00d7\\s*(.*)", text)')
    assert drawn('text.partition("help: ")')
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        assert scraped(source) == [], path
        assert drawn(source) == [], path
