"""Modules of Linux beside the built-in congestion controls of the same names, in the same scenarios."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, reading
from gargalo.plugins import kernel_modules, native
from gargalo.plugins.compiling import CompilerError, build_plugin
from gargalo.sweeps import execute
from gargalo.sweeps.job import Job, derive_seeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

    from gargalo.results import Run

LINK = {"rate": "20Mbit/s", "delay": "20ms", "queue": {"droptail": "1BDP"}}
SCENARIOS: dict[str, tuple[dict[str, Any], int]] = {
    "drop-tail": (LINK, 1),
    "random loss": ({**LINK, "loss": {"independent": "0.1%"}}, 1),
    "two flows": (LINK, 2),
    "marks": ({**LINK, "queue": {"step": {"mark_above": "20 packets"}}}, 1),
}
"""The bottleneck, and how many flows: of 20 Mbit/s, 40 ms and a buffer of a bandwidth-delay product. The second flow
begins a second after the first; marks come from a queue of 20 packets on, as RFC 3168 or RFC 8257 (DCTCP) has them."""
EQUALS = {"cubic": "cubic-linux", "westwood": "westwood+"}
"""Built-in congestion controls that compute as Linux does, where there are two of a name."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a congestion control does in a scenario, as means over the seeds."""

    goodput_bps: tuple[float, ...]
    """Of each flow."""
    queueing_delay_s: float
    """Mean round-trip time less the least, mean over the flows."""
    lost_packets: float
    window_bytes: float
    """Mean congestion window, mean over the flows."""


@dataclass(slots=True)
class Compared:
    """A module: whether it builds, and its figures by scenario."""

    file: Path
    name: str = ""
    """Of its congestion control; "" if it does not build."""
    built_in: str = ""
    """What it is compared with, or ""."""
    lacks: str = ""
    """Why it does not build or run: the first thing that is missing."""
    module: dict[str, Figures] = field(default_factory=dict)
    own: dict[str, Figures] = field(default_factory=dict)


def modules(paths: Iterable[Path]) -> list[Path]:
    """Return the modules of Linux among files and in directories, by name.

    Raises:
        FileNotFoundError: There is none.

    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = [
            f
            for f in sorted(path.glob("*.c"))
            if "tcp_congestion_ops" in (text := reading.text(f, errors="replace"))
            and kernel_modules.is_module(text)
        ]
        if not inside:
            msg = f"{path} has no module of Linux (a file .c with a struct tcp_congestion_ops)"
            raise FileNotFoundError(msg)
        found += inside
    return found


def compare(
    files: Sequence[Path],
    *,
    cc: Sequence[str] = ("cc",),
    kernel: str | None = None,
    options: Sequence[str] = (),
    duration: str = "20s",
    seeds: int = 3,
    workers: int | None = None,
) -> list[Compared]:
    """Build modules, and run those that build and the built-in ones of their names in each of `SCENARIOS`.

    Args:
        files: Sources, as `modules` finds them.
        cc: The compiler.
        kernel: The version of Linux that they are for; see `build_plugin`.
        options: More options of the compiler.
        duration: Of a run.
        seeds: Runs of each scenario.
        workers: Processes; by default one for each core. A module that crashes ends its run alone.

    """
    with tempfile.TemporaryDirectory(prefix="gargalo-modules-") as place:
        compared = [
            built(file, Path(place) / f"{i}-{file.stem}.so", cc, kernel, options)
            for i, file in enumerate(files)
        ]
        whole = [(c, library) for c, library in compared if not c.lacks]
        jobs = [
            Job(
                {"algorithm": name, "scenario": scenario},
                setting(name, scenario, duration),
                seed,
            )
            for name in dict.fromkeys(n for c, _ in whole for n in (c.name, c.built_in) if n)
            for scenario in SCENARIOS
            for seed in derive_seeds(1, seeds)
        ]
        if jobs:
            sweep = execute(
                jobs,
                Path(place) / "store",
                measure="gargalo.plugins.module_comparison:measure",
                workers=workers,
                plugins=[library for _, library in whole],
                name="modules",
            )
            frame = sweep.frame()
            told = {f.run: f.reason for f in sweep.failures}
            failed = {
                row["algorithm"]: told[row["run"]]
                for row in sweep.plan.iter_rows(named=True)
                if row["run"] in told
            }
            for c, _ in whole:
                c.lacks = failed.get(c.name, "")
                c.module = {} if c.lacks else figures(frame, c.name)
                c.own = figures(frame, c.built_in)
    return [c for c, _ in compared]


def built(
    file: Path, library: Path, cc: Sequence[str], kernel: str | None, options: Sequence[str]
) -> tuple[Compared, Path]:
    """Compile and load one module."""
    compared = Compared(file)
    try:
        build_plugin(file, library, cc=cc, kernel=kernel, options=options)
        # The module's own comes before those of modules that it calls.
        compared.name = native.load(library)[0][0].name
    except CompilerError as e:
        compared.lacks = str(e.missing[0]) if e.missing else str(e)
    except native.PluginError as e:
        compared.lacks = str(e)
    else:
        compared.built_in = counterpart(compared.name)
    return compared, library


def counterpart(name: str) -> str:
    """Return the built-in congestion control that a module is compared with; "" if there is none."""
    plain = name.removeprefix("linux-")
    for control in _core.congestion():
        if plain in (control["name"], *control["aliases"]):
            return EQUALS.get(control["name"], str(control["name"]))
    return ""


def setting(algorithm: str, scenario: str, duration: str) -> dict[str, Any]:
    """Return a scenario with one congestion control."""
    link, flows = SCENARIOS[scenario]
    tcp: dict[str, Any] = {"congestion": algorithm}
    if scenario == "marks":
        tcp["ecn"] = "dctcp" if algorithm.removeprefix("linux-") == "dctcp" else "classic"
    return {
        "name": "module",
        "duration": duration,
        "topology": {"simple": {"link": link}},
        "flows": [
            {
                "from": "client",
                "to": "server",
                "label": f"flow {i}",
                "start": f"{i}s",
                "transport": {"tcp": tcp},
                "workload": {"bulk": {}},
            }
            for i in range(flows)
        ],
    }


def measure(run: Run) -> Mapping[str, float]:
    """Return the figures of a run."""
    flows = run.flows.sort("id")
    queueing = (flows["rtt_mean_s"] - flows["rtt_min_s"]).mean()
    window = run.flow_samples["congestion_window_bytes"].mean()
    return {
        **{f"goodput_{i}_bps": g for i, g in enumerate(flows["goodput_bps"])},
        "queueing_delay_s": float(queueing),
        "lost": float(flows["lost_packets"].sum()),
        "window_bytes": float(window),  # type: ignore[arg-type]
    }


def figures(frame: pl.DataFrame, algorithm: str) -> dict[str, Figures]:
    """Return an algorithm's figures by scenario, as means over the seeds."""
    found = {}
    for scenario, (_, flows) in SCENARIOS.items():
        rows = frame.filter((frame["algorithm"] == algorithm) & (frame["scenario"] == scenario))
        if rows.is_empty():
            continue

        def mean(column: str, rows: pl.DataFrame = rows) -> float:
            return float(rows[column].mean())  # type: ignore[arg-type]

        found[scenario] = Figures(
            tuple(mean(f"goodput_{i}_bps") for i in range(flows)),
            mean("queueing_delay_s"),
            mean("lost"),
            mean("window_bytes"),
        )
    return found
