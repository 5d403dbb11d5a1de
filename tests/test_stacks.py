"""`gargalo stacks`: the list, the matrix of clients and servers, the report of faults.

A toy that is not QUIC fails against noq.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, command, environment
from gargalo.interop.history import begun
from gargalo.interop.model import Matrix
from toy_stack import SOURCE

CASES = ("handshake", "1-rtt", "0-rtt", "retry", "migration", "transfer")
CASES += ("unidirectional", "datagrams", "cancel", "urgency", "key-update", "multipath")


def written(folder: Path, name: str, *changes: tuple[str, str]) -> None:
    """Write the toy under another name, after some changes of its source."""
    text = SOURCE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    more = f'\n\ngargalo.quic_stack("{name}")(Toy)\n'
    (folder / f"{name}.py").write_text(text + more, encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stacks that are like the toy."""
    made = tmp_path_factory.mktemp("stacks")
    imported = "import struct\n"
    written(made, "toy")
    written(made, "cubic-toy", ('("fixed",)', '("cubic",)'))
    drifting = ("sent_packets=self.numbers", "sent_packets=os.getpid()")
    written(made, "drifting", (imported, "import os\n" + imported), drifting)
    crash = (
        "    def datagram_in(self, now, datagram):\n",
        "    def datagram_in(self, now, datagram):\n        os.abort()\n",
    )
    congestion = ('{"options"}', '{"migration", "retry", "0-rtt"}')
    still = (
        "    def close(self, now):",
        "    def migrate(self, now, local):\n        pass\n\n    def close(self, now):",
    )
    written(made, "boastful", congestion, still)
    corrupts = (
        "self.host.received(stream, data)",
        "self.host.received(stream, bytes(b ^ 1 for b in data))",
    )
    written(made, "corrupting", corrupts)
    generator = (imported, "import random\n" + imported + "\nOF_ALL = random.Random(1)\n")
    drawn = ("host.random(8)", "bytes(OF_ALL.randrange(1, 9))")
    written(made, "by-history", generator, drawn)
    begun = (
        "        self.ready, self.waiting",
        "        threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "        self.ready, self.waiting",
    )
    written(made, "threaded", (imported, "import threading\n" + imported), begun)
    written(made, "crashing", (imported, "import os\n" + imported), crash)
    return made


@pytest.fixture
def stacks(folder: Path, tmp_path: Path):
    """The command, with these stacks installed."""

    def run(*args: object, code: int = 0) -> str:
        done = subprocess.run(
            command("stacks", *args),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            env={**environment(), "GARGALO_STACKS": str(folder), "COLUMNS": "80"},
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code != 2 else done.stderr

    return run


def verdicts(cells: list[dict[str, object]], client: str, server: str) -> dict[str, str]:
    """Return the verdicts of a client against a server by case."""
    return {
        str(c["case"]): str(c["verdict"])
        for c in cells
        if (c["client"], c["server"]) == (client, server)
    }


def test_the_list_has_the_stack_inside_and_installed_ones(stacks):
    found = {s["name"]: s for s in json.loads(stacks("--json"))}
    assert {"noq", "toy", "cubic-toy"} <= set(found)
    assert found["toy"]["congestion"] == ["fixed"]
    assert found["toy"]["features"] == ["options"]
    assert found["toy"]["file"].endswith("toy.py")
    assert {"0-rtt", "retry", "migration"} <= set(found["noq"]["features"])
    text = stacks("noq", "toy")
    assert "inside gargalo" in text
    assert "cubic-toy" not in text


def test_the_version_of_noq_is_the_locked_one():
    from gargalo.interop.stacks import NOQ_VERSION

    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    found = re.search(r'name = "noq-proto"\nversion = "([^"]+)"', lock)
    assert found is not None
    assert found[1] == NOQ_VERSION


def test_noq_with_itself_passes_every_case(stacks):
    made = json.loads(stacks("noq", "--matrix", "--json"))
    assert verdicts(made["cells"], "noq", "noq") == dict.fromkeys(CASES, "pass")


def test_what_is_not_quic_fails_and_is_reported(stacks, tmp_path):
    args = ("noq", "cubic-toy", "--matrix", "--case", "handshake", "--case", "0-rtt")
    made = json.loads(stacks(*args, "--json", "--report", "faults.md", code=1))
    own = verdicts(made["cells"], "cubic-toy", "cubic-toy")
    assert own == {"handshake": "pass", "0-rtt": "not applicable"}
    mixed = verdicts(made["cells"], "noq", "cubic-toy")
    assert mixed == {"handshake": "fail", "0-rtt": "not applicable"}
    assert verdicts(made["cells"], "cubic-toy", "noq") == mixed
    seen = {c["seen"] for c in made["cells"] if c["verdict"] == "fail"}
    assert "the handshake was not complete at the end of the run" in seen
    report = (tmp_path / "faults.md").read_text(encoding="utf-8")
    assert "## noq → cubic-toy: Handshake" in report
    assert "RFC 9001" in report
    assert "noq 1." in report
    # What it says to run is there, and was run.
    (line,) = set(re.findall(r"^gargalo run .*noq-cubic-toy-handshake.*$", report, re.MULTILINE))
    assert (tmp_path / "faults/noq-cubic-toy-handshake.toml").is_file()
    assert (tmp_path / "faults/noq-cubic-toy-handshake/capture.pcapng").is_file()
    assert "--output" in line


def test_the_table_fits_eighty_columns(stacks):
    text = stacks("noq", "cubic-toy", "--matrix", "--case", "1-rtt", code=1)
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"noq +cubic-toy +✗", text)
    assert re.search(r"noq +noq +✓", text)
    assert "2 of 4 passed" in text


def test_stacks_without_a_common_congestion_control_do_not_meet(stacks):
    made = json.loads(stacks("noq", "toy", "--matrix", "--case", "handshake", "--json"))
    assert verdicts(made["cells"], "noq", "toy") == {"handshake": "not applicable"}
    assert verdicts(made["cells"], "toy", "toy") == {"handshake": "pass"}


def test_twice_finds_what_is_not_the_same(stacks):
    args = ("--matrix", "--twice", "--case", "handshake", "--json", "--workers", "1")
    same = json.loads(stacks("noq", *args))
    assert [c["same"] for c in same["cells"]] == [True]
    differs = json.loads(stacks("drifting", *args, code=1))
    assert [(c["verdict"], c["same"]) for c in differs["cells"]] == [("pass", False)]


def test_a_stack_that_ends_the_process_fails_alone(stacks):
    args = ("toy", "crashing", "--matrix", "--case", "handshake", "--json")
    made = json.loads(stacks(*args, code=1))
    assert verdicts(made["cells"], "toy", "toy") == {"handshake": "pass"}
    assert verdicts(made["cells"], "crashing", "crashing") == {"handshake": "fail"}
    seen = {c["seen"] for c in made["cells"] if c["verdict"] == "fail"}
    assert all(s.startswith("the run could not be done") for s in seen), seen


def test_a_library_that_cannot_be_loaded_is_listed_with_the_reason(tmp_path, monkeypatch):
    from gargalo import interop

    (tmp_path / "damaged.so").write_bytes(b"no library")
    monkeypatch.setenv("GARGALO_STACKS", os.fspath(tmp_path))
    found = interop.known()["damaged"]
    assert "damaged.so" in found.broken
    (cell, *_) = interop.matrix([found], cases=interop.CASES[:1]).cells
    assert cell.verdict == "not applicable"


def test_what_a_stack_only_says_that_it_does_fails(stacks):
    cases = [word for case in ("0-rtt", "retry", "migration") for word in ("--case", case)]
    made = json.loads(stacks("boastful", "--matrix", *cases, "--json", code=1))
    assert {c["case"]: c["seen"] for c in made["cells"]} == {
        "0-rtt": "the client sent no 0-RTT packet",
        "retry": "the first packet of the server is no Retry",
        "migration": "the client sent no QUIC packet from its new address",
    }


def test_a_stack_that_changes_data_fails(stacks):
    made = json.loads(stacks("corrupting", "--matrix", "--case", "1-rtt", "--json", code=1))
    assert [c["seen"] for c in made["cells"]] == ["data arrived that was not sent"]


def test_wrong_words_are_refused(stacks):
    assert 'did you mean "noq"' in stacks("noqq", code=2)
    assert 'no case "retri"' in stacks("--matrix", "--case", "retri", code=2)
    assert "add --matrix" in stacks("--twice", code=2)
    assert ".md" in stacks("noq", "--matrix", "--report", "x.html", code=2)


def test_the_page_has_the_lines_of_glue_that_there_are():
    sys.path.insert(0, os.fspath(ROOT / "tools"))
    try:
        import stack_lines
    finally:
        sys.path.pop(0)
    page = (ROOT / "docs/quic-stacks.md").read_text(encoding="utf-8")
    told = page.split("<!-- lines -->")[1].split("<!-- /lines -->")[0].strip()
    assert told == stack_lines.table(), "python tools/stack_lines.py prints the table"
    assert stack_lines.of_python('"""Doc."""\n\nx = 1  # one\n# none\ny = """a\nb"""\n') == 3
    assert stack_lines.of_braces("/* a\n b */\n\n// c\nint x;\n}\n") == 2


def test_what_ran_before_in_the_process_is_found_where_two_processes_are_alike(stacks):
    text = stacks(
        "by-history", "--matrix", "--case", "handshake", "--case", "1-rtt", "--twice", code=1
    )
    told = " ".join(text.split())
    assert "other results after another run in the same process" in told
    cells = json.loads(
        stacks("by-history", "--matrix", "--case", "handshake", "--twice", "--json", code=1)
    )["cells"]
    (cell,) = cells
    # Two processes that do the same are alike.
    assert (cell["same"], cell["differs"]) == (
        False, "other results after another run in the same process",
    )  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_a_stack_that_begins_threads_is_named(stacks):
    text = stacks("threaded", "--matrix", "--case", "handshake", "--twice", code=1)
    assert "the stack begins" in " ".join(text.split())


LOOKS = """
import json
from gargalo.interop.history import live
from gargalo.plugins import discovery
from pathlib import Path

discovery.load(Path("asking.so"))
flow = {
    "from": "client",
    "to": "server",
    "transport": {"quic": {"stack": "asking", "congestion": "fixed"}},
    "workload": {"bulk": {"bytes": "10kB"}},
}
link = {"rate": "10Mbit/s", "delay": "10ms"}
scenario = {"duration": "2s", "topology": {"simple": {"link": link}}, "flows": [flow]}
print(json.dumps(live([{**scenario, "record": {"captures": ["link"]}}]).outside))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="calls are noted on Linux")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_what_a_library_asks_the_system_for_is_named(folder, tmp_path):
    source = (ROOT / "python/gargalo/examples/plugins/stack.c").read_text(encoding="utf-8")
    line = "static void *create(const struct gargalo_stack_config *config"
    asks = (
        "#include <time.h>\nstatic int asked(void) {\n"
        '    FILE *file = fopen("/dev/urandom", "r");\n'
        "    if (file) fclose(file);\n"
        '    return time(NULL) > 0 && getenv("HOME") != NULL;\n}\n'
    )
    changed = source.replace(line, asks + line).replace("toy-stack", "asking")
    start = changed.index("{", changed.index(line)) + 1
    changed = changed[:start] + " asked();" + changed[start:]
    (tmp_path / "asking.c").write_text(changed, encoding="utf-8")
    subprocess.run(
        command("plugin", "build", "asking.c", "-o", folder / "asking.so"),
        cwd=tmp_path, check=True, capture_output=True, env=environment(),
    )  # fmt: skip
    told = subprocess.run(
        [sys.executable, "-c", LOOKS],
        cwd=folder, check=True, capture_output=True, text=True, env=environment(),
    ).stdout  # fmt: skip
    asked = json.loads(told)
    assert set(asked) == {'getenv("HOME")', "time", 'fopen("/dev/urandom")'}
    # Of each end that was made.
    assert min(asked.values()) >= 2
    (sentence,) = Matrix([], [], 1, {"asking": {"time": 2, 'getenv("HOME")': 1}}).asked
    assert sentence.startswith('asking asks the system for time (2 times), getenv("HOME") (1 time)')


def test_threads_of_the_host_and_of_pools_are_not_those_of_a_stack():
    own = str(os.getpid())
    before = {own: "python\n", "2": "pool-0\n", "3": "workers\n"}
    assert begun(before, before) == 0
    assert begun(before, {**before, "4": "pool-1\n", "5": "gargalo-watch\n", "6": "workers\n"}) == 0
    assert begun(before, {**before, "4": "python\n", "5": "reader\n"}) == 2


def test_each_fault_has_a_report_that_the_index_and_its_stack_name():
    folder = ROOT / "docs" / "faults"
    reports = {path.name for path in folder.glob("*.md")} - {"index.md"}
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == reports
    named = set()
    for readme in (ROOT / "stacks").glob("*/README.md"):
        named |= set(re.findall(r"docs/faults/([\w-]+\.md)", readme.read_text(encoding="utf-8")))
    assert named == reports
    for name in reports:
        text = (folder / name).read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        assert f"[{title}]({name})" in index
        for part in ("## What happens", "## Expected", "## To see it", "## Where"):
            assert part in text, name
        for toml in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
            assert toml.startswith(f"# {Path(name).stem}"), name
