"""The simulator against the lab, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
from gargalo.studies import Assessment, Claim, Context, Unmeasured, assessed, evidence

from gargalo_studies.userspace_bbr.cells import PLACE, absent, goodput, in_lab, place_text, ratio
from gargalo_studies.userspace_bbr.experiments import TWINS
from gargalo_studies.userspace_bbr.scenarios import LAB, Sender, ours

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gargalo.metrics import Interval
    from gargalo.sweeps import Labels

CLOSE = 0.1
"""How far the ratio of goodputs may be from 1."""
MOST = 0.8
"""Share of the cells that must be this close."""
SAME_CLOSE, SAME_MOST = 0.05, 0.9
"""The same for our stack in both worlds, where only the world differs."""
EXPERIMENTS = ("loss", "rate", "traces", "queue", "pacing")


@dataclass(frozen=True)
class Cell:
    """A sender in the lab and one in the simulator at the same place."""

    lab: Sender
    sim: Sender
    labels: Labels
    ratio: Interval
    """The simulator's goodput over the lab's, paired by seed."""

    @property
    def text(self) -> str:
        """The place and the sender."""
        return f"{self.lab.name}, {place_text(self.labels)}"

    def close(self, bound: float) -> bool:
        """Whether the worlds agree."""
        mean = self.ratio.mean
        return mean is not None and abs(mean - 1.0) <= bound


def cells(context: Context, pairs: Iterable[tuple[Sender, Sender]]) -> list[Cell]:
    """Return all places where both of a pair were measured, each once."""
    found: list[Cell] = []
    seen: set[tuple[Any, ...]] = set()
    for lab, sim in pairs:
        for experiment in EXPERIMENTS:
            rows = context.experiment(experiment, **lab.labels)
            if rows.height == 0:
                continue
            columns = [c for c in PLACE[1:] if c in rows.columns]
            for labels in rows.select(columns).unique(maintain_order=True).iter_rows(named=True):
                given = {k: v for k, v in labels.items() if v is not None}
                key = (experiment, lab.name, *sorted(given.items()))
                if key in seen:
                    continue
                made = ratio(context, experiment, sim, lab, **given)
                if made.mean is not None:
                    seen.add(key)
                    found.append(Cell(lab, sim, given | {"experiment": experiment}, made))
    return found


def agreement(
    context: Context,
    case: Assessment,
    pairs: tuple[tuple[Sender, Sender], ...],
    bound: float,
    most: float,
) -> None:
    """Decide whether enough cells agree."""
    if not in_lab(context):
        raise Unmeasured("it is judged with the reading of the lab")
    found = cells(context, pairs)
    if not found:
        raise Unmeasured(absent(context))
    for lab, _ in pairs:
        own = [c for c in found if c.lab == lab]
        if not own:
            case.require(None, f"{lab.name} agrees: {absent(context)}")
            continue
        good = sum(c.close(bound) for c in own)
        case.lines.append(share_line(f"{lab.name}: cells within {100 * bound:g}%", good, len(own)))
    good = sum(c.close(bound) for c in found)
    expected = f"≥ {most:g}"
    case.lines.insert(
        0, share_line(f"all cells within {100 * bound:g}%", good, len(found), expected)
    )
    outside = [c for c in found if not c.close(bound)]
    case.lines += [evidence(f"{c.text}: sim / lab", c.ratio, expected="1") for c in outside]
    text = f"{good} of {len(found)} cells are within {100 * bound:g}%"
    case.require(good >= most * len(found), text)


def share_line(label: str, good: int, of: int, expected: str = "") -> Any:
    """Make a line of evidence of a share."""
    from gargalo.reporting import Evidence

    return Evidence(label, good / of, n=of, expected=expected)


@assessed
def kernel_agrees(context: Context, case: Assessment) -> None:
    """Our stack in the simulator, with the profile linux-6, against the kernel in the lab."""
    agreement(context, case, TWINS, CLOSE, MOST)


SAME = tuple((s, ours(s.congestion, "sim", paced=s.paced)) for s in LAB)


@assessed
def ours_agrees(context: Context, case: Assessment) -> None:
    """Our stack in the simulator against itself in the lab."""
    agreement(context, case, SAME, SAME_CLOSE, SAME_MOST)


def table(context: Context) -> pl.DataFrame:
    """Return all cells with goodputs and their ratio; none in other readings than the lab's."""
    rows = []
    if not in_lab(context):
        return pl.DataFrame()
    for cell in cells(context, (*TWINS, *SAME)):
        labels = {k: v for k, v in cell.labels.items() if k != "experiment"}
        lab, sim = (
            goodput(context, str(cell.labels["experiment"]), s, **labels)
            for s in (cell.lab, cell.sim)
        )
        rows.append(
            {
                "lab": cell.lab.name,
                "simulator": cell.sim.name,
                "where": place_text(cell.labels),
                "lab_bps": lab.mean,
                "sim_bps": sim.mean,
                "ratio": cell.ratio.mean,
                "ratio_low": cell.ratio.low,
                "ratio_high": cell.ratio.high,
                "runs": cell.ratio.n,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


FIDELITY = (
    Claim(
        "fidelity",
        "(new) The simulator with the profile linux-6 has the goodput that the kernel's reno, "
        "cubic and bbr have in the lab: "
        "at least 80% of the cells within 10%.",
        kernel_agrees,
        experiments=EXPERIMENTS,
    ),
    Claim(
        "same-stack",
        "(new) Our stack has the same goodput in the lab, to a receiver of the kernel's, as in the simulator: at least "
        "90% of the cells within 5%.",
        ours_agrees,
        experiments=EXPERIMENTS,
    ),
)
