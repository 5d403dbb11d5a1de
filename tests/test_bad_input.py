"""Bad input: exit code 2, a message that names file, line and fix, and nothing written."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import gargalo as gargalo_package
import pytest
from conftest import ROOT, TINY, environment
from conftest import command as command_of
from gargalo import _core

if TYPE_CHECKING:
    from pathlib import Path

# What is wrong, how the text differs, the line that must be named, words that must be there.
CASES = {
    "misspelt key": ("duration = ", "durration = ", 3, ["durration", "duration"]),
    "misspelt key deep inside": ("loss = {", "losss = {", 6, ["losss", "loss"]),
    "bare number": ('rate = "5Mbit/s"', "rate = 5", 6, ["unit", "5Mbit/s"]),
    "negative rate": ('"5Mbit/s"', '"-5Mbit/s"', 6, ["-5Mbit/s"]),
    "zero rate": ('"5Mbit/s"', '"0Mbit/s"', 6, ["0"]),
    "tc's bytes": ('"5Mbit/s"', '"5mbps"', 6, ["5mbps", "Mbit/s"]),
    "probability above one": ("independent = 0.001", "independent = 5", 6, ["independent"]),
    "unknown host": ('to    = "server"', 'to    = "sever"', 10, ["sever", "server"]),
    "unknown congestion control": ('"cubic"', '"cubik"', 12, ["cubik", "cubic"]),
    "no TOML": ('name     = "tiny"', "name     = tiny", 1, []),
}


@pytest.mark.parametrize("case", CASES)
def test_scenario(gargalo, tmp_path, case):
    old, new, line, words = CASES[case]
    path = tmp_path / "bad.toml"
    text = TINY.replace(old, new, 1)
    assert text != TINY
    path.write_text(text)
    done = gargalo("run", path, "--output", "out")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert f"bad.toml:{line}" in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.toml"]


def test_missing_trace(gargalo, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(TINY.replace('"5Mbit/s"', '{ trace = "nowhere.down" }'))
    done = gargalo("run", path)
    assert done.returncode == 2, done.stderr
    assert "bad.toml:6" in done.stderr
    assert "nowhere.down" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_unreachable_host(gargalo, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(
        """\
name = "islands"
duration = "1s"

[topology.graph]
nodes = ["a", "b", "c", "d"]
links = [
  { from = "a", to = "b", rate = "1Mbit/s", delay = "1ms" },
  { from = "c", to = "d", rate = "1Mbit/s", delay = "1ms" },
]

[[flows]]
from = "a"
to = "d"
transport.tcp = {}
"""
    )
    done = gargalo("run", path)
    assert done.returncode == 2, done.stderr
    assert "bad.toml:1" in done.stderr
    assert '"a"' in done.stderr or "a to d" in done.stderr or "`a`" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere.toml"], ["nowhere.toml", "check the path"]),
        (["run", "tiny.toml", "--set", "duration"], ["--set", "KEY=VALUE"]),
        (["run", "tiny.toml", "--set", "duration=10"], ["duration", "unit"]),
        (["run", "tiny.toml", "--set", "topology.simple.link.rat=1Mbit/s"], ["rat", "rate"]),
        (["run", "tiny.toml", "--seed", "-1"], ["seed"]),
        (["run", "tiny.toml", "--capture", "lnk", "--output", "out"], ["lnk", "link"]),
        (["run", "tiny.toml", "--capture", "link", "--json"], ["--output"]),
        (["run", "tiny.toml", "--plugin", "nowhere.py"], ["nowhere.py"]),
        (["run", "tiny.toml", "--world", "moon"], ["moon"]),
        (["run"], ["FILE"]),
        (["rum"], ["rum"]),
        (["list", "congestio"], ["congestion"]),
        (["trace", "info", "nowhere.down"], ["nowhere.down"]),
    ],
)
def test_command_line(gargalo, tiny, arguments, words):
    done = gargalo(*arguments)
    assert done.returncode == 2, done.stderr
    if "--json" in arguments:
        assert set(json.loads(done.stdout)) == {"error"}
    else:
        assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert [p.name for p in tiny.parent.iterdir()] == ["tiny.toml"]


def test_binary_file(gargalo, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_bytes(b"\xff\xfe\x00")
    done = gargalo("run", path)
    assert done.returncode == 2
    assert "UTF-8" in done.stderr


def test_files_without_an_end_are_not_read(tmp_path):
    """By kind and by size: neither takes the memory of the machine."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge.toml").open("wb") as file:
        file.truncate(30 << 30)
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "huge.so").symlink_to("huge.toml")
    (tmp_path / "tiny.toml").write_text(TINY)
    kinds = {"/dev/zero": "a device", "pipe": "a named pipe", "huge.toml": "32.2 GB, more than the"}
    commands = ("run", "explain", "resolve", "sweep", "script", "trace info")
    wanted = {
        f"{command} {file}": [f"{file}: cannot be read: it ", told]
        for command in commands
        for file, told in kinds.items()
    } | {
        f"run tiny.toml --plugin {plugin}": [f"--plugin {plugin}: cannot be read: it "]
        for plugin in ("zero.py", "huge.so")
    }
    device = ["it is a device, and only regular files and the pipes of a shell are read"]
    wanted |= {
        "plugin compare /dev/zero": ["error: /dev/zero: cannot be read: ", *device],
        "plugin build /dev/zero": ["error: /dev/zero: cannot be read: ", *device],
        "evaluate zero.py": ["error: zero.py: cannot be read: ", *device],
        "plot /dev/zero": ["error: /dev/zero is a device, not a directory; "],
        "report /dev/zero": ["error: /dev/zero is a device, not a directory; "],
        "export --csv pipe": ["error: pipe is a named pipe, not a directory; "],
        "compare /dev/zero pipe": ["error: /dev/zero is a device, not a directory"],
        "plot tiny.toml": ["tiny.toml is a scenario, not the results of a run"],
        "plot nowhere": ["error: nowhere does not exist; "],
    }
    ran = limited(tmp_path, [sys.executable, str(ROOT / "tools" / "several.py"), *wanted])
    assert ran.returncode == 0, ran.stderr
    for (code, _, stderr), told in zip(json.loads(ran.stdout), wanted.values(), strict=True):
        assert code == 2, stderr
        assert all(words in stderr for words in told), stderr
    # Standard input and a pipe of the shell have no size: they are read to the bound.
    for script in ("exec {} run - < /dev/zero", "exec {} run <(cat /dev/zero)"):
        done = limited(tmp_path, ["bash", "-c", script.format(shlex.join(command_of()))])
        assert done.returncode == 2, done.stderr
        assert "more than the 67.1 MB that are read" in done.stderr, done.stderr


def test_a_pipe_of_the_shell_is_a_scenario(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    script = f"{shlex.join(command_of())} resolve <(cat tiny.toml)"
    done = limited(tmp_path, ["bash", "-c", script])
    assert done.returncode == 0, done.stderr
    assert 'name = "tiny"' in done.stdout


def limited(folder: Path, what: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program with 4 GB of addresses."""
    most = 4 << 30
    return subprocess.run(
        what,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )


RAISES = """\
import gargalo


@gargalo.congestion("mine")
class Mine(gargalo.WindowBased):
    def on_ack(self, acked, path):
        raise KeyError("lost")
"""


def test_errors_of_a_plug_in_begin_with_the_users_line(gargalo, tmp_path, tiny):
    (tmp_path / "mine.py").write_text(RAISES)
    chosen = ["--set", "flows.0.transport.tcp.congestion=mine"]
    done = gargalo("run", tiny, "--plugin", "mine.py", *chosen, "--output", "out", "--quiet")
    assert done.returncode == 1
    assert "mine.py:7: on_ack(): KeyError: 'lost'" in done.stderr.splitlines()[-1]
    assert [line for line in done.stderr.splitlines() if line.startswith("  File")] == [
        f'  File "{tmp_path}/mine.py", line 7, in on_ack'
    ]


def test_a_built_in_name_is_refused(gargalo, tmp_path, tiny):
    (tmp_path / "mine.py").write_text(RAISES.replace('"mine"', '"cubic"'))
    done = gargalo("run", tiny, "--plugin", "mine.py")
    assert done.returncode == 2
    told = 'mine.py:4: ValueError: "cubic" is the name of a built-in congestion control; choose another'
    assert told in done.stderr.splitlines()[-1]


OF_SEVERAL_PATHS = {
    "scheduler": ("Scheduler", "select(self, context)", "lowest-latency"),
    "path_manager": ("PathManager", "missing(self, view)", "full-mesh"),
}
"""By kind: the base class, the method that is needed, and a name that is built in."""
TWO_PATHS = """\
name = "two"
duration = "1s"
[topology.multipath]
paths = [{ rate = "5Mbit/s", delay = "5ms" }, { rate = "5Mbit/s", delay = "9ms" }]
[[flows]]
from = "client"
to = "server"
transport.mptcp = { KIND = "mine" }
"""


def raising(kind: str, name: str) -> str:
    """Return a plug-in of this kind and name, whose method raises an error in line 7."""
    base, method, _ = OF_SEVERAL_PATHS[kind]
    text = RAISES.replace("congestion(", f"{kind}(").replace('"mine"', f'"{name}"')
    return text.replace("WindowBased", base).replace("on_ack(self, acked, path)", method)


@pytest.mark.parametrize("kind", OF_SEVERAL_PATHS)
def test_errors_of_what_chooses_paths_begin_with_the_users_line(gargalo, tmp_path, kind):
    (tmp_path / "mine.py").write_text(raising(kind, "mine"))
    (tmp_path / "two.toml").write_text(TWO_PATHS.replace("KIND", kind))
    done = gargalo("run", "two.toml", "--plugin", "mine.py", "--output", "out", "--quiet")
    method = OF_SEVERAL_PATHS[kind][1].partition("(")[0]
    assert done.returncode == 1, done.stderr
    assert f"mine.py:7: {method}(): KeyError: 'lost'" in done.stderr.splitlines()[-1]
    assert [line for line in done.stderr.splitlines() if line.startswith("  File")] == [
        f'  File "{tmp_path}/mine.py", line 7, in {method}'
    ]


@pytest.mark.parametrize("kind", OF_SEVERAL_PATHS)
def test_a_built_in_name_of_what_chooses_paths_is_refused(gargalo, tmp_path, tiny, kind):
    name = OF_SEVERAL_PATHS[kind][2]
    (tmp_path / "mine.py").write_text(raising(kind, name))
    done = gargalo("run", tiny, "--plugin", "mine.py")
    assert done.returncode == 2
    what = kind.replace("_", " ")
    told = f'mine.py:4: ValueError: "{name}" is the name of a built-in {what}; choose another'
    assert told in done.stderr.splitlines()[-1]


def test_every_built_in_name_is_refused():
    bases = {
        "congestion": gargalo_package.WindowBased,
        "scheduler": gargalo_package.Scheduler,
        "path_manager": gargalo_package.PathManager,
    }
    listed = {
        "congestion": _core.congestion,
        "scheduler": _core.schedulers,
        "path_manager": _core.path_managers,
    }
    for kind, base in bases.items():
        mine = type("Mine", (base,), {})
        names = [n for one in listed[kind]() for n in (one["name"], *one["aliases"])]
        assert len(names) > 1
        for name in names:
            with pytest.raises(ValueError, match=r"is the name of a built-in|cannot be a name"):
                gargalo_package.register(name, mine)


@pytest.mark.parametrize("command", ["run", "explain", "resolve"])
def test_another_text_is_told_in_a_sentence(gargalo, tmp_path, command):
    (tmp_path / "README.md").write_text("# A title\n\nSome *text*, and more.\n" * 9)
    done = gargalo(command, "README.md")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    told = "README.md is not a scenario: it is a text, but not TOML; give a scenario in TOML"
    assert told in done.stderr


def test_options_of_a_shell_are_named(gargalo):
    options = {
        "--rate": "5bogus",
        "--up-rate": "5bogus",
        "--down-queue": "nope",
        "--trace": "nowhere",
        "--mtu": "5",
        "--busy-poll": "x",
        "--cpu": "99999",
    }
    for option, value in options.items():
        done = gargalo("shell", option, value, "true")
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {option}: "), done.stderr
        assert "topology" not in done.stderr
        assert "scenario" not in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--against", "rneo", 'there is no congestion control "rneo"; did you mean "reno"?'),
        ("--against", "reno,zzzz", 'there is no congestion control "zzzz"; there are balia, bbr'),
        ("--against", "mine.py", 'there is no congestion control "mine.py"; there are'),
        ("--profile", "quik", 'there is no profile "quik"; did you mean "quick"?'),
        ("--only", "bufferbloaat", 'there is no criterion "bufferbloaat"; did you mean'),
        ("--stack", "nnoq", 'there is no stack "nnoq"; '),
    ],
)
def test_names_that_evaluate_does_not_know_are_named_with_their_option(
    gargalo, option, value, told
):
    done = gargalo("evaluate", "cubic", "--only", "low-rate", option, value)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {option}: {told}"), done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_algorithm_that_is_not_known_is_told_with_a_similar_name(gargalo):
    done = gargalo("evaluate", "rneo")
    assert done.returncode == 2
    assert 'there is no congestion control "rneo"; did you mean "reno"?' in done.stderr


@pytest.mark.parametrize(
    "words", ["run tiny.toml --no-plots", "list congestion", "run tiny.toml --json"]
)
def test_a_reader_that_leaves_is_no_failure(tmp_path, tiny, words):
    assert tiny.parent == tmp_path
    script = f"set -o pipefail; {shlex.join(command_of(*words.split()))} | true"
    done = limited(tmp_path, ["bash", "-c", script])
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr
