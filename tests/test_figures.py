"""The figures in sentences of the documentation are those of the engine.

Each is computed, written and looked for on its page.

One that differs fails with the sentence as it should be. Tables and pictures that a command makes are not here, nor
figures of time, which are those of a machine.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gargalo
import polars as pl
import pytest
from conftest import ROOT
from gargalo import sweeps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FIGURES: list[tuple[str, Callable[[], list[str]]]] = []
Flow = dict[str, Any]


def on(page: str) -> Callable[[Callable[[], list[str]]], Callable[[], list[str]]]:
    """Register a function that returns sentences of a page with their figures."""

    def register(sentences: Callable[[], list[str]]) -> Callable[[], list[str]]:
        FIGURES.append((page, sentences))
        return sentences

    return register


@pytest.mark.parametrize(
    ("page", "sentences"), FIGURES, ids=[f"{p}-{s.__name__}" for p, s in FIGURES]
)
def test_a_figure_in_a_sentence_is_what_the_engine_gives(page, sentences):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for sentence in sentences():
        assert sentence in text, f"{page} should say: {sentence}"


def tcp(congestion: Any, **more: Any) -> Flow:
    return {
        "from": "client",
        "to": "server",
        "transport": {"tcp": {"congestion": congestion}},
        **more,
    }


def on_link(flows: Sequence[Flow], rate: str, delay: str, queue: Any = "1BDP", **more: Any) -> Any:
    """Run flows on one link; its delay is that of one way."""
    link = {"rate": rate, "delay": delay, "queue": {"droptail": queue}, **more.pop("link", {})}
    scenario = {
        "name": "figure",
        "topology": {"simple": {"link": link}},
        "flows": list(flows),
        **more,
    }
    return gargalo.run(scenario)


def mbps(result: Any) -> list[float]:
    return [f / 1e6 for f in result.flows["goodput_bps"].to_list()]


def queued_packets(result: Any) -> float:
    """Return the mean queue of the link there, in packets of 1500 bytes."""
    link = result.links[0]
    return float(link["queue_delay_mean_s"]) * float(link["capacity_bps"]) / 12_000


def seeds(run: Callable[[int], Any], number: int = 5) -> list[Any]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, range(1, number + 1)))


def race() -> list[str]:
    """The row of the simulator, beside that of the kernel, whose figures were measured once and are in one place."""
    pages = {p: (ROOT / p).read_text(encoding="utf-8") for p in PAGES_OF_THE_RACE}
    (measured,) = [row for row in pages["docs/lab.md"].splitlines() if row.startswith("| kernel, ")]
    done = gargalo.run(ROOT / "examples" / "cellular-race.toml", seed=1)
    names = dict(zip(done.flows["label"], mbps(done), strict=True))
    cells = " | ".join(f"{names[n]:.1f}" for n in ("reno", "cubic", "bbr"))
    return [
        f"| | reno | cubic | bbr | | --- | ---: | ---: | ---: | {measured} | simulated | {cells} |"
    ]


PAGES_OF_THE_RACE = ("docs/lab.md", "docs/index.md", "README.md")
for of_the_race in PAGES_OF_THE_RACE:
    on(of_the_race)(race)


@on("docs/congestion/vegas.md")
def latecomers() -> list[str]:
    flows = [tcp("vegas", start=f"{5 * i}s") for i in range(4)]
    shares = mbps(on_link(flows, "20Mbit/s", "20ms", duration="120s", measure={"from": "60s"}))
    return [
        f"at 20 Mbit/s and 40 ms share {' : '.join(f'{x:.1f}' for x in shares)} Mbit/s for good)"
    ]


@on("docs/congestion/fast.md")
def persistent_congestion() -> list[str]:
    flows = [tcp("fast", start=f"{10 * i}s") for i in range(3)]
    done = on_link(flows, "200Mbit/s", "40ms", duration="60s", measure={"from": "30s"})
    shares = " : ".join(f"{x:.0f}" for x in mbps(done))
    return [
        f"share {shares} Mbit/s and keep {queued_packets(done):.0f} segments in the queue, not 60)"
    ]


@on("docs/congestion/ledbat.md")
def the_latecomers_advantage() -> list[str]:
    def two(control: Any) -> list[float]:
        flows = [tcp(control), tcp(control, start="20s")]
        more = {"duration": "300s", "measure": {"from": "200s"}}
        return mbps(on_link(flows, "20Mbit/s", "20ms", "1000 packets", **more))

    plain, slowing = two("ledbat"), two({"ledbat": {"slowdowns": True}})
    return [
        f"end at {plain[0]:.0f} and {plain[1]:.0f} Mbit/s). `slowdowns` cure it "
        f"({slowing[0]:.1f} and {slowing[1]:.1f} Mbit/s)"
    ]


@on("docs/congestion/copa.md")
def four_flows() -> list[str]:
    def queued(control: Any) -> float:
        flows = [tcp(control, start=f"{i}s") for i in range(4)]
        done = on_link(flows, "20Mbit/s", "20ms", duration="60s", measure={"from": "20s"})
        return queued_packets(done)

    switching, plain = queued("copa"), queued({"copa": {"mode_switching": False}})
    return [f"keep {switching:.0f} segments queued instead of {plain:.0f}"]


@on("docs/congestion/bbr3.md")
def loss_that_is_not_congestion() -> list[str]:
    def share(control: str) -> float:
        def run(seed: int) -> float:
            link = {"loss": {"independent": "5%"}}
            done = on_link([tcp(control)], "20Mbit/s", "20ms", link=link, duration="60s", seed=seed)
            return mbps(done)[0] / 20

        return sum(seeds(run)) / 5

    return [
        f"at 5% random loss {share('bbr3'):.0%} of 20 Mbit/s is left, where version 1 keeps {share('bbr'):.0%}"
    ]


@on("docs/congestion/bbr2.md")
def recoveries_of_one_percent() -> list[str]:
    def left(**own: Any) -> float:
        def run(seed: int) -> float:
            link = {"loss": {"independent": "1%"}}
            flows = [tcp({"bbr2": own})]
            done = on_link(flows, "10Mbit/s", "100ms", link=link, duration="60s", seed=seed)
            return mbps(done)[0] / 10

        return sum(seeds(run)) / 5

    return [
        f"at 1% random loss {left():.0%} of 10 Mbit/s is left over 200 ms, and "
        f"{left(packet_conservation=False):.0%} without it"
    ]


@on("docs/congestion/bbr3.md")
def alone() -> list[str]:
    done = on_link([tcp("bbr3")], "100Mbit/s", "25ms", duration="60s", measure={"from": "10s"})
    used = done.links[0]["utilization"]
    return [f"Alone it leaves about {1 - used:.0%} unused".replace("%", " %")]


@on("docs/congestion/tahoe.md")
def one_percent_lost() -> list[str]:
    def goodput(control: str) -> float:
        def run(seed: int) -> float:
            more = {"measure": {"from": "10s"}}
            link = {"loss": {"independent": "1%"}}
            done = on_link(
                [tcp(control)], "100Mbit/s", "20ms", link=link, duration="110s", seed=seed, **more
            )
            return mbps(done)[0]

        return sum(seeds(run))

    return [f"at 1% loss {goodput('tahoe') / goodput('reno'):.0%} of Reno's goodput"]


@on("docs/congestion/westwood.md")
def losses_of_four_flows() -> list[str]:
    def lost(control: str) -> int:
        flows = [tcp(control, start=f"{i}s") for i in range(4)]
        done = on_link(flows, "20Mbit/s", "20ms", duration="60s")
        return int(done.links[0]["dropped_packets"])

    return [f"lose {lost('westwood') / lost('reno'):.0f} times as many packets as Reno"]


def files_of(page: str, folder: Path) -> None:
    """Write the files of a tutorial: its blocks of TOML, which begin with their names."""
    blocks = (ROOT / page).read_text(encoding="utf-8").split("```toml\n# ")[1:]
    for block in blocks:
        name, _, text = block.partition("\n")
        (folder / name).write_text(text.split("```")[0])


@on("docs/tutorials/race.md")
def cubic_and_bbr() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        files_of("docs/tutorials/race.md", Path(folder))
        done, deep = (
            gargalo.run(Path(folder) / "race.toml", set={"topology.simple.link.queue.droptail": q})
            for q in ("1BDP", "8BDP")
        )
    (cubic, bbr), (cubic_deep, bbr_deep) = mbps(done), mbps(deep)
    median = done.links[0]["queue_delay_p50_s"]
    return [
        f"BBR got {bbr / cubic:.1f} times as much as CUBIC.",
        f"Half of the time the queue was more than {median / 0.04:.0%} full: it takes 40 ms to "
        "send what it holds, and the "
        f"median of the delay is {1e3 * median:.0f} ms.",
        f"Now CUBIC has {cubic_deep / (cubic_deep + bbr_deep):.0%} of what both get",
    ]


@on("docs/tutorials/question.md")
def depths_of_the_queue() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        files_of("docs/tutorials/question.md", Path(folder))
        jobs = sweeps.SweepFile.load(Path(folder) / "buffers.toml").plan()
        frame = sweeps.execute(jobs, Path(folder) / "store", workers=2).frame()
    means = frame.group_by("buffer").agg(pl.col("jain_index", "queue_delay_p50_s").mean())
    rows = {r["buffer"]: r for r in means.iter_rows(named=True)}
    shallow, deep = rows["0.5BDP"], rows["8BDP"]
    return [
        f"Jain's index rises with the depth, from {shallow['jain_index']:.2f} to "
        f"{deep['jain_index']:.2f}. The price is the "
        f"delay: packets wait for {1e3 * deep['queue_delay_p50_s']:.0f} ms in a queue of eight "
        "bandwidth-delay products."
    ]
