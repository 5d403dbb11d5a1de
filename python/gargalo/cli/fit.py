"""`gargalo fit`: the path of a recording as a scenario, verified, and with other choices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gargalo import _core
from gargalo.cli.common import (
    FAILED,
    PATH,
    fail,
    json_option,
    key_value,
    quiet_option,
    refuse,
    refuse_another,
    to_json,
)
from gargalo.cli.help import command
from gargalo.cli.run import directory
from gargalo.recording import name_of
from gargalo.terminal.text import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gargalo.fitting import Compared, Fit, Predicted
    from gargalo.results import Run

UNITS = {"bps": "bit/s", "s": "s", "bytes": "byte"}
WORDS = {
    "goodput_bps": "goodput",
    "rtt_p50_s": "round trip, median",
    "rtt_p95_s": "round trip, 95%",
    "flight_bytes": "in flight, mean",
    "loss": "packets lost",
    "rate_bps": "rate",
    "base_rtt_s": "round trip without a queue",
    "buffer_bytes": "buffer",
    "jitter_s": "jitter",
    "aggregation_s": "packets arrive together every",
    "reorder_probability": "packets displaced",
    "reorder_by_s": "displaced by",
    "policer_rate_bps": "rate of the policer",
    "policer_burst_bytes": "burst of the policer",
    "cross_traffic_bps": "other traffic, mean",
    "other_flows": "other TCP flows",
}
SHARES = ("loss", "reorder_probability")
DATA = "fit.json"
"""The file by which a directory of a fit is known."""


@command(
    examples=[
        ("gargalo fit upload.pcap", "The path as a scenario, and a page."),
        ("gargalo fit upload.pcap --congestion bbr", "Of a flow that BBR sent."),
        ("gargalo fit upload.pcap --verify", "By the first half, and the second predicted."),
        ("gargalo fit upload.pcap --what-if congestion=bbr3", "What would BBRv3 have done?"),
        ("gargalo fit upload.pcap --json", "As data, no files."),
    ]
)
@click.argument(
    "files", nargs=-1, required=True, type=PATH, metavar="RECORDING",
    help="A capture at the sender (pcap, pcapng), or several of the same traffic.",
)  # fmt: skip
@click.option(
    "--flow", type=click.IntRange(min=0), metavar="N",
    help="Number of the flow, as gargalo read has it. Default: the one with most packets.",
)  # fmt: skip
@click.option(
    "--congestion", metavar="NAME", default="cubic", show_default=True,
    help="The congestion control that sent it, for simulations of the flow.",
)  # fmt: skip
@click.option(
    "--verify", is_flag=True, help="Predict the second half by a fit to the first, and compare."
)
@click.option(
    "--against", type=PATH, metavar="FILE",
    help="Predict another recording of the same path, and compare.",
)  # fmt: skip
@click.option(
    "--what-if", "what_if", multiple=True, metavar="KEY=VALUE",
    help="Simulate the path with other choices: congestion=NAME, or any key of the scenario as --set of run has it; "
    "may be repeated.",
)  # fmt: skip
@click.option(
    "--output", type=PATH, metavar="DIR",
    help="Directory for path.toml, fit.json and fit.html; must not exist. Default: runs/NAME-path, or with -2, -3, … "
    "if that exists.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace these files in DIR, if there are.")
@json_option("Print one JSON object; no files unless --output is given.")
@quiet_option
def fit(
    files: tuple[Path, ...],
    flow: int | None,
    congestion: str,
    verify: bool,
    against: Path | None,
    what_if: tuple[str, ...],
    output: Path | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit a path to a capture of a TCP flow at its sender: rate, delay, buffer, losses, other traffic, as a scenario.

    It says how certain each parameter is, what the recording cannot tell, and how far a simulated flow over the path is
    from the recorded one.
    """
    from gargalo.fitting import FitError
    from gargalo.fitting import fit as fitted

    place = place_of(f"{name_of(files[0])}-path", output, overwrite=overwrite, as_json=as_json)
    settings = dict(key_value("--what-if", text, "congestion=bbr3") for text in what_if)
    try:
        found = fitted(recorded(files), flow=flow, congestion=congestion)
        other = recorded((against,)) if against else None
        verified = found.verify(other) if verify or other else ()
        predicted = found.what_if(settings) if settings else {}
        data = as_data(found, verified, predicted, settings)
    except FitError as e:
        refuse_another(files[0], "capture")
        fail(str(e), FAILED)
    except _core.ScenarioError as e:
        refuse(e)
    if place is not None:
        write(found, place, verified, predicted, settings, data)
    if as_json:
        print(to_json(data))
    elif not quiet:
        show(found, verified, predicted, settings)
    if place is not None and not as_json:
        say(f"results: {place}")


def place_of(name: str, output: Path | None, *, overwrite: bool, as_json: bool) -> Path | None:
    """Return the directory for the files of a fit; with `overwrite` one that has such files."""
    usual = Path("runs") / name if output is None and not as_json else output
    if overwrite and usual is not None and usual.exists():
        if not (usual / DATA).is_file():
            fail(f"{usual} has no {DATA}: it is no directory of a fit; choose another --output")
        return usual
    return directory(name, output, overwrite=False, as_json=as_json)


def recorded(files: Sequence[Path]) -> Run:
    """Read captures with their packets; what is none ends the command."""
    from gargalo.recording import read

    for file in files:
        if file.is_dir() or not file.exists():
            refuse_another(file, "capture")
    try:
        return read(list(files), packets=True)
    except _core.RunError as e:
        refuse_another(files[0], "capture")
        fail(str(e), FAILED)


def as_data(
    found: Fit,
    verified: Sequence[Compared],
    predicted: Mapping[str, Predicted],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return all that is told as one object."""
    data = found.to_json()
    if verified:
        data["verified"] = [
            {"name": c.name, "measured": c.measured, "predicted": c.simulated, "difference": c.difference}
            for c in verified
        ]  # fmt: skip
    if predicted:
        figures = {k: [p.low, p.value, p.high] for k, p in predicted.items()}
        data["what_if"] = {"settings": dict(settings), "figures": figures}
    return data


def write(
    found: Fit,
    place: Path,
    verified: Sequence[Compared],
    predicted: Mapping[str, Predicted],
    settings: Mapping[str, Any],
    data: Mapping[str, Any],
) -> None:
    """Write the scenario, the data and the page."""
    from gargalo import reporting
    from gargalo.fitting.page import page
    from gargalo.fitting.toml import toml
    from gargalo.writing import replace

    made = page(found, verified=verified, predicted=predicted, settings=settings)
    place.mkdir(parents=True, exist_ok=True)
    replace(place / "path.toml", toml(found))
    replace(place / DATA, to_json(data, indent=2) + "\n")
    reporting.write(made, place / "fit.html")


def show(
    found: Fit,
    verified: Sequence[Compared],
    predicted: Mapping[str, Predicted],
    settings: Mapping[str, Any],
) -> None:
    """Print the path, what is not known of it, and the comparisons."""
    from gargalo.fitting.page import listed
    from gargalo.fitting.toml import between
    from gargalo.terminal.fitting import Column, show_table
    from gargalo.terminal.screen import Screen

    screen = Screen(highlight=False)
    rows = []
    for name, unit, value in listed(found):
        interval = found.intervals.get(name)
        rows.append(
            (WORDS[name], amount(name, value, unit), between(interval, unit) if interval else "")
        )
    columns = (
        Column("path", justify="left"),
        Column("value"),
        Column("in nine cases of ten", justify="left"),
    )
    show_table(f"{found.name}: {found.seen.label}", columns, rows, screen)
    for told in found.unknown:
        screen.print(f"The recording cannot tell: {told}.", markup=False)
    titles = [(f"A flow with {found.congestion} over it", "simulated", found.compared)]
    if verified:
        titles.append(("What was kept back", "predicted", verified))
    for title, word, compared in titles:
        lines = [
            (
                WORDS[c.name],
                amount(c.name, c.measured),
                amount(c.name, c.simulated),
                "" if c.difference is None else f"{c.difference:+.1%}",
            )
            for c in compared
        ]
        sides = [Column(w) for w in ("recorded", word, "difference")]
        show_table(title, (Column("figure", justify="left"), *sides), lines, screen)
    if predicted:
        alternatives = [
            (WORDS[k], amount(k, p.value), f"{amount(k, p.low)} to {amount(k, p.high)}")
            for k, p in predicted.items()
        ]
        asked = ", ".join(f"{k}={v}" for k, v in settings.items())
        sides = [Column("value"), Column("over all paths that fit", justify="left")]
        show_table(
            f"What if {asked}", (Column("figure", justify="left"), *sides), alternatives, screen
        )


def amount(name: str, value: float | None, unit: str | None = None) -> str:
    """Write a figure with its unit; a share in percent."""
    from gargalo.quantities import measured

    if name in SHARES:
        return measured(value, "%")
    return measured(value, UNITS.get(name.rpartition("_")[2], "") if unit is None else unit)
