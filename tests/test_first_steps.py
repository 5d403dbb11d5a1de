"""What a new user does first: examples, a scenario of one's own, standard input, and mistakes."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gargalo
import pytest
from click.testing import CliRunner
from conftest import LONG, ROOT, TINY
from gargalo import _core, running
from gargalo.cli import bundled, kinds
from gargalo.cli.app import ALIASES, COMMANDS, INSTEAD, app
from gargalo.cli.help import Context
from gargalo.plugins import discovery
from test_terminal import every_command

if TYPE_CHECKING:
    from click.testing import Result

EXAMPLES = bundled.examples()


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], input=given, prog_name="gargalo")


def options_of(name: str, words: list[str]) -> dict[str, Any]:
    """Read the options of a command without calling it."""
    above = Context(app, **app.context_settings)
    return app.get_command(above, name).make_context(name, words, parent=above).params


# --- examples


def test_the_examples_are_in_the_package_once():
    assert Path(gargalo.__file__).parent == bundled.FOLDER.parent
    assert (ROOT / "examples").resolve() == ROOT / "python" / "gargalo" / "examples"
    names = [e.name for e in EXAMPLES]
    assert len(names) == len(set(names)) >= 24
    assert {e.kind for e in EXAMPLES} == set(bundled.KINDS)


def test_examples_are_listed_with_what_they_are():
    done = call("example")
    assert done.exit_code == 0
    for e in EXAMPLES:
        assert e.name in done.stdout
        assert e.about in done.stdout
    listed = json.loads(call("example", "--json").stdout)
    assert [e["name"] for e in listed] == [e.name for e in EXAMPLES]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", [e.name for e in EXAMPLES])
def test_each_example_is_copied_with_what_it_needs(name):
    done = call("example", name, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    words = shlex.split(told["command"])
    assert all(Path(f).is_file() for f in told["files"])
    assert "examples/" not in Path(told["files"][0]).read_text(encoding="utf-8")
    if words[0] == "python":
        assert Path(words[1]).is_file()
        return
    assert words[0] == "gargalo"
    if words[1] == "sweep":
        assert call("sweep", words[2], "--dry-run").exit_code == 0
        return
    parsed = options_of("run", words[2:])
    for plugin in parsed["plugin"]:
        assert Path(plugin).is_file()
        # Classes stay registered in this process: only the scenario is checked.
    if not parsed["plugin"]:
        running.setup(parsed["file"])
        assert parsed["world"] == ("lab" if "lab" in name else "sim")


@pytest.mark.usefixtures("here")
def test_an_example_is_copied_elsewhere_and_its_comments_say_so():
    done = call("example", "cubic-vs-bbr", "--output", "examples")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "wrote examples/cubic-vs-bbr.toml",
        "run it: gargalo run examples/cubic-vs-bbr.toml",
    ]
    assert (
        Path("examples/cubic-vs-bbr.toml").read_bytes()
        == (ROOT / "examples" / "cubic-vs-bbr.toml").read_bytes()
    )


@pytest.mark.usefixtures("here")
def test_an_example_replaces_nothing_that_differs():
    assert call("example", "quic").exit_code == 0
    assert call("example", "quic").exit_code == 0  # The same text: nothing to replace.
    Path("quic.toml").write_text("mine")
    done = call("example", "quic")
    assert done.exit_code == 2
    assert "error: quic.toml exists" in done.stderr
    assert Path("quic.toml").read_text() == "mine"
    assert call("example", "quic", "--overwrite").exit_code == 0
    assert Path("quic.toml").read_text() != "mine"


def test_a_slip_in_the_name_of_an_example_is_understood(here):
    done = call("example", "celular-race")
    assert done.exit_code == 2
    assert 'error: there is no example "celular-race"; did you mean cellular-race?' in done.stderr
    assert list(here.iterdir()) == []


# --- a scenario of one's own


@pytest.mark.usefixtures("here")
def test_a_new_scenario_runs(gargalo):
    done = call("new", "race.toml")
    assert done.exit_code == 0, done.output
    assert done.stdout == "wrote race.toml; run it: gargalo run race.toml\n"
    ran = gargalo("run", "race.toml", "--json")
    assert ran.returncode == 0, ran.stderr
    facts = json.loads(ran.stdout)
    assert [f["congestion"] for f in facts["flows"]] == ["cubic", "bbr"]
    assert ran.stderr == ""
    commented = Path("race.toml").read_text().replace("# loss =", "loss =")
    running.setup(commented)


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ([], "scenario.toml"),
        (["my race.toml"], "my race.toml"),
        (["race"], "race.toml"),
        (["über.toml"], "über.toml"),
    ],
)
def test_a_new_scenario_has_a_name_of_its_own(arguments, written, here):
    for word in ("new", "init"):
        done = call(word, *arguments, "--overwrite")
        assert done.exit_code == 0, done.output
        assert [p.name for p in here.iterdir()] == [written]
    running.setup(Path(written))
    Path(written).write_text("mine")
    again = call("new", *arguments)
    assert again.exit_code == 2
    assert f"error: {written} exists" in again.stderr


def test_a_new_scenario_is_not_written_over_a_directory_or_into_nothing(here):
    (here / "folder").mkdir()
    assert "name a file" in call("new", "folder").stderr
    (here / "file").write_text("")
    done = call("new", "file/race.toml")
    assert done.exit_code == 2
    assert "error: file/race.toml: cannot be written" in done.stderr


# --- standard input


def test_a_scenario_is_read_from_standard_input(here):
    piped = call("run", "-", "--json", given=TINY)
    (here / "tiny.toml").write_text(TINY)
    named = call("run", "tiny.toml", "--json")
    assert piped.exit_code == named.exit_code == 0
    assert json.loads(piped.stdout)["flows"] == json.loads(named.stdout)["flows"]
    assert call("resolve", "-", given=TINY).stdout == call("resolve", "tiny.toml").stdout
    done = call("run", "-", "--no-plots", "--quiet", "--output", "out", given=TINY)
    assert done.exit_code == 0, done.output
    assert call("report", "out").exit_code == 0
    assert "gargalo run tiny.toml" in (here / "out" / "report.html").read_text(encoding="utf-8")


def test_a_mistake_in_standard_input_has_its_place():
    wrong = TINY.replace('"cubic"', '"cubik"')
    for word in ("run", "resolve"):
        done = call(word, "-", given=wrong)
        assert done.exit_code == 2
        assert "[<stdin>:12:" in done.stderr
        assert "did you mean `cubic`?" in done.stderr
        assert "──┬──" in done.stderr
    told = json.loads(call("run", "-", "--json", given=wrong).stdout)["error"]["diagnostics"]
    assert [(d["file"], d["line"]) for d in told] == [("<stdin>", 12)]
    empty = call("run", "-", given="")
    assert empty.exit_code == 2
    assert "<stdin>" in empty.stderr


def test_a_sweep_and_a_trace_are_read_from_standard_input(here):
    (here / "tiny.toml").write_text(TINY)
    text = 'scenario = "tiny.toml"\n[axes]\nrate = { key = "topology.simple.link.rate", values = ["1Mbit/s"] }\n'
    done = call("sweep", "-", "--dry-run", given=text)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("stdin: 1 cells, 1 runs")
    wrong = call("sweep", "-", "--dry-run", given=text.replace("scenario", "scenari"))
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith('error: <stdin>:1:1: unknown key "scenari"; did you mean')
    trace = call("trace", "generate", "-", "--duration", "1s").stdout
    assert "opportunities" in call("trace", "info", "-", given=trace).stdout


@pytest.mark.parametrize(
    ("text", "place", "caret"),
    [
        ('scenario = "x.toml"\nrepeat = 0\n', ":2:1: repeat = 0: write how many", "2 | repeat = 0\n  | ^\n"),
        ('scenario = "x.toml"\n[axes\n', " is not TOML\n", "╰────\n"),
        ('scenario = "x.toml"\n[sett]\n', ':2:2: unknown key "sett"', "2 | [sett]\n  |  ^\n"),
        ('scenario = "x.toml"\n\taxes = 3\n', ":2:2: axes must be a table", "2 | \taxes = 3\n  | \t^\n"),
        ("repeat = 2\n[axes]\n", ": no scenario: write scenario =", ""),
        ("", ": no scenario: write scenario =", ""),
    ],
)  # fmt: skip
def test_a_mistake_in_a_sweep_has_its_place(text, place, caret):
    done = call("sweep", "-", "--json", given=text)
    assert done.exit_code == 2
    assert f"error: <stdin>{place}" in done.stderr
    assert done.stderr.endswith(caret)
    told = json.loads(done.stdout)["error"]["diagnostics"]
    assert [d["line"] for d in told] == ([2] if caret else [])


# --- what there is


def test_list_alone_lists_what_can_be_listed():
    done = call("list")
    assert done.exit_code == 0
    listed = {line.split()[0] for line in done.stdout.splitlines()}
    choices = every_command()["list"].params[0].type.choices
    assert listed == set(choices)
    assert {e["name"] for e in json.loads(call("list", "--json").stdout)} == listed


# --- mistakes


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> Path:
    """A directory with one file of each kind."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "race.toml").write_text(TINY)
    (folder / "sweep.toml").write_text('scenario = "race.toml"\n[axes]\n')
    (folder / "mine.py").write_text(
        'import gargalo\n\n@gargalo.congestion("mine")\nclass Mine: ...\n'
    )
    (folder / "plain.py").write_text("print(1)\n")
    (folder / "cellular.down").write_text(_core.trace_generate(seed=1, duration="1s"))
    (folder / "some.pkt").write_text("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "a.pkt").write_text("")
    (folder / "wire.pcapng").write_bytes(b"\n\r\r\n")
    for name, clue in (
        ("results", "run.json"),
        ("store", "store.json"),
        ("studied", "report.json"),
        ("card", "scorecard.json"),
    ):
        (folder / name).mkdir()
        (folder / name / clue).write_text("{}")
    (folder / "results" / "flows.parquet").write_bytes(b"")
    (folder / "empty").mkdir()
    (folder / "with-a-trace.toml").write_text(TINY.replace('"5Mbit/s"', '{ trace = "none" }'))
    return folder


MISTAKES = [
    ("run sweep.toml", "sweep.toml is a sweep, not a scenario: gargalo sweep sweep.toml"),
    ("resolve sweep.toml", "gargalo sweep sweep.toml"),
    ("sweep race.toml", "race.toml is a scenario, not a sweep: gargalo run race.toml; a sweep has"),
    ("run high-speed-tcp", "the name of a study: gargalo study high-speed-tcp"),
    ("run high-speed-tcp", "gargalo example high-speed-tcp copies a first figure of it here"),
    ("run high-speed-tcp.toml", "high-speed-tcp is an example that comes with gargalo"),
    ("sweep high-speed-tcp", "gargalo study high-speed-tcp"),
    ("run fidelity", "the name of a study: gargalo study fidelity"),
    ("evaluate high-speed-tcp", "gargalo study high-speed-tcp"),
    ("study cubic", "the name of a congestion control: gargalo evaluate cubic"),
    ("run cubic", "gargalo evaluate cubic"),
    ("run results", "results has the results of a run, not a scenario: gargalo report results"),
    ("run results", "gargalo run results/scenario.toml does the run again"),
    ("run results/run.json", "results/run.json belongs to the results of a run"),
    ("run results/flows.parquet", "gargalo report results"),
    ("sweep store", "store has the store of a sweep, not a sweep: gargalo report store"),
    ("run store", "gargalo report store"),
    ("run studied", "studied has the results of a study"),
    ("run card", "card has a scorecard, not a scenario: open card/scorecard.html"),
    ("run card/scorecard.json", "gargalo evaluate ALGORITHM --baseline card/scorecard.json"),
    ("report card", "open card/scorecard.html"),
    (
        "report race.toml",
        "race.toml is a scenario, not the results of a run: gargalo run race.toml",
    ),
    ("report sweep.toml", "gargalo sweep sweep.toml"),
    ("report nothing", "nothing does not exist"),
    ("report empty", "empty has no results: run.json (a run)"),
    ("compare race.toml sweep.toml", "race.toml is a scenario, not the store of a sweep"),
    ("compare card card", "card has a scorecard"),
    ("run mine.py", "gargalo run FILE.toml --plugin mine.py, or gargalo evaluate mine.py"),
    ("run plain.py", "plain.py is a Python program, not a scenario: python plain.py"),
    ("study mine.py", "gargalo evaluate mine.py"),
    ("run cellular.down", "is a packet-delivery trace, not a scenario: gargalo trace info"),
    ("run some.pkt", "some.pkt is a packet script, not a scenario: gargalo script some.pkt"),
    ("run scripts", "scripts has a packet script, not a scenario: gargalo script scripts"),
    (
        "run wire.pcapng",
        "wire.pcapng is a packet capture, not a scenario: gargalo read wire.pcapng",
    ),
    ("run empty", "empty: cannot be read: Is a directory"),
    ("run .", ". is a directory; name what is in it, like card, race.toml, results"),
    ("run rase.toml", "there is no rase.toml; did you mean race.toml?"),
    ("run race", "there is no race; did you mean race.toml?"),
    ("sweep sweeep.toml", "there is no sweeep.toml; did you mean sweep.toml?"),
    ("run nowhere/race.toml", "nowhere/race.toml: there is no directory nowhere"),
    ("run zzz.toml", "zzz.toml: cannot be read: No such file or directory; check the path"),
    ("run examples/quic.toml", "there is no examples/quic.toml here; quic is an example"),
    ("run quic", "gargalo example quic copies it here"),
    ("evaluate race.toml", "race.toml is a scenario, not a congestion control"),
    ("evaluate nothing", 'there is no congestion control "nothing"'),
    ("script race.toml", "race.toml is a scenario, not a packet script: gargalo run race.toml"),
    ("trace info race.toml", "race.toml is a scenario, not a packet-delivery trace"),
    ("race.toml", "race.toml is a file, not a command: gargalo run race.toml"),
    ("missing.toml", "missing.toml is a file, not a command: gargalo run missing.toml"),
    ("sweep.toml", "gargalo sweep sweep.toml"),
    ("store", "gargalo report store"),
    ("help", "No such command 'help'. There is: gargalo --help"),
    ("rum race.toml", "Did you mean 'run'?"),
    ("run", "Missing argument 'FILE'"),
    ("list congestions", "'congestions' is not one of 'congestion'"),
    ("new race.toml", "error: race.toml exists; choose another name or place, or add --overwrite"),
    (
        "example nothing-like-it",
        'there is no example "nothing-like-it"; gargalo example lists them',
    ),
    ("run race.toml --set duration", "write --set KEY=VALUE"),
    ("run race.toml --set durration=5s", "did you mean `duration`?"),
    ("run race.toml --set flows.0.congestion=bbr", 'note: "congestion" is a key of transport.tcp'),
    ("run race.toml --set topology.simple.rate=1Mbit/s", 'note: "rate" is a key of link'),
    ("run race.toml --set delay=5ms", 'note: "delay" is a key of topology.simple.link'),
    ("run race.toml --set flows.0.queue=red", 'note: "queue" is a key of topology.simple.link'),
    (
        "run with-a-trace.toml",
        "note: gargalo trace generate FILE makes a trace; gargalo example NAME",
    ),
    ("run race.toml --capture-payload", "add --capture LINK; links: link"),
    ("run race.toml --sead 2", "--seed"),
    ("run race.toml --output empty", "empty exists; choose another --output or add --overwrite"),
]


@pytest.mark.parametrize(("line", "told"), MISTAKES)
def test_a_mistake_is_told_with_what_to_do(line, told, places, monkeypatch):
    monkeypatch.chdir(places)
    before = sorted(p for p in places.rglob("*"))
    done = call(*line.split(), given="")
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stdout == ""
    assert sorted(places.rglob("*")) == before


def test_a_mistake_is_told_to_programs_too(places, monkeypatch):
    monkeypatch.chdir(places)
    done = call("run", "sweep.toml", "--json")
    message = json.loads(done.stdout)["error"]["message"]
    assert message == "sweep.toml is a sweep, not a scenario: gargalo sweep sweep.toml"


def test_what_is_named_instead_of_a_word_is_there():
    for remedy in INSTEAD.values():
        word = remedy.split()[1]
        assert word in COMMANDS or word.startswith("--")
    assert set(ALIASES.values()) <= set(COMMANDS)
    for kind in kinds.KINDS.values():
        named = [w.split()[1] for w in kind.remedy.split("; ") if w.startswith("gargalo ")]
        assert set(named) <= set(COMMANDS)


# --- the examples of the help pages

PARSED = ("study", "evaluate", "explore", "lab", "shell", "iperf3", "connect")
"""Commands whose examples take minutes, other hosts or real time, or do not end: their options are checked only."""
COSTLY = ("fit", "identify", "stacks")
"""Commands of which an example takes seconds: the first is run, with LONG=1 all; what they do is tested elsewhere."""
NOT_RUN = ("--open", "--stack kernel", "--help", "--repeat 5", "world=lab", "stack=quinn@main")
PRESENT = {
    "handshake.pkt": next((ROOT / "scripts").rglob("*.pkt")).read_text(encoding="utf-8"),
    "keys.log": f"CLIENT_TRAFFIC_SECRET_0 {'01' * 32} {'02' * 32}\n",
    "known.toml": "known = []\n",
    "rates.txt": "0 5\n1 6\n2 5\n",
    "ss.log": "1767323045.6\nESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\t cubic rto:204 mss:1448 cwnd:10 bytes_acked:12 \n",
}
"""Files that the examples name."""


def test_the_examples_of_help_pages_work(here, monkeypatch):
    """All in one directory, in the order of the help page; with the stack that everybody has."""
    monkeypatch.setattr(discovery, "folders", list)
    for name, text in PRESENT.items():
        (here / name).write_text(text)
    assert call("new", "race.toml").exit_code == 0
    assert call("plugin", "new", "mine.c").exit_code == 0
    assert call("plugin", "build", "mine.c").exit_code == 0
    quietly = ["--no-plots", "--quiet", "--capture", "*", "--set", "duration=10s"]
    assert call("run", "race.toml", *quietly, "--output", "captured").exit_code == 0
    capture = (here / "captured" / "capture.pcapng").read_bytes()
    # A scenario with expectations, and a directory of such.
    text = (
        here / "race.toml"
    ).read_text() + '\n[[expect]]\nmetric = "summary.utilization"\nat_least = 0.5\n'
    (here / "scenarios").mkdir()
    for file in ("video.toml", "scenarios/video.toml"):
        (here / file).write_text(text)
    for file in ("upload.pcap", "upload.pcapng", "sender.pcapng"):
        (here / file).write_bytes(capture)
    (here / "receiver.pcapng.gz").write_bytes(gzip.compress(capture))
    for name, found in {"": app, **every_command()}.items():
        for e in found.examples:
            steps = [shlex.split(step) for step in re.split(r"[|<>]", e.line)]
            is_costly = name in COSTLY and e is not found.examples[0] and not LONG
            if (name in PARSED and "--print-scenario" not in e.line) or is_costly:
                if steps[0][1] == name:
                    options_of(name, steps[0][2:])
                continue
            if any(n in e.line for n in NOT_RUN):
                continue
            (here / "cellular.down").unlink(missing_ok=True)
            if e.line == "gargalo new race.toml":
                (here / "race.toml").unlink()
            if e.line == "gargalo plugin new mine.c":
                (here / "mine.c").unlink()
            if re.search("trace (info|check)", e.line):
                assert call("trace", "generate", "cellular.down").exit_code == 0
            given = None
            for words in [w for w in steps if w[0] == "gargalo"]:
                more = ["--no-plots"] if words[1] == "run" else []  # Pictures are tested elsewhere.
                done = call(*words[1:], *more, given=given)
                assert done.exit_code == 0, (e.line, done.output)
                given = done.stdout
            if e.line == "gargalo example sweep-buffers":
                sweep = here / "sweep-buffers.toml"
                shorter = sweep.read_text().replace('"20s"', '"200ms"').replace('"1BDP", ', "")
                sweep.write_text(shorter.replace("repeat   = 3", "repeat   = 2"))
