"""The runs of the study."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gargalo.studies import Experiment, Profile, Settings
from gargalo.sweeps import Job, derive_seeds

from gargalo_studies.high_speed_tcp.measure import LATE
from gargalo_studies.high_speed_tcp.scenarios import (
    LOADS,
    PROTOCOLS,
    SPREAD_S,
    dumbbell,
    parking_lot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gargalo.studies import ScenarioTable
    from gargalo.sweeps import Label, Labels

SEED = 2008
CONTRAST = ("cubic", "htcp", "reno")
"""Protocols that are compared where not all are."""
CAPACITIES = (155, 622, 1000, 2500, 5000, 10000)
"""Of the work, in Mbit/s."""


@dataclass(frozen=True, kw_only=True)
class Levels(Settings):
    """The levels of each factor, by default those that claims need, and how long runs are, by default as published."""

    duration_s: float = 600.0
    fast_duration_s: float = 600.0
    """Above 1 Gbit/s."""
    connections: Sequence[int] = (16,)
    connections_loads: Sequence[float] = (0.2,)
    capacity_loads: Sequence[float] = (0.2, 0.8)
    capacities: Sequence[Sequence[int]] = ((1000, 2500), (1000,))
    """For each of these loads."""
    contrast_protocols: Sequence[str] = CONTRAST
    contrast_capacities: Sequence[int] = (2500,)
    more_connections: Sequence[int] = (100,)
    delays_s: Sequence[float] = (0.01, 0.2)
    delay_loads: Sequence[float] = (0.2, 0.5)
    delay_protocols: Sequence[str] = CONTRAST
    others: Sequence[int] = (20,)
    compatibility_loads: Sequence[float] = (0.2,)
    fairness_duration_s: float = 600.0
    loads: Sequence[float] = LOADS
    stability_loads: Sequence[float] = (0.8,)
    inter_loads: Sequence[float] = LOADS
    start_gap_s: float = 0.0
    """Between flows that start one after another. Default: this is not done."""
    late_start_s: float = 150.0
    late_duration_s: float = 450.0
    convergence_loads: Sequence[float] = (0.2,)
    parking_duration_s: float = 600.0
    parking_loads: Sequence[float] = (0.5,)
    parking_htcp_loads: Sequence[float] = (0.5, 0.8)
    parking_connections: Sequence[int] = ()
    parking_capacities: Sequence[int] = ()
    parking_others: Sequence[int] = (20,)
    parking_compatibility_loads: Sequence[float] = (0.5,)


def cells(
    profile: Profile,
    experiment: str,
    factors: Iterable[Labels],
    build: Callable[..., ScenarioTable],
) -> list[Job]:
    """Make the jobs of an experiment: every cell of `factors`, of which scenarios are built, every seed."""
    jobs = []
    seeds = derive_seeds(SEED, profile.repeat)
    for labels in factors:
        for repeat, seed in enumerate(seeds):
            scenario = build(seed=seed, **labels)
            jobs.append(Job({"experiment": experiment, **labels}, scenario, seed, repeat))
    return jobs


def product(**levels: Sequence[Label]) -> list[Labels]:
    """Return every combination of the levels."""
    found: list[Labels] = [{}]
    for name, values in levels.items():
        found = [{**row, name: value} for row in found for value in values]
    return found


def scalability(profile: Profile, experiment: str, factors: list[Labels]) -> list[Job]:
    """Flows of one protocol; factors connections, mbps, delay_s, load and buffer."""
    s = Levels.of(profile)

    def build(
        seed: int,
        protocol: str,
        connections: int,
        mbps: float,
        delay_s: float,
        load: float,
        buffer: str,
    ) -> ScenarioTable:
        return dumbbell(
            [protocol] * connections,
            mbps=float(mbps),
            one_way_s=delay_s,
            load=load,
            duration_s=s.fast_duration_s if mbps > 1000 else s.duration_s,
            seed=seed,
            buffer=buffer,
        )

    return cells(profile, experiment, factors, build)


STANDARD: dict[str, Sequence[Label]] = {
    "connections": [20],
    "mbps": [1000],
    "delay_s": [0.1],
    "load": [0.2],
    "buffer": ["2500 packets"],
}


def connections(profile: Profile) -> list[Job]:
    """1a: how many connections fill 1 Gbit/s."""
    s = Levels.of(profile)
    levels = {**STANDARD, "connections": s.connections, "load": s.connections_loads}
    return scalability(profile, "connections", product(protocol=PROTOCOLS, **levels))


def capacity(profile: Profile) -> list[Job]:
    """1b: capacities with 20 connections, by background load."""
    s = Levels.of(profile)
    factors = [
        cell
        for load, capacities in zip(s.capacity_loads, s.capacities, strict=True)
        for cell in product(protocol=PROTOCOLS, **{**STANDARD, "mbps": capacities, "load": [load]})
    ]
    return scalability(profile, "capacity", factors)


def contrast(profile: Profile) -> list[Job]:
    """1b: the link of 1 Gbit/s and faster ones, these also with more connections and with larger buffers."""
    s = Levels.of(profile)
    top: dict[str, Sequence[Label]] = {
        "protocol": s.contrast_protocols,
        **STANDARD,
        "mbps": s.contrast_capacities,
    }
    base = product(**{**top, "mbps": sorted({1000, *s.contrast_capacities})})
    more = product(**{**top, "connections": s.more_connections})
    large = product(**{**top, "buffer": ["0.2BDP"]})
    return scalability(profile, "contrast", base + more + large)


def delay(profile: Profile) -> list[Job]:
    """1c: propagation delays, at low and high background load."""
    s = Levels.of(profile)
    levels = {**STANDARD, "delay_s": s.delays_s, "load": s.delay_loads}
    return scalability(profile, "delay", product(protocol=s.delay_protocols, **levels))


def compatibility(profile: Profile) -> list[Job]:
    """2: twenty reno flows and some of another protocol."""
    s = Levels.of(profile)

    def build(seed: int, protocol: str, others: int, load: float) -> ScenarioTable:
        protocols = ["reno"] * 20 + [protocol] * others
        return dumbbell(protocols, mbps=1000, load=load, duration_s=s.duration_s, seed=seed)

    others = [p for p in PROTOCOLS if p != "reno"]
    loads = s.compatibility_loads
    factors = product(protocol=others, others=s.others, load=loads)
    alone = product(protocol=["reno"], others=[0], load=loads)
    return cells(profile, "compatibility", alone + factors, build)


def twenty(
    profile: Profile,
    experiment: str,
    loads: Sequence[float],
    *,
    access_s: Sequence[float] | None = None,
    starts_s: Sequence[float] | None = None,
) -> list[Job]:
    """Twenty flows of one protocol at 1 Gbit/s, by background load; `access_s` and `starts_s` as in `dumbbell`."""

    def build(seed: int, protocol: str, load: float) -> ScenarioTable:
        return dumbbell(
            [protocol] * 20,
            mbps=1000,
            load=load,
            duration_s=Levels.of(profile).fairness_duration_s,
            seed=seed,
            access_s=access_s,
            starts_s=starts_s,
        )

    return cells(profile, experiment, product(protocol=PROTOCOLS, load=loads), build)


def rtt_fairness(profile: Profile) -> list[Job]:
    """3a: access links of 10 to 105 ms at both ends of 100 ms."""
    return twenty(profile, "rtt-fairness", Levels.of(profile).loads, access_s=SPREAD_S)


def same_fairness(profile: Profile) -> list[Job]:
    """3c and 5: twenty equal flows; their fairness and the stability of their sum."""
    return twenty(profile, "same-fairness", Levels.of(profile).stability_loads)


def start_fairness(profile: Profile) -> list[Job]:
    """3b: flows that start one after another."""
    gap = Levels.of(profile).start_gap_s
    if not gap:
        return []
    starts = [gap * i for i in range(20)]
    return twenty(profile, "start-fairness", Levels.of(profile).loads, starts_s=starts)


def inter_fairness(profile: Profile) -> list[Job]:
    """3d: two flows of every protocol together, with and without libra."""

    def build(seed: int, load: float, libra: bool) -> ScenarioTable:
        protocols = [p for p in PROTOCOLS if libra or p != "libra"]
        return dumbbell(
            [p for p in protocols for _ in range(2)],
            mbps=1000,
            load=load,
            duration_s=Levels.of(profile).fairness_duration_s,
            seed=seed,
        )

    factors = product(load=Levels.of(profile).inter_loads, libra=[True, False])
    return cells(profile, "inter-fairness", factors, build)


def convergence(profile: Profile) -> list[Job]:
    """4: nineteen flows start in the first ten seconds, the twentieth much later."""
    s = Levels.of(profile)

    def build(seed: int, protocol: str, load: float) -> ScenarioTable:
        chance = random.Random(f"convergence {seed}")
        return dumbbell(
            [protocol] * 20,
            mbps=1000,
            load=load,
            duration_s=s.late_start_s + s.late_duration_s,
            seed=seed,
            starts_s=[chance.uniform(0.0, 10.0) for _ in range(19)] + [s.late_start_s],
            labels=[protocol] * 19 + [LATE],
        )

    factors = product(protocol=PROTOCOLS, load=s.convergence_loads)
    return cells(profile, "convergence", factors, build)


def parking_fairness(profile: Profile) -> list[Job]:
    """Parking lot: twenty flows, half with a round trip of 90 ms and half of 180 ms."""
    s = Levels.of(profile)

    def build(seed: int, protocol: str, load: float) -> ScenarioTable:
        return parking_lot(
            [protocol] * 20,
            mbps=1000,
            load=load,
            duration_s=s.parking_duration_s,
            seed=seed,
        )

    factors = product(protocol=PROTOCOLS, load=s.parking_loads)
    known = {(f["protocol"], f["load"]) for f in factors}
    extra = product(protocol=["htcp"], load=s.parking_htcp_loads)
    factors += [f for f in extra if (f["protocol"], f["load"]) not in known]
    return cells(profile, "parking-fairness", factors, build)


def parking_scalability(profile: Profile) -> list[Job]:
    """Parking lot: connections at 1 Gbit/s, capacities with 100 connections."""
    s = Levels.of(profile)

    def build(
        seed: int, protocol: str, load: float, connections: int, mbps: float
    ) -> ScenarioTable:
        return parking_lot(
            [protocol] * connections,
            mbps=float(mbps),
            load=load,
            duration_s=s.parking_duration_s,
            seed=seed,
        )

    every: dict[str, Sequence[Label]] = {"protocol": PROTOCOLS, "load": LOADS}
    factors = product(**every, connections=s.parking_connections, mbps=[1000])
    factors += product(**every, connections=[100], mbps=s.parking_capacities)
    return cells(profile, "parking-scalability", factors, build)


def parking_compatibility(profile: Profile) -> list[Job]:
    """Parking lot: twenty reno flows and some of another protocol, half at each round trip."""
    s = Levels.of(profile)

    def build(seed: int, protocol: str, others: int, load: float) -> ScenarioTable:
        protocols = ["reno"] * 20 + [protocol] * others
        return parking_lot(
            protocols,
            mbps=1000,
            load=load,
            duration_s=s.parking_duration_s,
            seed=seed,
        )

    others = [p for p in PROTOCOLS if p != "reno"]
    factors = product(protocol=others, others=s.parking_others, load=s.parking_compatibility_loads)
    return cells(profile, "parking-compatibility", factors, build)


def parking_inter(profile: Profile) -> list[Job]:
    """Parking lot: two flows of every protocol together, one at each round trip."""
    s = Levels.of(profile)

    def build(seed: int, load: float) -> ScenarioTable:
        return parking_lot(
            [p for p in PROTOCOLS for _ in range(2)],
            mbps=1000,
            load=load,
            duration_s=s.parking_duration_s,
            seed=seed,
        )

    return cells(profile, "parking-inter", product(load=s.inter_loads), build)


EXPERIMENTS = (
    Experiment("connections", "Utilisation against connections", connections),
    Experiment("capacity", "Utilisation against capacity", capacity),
    Experiment("contrast", "More connections, larger buffers", contrast),
    Experiment("delay", "Utilisation against propagation delay", delay),
    Experiment("compatibility", "Reno's share beside other protocols", compatibility),
    Experiment("rtt-fairness", "Fairness with different round-trip times", rtt_fairness),
    Experiment("same-fairness", "Equal flows: fairness and stability", same_fairness),
    Experiment("start-fairness", "Flows that start one after another", start_fairness),
    Experiment("inter-fairness", "All protocols together", inter_fairness),
    Experiment("convergence", "Convergence of a late flow", convergence),
    Experiment("parking-fairness", "Parking lot: long and short round trips", parking_fairness),
    Experiment("parking-scalability", "Parking lot: utilisation", parking_scalability),
    Experiment("parking-compatibility", "Parking lot: reno's share", parking_compatibility),
    Experiment("parking-inter", "Parking lot: all protocols together", parking_inter),
)

SHORT = (
    "connections",
    "contrast",
    "delay",
    "compatibility",
    "rtt-fairness",
    "convergence",
)
"""The experiments at 20% and 50% background on the dumbbell, which some tens of seconds can show."""

NIGHT = Profile(
    "night",
    "The levels of each factor that claims need, all backgrounds of the fairness experiments, 600 "
    "s as published, five seeds: some nights on two cores.",
    5,
    Levels(
        readings=(
            "ns2-2.29",
            "libra-paced",
            "libra-avoiding",
            "fast-100",
            "fast-100-libra-paced",
            "240-ms",
            "newreno",
            "background",
            "today",
            "uncapped",
        ),
    ),
)

QUICK = Profile(
    "quick",
    "The experiments at low background that some tens of seconds can show, one seed: minutes.",
    1,
    Levels(
        experiments=SHORT,
        readings=("ns2-2.29", "today", "libra-paced", "fast-paced", "fast-100"),
        duration_s=20.0,
        fast_duration_s=12.0,
        fairness_duration_s=20.0,
        loads=(0.2,),
        late_start_s=20.0,
        late_duration_s=20.0,
    ),
)

FULL = Profile(
    "full",
    "As published: 600 s, all factors, capacities to 10 Gbit/s, five seeds.",
    5,
    Levels(
        readings=("ns2-2.29", "today", "uncapped"),
        connections=tuple(2**i for i in range(1, 9)),
        connections_loads=LOADS,
        capacity_loads=LOADS,
        capacities=(CAPACITIES,) * 3,
        contrast_protocols=PROTOCOLS,
        contrast_capacities=CAPACITIES,
        more_connections=(50, 100),
        delays_s=(0.01, 0.05, 0.1, 0.2),
        delay_loads=(0.0, 0.2, 0.5, 0.8),
        delay_protocols=PROTOCOLS,
        others=(5, 10, 20, 30, 40),
        compatibility_loads=LOADS,
        stability_loads=LOADS,
        start_gap_s=25.0,
        convergence_loads=LOADS,
        parking_loads=LOADS,
        parking_htcp_loads=LOADS,
        parking_connections=tuple(2**i for i in range(2, 9)),
        parking_capacities=tuple(c for c in CAPACITIES if c != 1000),
        parking_others=(5, 10, 20, 30, 40),
        parking_compatibility_loads=LOADS,
    ),
)
