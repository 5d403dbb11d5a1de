"""What sweeps print: progress, tables of cells and of comparisons, sentences of errors."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from gargalo import sweeps
from gargalo.metrics import difference
from gargalo.sweeps import compare as c
from gargalo.sweeps import show as module
from gargalo.sweeps.errors import DamagedError, whose
from gargalo.sweeps.progress import SweepProgress, clock, display
from gargalo.sweeps.result import Failure, Repaired
from rich.console import Console


def printed(show, *, terminal=False, width=None):
    out = io.StringIO()
    show(Console(file=out, force_terminal=terminal, width=width, soft_wrap=True))
    return out.getvalue()


# --- progress


def test_rates_and_the_time_left_are_of_this_sweep():
    state = SweepProgress(100, 40, 20, 10, 2, 5_000_000, 10.0)
    assert (state.runs_per_s, state.packets_per_s, state.left_s) == (2, 500_000, 25)
    assert (state.tenths, str(state)) == (
        5,
        "40/100 runs, 10 failed, 2 runs/s, 500 kpackets/s, 25 s left",
    )
    assert state.line == f"50% after 10 s: {state}"
    begun = SweepProgress(100, 0, 0, 0, 0, 0, 0.0)
    assert (begun.runs_per_s, begun.packets_per_s, begun.left_s) == (0, 0, None)
    assert str(begun) == "0/100 runs, 0 runs/s, 0 packets/s"
    soon = SweepProgress(4, 1, 0, 0, 1, 1, 0.5)
    assert (soon.runs_per_s, soon.packets_per_s, soon.left_s) == (2, 2, 1.5)
    waiting = SweepProgress(3, 1, 0, 0, 0, 0, 1.0, "a run of s that process 7 does")
    assert waiting.line == "33% after 1 s: 1/3 runs, waiting for a run of s that process 7 does"
    assert [SweepProgress(t, d, 0, 0, 0, 0, 1.0).tenths for t, d in [(0, 0), (3, 2), (1, 1)]] == [
        0,
        6,
        10,
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"), (45, "45 s"), (59.4, "59 s"), (59.6, "1:00 min"), (185, "3:05 min"),
        (3599, "59:59 min"), (3600, "1:00 h"), (7805, "2:10 h"), (90_061, "25:01 h"),
    ],
)  # fmt: skip
def test_spans_of_time(seconds, text):
    assert clock(seconds) == text


def test_a_bar_counts_failed_runs_too():
    def told(console):
        with display(console, shown=True) as tell:
            tell(SweepProgress(10, 4, 0, 1, 1, 0, 1.0))

    assert "50%" in printed(told, terminal=True, width=120)


def lines(steps, *, shown=True):
    """Return the lines of a log: of each step its time, finished runs of 100 and what is waited for."""
    now = [0.0]

    def told(console):
        with display(console, shown=shown, now=lambda: now[0]) as tell:
            for at, done, waiting in steps:
                now[0] = at
                tell(SweepProgress(100, done, 0, 0, 0, 0, at, waiting))

    return [line.partition(":")[0] for line in printed(told).splitlines()]


def test_a_line_is_due_after_a_minute_or_at_a_tenth_after_ten_seconds():
    assert lines([(0, 0, ""), (59.9, 0, "")]) == []
    assert lines([(0, 0, ""), (60, 0, ""), (61, 0, "")]) == ["0% after 1"]
    assert lines([(0, 0, ""), (9.9, 10, ""), (10, 10, ""), (20, 19, "")]) == ["10% after 10 s"]
    assert lines([(0, 30, ""), (15, 39, ""), (30, 40, "")]) == ["40% after 30 s"], "30 were there"
    other = [(0, 0, ""), (1, 0, "x"), (2, 0, "x"), (3, 0, "y"), (4, 0, ""), (5, 0, "y")]
    for shown in (True, False):
        assert lines(other, shown=shown) == ["0% after 1 s", "0% after 3 s", "0% after 5 s"]


# --- tables


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("goodput_bps", 2.5e6, "2.5 Mbit/s"),
        ("goodput_bps", -2.5e6, "-2.5 Mbit/s"),
        ("delay_s", 0.0125, "12.5 ms"),
        ("delay_s", -0.0125, "-12.5 ms"),
        ("loss_rate", 0.25, "25.0%"),
        ("loss_rate", -0.25, "-25.0%"),
        ("jain_index", -0.51234, "-0.5123"),
        ("x", 0.0, "0"),
        ("x", None, "-"),
    ],
)
def test_figures_have_their_units(metric, value, text):
    assert module.amount(metric, value) == text


def summary(*rows):
    names = ["cc", "metric", "n", "mean", "low", "high"]
    return pl.DataFrame(rows, names, orient="row", infer_schema_length=None)


def sweep_of(rows, metrics=("goodput_bps", "mine"), labels=("cc",)):
    frame = pl.DataFrame({"measured_from_s": [0.5], "measured_until_s": [2.0]})
    table = summary(*rows)
    return SimpleNamespace(
        name="race", labels=list(labels), metrics=list(metrics), frame=lambda: frame,
        summary=lambda metrics: table.filter(pl.col("metric").is_in(metrics)),
    )  # fmt: skip


CELLS = [
    ("reno", "goodput_bps", 5, 2e6, 1.9e6, 2.1e6),
    ("reno", "mine", 5, 10.0, 5.0, 30.0),
    ("bbr", "goodput_bps", 5, 4e6, None, None),
]


def test_a_row_has_the_means_of_a_cell_with_their_intervals():
    columns, rows, table = module.cells(sweep_of(CELLS))
    assert [column.name for column in columns] == ["cc", "goodput_bps", "mine"]
    assert rows == [
        ["reno", "2 Mbit/s ± 100 kbit/s", "10 [5, 30]"],
        ["bbr", "4 Mbit/s", "-"],
    ]
    assert table.height == 3
    # What the sweep measures itself, and the first of the usual figures, are left out last.
    assert [column.rank for column in columns] == [0, 1, 0]
    extra = [("reno", "loss_rate", 5, 0.1, None, None)]
    ranks = {
        x.name: x.rank
        for x in module.cells(sweep_of(CELLS + extra, ("goodput_bps", "loss_rate", "mine")))[0]
    }
    assert ranks["mine"] < ranks["goodput_bps"] < ranks["loss_rate"]


def test_an_interval_is_written_by_its_half_if_it_is_even():
    row = {"metric": "x", "mean": 10.0, "low": 9.0}
    assert module._spread({**row, "high": 11.0}) == " ± 1"
    assert module._spread({**row, "high": 11.05}) == " ± 1.025", "within a twentieth of it"
    assert module._spread({**row, "high": 11.11}) == " [9, 11.11]"
    assert module._spread({**row, "high": 10.89}) == " [9, 10.89]"
    assert module._spread({**row, "low": None, "high": None}) == ""


def test_cells_that_have_no_interval_or_no_room_are_counted():
    few = [("bbr", "goodput_bps", 2, 4e6, None, None)]

    def shown(rows, most, **more):
        return printed(lambda console: module.show(sweep_of(rows, **more), console, most))

    all_of_it = shown(CELLS, 2)
    assert "race: mean and its 95% interval" in all_of_it
    assert "more cells" not in all_of_it
    assert "Interval n/a" not in all_of_it
    assert "Rates, ratios and delays are of 0.5 s to 2 s of each run." in all_of_it
    assert "… and 1 more cells" in shown(CELLS, 1)
    assert "reno" not in shown(CELLS, 0)
    two = shown(CELLS[:2] + few, 9)
    assert "Interval n/a, needs 3 repeats: in 1 of 2 cells for some or all figures." in two
    alone = [(None, "goodput_bps", 1, 4e6, None, None), (None, "mine", 1, 4.0, None, None)]
    assert "in 1 of 1 cells" in shown(alone, 9, labels=())
    assert "Interval n/a" not in shown(CELLS[:1], 9, labels=())


def compared(cell, metric, a, b, p, verdict, **options):
    d = difference(a, b, **options)
    mean = [sum(x) / len(x) if isinstance(x, list) else x for x in (a, b)]
    return c.Row(cell, metric, *mean, d, p, verdict)


def test_a_comparison_has_a_row_for_each_figure_of_a_cell():
    shares = [0.9, 0.8, 0.1], [0.0, 0.1, 0.1]
    rows = [
        compared({"delay": "5ms"}, "x", [4.0, 5.0, 6.0], [1.0, 2.0, 3.0], 0.0421, "a better"),
        compared({"delay": "5ms"}, "loss_rate", *shares, 0.2, "no difference shown", bounds=(0, 1)),
        compared({}, "y_s", [1.0, 1.0], [1.0, 1.0], None, "no variation"),
        compared({}, "z_s", [1.0, 1.0], [2.0, 2.0], None, "no spread"),
    ]
    text = printed(lambda console: module.show_rows(rows, "a", "b", 0.9, console))
    table = {line.split()[1]: line.split() for line in text.splitlines() if len(line.split()) > 5}
    assert "a less b" in text
    assert "90% interval" in text
    d = rows[0].difference
    expected = [
        "5ms",
        "x",
        "5",
        "2",
        "3",
        f"{d.low:.4g}",
        "…",
        f"{d.high:.4g}",
        "0.042",
        "a",
        "better",
    ]
    assert table["x"] == expected
    assert "100.0%*" in table["loss_rate"], "clipped"
    assert table["y_s"][:2] == ["-", "y_s"]
    assert table["y_s"][-4:] == ["-", "-", "no", "variation"]
    assert text.count("*") == 2
    assert "* clipped to the greatest difference that there can be." in text
    assert "Tests: welch; p-values adjusted for 2 tests (Holm)." in text
    assert "1 of the rows have no variation: they are no tests." in text
    plain = printed(lambda console: module.show_rows(rows[3:], "a", "b", 0.95, console))
    assert "Tests" not in plain
    assert "no variation" not in plain
    assert "*" not in plain


def test_a_narrow_terminal_has_the_difference_and_the_verdict(monkeypatch):
    columns = []
    monkeypatch.setattr(module, "show_table", lambda _, given, *__: columns.extend(given))
    rows = [compared({"delay": "5ms"}, "x", [1.0, 2.0], [3.0, 4.0], 0.1, "no difference shown")]
    printed(lambda console: module.show_rows(rows, "a", "b", 0.95, console))
    ranks = {column.name: column.rank for column in columns}
    assert {n for n, rank in ranks.items() if rank == 0} == {
        "delay",
        "figure",
        "difference",
        "verdict",
    }
    left_out = sorted((n for n in ranks if ranks[n]), key=lambda n: -ranks[n])
    assert left_out == ["p", "a", "b", "95% interval"]
    assert ranks["a"] == ranks["b"] != ranks["p"]
    assert [x.name for x in columns if x.justify == "left"] == ["delay", "figure", "verdict"]


def test_a_file_has_room_for_wide_tables_and_a_terminal_its_columns():
    for terminal, width, found in [(False, 80, 200), (False, 250, 250), (True, 80, 80)]:
        console = Console(file=io.StringIO(), force_terminal=terminal, width=width)
        module._wide(console)
        assert console.width == found


# --- sentences


def test_damage_is_told_with_its_remedy():
    store = Path("s")
    one = DamagedError(store, store / "runs" / "x.parquet", "why")
    assert str(one) == (
        "s/runs/x.parquet is damaged: why; the sweep with --repair (gargalo sweep FILE --store s --repair, in Python "
        "repair=True) moves it to s/damaged and does again what it held of its runs; runs of other sweeps that were "
        "there are done again by these"
    )
    several = one.among(3, {"": 5, "b": 2, "c": 1})
    assert several.what == "s/runs/x.parquet is damaged (and 2 more of the store): why"
    assert several.remedy.startswith(
        "moves them to s/damaged and does again what they held of its runs, at most 5;"
    )
    assert several.remedy.endswith('by these ("b" at most 2, "c" at most 1)')
    copy = pickle.loads(pickle.dumps(several))
    assert (str(copy), copy.file, type(copy)) == (str(several), several.file, DamagedError)
    assert one.among(1, {}).what == one.what
    for file in (store / "store.json", store / "plans" / "x.parquet"):
        assert DamagedError(store, file, "why").remedy == "writes it anew"
    assert whose({"": 4}) == ", at most 4"
    assert whose({}) == ", at most 0"
    assert (sweeps.SweepError("x").diagnostics, sweeps.SweepError("x").key) == ((), None)


def test_a_repair_tells_what_it_moved():
    where = Path("s/damaged")
    one, two = (Repaired([where / str(i) for i in range(n)], {"": 1, "b": n}) for n in (1, 2))
    others = "runs of other sweeps that were there are done again by these"
    assert str(one) == (
        "a damaged file is now in s/damaged; what it held of this sweep was done again, at most 1; "
        f'{others} ("b" at most 1)'
    )
    assert str(two).startswith(
        "2 damaged files are now in s/damaged; what they held of this sweep was done again"
    )
    assert two.to_json() == {"moved": ["s/damaged/0", "s/damaged/1"], "other_sweeps": {"b": 2}}


def test_a_sweep_is_one_line(tmp_path):
    plan = pl.DataFrame({"run": ["a", "b"]})
    store = sweeps.Store.create(tmp_path / "s")
    assert repr(sweeps.Sweep("x", store, plan)) == f"<Sweep 'x': 2 runs in {str(store.path)!r}>"
    failed = sweeps.Sweep("x", store, plan, [Failure("a", "why", 1)])
    assert "2 runs, 1 failed in" in repr(failed)
