"""The figures in sentences of the documentation are those of the engine.

Each is computed, written and looked for on its page.

One that differs fails with the sentence as it should be. Tables and pictures that a command makes are not here, nor
figures of time, which are those of a machine.
"""

from __future__ import annotations

import functools
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


RED = {"red": {"min_threshold": 10, "max_threshold": 40}}
BULK = {"from": "client", "to": "server", "workload": {"bulk": {}}}
LATE = {"duration": "60s", "measure": {"from": "20s"}}


def multipath(control: str) -> Flow:
    return {**BULK, "transport": {"mptcp": {"congestion": control}}}


@functools.cache
def beside_one(control: str, first: str, second: str) -> float:
    """Two subflows and a Reno flow at one bottleneck; `first` is added to that flow's way, too."""
    ways = (("client", first), ("client", second), ("other", first))
    plain = [{"from": h, "to": "left", "rate": "1Gbit/s", "delay": d} for h, d in ways]
    for i, link in enumerate(plain):
        link["name"] = f"way{i}"
    bottleneck = {"from": "left", "to": "right", "rate": "20Mbit/s", "delay": "10ms", "queue": RED}
    last = {"from": "right", "to": "server", "rate": "1Gbit/s"}
    graph = {
        "nodes": ["client", "other", "left", "right", "server"],
        "hosts": ["client", "other", "server"],
        "links": [*plain, bottleneck, last],
    }
    flows = [multipath(control), {**tcp("reno"), **BULK, "from": "other", "start": "100ms"}]
    scenario = {"name": "figure", "topology": {"graph": graph}, "flows": flows, **LATE}
    runs = [mbps(done) for done in seeds(lambda seed: gargalo.run(scenario, seed=seed))]
    return float(sum(both for both, _ in runs) / sum(reno for _, reno in runs))


def on_two(flows: Sequence[Flow], rates: Sequence[str], queue: Any, seed: int = 1) -> Any:
    paths = [{"rate": rate, "delay": "20ms", "queue": queue} for rate in rates]
    topology = {"multipath": {"paths": paths}}
    return gargalo.run({"name": "figure", "topology": topology, "flows": flows, **LATE}, seed=seed)


@functools.cache
def beside_one_and_four(control: str) -> tuple[float, float]:
    """One Reno flow on the first link, four on the second: the connection's share there, and what the four have."""
    alone = [{**tcp("reno"), **BULK, "path": path} for path in (0, 1, 1, 1, 1)]
    flows = [multipath(control), *alone]
    runs = seeds(lambda seed: on_two(flows, ("20Mbit/s",) * 2, RED, seed))
    shares = [r.subflows["goodput_bps"][1] / r.subflows["goodput_bps"].sum() for r in runs]
    return sum(shares) / len(runs), sum(sum(mbps(r)[2:]) for r in runs) / len(runs)


def at_one_bottleneck(control: str) -> str:
    alike, apart = (beside_one(control, *ways) for ways in (("10ms", "10ms"), ("0s", "30ms")))
    return (
        f"together they have {alike:.1f} times what the Reno flow has, and with round-trip times of 20 and 80 ms "
        f"{apart:.1f} times what a Reno flow of 20 ms has."
    )


@on("docs/congestion/lia.md")
def beside_reno_with_lia() -> list[str]:
    uncoupled = beside_one("reno", "10ms", "10ms")
    share, on_both, balia, olia = (
        beside_one_and_four(c)[0] for c in ("lia", "reno", "balia", "olia")
    )
    return [
        at_one_bottleneck("lia")
        + f" With Reno on each, not coupled, the first would be {uncoupled:.1f}.",
        f"{share:.0%} of the connection's traffic is on the second; with Reno on each it would be {on_both:.0%}, "
        f"with [balia](balia.md) it is {balia:.0%}, with [olia](olia.md) {olia:.0%}.",
    ]


@on("docs/congestion/balia.md")
def beside_reno_with_balia() -> list[str]:
    share, lia, olia = (beside_one_and_four(c)[0] for c in ("balia", "lia", "olia"))
    return [
        at_one_bottleneck("balia"),
        f"{share:.0%} of the connection's traffic is on the second, with [LIA](lia.md) {lia:.0%}, "
        f"with [OLIA](olia.md) {olia:.0%}.",
    ]


@on("docs/congestion/olia.md")
def beside_reno_with_olia() -> list[str]:
    (share, four), (_, beside_lia), (_, beside_both) = map(
        beside_one_and_four, ("olia", "lia", "reno")
    )
    return [
        at_one_bottleneck("olia"),
        f"{share:.0%} of the connection's traffic is on the second, little more than probes; the four there have "
        f"{four:.1f} Mbit/s, beside [LIA](lia.md) {beside_lia:.1f}, beside Reno on both {beside_both:.1f}.",
    ]


@on("docs/congestion/wvegas.md")
def equal_delays_and_a_shared_link() -> list[str]:
    queue = {"droptail": "1000 packets"}

    def delays(control: str, *rates: str) -> list[float]:
        links = on_two([multipath(control)], rates, queue).links
        return [1e3 * row["queue_delay_mean_s"] for row in links if row["direction"] == "up"]

    def share(control: str) -> float:
        flows = [multipath(control), {**tcp(control), **BULK, "path": 1}]
        done = on_two(flows, ("20Mbit/s",) * 2, queue)
        there = done.subflows["goodput_bps"][1] / 1e6
        return float(there / (there + mbps(done)[1]))

    (slow, slower), (fast, faster) = (
        delays("wvegas", *r) for r in (("15Mbit/s", "5Mbit/s"), ("30Mbit/s", "10Mbit/s"))
    )
    vegas = delays("vegas", "15Mbit/s", "5Mbit/s")
    return [
        f"sees queueing delays of {slow:.1f} and {slower:.1f} ms, on 30 and 10 Mbit/s {fast:.1f} and {faster:.1f} ms: "
        "the same but for less than two segments' time on the slower link. "
        f"Vegas on each has {vegas[0]:.1f} and {vegas[1]:.1f} ms.",
        f"has {share('wvegas'):.0%} of the second; with Vegas on each the two share it as their bases have it "
        f"({share('vegas'):.0%}).",
    ]


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
