"""The answers of the documentation: their tables are what the runs give, where that costs little."""

from __future__ import annotations

import answers
import pytest
from gargalo.plugins import discovery

CHEAP = (
    ("application-limited", answers.Control("noq", "bbr3")),
    ("application-limited", answers.Control("noq", "noq-bbr3")),
    ("application-limited", answers.Control("ngtcp2", "bbr")),
    ("bursts", answers.Control("noq", "cubic")),
    ("bursts", answers.Control("ngtcp2", "cubic")),
)


def cells(page: str) -> dict[str, list[str]]:
    """Return the rows of a page's table by their first cell."""
    text = (answers.PAGES / f"{page}.md").read_text(encoding="utf-8")
    table = text.split(f"<!-- results {page} -->")[1].split("<!-- /results -->")[0]
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in table.strip().splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("page", answers.ANSWERS)
def test_a_page_has_a_row_for_each_control_and_its_scenario(page):
    heads, _, of = answers.ANSWERS[page]
    told = cells(page)
    assert all(len(row) == len(heads) for row in told.values())
    assert not any("failed" in cell for row in told.values() for cell in row)
    for one in of():
        label = one.label if isinstance(one, answers.Control) else one
        assert label in told
    assert answers.scenario(page).startswith(f"# {page}.toml")


@pytest.mark.parametrize(("page", "control"), CHEAP)
def test_a_row_is_what_the_runs_give(page, control):
    if control.stack != "noq" and control.stack not in discovery.installed():
        pytest.skip(f"{control.stack} is not installed (make stacks)")
    row = answers.ANSWERS[page][1]
    assert row(control) == cells(page)[control.label], "python tools/answers.py"
