"""The runs of the study."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gargalo.studies import Experiment, Profile, Settings
from gargalo.sweeps import Job, derive_seeds

from gargalo_studies.nsquic import transports as t
from gargalo_studies.nsquic.scenarios import (
    DELAY_S,
    KB,
    LOSS,
    MBPS,
    MIXED,
    STEPS,
    WARM_UP,
    WIRELESS,
    download,
    dumbbell,
    link,
    scenario,
    simple,
    wireless,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table, Transport
    from gargalo.sweeps import Labels

SEED = 2018
OTHERS = frozenset(t.TCPS) - {t.CUBIC}
STANDARD: dict[str, float] = {"mbps": MBPS, "delay_s": DELAY_S, "loss": LOSS, "kb": float(KB)}
"""The cell that every factor is varied from."""
FACTORS: dict[str, tuple[float, ...]] = {
    "mbps": (5.0, 10.0, 50.0, 100.0, 500.0, 1000.0),
    "delay_s": (0.01, 0.05, 0.1, 0.15, 0.2),
    "loss": (0.0, 1e-4, 1e-3, 1e-2, 1e-1),
    "kb": (10.0, 100.0, 200.0, 500.0, 1000.0, 10000.0, 210000.0),
}
"""All levels of the work."""


@dataclass(frozen=True, kw_only=True)
class Levels(Settings):
    """What the study varies, and how often what is random is repeated."""

    others_repeat: int = 5
    """Of protocols that no claim about loss names."""
    tcps: Sequence[str] = t.TCPS
    nodes: Sequence[int] = (2, 10, 20, 40, 80)
    nodes_repeat: int = 10
    fairness_kb: Sequence[float] = FACTORS["kb"]
    tool_kb: Sequence[float] = (1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0)
    tool_delays_s: Sequence[float] = (0.025, 0.075, 0.15)
    tool_dumbbell_kb: float = 20000.0
    reordered: Sequence[float] = (0.0, 0.001, 0.01, 0.05, 0.1, 0.2)
    reordering_kb: float = 10000.0
    object_losses: Sequence[float] = (0.0, 0.001, 0.01, 0.03)
    zero_rtt_kb: Sequence[float] = (1.0, 10.0, 100.0, 1000.0)
    zero_rtt_delays_s: Sequence[float] = (0.01, 0.05, 0.2)
    wireless_losses: Sequence[float] = (0.0, 0.001, 0.01, 0.03)


def jobs_of(
    profile: Profile,
    experiment: str,
    cells: Iterable[Labels],
    build: Callable[..., ScenarioTable],
) -> list[Job]:
    """Make the jobs of an experiment, whose scenarios are built of the labels.

    Without loss or reordering one seed is enough. Protocols that no claim about loss names have fewer.
    """
    seeds = derive_seeds(SEED, profile.repeat)
    jobs = []
    for labels in cells:
        n = 1
        if labels.get("loss") or labels.get("reordered"):
            n = Levels.of(profile).others_repeat if labels["protocol"] in OTHERS else len(seeds)
        made = build(**labels)
        for repeat, seed in enumerate(seeds[:n]):
            jobs.append(Job({"experiment": experiment, **labels}, made, seed, repeat))
    return jobs


def one_at_a_time() -> list[dict[str, float]]:
    """Return the standard cell and every cell that differs from it in one factor."""
    cells = [STANDARD]
    for factor in FACTORS:
        cells += [{**STANDARD, factor: x} for x in FACTORS[factor] if x != STANDARD[factor]]
    return cells


def compared(profile: Profile, cells: Sequence[Mapping[str, float]]) -> list[Labels]:
    """Return each cell for each protocol, TCP after a TLS handshake among them."""
    protocols = [t.QUIC, *Levels.of(profile).tcps, t.TLS]
    return [{"protocol": p, **cell} for cell in cells for p in protocols]


def simple_factors(profile: Profile) -> list[Job]:
    """One flow, one link, one factor varied at a time."""

    def build(protocol: str, **factors: float) -> ScenarioTable:
        return simple(protocol, t.transport(protocol), **factors)

    return jobs_of(profile, "simple", compared(profile, one_at_a_time()), build)


def same(protocol: str, flows: int, *, access: Table | None = None, **factors: float) -> ScenarioTable:  # fmt: skip
    """A dumbbell of equal flows."""
    return dumbbell([(protocol, t.transport(protocol))] * flows, access=access, **factors)


def dumbbell_factors(profile: Profile) -> list[Job]:
    """Two equal flows over one bottleneck, one factor varied at a time."""
    cells = compared(profile, one_at_a_time())
    return jobs_of(profile, "dumbbell", cells, partial(same, flows=2))


def nodes(profile: Profile) -> list[Job]:
    """Up to 80 equal flows over one bottleneck."""
    cells = compared(profile, [{"nodes": n} for n in Levels.of(profile).nodes])
    return jobs_of(profile, "nodes", cells, lambda protocol, nodes: same(protocol, nodes))


def nodes_apart(profile: Profile) -> list[Job]:
    """The same of QUIC and CUBIC, with starts within one round trip of each other."""
    levels = Levels.of(profile)
    return [
        Job(
            {"experiment": "nodes-apart", "protocol": p, "nodes": n},
            {**same(p, n), "start_jitter": "1RTT"},
            seed,
            repeat,
        )
        for n in levels.nodes
        for p in (t.QUIC, t.CUBIC)
        for repeat, seed in enumerate(derive_seeds(SEED, levels.nodes_repeat))
    ]


PAIRS = {
    "quic + quic": (t.QUIC, t.QUIC),
    "cubic + cubic": (t.CUBIC, t.CUBIC),
    "quic + cubic": (t.QUIC, t.CUBIC),
}


def fairness(profile: Profile) -> list[Job]:
    """Two flows of the same protocol or of both, for each size."""

    def build(pair: str, kb: float) -> ScenarioTable:
        return dumbbell([(p, t.transport(p)) for p in PAIRS[pair]], kb=kb)

    cells: list[Labels] = [
        {"pair": p, "kb": kb} for p in PAIRS for kb in Levels.of(profile).fairness_kb
    ]
    return jobs_of(profile, "fairness", cells, build)


TOOL = ("quic", "hybla", "newreno")
"""The protocols of the tool paper."""


def tool_simple(profile: Profile) -> list[Job]:
    """Tool paper: one flow, 20 Mbit/s, 30 ms, by size."""

    def build(protocol: str, kb: float) -> ScenarioTable:
        return simple(protocol, t.transport(protocol), mbps=20, delay_s=0.03, kb=kb)

    cells: list[Labels] = [
        {"protocol": p, "kb": kb} for kb in Levels.of(profile).tool_kb for p in TOOL
    ]
    return jobs_of(profile, "tool-simple", cells, build)


def tool_dumbbell(profile: Profile) -> list[Job]:
    """Tool paper: two flows, 10 Mbit/s everywhere, access 50 ms, by the bottleneck's delay."""
    levels = Levels.of(profile)
    build = partial(same, flows=2, mbps=10, kb=levels.tool_dumbbell_kb, access=link(10, 0.05))
    cells: list[Labels] = [
        {"protocol": p, "delay_s": x} for x in levels.tool_delays_s for p in TOOL
    ]
    return jobs_of(profile, "tool-dumbbell", cells, build)


CORNERS: dict[str, dict[str, float]] = {
    "10 Mbit/s, 50 ms": {"mbps": 10.0, "delay_s": 0.05},
    "1 Gbit/s, 50 ms": {"mbps": 1000.0, "delay_s": 0.05},
    "10 Mbit/s, 200 ms": {"mbps": 10.0, "delay_s": 0.2},
}
"""Where the steps from old to new defaults are measured: what claims 1 and 2 speak of."""
SHARED = "beside each other"


def default_steps(profile: Profile) -> list[Job]:
    """From the defaults of the work to those of today, one change after another: the same in all readings."""
    by_name = {s.name: s for s in t.STEPS}

    def build(step: str, where: str, protocol: str) -> ScenarioTable:
        chosen = by_name[step]
        if where == SHARED:
            pair = [(t.QUIC, chosen.quic), (t.CUBIC, chosen.tcp)]
            return {**dumbbell(pair, kb=100), "name": STEPS}
        transport = chosen.quic if protocol == t.QUIC else chosen.tcp
        return {**simple(protocol, transport, **CORNERS[where]), "name": STEPS}

    cells: list[Labels] = [
        {"step": s.name, "where": where, "protocol": p}
        for s in t.STEPS
        for where in CORNERS
        for p in (t.QUIC, t.CUBIC)
    ]
    cells += [{"step": s.name, "where": SHARED, "protocol": "quic + cubic"} for s in t.STEPS]
    return jobs_of(profile, "steps", cells, build)


LATE_S = 0.01
"""How late displaced packets arrive: some ten packets at the rate of the link, a tenth of the round trip."""
FIXED = "quic, 3 packets"
TIMED = "quic, time only"
OWN = "cubic"
DUPACKS = "cubic, 3 duplicates"
DETECTION: dict[str, Transport] = {
    FIXED: t.quic(packet_threshold=3),
    TIMED: t.quic(packet_threshold=1000),
    OWN: t.tcp(),
    DUPACKS: t.tcp(recovery="sack"),
}
"""Ways to tell a lost packet from a late one; TCP's own is RACK today."""


def reordering(profile: Profile) -> list[Job]:
    """Data packets that arrive late, by how many of them."""
    levels = Levels.of(profile)

    def build(protocol: str, reordered: float) -> ScenarioTable:
        down: Table = {"reorder": {"probability": reordered, "late": f"{1e3 * LATE_S:g}ms"}}
        made = link(down=down) if reordered > 0 else link()
        flow = download(protocol, DETECTION[protocol], levels.reordering_kb)
        return scenario({"simple": {"link": made}}, [flow])

    cells: list[Labels] = [
        {"protocol": p, "reordered": float(x)} for x in levels.reordered for p in DETECTION
    ]
    return jobs_of(profile, "reordering", cells, build)


OBJECT_KB = (1, 2, 4, 8, 35) * 10
"""Sizes of the objects of a page: half a megabyte, most of them small."""
STREAMS = "quic, streams"
ONE = "cubic + TLS, in turns"
FRAMES = "cubic + TLS, frames of 16 KiB"
SIX = "cubic + TLS, 6 connections"
PAGES: dict[str, tuple[Transport, Table]] = {
    STREAMS: (t.quic(), {"order": "multiplexed"}),
    ONE: (t.tcp(tls="1.3"), {"order": "multiplexed", "frame": "1200B"}),
    FRAMES: (t.tcp(tls="1.3"), {"order": "multiplexed"}),
    SIX: (t.tcp(tls="1.3"), {"order": "sequential", "connections": 6}),
}
"""Ways to carry the objects of a page: as HTTP/3, as HTTP/2 with turns as short as those, as HTTP/2 with frames
of the usual size, as HTTP/1.1."""


def objects(profile: Profile) -> list[Job]:
    """A page of many small objects, by loss."""
    sizes = [f"{kb}kB" for kb in OBJECT_KB]

    def build(protocol: str, loss: float) -> ScenarioTable:
        transport, how = PAGES[protocol]
        flow = download(protocol, transport, 1)
        flow["workload"] = {"request": {"sizes": sizes, **how}}
        return scenario({"simple": {"link": link(loss=loss)}}, [flow])

    cells: list[Labels] = [
        {"protocol": p, "loss": x} for x in Levels.of(profile).object_losses for p in PAGES
    ]
    return jobs_of(profile, "objects", cells, build)


FULL_HANDSHAKE = "quic, 1-RTT"
EARLY = "quic, 0-RTT"
HANDSHAKES: dict[str, Transport] = {
    FULL_HANDSHAKE: t.quic(handshake="1-rtt"),
    EARLY: t.quic(handshake="0-rtt"),
    "cubic": t.tcp(),
    t.TLS: t.tcp(tls="1.3"),
}
AGAIN_S = 10.0
"""When the connection that is judged begins; the one before it left a ticket."""


def zero_rtt(profile: Profile) -> list[Job]:
    """The second connection between two hosts, by size and delay."""
    levels = Levels.of(profile)

    def build(protocol: str, kb: float, delay_s: float) -> ScenarioTable:
        chosen = HANDSHAKES[protocol]
        first = {k: {**v, "handshake": "1-rtt"} if k == "quic" else v for k, v in chosen.items()}
        again: FlowTable = {**download(protocol, chosen, kb), "start": f"{AGAIN_S:g}s"}
        flows = [download(WARM_UP, first, 1), again]
        return scenario({"simple": {"link": link(delay_s=delay_s)}}, flows)

    cells: list[Labels] = [
        {"protocol": p, "kb": kb, "delay_s": x}
        for kb in levels.zero_rtt_kb
        for x in levels.zero_rtt_delays_s
        for p in HANDSHAKES
    ]
    return jobs_of(profile, "zero-rtt", cells, build)


SMALL: dict[float, tuple[str, dict[str, float]]] = {
    1.0: (t.NEWRENO, {"mbps": 20.0, "delay_s": 0.03}),
    10.0: (t.CUBIC, {"mbps": MBPS, "delay_s": DELAY_S}),
}
"""The small transfers of which the work says something: size in kB, the TCP beside QUIC and the network; 1 kB is the
tool paper's."""


def small(profile: Profile) -> list[Job]:
    """Transfers of a few packets, QUIC and one TCP."""

    def build(protocol: str, kb: float) -> ScenarioTable:
        return simple(protocol, t.transport(protocol), kb=kb, **SMALL[kb][1])

    cells: list[Labels] = [
        {"protocol": p, "kb": kb} for kb, (tcp, _) in SMALL.items() for p in (t.QUIC, tcp)
    ]
    return jobs_of(profile, "small", cells, build)


def radios(profile: Profile) -> list[Job]:
    """One flow over a wireless link, alone or at the end of a wired path, by the share of packets lost."""

    def build(protocol: str, where: str, loss: float) -> ScenarioTable:
        return wireless(where, protocol, t.transport(protocol), loss, KB)

    cells: list[Labels] = [
        {"protocol": p, "where": where, "loss": x}
        for where in (WIRELESS, MIXED)
        for x in Levels.of(profile).wireless_losses
        for p in (t.QUIC, t.CUBIC, "westwood", t.TLS)
    ]
    return jobs_of(profile, "wireless", cells, build)


EXPERIMENTS = (
    Experiment("simple", "One flow, one factor at a time", simple_factors),
    Experiment("dumbbell", "Two equal flows, one factor at a time", dumbbell_factors),
    Experiment("nodes", "Many equal flows", nodes),
    Experiment("nodes-apart", "Many flows that start apart", nodes_apart),
    Experiment("fairness", "Two flows of one protocol or of both", fairness),
    Experiment("steps", "From old defaults to new ones", default_steps),
    Experiment("reordering", "Late packets", reordering),
    Experiment("objects", "A page of small objects", objects),
    Experiment("zero-rtt", "The second connection", zero_rtt),
    Experiment("small", "Small transfers", small),
    Experiment("wireless", "Wireless and mixed networks", radios),
    Experiment("tool-simple", "Tool paper: one flow by size", tool_simple),
    Experiment("tool-dumbbell", "Tool paper: two flows by delay", tool_dumbbell),
)

QUICK = Profile(
    "quick",
    "All factors and protocols; where packets are lost thirty seeds for QUIC and CUBIC, five for others; the tool "
    "paper up to 100 MB: minutes.",
    30,
    Levels(),
)

FULL = Profile(
    "full",
    "As published: all levels of all factors, to 210 MB and 1 GB, thirty seeds where packets are lost.",
    30,
    Levels(
        others_repeat=30,
        tool_kb=tuple(10.0**i for i in range(7)),
        tool_delays_s=(0.025, 0.05, 0.075, 0.1, 0.15, 0.2),
        tool_dumbbell_kb=100000.0,
        reordered=(0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
        object_losses=(0.0, 0.001, 0.01, 0.02, 0.03, 0.05),
        zero_rtt_kb=(1.0, 10.0, 100.0, 1000.0, 10000.0),
        zero_rtt_delays_s=FACTORS["delay_s"],
    ),
)
