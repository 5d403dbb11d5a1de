"""What a terminal shows: help pages and tables that fit 60, 80 and 200 columns without a word cut."""

from __future__ import annotations

import io
import re
import sys
from functools import cache
from typing import TYPE_CHECKING

import click
import gargalo
import pytest
import screenshots
from click.testing import CliRunner
from conftest import ROOT, TINY, command
from gargalo import sweeps
from gargalo.cli.app import COMMANDS, app
from gargalo.metrics import goodput_in
from gargalo.pictures import metrics
from gargalo.quantities import decimal
from gargalo.reporting.model import ClaimRow
from gargalo.summary import FLOWS, LINKS, flow_cells, show, span
from gargalo.terminal import text as cli_text
from gargalo.terminal.fitting import Column, show_table
from gargalo.terminal.screen import Screen
from scorecards import scorecard
from sweep_helpers import MINI

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WIDTHS = [60, 80, 200]
CUT = re.compile(r"\w…")
"""How a word ends that was cut."""


def walk(name: str, found: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Return a command and those below it."""
    yield name, found
    if isinstance(found, click.Group):
        for below, each in found.commands.items():
            yield from walk(f"{name} {below}", each)


@cache
def every_command() -> dict[str, click.Command]:
    context = click.Context(app)
    loaded = [(name, app.get_command(context, name)) for name in COMMANDS]
    return {n: c for name, top in loaded if top for n, c in walk(name, top)}


def words(text: str) -> str:
    return " ".join(text.split())


def test_what_a_stack_does_not_tell_is_a_dash():
    flow = gargalo.run(TINY).to_json()["flows"][0]
    told = dict(zip((c.name for c in FLOWS), flow_cells(flow, {0: "a"}), strict=True))
    assert told["retransmitted"].startswith(f"{flow['retransmitted_packets']} (")
    assert told["timeouts"] == str(flow["timeouts"])
    unknown = flow | {"retransmitted_packets": None, "timeouts": None}
    told = dict(zip((c.name for c in FLOWS), flow_cells(unknown, {0: "a"}), strict=True))
    assert (told["retransmitted"], told["timeouts"]) == ("-", "-")


@pytest.mark.parametrize("width", WIDTHS)
def test_help_pages_fit_and_are_whole(width):
    for name, found in {"": app, **every_command()}.items():
        done = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": str(width)})
        assert done.exit_code == 0, done.output
        long = [line for line in done.output.splitlines() if len(line) > width]
        assert not long, (name, long)
        assert not CUT.search(done.output), name
        page = words(done.output)
        assert words(found.help or "") in page, name
        for parameter in found.params:
            if not getattr(parameter, "hidden", False):
                assert parameter.help, (name, parameter.name)
                assert words(parameter.help) in page, (name, parameter.name)
        for example in found.examples:
            assert words(example.about) in page, name
            assert words(example.line) in words(done.output.replace("\\\n", " ")), name


def test_every_value_has_a_name_that_says_what_it_is():
    for name, found in every_command().items():
        assert found.examples, f"{name} has no example"
        for p in found.params:
            is_flag = isinstance(p, click.Option) and p.is_flag
            assert p.metavar or is_flag or isinstance(p.type, click.Choice), (name, p.opts)


@pytest.mark.parametrize("width", WIDTHS)
def test_definitions_wrap_in_a_terminal_and_are_one_line_each_in_a_pipe(width, monkeypatch):
    rows = [("short", "word " * 40), ("a, name, of, several, words, each, quite, long", "x " * 50)]
    piped = cli_text.definitions(rows, indent=2)
    assert len(piped.splitlines()) == 2
    monkeypatch.setattr(cli_text, "columns", lambda: width)
    told = cli_text.definitions(rows, indent=2)
    assert all(len(line) <= width for line in told.splitlines())
    assert words(told) == words(piped)


def shown(draw, width: int, *, terminal: bool = True) -> str:
    """Return what a function prints on a screen of some columns."""
    file = io.StringIO()
    draw(Screen(file=file, force_terminal=terminal, width=width, no_color=True, highlight=False))
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())


def check(text: str, width: int) -> None:
    long = [line for line in text.splitlines() if len(line.rstrip()) > width]
    assert not long, long
    assert not CUT.search(text), text


def told_and_left_out(text: str) -> tuple[str, set[str]]:
    """Return the text of tables, and the names of columns that are said to be left out."""
    notes = re.findall(r"Not shown: (.*?)\. \d+ columns", words(text))
    return text, {n for note in notes for n in note.split(", ")}


@pytest.fixture(scope="module")
def paths() -> gargalo.Run:
    return gargalo.run(ROOT / "examples" / "mptcp-five-paths.toml", set={"duration": "1s"})


@pytest.mark.parametrize("width", WIDTHS)
def test_the_tables_of_a_run_fit_and_say_what_they_leave_out(width, paths):
    for run in (gargalo.run(TINY), paths):
        text, left_out = told_and_left_out(shown(lambda c, r=run: show(r, c), width))
        check(text, width)
        for column in (*FLOWS, *LINKS):
            assert column.name in text  # As a heading, or in the note.
        assert (left_out == set()) == (width == 200)
        piped = shown(lambda c, r=run: show(r, c), width, terminal=False)
        assert "Not shown" not in piped
        assert not CUT.search(piped)


def test_a_long_label_goes_on_below_and_is_whole():
    label = "a-label-that-is-longer-than-a-terminal-of-sixty-columns-and-is-shown-all-the-same"
    run = gargalo.run(TINY, set={"flows.0.label": f'"{label}"', "duration": "1s"})
    text = shown(lambda c: show(run, c), 60)
    check(text, 60)
    column = text.splitlines()[2].index("congestion")
    begun = text.splitlines().index(next(n for n in text.splitlines() if "a-label" in n))
    whole = "".join(line[:column].strip() for line in text.splitlines()[begun : begun + 6])
    assert whole.startswith(label)
    assert "RTT p95" in text.splitlines()[2]


def rows_of(count: int) -> list[list[str]]:
    return [["cell", "1" * 10, "-", "2" * 12] for _ in range(count)]


def test_columns_without_figures_go_first_and_narrow_ones_come_back():
    columns = [Column("name"), Column("much", 2), Column("nothing", 1), Column("wide", 3)]
    text = shown(lambda c: show_table("t", columns, rows_of(2), c), 36)
    assert "Not shown: nothing. 41 columns show all" in words(text)
    text = shown(lambda c: show_table("t", columns, rows_of(2), c), 24)
    assert "Not shown: nothing, wide. 41 columns show all" in words(text)
    columns = [Column("name"), Column("wide" * 6, 1), Column("narrow", 2)]
    text = shown(lambda c: show_table("t", columns, [["a", "b", "c"]], c), 30)
    assert "narrow" in text.splitlines()[2]
    assert f"Not shown: {'wide' * 6}." in words(text)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_tables_of_a_sweep_fit(width, sweep):
    from gargalo.sweeps.show import show as show_sweep

    text, left_out = told_and_left_out(shown(lambda c: show_sweep(sweep, c, 60), width))
    check(text, width)
    assert "goodput_bps" in text.split("Not shown")[0]
    assert (left_out == set()) == (width > 60)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> sweeps.Sweep:
    rates = {"topology.simple.link.rate": ["1Mbit/s", "2Mbit/s"]}
    store = tmp_path_factory.mktemp("sweep") / "store"
    return sweeps.sweep(MINI, rates, store=store, repeat=2, workers=1)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_comparison_fits(width, sweep):
    from gargalo.sweeps import compare
    from gargalo.sweeps.show import show_rows

    a, b = compare.split(compare.side_of(sweep.store.path), "rate", "1Mbit/s", "2Mbit/s")
    rows = compare.compare(a, b, ())
    text, _ = told_and_left_out(shown(lambda c: show_rows(rows, a.name, b.name, 0.95, c), width))
    check(text, width)
    assert "difference" in text.split("Not shown")[0]
    assert "verdict" in text.split("Not shown")[0]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_scorecard_fits(width, capsys):
    from gargalo.cli.evaluate import show as show_card

    card = scorecard()
    whole = shown(lambda c: show_card(card, [], ROOT, compared=False, out=c), width, terminal=False)
    text = shown(lambda c: show_card(card, [], ROOT, compared=False, out=c), width)
    capsys.readouterr()
    check(text, width)
    for name in card.references:
        assert name in whole.splitlines()[1]
    for result in card.results:
        assert result.criterion.id in text
        assert all(words(o.figure.name) in words(text) for o in result.outcomes)
    _, left_out = told_and_left_out(text)
    assert left_out <= set(card.references)
    assert width < 200 or not left_out


@pytest.mark.parametrize("width", WIDTHS)
def test_the_claims_of_a_study_fit(width):
    from gargalo.cli.study import show as show_claims

    text = "A claim of the paper that is longer than a narrow terminal, [with brackets] in it."
    claims = [
        ClaimRow("a", text, "reproduced"),
        ClaimRow("b", text, "contradicted", reading="read"),
    ]
    told = shown(lambda c: show_claims(claims, c), width)
    check(told, width)
    assert "reproduced" in told
    assert "contradicted (read)" in words(told)
    assert "[with brackets]" in words(told)
    piped = shown(lambda c: show_claims(claims, c), 60, terminal=False)
    assert piped.count(text) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", WIDTHS)
def test_commands_know_the_width_of_their_terminal(width, tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    lines: Sequence[Sequence[str]] = (
        ["run", "tiny.toml", "--no-plots", "--output", f"r{width}"],
        ["list", "queues", "--parameters"],
        ["example"],
        ["sweep", "--help"],
    )
    for arguments in lines:
        code, seen = screenshots.in_terminal(command(*arguments), tmp_path, width)
        text = screenshots.plain(seen)
        assert code == 0, text
        check(text, width)
        longest = max(len(line.rstrip()) for line in text.splitlines())
        assert longest > min(width, 100) * 0.7, arguments


def test_a_pipe_gets_whole_lines(gargalo):
    told = gargalo("list", "queues").stdout.splitlines()
    assert len(told) == len(gargalo_queues())
    assert max(map(len, told)) > 200


def gargalo_queues() -> list[str]:
    from gargalo import _core

    return [q["name"] for q in _core.queues()]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (1e-7, 6, "0.0000001"),
        (0.1 + 0.2, 6, "0.3"),
        (123456789.0, 6, "123457000"),
        (1234.0, 3, "1230"),
        (5.0, 6, "5"),
    ],
)
def test_numbers_in_texts_have_no_exponent(value, digits, text):
    assert decimal(value, digits) == text


TINY_TIMES = """
name = "times"
duration = "1s"
measure.from = "100ns"
[topology.simple]
link = { rate = "5Mbit/s", delay = "50ns" }
[[flows]]
from = "client"
to = "server"
label = "one"
transport.tcp = {}
workload.bulk = {}
"""
EXPONENT = re.compile(r"\de[+-]?\d")


def test_texts_about_runs_have_no_exponents(inside, tmp_path):
    (tmp_path / "times.toml").write_text(TINY_TIMES)
    told = inside("run", "times.toml", "--output", "out").stdout
    assert "from 0.0000001 s to 1 s" in told
    told += inside("explain", "out").stdout
    assert "0.0000001 s to 1 s" in told
    assert not EXPONENT.search(told), told
    assert metrics.picture(gargalo.load(tmp_path / "out"), "cwnd").remarks[-1] == (
        "grey is the measured window, 0.0000001 s to 1 s"
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("measure.until=50ns", "nothing would be measured"),
        ("duration=1ns", "choose instants between 0s and 1ns"),
        ("flows.0.start=1000001s", "never starts"),
        ("measure.from=1.0000001s", "not before the end of the run"),
    ],
)
def test_times_in_refusals_have_no_exponents(inside, tmp_path, change, told):
    (tmp_path / "times.toml").write_text(TINY_TIMES)
    done = inside("run", "times.toml", "--set", change)
    assert done.returncode == 2
    assert told in done.stderr
    assert not EXPONENT.search(done.stderr), done.stderr


def test_the_refusal_of_an_empty_window_has_no_exponent():
    run = gargalo.run(TINY_TIMES)
    with pytest.raises(
        ValueError, match=r"^the window from 0\.0000001 s to 0\.00000005 s is empty$"
    ):
        goodput_in(run, 1e-7, 5e-8)


def test_flows_over_udp_have_one_way_delays(inside, tmp_path, tiny):
    ends = 'from = "client"\nto = "server"\nlabel = "probe"'
    udp = f'[[flows]]\n{ends}\ntransport.udp = {{}}\nworkload.cbr = {{ rate = "64kbit/s" }}\n'
    tiny.write_text(f"{tiny.read_text()}\n{udp}")
    done = inside("run", tiny, "--no-plots", "--output", "out")
    head = next(line for line in done.stdout.splitlines() if line.split()[:1] == ["flow"])
    titles = re.split(r" {2,}", head.strip())
    assert titles[titles.index("RTT p50") :] == [
        "RTT p50", "RTT p95", "retransmitted", "timeouts", "one-way p50", "one-way p95",
    ]  # fmt: skip
    cells = {}
    for line in done.stdout.splitlines():
        row = re.split(r" {2,}", line.strip())
        if len(row) == len(titles):
            cells[row[0]] = dict(zip(titles, row, strict=True))
    (probe,) = gargalo.load(tmp_path / "out").flows.filter(transport="udp").to_dicts()
    assert cells["probe"]["RTT p50"] == "-"
    assert cells["probe"]["one-way p50"] == span(probe["delay_p50_s"])
    assert cells["probe"]["one-way p95"] == span(probe["delay_p95_s"])
    assert cells["upload"]["one-way p50"] == "-"
    assert cells["upload"]["RTT p50"] != "-"
    # Without such a flow they are not there.
    tiny.write_text(tiny.read_text().replace(udp, ""))
    assert "one-way" not in inside("run", tiny, "--no-plots", "--output", "out2").stdout
