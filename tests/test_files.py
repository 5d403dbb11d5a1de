"""Files of users and of runs: what is replaced, what is left behind, what a full disk does."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gargalo as package
import polars as pl
import pytest
from click.testing import CliRunner
from conftest import TINY, command, environment
from gargalo import _core
from gargalo.cli.app import app
from gargalo.cli.common import to_json
from gargalo.terminal.screen import Screen
from gargalo.terminal.text import printable
from test_sweep_store import in_tmpfs

SHORT = ["--set", "duration=600ms", "--no-plots", "--quiet"]


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """The command in this process, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*args: object):
        done = CliRunner().invoke(app, list(map(str, args)))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return run


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    """Directories of a user where results might go."""
    for folder in ("runs/foo-1", "docs-1", "docs", "mixed"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "thesis.tex").write_text("precious")
    (tmp_path / "mixed" / "run.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        ("foo", [], "runs/foo-1/thesis.tex is not a result"),
        ("../docs", [], "separator"),
        ("..", [], "begins with a dot"),
        ("a\\u0000b", [], "U+0000"),
        ("\\u001b[2Jgone", [], "U+001B"),
        ("foo", ["--output", "mixed"], "mixed/thesis.tex is not a result"),
        ("foo", ["--output", "docs"], "docs/thesis.tex is not a result"),
    ],
)
def test_overwriting_touches_nothing_but_results(cli, thesis, name, more, told):
    path = thesis / "x.toml"
    path.write_text(TINY.replace('"tiny"', f'"{name}"').replace("= 3\n", "= 1\n"))
    before = tree(thesis)
    done = cli("run", path, "--overwrite", *SHORT, *more)
    assert done.exit_code == 2, done.output
    assert told in done.stderr
    assert "\x1b" not in done.stderr
    assert tree(thesis) == before


def test_results_are_replaced_with_all_that_belongs_to_them(cli, tiny, tmp_path):
    (tmp_path / "runs").mkdir()
    out = tmp_path / "runs" / "tiny-3"
    run = package.run(TINY, set={"duration": "700ms"}, output=out)
    run.plot.save(out)
    listed = json.loads((out / "manifest.json").read_text())["files"]
    assert set(listed) == set(tree(out)) - {"manifest.json"}
    (out / "report.html").write_text("made later")
    done = cli("run", tiny, "--overwrite", *SHORT)
    assert done.exit_code == 0, done.output
    assert not (out / "report.html").exists()
    assert not list(out.glob("*.png"))
    assert [p.name for p in out.parent.iterdir()] == ["tiny-3"]


def test_changed_results_are_not_read(tmp_path):
    out = tmp_path / "out"
    package.run(TINY, set={"duration": "600ms"}, output=out)
    whole = package.load(out)
    for name in ("run.json", "summary.json", "flows.parquet", "flow_samples.parquet"):
        data = (out / name).read_bytes()
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        (out / name).write_bytes(changed)
        with pytest.raises(package.RunError, match=f"{name} is damaged"):
            package.load(out).flow_samples  # noqa: B018
        (out / name).write_bytes(data)
    (out / "flows.parquet").unlink()
    with pytest.raises(package.RunError, match=r"flows\.parquet is damaged"):
        package.load(out)
    # A damaged manifest does not switch this off.
    package.run(TINY, set={"duration": "600ms"}, output=out, existing="replace")
    manifest = (out / "manifest.json").read_bytes()
    for bad in (b"{}", manifest[:-9], manifest.replace(b'"format": 2', b'"format": 3')):
        (out / "manifest.json").write_bytes(bad)
        with pytest.raises(package.RunError, match=r"out/manifest\.json: .*; run it again into"):
            package.load(out)
        with pytest.raises(package.RunError, match=r"manifest\.json: "):
            package.run(TINY, set={"duration": "600ms"}, output=out, existing="replace")
    # Before there were manifests.
    (out / "manifest.json").unlink()
    assert package.load(out).flow_samples.equals(whole.flow_samples)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for i in range(10):
        data[len(data) * (2 * i + 1) // 20] ^= 255
    file.write_bytes(data)


def narrow(file: Path) -> None:
    frame = pl.read_parquet(file)
    frame.select(frame.columns[:2]).write_parquet(file)


@pytest.mark.parametrize("listed", [True, False], ids=["manifest", "no manifest"])
@pytest.mark.parametrize("damage", [cut, flip, narrow])
@pytest.mark.parametrize("table", ["flows", "flow_samples"])
def test_a_damaged_table_is_told_in_one_sentence(cli, tiny, table, damage, listed):
    cli("run", tiny, "--output", "out", *SHORT)
    out = tiny.parent / "out"
    damage(out / f"{table}.parquet")
    if not listed:
        (out / "manifest.json").unlink()
    for word in ("explain", "plot", "report", "compare"):
        more = ["out"] if word == "compare" else []
        done = cli(word, "out", *more)
        if word == "compare" and table != "flows":
            continue  # It does not read them.
        assert done.exit_code == 2, done.output
        told = done.stderr.strip()
        assert len(told.splitlines()) == 1, told
        assert f"{table}.parquet is damaged" in told
        assert "run" in told
    with pytest.raises(package.RunError, match=f"{table}.parquet is damaged"):
        package.load(out).flow_samples  # noqa: B018


def test_an_edited_file_is_not_overwritten(cli, tiny):
    cli("run", tiny, "--output", "out", *SHORT)
    summary = tiny.parent / "out" / "summary.json"
    summary.write_text(edited := summary.read_text() + "# my notes\n")
    done = cli("run", tiny, "--output", "out", "--overwrite", *SHORT)
    assert done.exit_code == 2, done.output
    assert "out/summary.json was changed since gargalo wrote it; move it away, or remove it" in (
        done.stderr
    )
    assert summary.read_text() == edited
    summary.unlink()
    assert cli("run", tiny, "--output", "out", "--overwrite", *SHORT).exit_code == 0


@pytest.mark.parametrize("api", [False, True])
def test_results_that_stepped_aside_for_a_killed_run_return(cli, tiny, api):
    cli("run", tiny, *SHORT)
    runs = tiny.parent / "runs"
    before = tree(runs / "tiny-3")
    # As a kill between two renames leaves them, where the file system cannot exchange two names.
    hidden = runs / ".tiny-3.abcdefghijkl.old"
    hidden.mkdir()
    (runs / "tiny-3").rename(hidden / "tiny-3")
    hidden.with_suffix(".partial").mkdir()
    hidden.with_suffix(".lock").touch()
    if api:
        package.run(TINY, set={"duration": "600ms"}, output=runs / "tiny-3-2")
    else:
        done = cli("run", tiny, *SHORT)
        assert done.exit_code == 0, done.output
        assert "restored runs/tiny-3: a run that was to replace it was killed" in done.stderr
    assert tree(runs / "tiny-3") == before
    assert sorted(p.name for p in runs.iterdir()) == ["tiny-3", "tiny-3-2"]


def test_two_at_once_lose_nothing(tmp_path):
    out = tmp_path / "out"

    def other(_: package.Progress) -> None:
        if not out.exists():
            package.run(TINY, set={"duration": "600ms"}, output=out)

    done = package.run(TINY, set={"duration": "700ms"}, output=out, progress=other)
    assert done.directory == tmp_path / "out-2"
    assert package.load(done.directory).info["virtual_s"] == pytest.approx(0.7)
    assert package.load(out).info["virtual_s"] == pytest.approx(0.6)


LONG = TINY.replace('"3s"', '"100000s"').replace("5Mbit/s", "100Mbit/s")


def begin(folder: Path) -> subprocess.Popen[str]:
    """Start a long run, and wait until it writes."""
    (folder / "long.toml").write_text(LONG + '\n[record]\ninterval = "10s"\n')
    process = subprocess.Popen(
        command("run", "long.toml", "--output", "out", "--no-plots"),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 120
    while not list(folder.glob(".out.*.partial")) and time.monotonic() < until:
        time.sleep(0.05)
    return process


def test_killed_runs_leave_nothing_that_blocks_or_stays(cli, tmp_path):
    process = begin(tmp_path)
    live = set(tmp_path.glob(".out.*"))
    assert len(live) == 2
    # Another run beside it does not take it for dead.
    assert _core.recover(tmp_path) == []
    process.kill()
    process.communicate()
    assert set(tmp_path.glob(".out.*")) == live
    # As an older version left it, with a name that came again for ever.
    (tmp_path / ".out.1-0.partial").mkdir()
    done = cli("run", "long.toml", "--output", "out", *SHORT)
    assert done.exit_code == 0, done.output
    (partial,) = (p for p in live if p.suffix == ".partial")
    assert f"removed {partial.name}: unfinished results" in done.stderr
    assert [p.name for p in tmp_path.glob(".out.*")] == [".out.1-0.partial"]
    assert package.load(tmp_path / "out").info["seed"] == 3


def test_sigterm_keeps_what_was_done(tmp_path):
    process = begin(tmp_path)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 130, told
    assert "what was done is in out" in told
    assert package.load(tmp_path / "out").interrupted
    assert not list(tmp_path.glob(".out.*"))


@pytest.mark.skipif(not hasattr(os, "SEEK_HOLE"), reason="needs sparse files")
def test_an_interrupt_ends_hashing_and_leaves_nothing(tmp_path):
    # Zeros that take no room on the disk, and seconds to hash.
    script = """
from pathlib import Path
from gargalo import _core
made = _core.ResultsDir(Path("out"))
with open(made.path / "capture.pcapng", "wb") as file:
    file.truncate(6 << 30)
print("begun", flush=True)
try:
    made.commit()
except KeyboardInterrupt:
    print("interrupted", sorted(p.name for p in Path().iterdir()))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=120)
    assert told == "interrupted []\n", errors
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_interrupted_while_it_is_hashed_leaves_nothing(tmp_path, tiny):
    seen = []

    def interrupt(p: package.Progress) -> None:
        # After the last table comes the manifest.
        if p.phase == "writing" and p.fraction < 1:
            seen.append(p.fraction)
            time.sleep(0.06)  # So that it is asked again at the next opportunity.
        elif seen:
            raise KeyboardInterrupt

    for seconds in (50, 200, 800):  # So many that writing is told of, however fast the machine.
        record = {"duration": f"{seconds}s", "record.interval": "1ms"}
        out = tmp_path / "runs" / str(seconds)
        try:
            package.run(tiny, set=record, output=out, progress=interrupt)
        except KeyboardInterrupt:
            break
        assert not seen, "it was written, hashed and kept"
    assert seen
    assert not out.exists()
    assert not list(out.parent.glob(".*"))


def test_an_interrupt_without_results_is_reported(cli, tmp_path, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "tiny.toml").write_text(TINY)
    monkeypatch.setattr("gargalo.running.run", interrupted)
    done = cli("run", "tiny.toml", *SHORT)
    assert done.exit_code == 130
    assert "interrupted; no results were written" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_control_characters_do_not_reach_the_terminal(capsys):
    nasty = "\x1b[2J\x9b31mred\x07\u202egnp"
    Screen(force_terminal=True, width=200).print(f"[bold]{nasty}[/]", {"a": nasty})
    shown = capsys.readouterr().out
    assert "\x1b[1m" in shown, "styles do"
    for steering in ("\x1b[2J", "\x9b", "\x07", "\u202e"):
        assert steering not in shown
    assert printable(nasty + "\t\n") == "\ufffd[2J\ufffd31mred\ufffd\ufffdgnp\t\n"


def test_json_steers_no_terminal():
    nasty = {"a\x9b": "\x1b[2J\x9b31mred\x7f\u202egnp", "b": "M\u00fcller\n"}
    for indent in (None, 1):
        text = to_json(nasty, indent=indent)
        assert "M\u00fcller" in text
        assert printable(text) == text
        assert json.loads(text) == nasty


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["list", "congestion"], ""),
        (["run", "tiny.toml", "--no-plots", "--output", "out"], "results: out\n"),
        (["run", "tiny.toml", "--json"], ""),
        (["sweep", "sweep.toml", "--quiet", "--json"], ""),
        (["sweep", "sweep.toml"], ""),
    ],
)
def test_output_that_cannot_be_written(tmp_path, arguments, kept):
    (tmp_path / "tiny.toml").write_text(TINY.replace('"3s"', '"600ms"'))
    (tmp_path / "sweep.toml").write_text('name = "s"\nscenario = "tiny.toml"\n')
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*arguments),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
    assert done.returncode == 1
    told = "standard output (/dev/full) cannot be written: the disk is full: free some space"
    assert done.stderr == f"{kept}error: {told}, or send it elsewhere\n"


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare of util-linux to mount")
def test_full_disk(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    script = """
import os, sys
from pathlib import Path
from click.exceptions import Exit
from click.testing import CliRunner
from gargalo.cli import app as cli, evaluate as cli_evaluate
from gargalo.cli.app import app
from gargalo.cli.common import sweep_errors

def told(arguments):
    done = CliRunner().invoke(cli.app, arguments)
    print(done.exit_code, sorted(os.listdir("disk")), type(done.exception).__name__)
    print(done.stderr, file=sys.stderr)

told(["run", "tiny.toml", "--output", "disk/plain", "--set", "record.interval=1us", "--set", "duration=600ms"])
told(["run", "tiny.toml", "--output", "disk/plain", "--capture", "link", "--set", "record.capture_payload=true"])
told(["run", "tiny.toml", "--output", "disk/out"])
cli_evaluate.write = lambda card, folder: (folder / "scorecard.json").write_bytes(b"x" * 500_000)
try:
    with sweep_errors():
        cli_evaluate.save(None, Path("disk/card"), overwrite=False)
except Exit as e:
    print(e.exit_code, sorted(os.listdir("disk")))
"""
    (tmp_path / "script.py").write_text(script)
    done = in_tmpfs(tmp_path, "size=200k", f"{sys.executable} script.py")
    # The third has its tables, but not all pictures; the others leave nothing.
    ends = ["1 [] SystemExit", "1 [] SystemExit", "1 ['out'] SystemExit", "1 ['out']"]
    assert done.stdout.splitlines() == ends, done.stderr
    assert done.stderr.count("error: ") == 4, done.stderr
    assert "/disk/plain/flow_samples.parquet: No space left on device" in done.stderr
    assert "/disk/plain/capture.pcapng: No space left on device" in done.stderr
    for internal in ("partial", "Errno", "os error"):
        assert internal not in done.stderr
    assert len(re.findall(r" \(\S+ \w+ of 20\d\S* kB are free there\)", done.stderr)) == 3, (
        done.stderr
    )
    assert "the results are in disk/out" in done.stderr


def test_a_temporary_directory_that_is_a_link_is_not_emptied(tmp_path):
    far = tmp_path / "far"
    far.mkdir()
    for name in ("letter.txt", "plan.1.ab", f"{'0' * 32}.1.ab"):
        (far / name).write_text("precious")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "tmp").symlink_to(far)
    with pytest.raises(package.sweeps.BadStoreError, match="symbolic link"):
        package.sweep(TINY, store=tmp_path / "s", workers=1, set={"duration": "600ms"})
    assert len(tree(far)) == 3


def test_an_interrupt_in_a_function_of_a_class_keeps_what_was_done(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    (tmp_path / "mine.py").write_text("""
import gargalo

@gargalo.congestion("mine")
class Mine(gargalo.WindowBased):
    count = 0

    def on_ack(self, acked, path):
        self.count += 1
        if self.count == 100:
            print("endless", flush=True)
        while self.count >= 100:
            pass
""")
    chosen = ["--set", "flows.0.transport.tcp.congestion=mine", "--plugin", "mine.py"]
    process = subprocess.Popen(
        command("run", "tiny.toml", *chosen, "--output", "out", "--no-plots"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "endless\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "while a function of a class written in Python was running" in errors
    assert "what was done is in out" in errors
    assert "being written" not in errors
    assert package.load(tmp_path / "out").interrupted
