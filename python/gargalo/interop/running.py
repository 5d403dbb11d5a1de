"""Runs the cells of a matrix in worker processes and judges them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from gargalo.interop import history, traces
from gargalo.interop.cases import CASES, Observed
from gargalo.interop.model import Cell, Matrix
from gargalo.interop.stacks import common_congestion
from gargalo.interop.traces import Traces
from gargalo.sweeps import Job, execute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gargalo.interop.cases import Case, Row
    from gargalo.interop.model import Stack
    from gargalo.sweeps import Sweep
    from gargalo.sweeps.progress import SweepProgress

SEED = 1
STALL_S = 60.0
"""A run without progress for this time hangs."""


def plan(stacks: Sequence[Stack], cases: Sequence[Case], seed: int) -> list[Cell]:
    """Return the cells: with a scenario, or with the reason why there is none."""
    return [cell(c, s, case, seed) for c in stacks for s in stacks for case in cases]


def cell(client: Stack, server: Stack, case: Case, seed: int) -> Cell:
    """Return a cell that is not judged yet, or that does not apply."""

    def without(why: str) -> Cell:
        return Cell(client.name, server.name, case.id, "not applicable", why)

    for stack in (client, server):
        if stack.broken:
            return without(stack.broken)
    for stack, needed in ((client, case.client), (server, case.server)):
        missing = sorted(needed - stack.features)
        if missing:
            role = "client" if needed is case.client else "server"
            return without(f"{stack.name} cannot do {', '.join(missing)} as a {role}")
    congestion = common_congestion(client, server)
    if congestion is None:
        return without(f"{client.name} and {server.name} have no congestion control in common")
    name = client.name if client == server else {"client": client.name, "server": server.name}
    scenario = case.scenario({"stack": name, "congestion": congestion}, seed)
    return Cell(client.name, server.name, case.id, "fail", "", scenario)


def matrix(
    stacks: Sequence[Stack],
    *,
    cases: Sequence[Case] = CASES,
    seed: int = SEED,
    twice: bool = False,
    plugins: Sequence[Path] = (),
    workers: int | None = None,
    progress: Callable[[SweepProgress], object] | None = None,
) -> Matrix:
    """Run every client against every server.

    Args:
        stacks: From `known` or `find`.
        cases: Some of `CASES`.
        seed: Of all scenarios.
        twice: Run everything a second time in other processes and compare the results; and some cells of each stack
            after others in one process.
        plugins: Files that register stacks.
        workers: Processes; by default one for each core.
        progress: Called a few times a second.

    Raises:
        SweepError: The runs could not be started; see `gargalo.sweeps.execute`.

    """
    cells = plan(stacks, cases, seed)
    found = done(cells, cases, workers, progress)
    outside: Mapping[str, Mapping[str, int]] = {}
    if twice:
        again = done(cells, cases, workers, progress)
        histories = history.differing(found, plugins, workers)
        outside = histories.outside
        found = [
            one
            if one.scenario is None
            else compared(one, other, histories.differ.get(one.name, ""))
            for one, other in zip(found, again, strict=True)
        ]
    return Matrix(stacks, found, seed, outside)


def compared(one: Cell, other: Cell, by_history: str) -> Cell:
    """Return a cell with how it differed from a second run, or by what had run before."""
    differs = by_history if equal(one, other) else "two runs with the same seed differ"
    return replace(one, same=not differs, differs=differs)


def equal(one: Cell, other: Cell) -> bool:
    """Whether two runs of a cell had the same results and packets, down to the last bit."""

    def hashes(cell: Cell) -> tuple[str | None, ...]:
        return cell.results_hash, cell.packets_hash, cell.seen

    return hashes(one) == hashes(other)


def done(
    cells: Sequence[Cell],
    cases: Sequence[Case],
    workers: int | None,
    progress: Callable[[SweepProgress], object] | None,
) -> list[Cell]:
    """Run cells in processes of their own and judge them."""
    wanted = [c for c in cells if c.scenario is not None]
    if not wanted:
        return list(cells)
    # A store of its own: a library that has been replaced is to be run again.
    with tempfile.TemporaryDirectory(prefix="gargalo-stacks-") as store:
        sweep = execute(
            [job(c) for c in wanted],
            store,
            keep=("flows",),
            measure=traces.measure,
            files=True,
            workers=workers,
            progress=progress,
            name="stacks",
            stall_s=STALL_S,
        )
        seen = results(sweep)
        reasons = {f.run: f.reason for f in sweep.failures}
    of_case = {case.id: case for case in cases}
    runs = iter(sweep.plan["run"].to_list())
    judged = []
    for one in cells:
        if one.scenario is None:
            judged.append(one)
            continue
        run = next(runs)
        if run not in seen:
            why = f"the run could not be done: {reasons.get(run, 'no reason is known')}"
            judged.append(replace(one, seen=why))
            continue
        found = seen[run]
        outcome = of_case[one.case].judged(Observed(found.rows, found.traces.flows))
        judged.append(
            replace(
                one,
                verdict="pass" if outcome.good else "fail",
                seen=outcome.text,
                results_hash=found.results_hash,
                packets_hash=found.traces.packets_hash,
            )
        )
    return judged


def job(one: Cell) -> Job:
    """Return the run of a cell."""
    labels = {"client": one.client, "server": one.server, "case": one.case}
    scenario = dict(one.scenario or {})
    return Job(labels, scenario, int(scenario["seed"]))


@dataclass(frozen=True)
class Done:
    """A run that was done."""

    results_hash: str
    rows: list[Row]
    """Of its flows."""
    traces: Traces


def results(sweep: Sweep) -> dict[str, Done]:
    """Return every run that was done."""
    frame = sweep.frame()
    if frame.is_empty():
        return {}
    # Cells with the same scenario are one run.
    flows = sweep.table("flows").collect().unique(["run", "id"]).sort("id")
    return {
        run: Done(
            str(results_hash),
            flows.filter(pl.col("run") == run).to_dicts(),
            Traces.of_text(text),
        )
        for run, results_hash, text in frame.select("run", "results_hash", "traces")
        .unique()
        .iter_rows()
    }
