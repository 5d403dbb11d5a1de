"""Try a wheel as a stranger would in the first hour: install it in a clean environment and use each command.

    python tools/try_wheel.py target/dist
    python tools/try_wheel.py target/wheels --offline

The newest wheel of the directory that fits this machine is installed in a fresh virtual environment, first without
extras, then with `plots`, then with `report`. Commands have a home directory of their own, no variable of the caller's
environment, and find no program but those of the virtual environment and a few of the system: no compiler. Each step
checks what a person would look at, and prints what it found and how long it took. The first that is not as it should be
ends the trial with the output of its command. With `--offline` the libraries are those of the Python that runs this
file, as wheels that pip installs; `--long` evaluates with the whole profile `quick`, which takes minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

import wheelhouse

PROGRAMS = ("bash", "cat", "env", "sh", "uname")
"""What the stranger's system has; there is no compiler."""
OF_THE_MACHINE = re.compile(r"PIP_|SSL_CERT|SYSTEMROOT$|TEMP$|TMP$|.*_proxy$", re.IGNORECASE)
"""Variables that say where this machine gets packages from, and those without which Windows starts nothing."""
SEVERAL = Path(__file__).resolve().with_name("several.py")
IS_LINUX = sys.platform == "linux"
IS_WINDOWS = os.name == "nt"


@dataclass
class Stranger:
    """A person without anything but the wheel."""

    place: Path
    wheels: Path
    """The directory with the wheel."""
    libraries: Path | None
    """A directory with wheels of libraries; None to get them from the network."""
    is_long: bool = False
    environment: dict[str, str] = field(init=False)
    python: Path = field(init=False)

    def __post_init__(self) -> None:
        """Make the directories and the virtual environment."""
        self.work, home, system = (self.place / n for n in ("work", "home", "system"))
        for folder in (self.work, home, system):
            folder.mkdir()
        for name in PROGRAMS:
            if found := shutil.which(name):
                (system / name).symlink_to(found)
        venv.create(self.place / "venv", with_pip=True)
        programs = self.place / "venv" / ("Scripts" if IS_WINDOWS else "bin")
        self.python = programs / "python"
        self.environment = {k: v for k, v in os.environ.items() if OF_THE_MACHINE.match(k)} | {
            "HOME": str(home),
            "USERPROFILE": str(home),
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([str(programs), str(system)]),
            "SHELL": str(system / "bash"),
        }

    def do(self, line: str | list[str], code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a line of a shell, or the words of a command; end the trial if its exit code is another."""
        words = ["bash", "-c", f"set -o pipefail; {line}"] if isinstance(line, str) else line
        found = shutil.which(words[0], path=self.environment["PATH"])
        done = subprocess.run(
            [found or words[0], *words[1:]],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        expect(done.returncode == code, f"exit code {done.returncode}, not {code}", done)
        expect("Traceback" not in done.stderr, "a traceback", done)
        return done

    def gargalo(self, line: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the command with the words of a line."""
        return self.do(["gargalo", *line.split()], code)

    def several(self, lines: list[str]) -> list[str]:
        """Run the command with each of the lines, in one process; return what each printed."""
        done = self.do([str(self.python), str(SEVERAL), *lines])
        printed = []
        for line, (code, stdout, stderr) in zip(lines, json.loads(done.stdout), strict=True):
            expect(code == 0, f"exit code {code} of gargalo {line}: {stdout}{stderr}")
            printed.append(stdout)
        return printed

    def install(self, what: str) -> None:
        """Install from wheels only, as a machine without a compiler must."""
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        pip += ["--disable-pip-version-check", "--find-links", str(self.wheels)]
        if self.libraries is not None:
            # What is imported is compiled then.
            pip += ["--no-compile", "--no-index", "--find-links", str(self.libraries)]
        self.do([*pip, what])

    def read(self, name: str) -> str:
        """Return the text of a file in the working directory."""
        return (self.work / name).read_text(encoding="utf-8")


class TrialError(Exception):
    """Something is not as a stranger would expect it."""


def expect(
    holds: object, otherwise: str, done: subprocess.CompletedProcess[str] | None = None
) -> None:
    """End the trial unless something holds."""
    if not holds:
        shown = "" if done is None else f"\n$ {' '.join(done.args)}\n{done.stdout}{done.stderr}"
        raise TrialError(f"{otherwise}{shown}")


def digest(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of the tables in a directory of results."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in folder.glob("*.parquet")}


# --- the steps, in their order; each returns what it found


def install_the_base(me: Stranger) -> str:
    """`pip install gargalo`, no extras."""
    # The wheel of the directory, not one of the same version from elsewhere.
    only = ["--no-index", "--no-deps", "--find-links", str(me.wheels), "--quiet", "gargalo"]
    me.do([str(me.python), "-m", "pip", "install", "--only-binary", ":all:", *only])
    me.install("gargalo")
    me.do([str(me.python), "-m", "pip", "check"])
    site = next((me.place / "venv").rglob("site-packages"))
    size = sum(p.stat().st_size for p in site.rglob("*") if p.is_file())
    version = me.gargalo("--version").stdout.strip()
    expect(re.fullmatch(r"gargalo \d+\.\d+\.\d+", version), f"a version: {version}")
    return f"{version}, {size / 1e6:.0f} MB with pip"


def read_help(me: Stranger) -> str:
    """The help page and those of the commands on it."""
    page = me.gargalo("--help").stdout
    commands = re.findall(r"^  ([a-z0-9]+)  ", page, flags=re.MULTILINE)
    for name in ("run", "example", "sweep", "shell"):
        expect(name in commands, f"{name} is not on the help page:\n{page}")
    pages = me.several([f"{name} --help" for name in commands])
    for name, shown in zip(commands, pages, strict=True):
        expect(f"gargalo {name}" in shown, f"no usage or example of {name}:\n{shown}")
    return f"{len(commands)} commands, each with a page"


def read_lists(me: Stranger) -> str:
    """What there is to write in a scenario."""
    kinds = [e["name"] for e in json.loads(me.gargalo("list --json").stdout)]
    for kind, extra in (("studies", "report"), ("lessons", "explore")):
        kinds.remove(kind)
        told = me.gargalo(f"list {kind}", code=1).stderr
        expect(f"pip install 'gargalo[{extra}]'" in told, f"nothing says what {kind} need: {told}")
    listed = me.several([f"list {k}" for k in kinds])
    lines = {k: len(shown.splitlines()) for k, shown in zip(kinds, listed, strict=True)}
    expect(min(lines.values()) > 0, f"an empty list: {lines}")
    return f"{len(kinds)} lists, {lines['congestion']} congestion controls"


def run_an_example(me: Stranger) -> str:
    """A copy of an example, simulated without the libraries of pictures."""
    names = [e["name"] for e in json.loads(me.gargalo("example --json").stdout)]
    expect("cellular-race" in names, f"no example cellular-race: {names}")
    told = me.gargalo("example cellular-race").stdout.splitlines()
    expect(told[-1] == "run it: gargalo run cellular-race.toml", f"how to run it: {told}")
    done = me.gargalo("run cellular-race.toml")
    for name in ("cubic", "bbr", "reno", "goodput"):
        expect(name in done.stdout.lower(), f"no {name} in the table", done)
    expect("pip install 'gargalo[plots]'" in done.stderr, "nothing says what pictures need", done)
    expect("runs/cellular-race-1" in done.stdout + done.stderr, "nothing says where", done)
    return f"{len(names)} examples; one gave {', '.join(sorted(digest(me.work / 'runs/cellular-race-1')))}"


def run_a_scenario(me: Stranger) -> str:
    """A scenario of one's own, twice, and from standard input."""
    me.gargalo("new mine.toml")
    for folder in ("one", "two"):
        me.gargalo(f"run mine.toml --output {folder}")
    expect(digest(me.work / "one"), "no tables")
    expect(digest(me.work / "one") == digest(me.work / "two"), "two runs differ")
    shown = json.loads(me.gargalo("run mine.toml --json").stdout)
    total = json.loads(me.read("one/summary.json"))["goodput_bps"]
    expect(shown["summary"]["goodput_bps"] == total, "--json differs from the files")
    expect(9e6 < total < 10e6, f"{total} bit/s over a link of 10 Mbit/s")
    if IS_WINDOWS:
        return "the same bytes twice"
    piped = me.do("gargalo new - | gargalo run - --json").stdout
    expect(len(json.loads(piped)["flows"]) == 2, f"from standard input: {piped}")
    return "the same bytes twice; from standard input, too"


def make_mistakes(me: Stranger) -> str:
    """What a typing error is answered with."""
    before = sorted(me.work.iterdir())
    mistakes = {
        "rum mine.toml": "Did you mean 'run'?",
        "run mime.toml": "did you mean mine.toml?",
        "run mine.toml --set durration=5s": "did you mean `duration`?",
        "run mine.toml --set flows.0.transport.tcp.congestion=cubik": "cubic",
        "run mine.toml --set topology.simple.link.rate=10": "Mbit/s",
        "run mine.toml --output one": "--overwrite",
    }
    for line, told in mistakes.items():
        done = me.gargalo(line, code=2)
        expect(told in done.stderr, f"the message does not have {told!r}", done)
        expect(done.stdout == "", "results of a mistake", done)
    expect(sorted(me.work.iterdir()) == before, "a mistake left files")
    return f"{len(mistakes)} mistakes, each with its remedy and nothing written"


def miss_extras(me: Stranger) -> str:
    """What a command without its libraries says."""
    lines = {
        "plot one": "plots",
        "explain one": "plots",
        "sweep mine.toml": "report",
        "compare one two": "report",
        "report one": "explore",
        "evaluate reno": "report",
    }
    for line, extra in lines.items():
        done = me.gargalo(line, code=1)
        remedy = f"pip install 'gargalo[{extra}]'"
        expect(remedy in done.stderr and "\n" not in done.stderr.strip(), f"no {remedy}", done)
    return f"{len(lines)} commands say which extra they need"


def draw(me: Stranger) -> str:
    """`pip install 'gargalo[plots]'` and pictures."""
    me.install("gargalo[plots]")
    me.gargalo("run cellular-race.toml --output first")
    pictures = sorted((me.work / "first").glob("*.png"))
    expect("goodput.png" in {p.name for p in pictures}, f"no picture of goodput: {pictures}")
    for p in pictures:
        expect(p.read_bytes().startswith(b"\x89PNG") and p.stat().st_size > 5000, f"{p} is empty")
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    for ending, first in begins.items():
        me.gargalo(f"plot one two --metric rtt --label one --label two --output rtt.{ending}")
        expect((me.work / f"rtt.{ending}").read_bytes().startswith(first), f"rtt.{ending}")
    done = me.gargalo("plot one --metric speed", code=2)
    expect("goodput" in done.stderr, "nothing says which metrics there are", done)
    return f"{len(pictures)} pictures of a run; one of two runs as {', '.join(begins)}"


def explain(me: Stranger) -> str:
    """The story of a run."""
    told = me.gargalo("explain first").stdout
    for name in ("cubic", "bbr", "reno"):
        expect(name in told, f"nothing about {name}:\n{told}")
    expect("slow start" in told, f"nothing about slow start:\n{told}")
    return f"{len(told.splitlines())} lines"


def use_python(me: Stranger) -> str:
    """The package in a program."""
    program = """\
import gargalo
run = gargalo.run("mine.toml", set={"duration": "9s"})
print(run.flows.select("label", "goodput_bps").height, run.summary["jain_index"] > 0)
"""
    (me.work / "mine.py").write_text(program, encoding="utf-8")
    told = me.do([str(me.python), "mine.py"]).stdout.split()
    expect(told == ["2", "True"], f"the program printed {told}")
    return "a run in five lines"


def sweep(me: Stranger) -> str:
    """`pip install 'gargalo[report]'`: a sweep, a comparison, a page."""
    me.install("gargalo[report]")
    (me.work / "buffers.toml").write_text(SWEEP, encoding="utf-8")
    planned = me.gargalo("sweep buffers.toml --dry-run")
    expect("6" in planned.stdout + planned.stderr, "the plan has six runs", planned)
    done = me.gargalo("sweep buffers.toml")
    expect("jain_index" in done.stdout or "goodput" in done.stdout, "no means", done)
    compared = me.gargalo("compare sweeps/buffers --by buffer 0.5BDP 4BDP")
    expect("verdict" in compared.stdout, "no verdicts", compared)
    me.gargalo("report sweeps/buffers --output sweep.html")
    me.gargalo("report first --output run.html")
    for page in ("sweep.html", "run.html"):
        text = me.read(page)
        loaded = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=.https?:", text)
        expect("<html" in text and not loaded, f"{page} needs the network: {loaded}")
    return "six runs, a comparison, two pages that need no network"


SWEEP = """\
scenario = "mine.toml"
repeat   = 3
set      = { duration = "9s" }
axes.buffer = { key = "topology.simple.link.queue.droptail", values = ["0.5BDP", "4BDP"] }
"""


def find_studies(me: Stranger) -> str:
    """The published experiments, which are a package of their own in the wheel."""
    found = json.loads(me.gargalo("list studies --json").stdout)
    expect(found and all(s["source"] for s in found), f"studies that cannot be used: {found}")
    return ", ".join(s["name"] for s in found)


def evaluate(me: Stranger) -> str:
    """A scorecard."""
    only = "" if me.is_long else " --only low-rate --only link-cut --repeat 2"
    me.gargalo(f"evaluate vegas --profile quick{only} --output card")
    card = json.loads(me.read("card/scorecard.json"))
    expect(card["criteria"], "no criteria")
    expect("<html" in me.read("card/scorecard.html"), "no page")
    return f"{len(card['criteria'])} criteria of {'all' if me.is_long else 'the profile quick'}"


def try_the_lab(me: Stranger) -> str:
    """What this machine can do in real time, and a round trip behind a link."""
    done = subprocess.run(
        ["gargalo", "lab", "--json"],
        executable=shutil.which("gargalo", path=me.environment["PATH"]),
        cwd=me.work,
        env=me.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    facts = json.loads(done.stdout)
    if facts["problem"] is not None:
        expect(done.returncode == 1 and "error:" in done.stderr, "exit code and message", done)
        return f"not here: {facts['problem']}"
    expect(done.returncode == 0, "exit code", done)
    expect(facts["delay_error_p50_s"] < 0.01, "a delay of 10 ms is wrong by as much", done)
    (me.work / "ask.py").write_text(ASK, encoding="utf-8")
    link = ["gargalo", "shell", "--delay", "25ms", "--rate", "12Mbit/s", "--"]
    took_s = float(me.do([*link, "python", "ask.py"]).stdout)
    expect(0.05 <= took_s < 0.2, f"a round trip of 50 ms took {took_s * 1e3:.1f} ms")
    return f"a round trip over a link of 25 ms took {took_s * 1e3:.1f} ms"


ASK = """\
import os, socket, time
begun = time.monotonic()
try:
    socket.create_connection((os.environ["GARGALO_BASE"], 9), timeout=5)
except ConnectionRefusedError:
    print(time.monotonic() - begun)
"""
"""The other end refuses; that takes a round trip."""


def complete(me: Stranger) -> str:
    """Completion in the shell."""
    script = me.do("gargalo --show-completion; true").stdout
    me.do("gargalo --install-completion; true")
    expect("complete" in script, f"no script: {script}")
    found = me.do(
        "source ~/.bashrc; COMP_WORDS=(gargalo eva) COMP_CWORD=1; "
        "read -ra words < <(complete -p gargalo); ${words[-2]} gargalo; echo ${COMPREPLY[@]}"
    ).stdout.split()
    expect(found == ["evaluate"], f"completion of `gargalo eva`: {found}")
    return "`gargalo eva` is completed to `gargalo evaluate`"


def look_around(me: Stranger) -> str:
    """What is left in the directories of the stranger."""
    home = {p.name for p in (me.place / "home").iterdir()}
    usual = {".bash_completions", ".bashrc", ".cache", ".config"}
    expect(home <= usual, f"files in the home directory: {home - usual}")
    hidden = [p.name for p in self_and_below(me.work) if p.name.startswith(".")]
    expect(not hidden, f"hidden files beside the results: {hidden}")
    return "nothing unexpected in the home directory, no hidden files beside results"


def self_and_below(folder: Path) -> list[Path]:
    """Return what is in the working directory and in `runs`."""
    return [*folder.iterdir(), *(folder / "runs").iterdir()]


STEPS = [install_the_base, read_help, read_lists, run_an_example, run_a_scenario, make_mistakes,
         miss_extras, draw, explain, use_python, sweep, find_studies, evaluate]  # fmt: skip
ON_LINUX = [try_the_lab, complete, look_around]


def main() -> None:
    """Install and try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where the wheel is")
    parser.add_argument("--offline", action="store_true", help="libraries of this Python")
    parser.add_argument("--long", action="store_true", help="evaluate with all criteria")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gargalo-wheel-") as made:
        place = Path(made)
        libraries = place / "libraries" if given.offline else None
        if libraries is not None:
            wheelhouse.make(libraries, "gargalo[report]")
        me = Stranger(place, given.directory.resolve(), libraries, given.long)
        begun = time.monotonic()
        for step in [*STEPS, *(ON_LINUX if IS_LINUX else [])]:
            step_begun = time.monotonic()
            name = step.__name__.replace("_", " ")
            try:
                found = step(me)
            except TrialError as e:
                sys.exit(f"try_wheel: {name}: {e}")
            now = time.monotonic()
            print(f"{now - step_begun:6.1f} s  {name}: {found}", flush=True)
            if step is draw:
                print(f"          first pictures after {now - begun:.0f} s", flush=True)
        print(f"{time.monotonic() - begun:6.1f} s  in all")


if __name__ == "__main__":
    main()
