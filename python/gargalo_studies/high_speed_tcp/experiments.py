"""The runs of the study."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from gargalo.studies import Experiment, Profile
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
    from collections.abc import Iterable, Sequence

SEED = 2008


def cells(
    profile: Profile, experiment: str, factors: Iterable[dict[str, Any]], build: Any
) -> list[Job]:
    """Make the jobs of an experiment: every cell of `factors`, every seed."""
    jobs = []
    seeds = derive_seeds(SEED, profile.repeat)
    for labels in factors:
        for repeat, seed in enumerate(seeds):
            scenario = build(labels, seed)
            jobs.append(Job({"experiment": experiment, **labels}, scenario, seed, repeat))
    return jobs


def product(**levels: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every combination of the levels."""
    found: list[dict[str, Any]] = [{}]
    for name, values in levels.items():
        found = [{**row, name: value} for row in found for value in values]
    return found


def scalability(profile: Profile, experiment: str, factors: list[dict[str, Any]]) -> list[Job]:
    """Flows of one protocol; factors connections, mbps, delay_s, load and buffer."""

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        mbps, delay_s = float(labels["mbps"]), float(labels["delay_s"])
        duration = profile.settings["duration_s"]
        if mbps > 1000:
            duration = profile.settings["fast_duration_s"]
        return dumbbell(
            [labels["protocol"]] * int(labels["connections"]),
            mbps=mbps,
            one_way_s=delay_s,
            load=float(labels["load"]),
            duration_s=duration,
            seed=seed,
            buffer=str(labels["buffer"]),
        )

    return cells(profile, experiment, factors, build)


STANDARD = {
    "connections": [20],
    "mbps": [1000],
    "delay_s": [0.1],
    "load": [0.2],
    "buffer": ["2500 packets"],
}


def connections(profile: Profile) -> list[Job]:
    """1a: how many connections fill 1 Gbit/s."""
    s = profile.settings
    levels = {**STANDARD, "connections": s["connections"], "load": s["connections_loads"]}
    return scalability(profile, "connections", product(protocol=PROTOCOLS, **levels))


def capacity(profile: Profile) -> list[Job]:
    """1b: capacities with 20 connections, by background load."""
    s = profile.settings
    factors = [
        cell
        for load, capacities in zip(s["capacity_loads"], s["capacities"], strict=True)
        for cell in product(protocol=PROTOCOLS, **{**STANDARD, "mbps": capacities, "load": [load]})
    ]
    return scalability(profile, "capacity", factors)


def contrast(profile: Profile) -> list[Job]:
    """1b: the link of 1 Gbit/s and faster ones, these also with more connections and with larger buffers."""
    s = profile.settings
    top = {"protocol": s["contrast_protocols"], **STANDARD, "mbps": s["contrast_capacities"]}
    base = product(**{**top, "mbps": sorted({1000, *s["contrast_capacities"]})})
    more = product(**{**top, "connections": s["more_connections"]})
    large = product(**{**top, "buffer": ["0.2BDP"]})
    return scalability(profile, "contrast", base + more + large)


def delay(profile: Profile) -> list[Job]:
    """1c: propagation delays, at low and high background load."""
    s = profile.settings
    levels = {**STANDARD, "delay_s": s["delays_s"], "load": s["delay_loads"]}
    return scalability(profile, "delay", product(protocol=s["delay_protocols"], **levels))


def compatibility(profile: Profile) -> list[Job]:
    """2: twenty reno flows and some of another protocol."""

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        protocols = ["reno"] * 20 + [labels["protocol"]] * int(labels["others"])
        return dumbbell(
            protocols,
            mbps=1000,
            load=float(labels["load"]),
            duration_s=profile.settings["duration_s"],
            seed=seed,
        )

    s = profile.settings
    others = [p for p in PROTOCOLS if p != "reno"]
    loads = s["compatibility_loads"]
    factors = product(protocol=others, others=s["others"], load=loads)
    alone = product(protocol=["reno"], others=[0], load=loads)
    return cells(profile, "compatibility", alone + factors, build)


def twenty(profile: Profile, experiment: str, loads: Sequence[float], **more: Any) -> list[Job]:
    """Twenty flows of one protocol at 1 Gbit/s, by background load; `more` is for `dumbbell`."""

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "mbps": 1000,
            "load": float(labels["load"]),
            "duration_s": profile.settings["fairness_duration_s"],
            "seed": seed,
        }
        return dumbbell([labels["protocol"]] * 20, **{**settings, **more})

    return cells(profile, experiment, product(protocol=PROTOCOLS, load=loads), build)


def rtt_fairness(profile: Profile) -> list[Job]:
    """3a: access links of 10 to 105 ms at both ends of 100 ms."""
    return twenty(profile, "rtt-fairness", profile.settings["loads"], access_s=SPREAD_S)


def same_fairness(profile: Profile) -> list[Job]:
    """3c and 5: twenty equal flows; their fairness and the stability of their sum."""
    return twenty(profile, "same-fairness", profile.settings["stability_loads"])


def start_fairness(profile: Profile) -> list[Job]:
    """3b: flows that start one after another."""
    gap = profile.settings["start_gap_s"]
    if gap is None:
        return []
    starts = [gap * i for i in range(20)]
    return twenty(profile, "start-fairness", profile.settings["loads"], starts_s=starts)


def inter_fairness(profile: Profile) -> list[Job]:
    """3d: two flows of every protocol together, with and without libra."""

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        protocols = [p for p in PROTOCOLS if labels["libra"] or p != "libra"]
        return dumbbell(
            [p for p in protocols for _ in range(2)],
            mbps=1000,
            load=float(labels["load"]),
            duration_s=profile.settings["fairness_duration_s"],
            seed=seed,
        )

    factors = product(load=profile.settings["inter_loads"], libra=[True, False])
    return cells(profile, "inter-fairness", factors, build)


def convergence(profile: Profile) -> list[Job]:
    """4: nineteen flows start in the first ten seconds, the twentieth much later."""
    s = profile.settings

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        chance = random.Random(f"convergence {seed}")
        protocol = labels["protocol"]
        return dumbbell(
            [protocol] * 20,
            mbps=1000,
            load=float(labels["load"]),
            duration_s=s["late_start_s"] + s["late_duration_s"],
            seed=seed,
            starts_s=[chance.uniform(0.0, 10.0) for _ in range(19)] + [s["late_start_s"]],
            labels=[protocol] * 19 + [LATE],
        )

    factors = product(protocol=PROTOCOLS, load=s["convergence_loads"])
    return cells(profile, "convergence", factors, build)


def parking_fairness(profile: Profile) -> list[Job]:
    """Parking lot: twenty flows, half with a round trip of 90 ms and half of 180 ms."""
    s = profile.settings

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        return parking_lot(
            [labels["protocol"]] * 20,
            mbps=1000,
            load=float(labels["load"]),
            duration_s=s["parking_duration_s"],
            seed=seed,
        )

    factors = product(protocol=PROTOCOLS, load=s["parking_loads"])
    known = {(f["protocol"], f["load"]) for f in factors}
    extra = product(protocol=["htcp"], load=s["parking_htcp_loads"])
    factors += [f for f in extra if (f["protocol"], f["load"]) not in known]
    return cells(profile, "parking-fairness", factors, build)


def parking_scalability(profile: Profile) -> list[Job]:
    """Parking lot: connections at 1 Gbit/s, capacities with 100 connections."""
    s = profile.settings

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        return parking_lot(
            [labels["protocol"]] * int(labels["connections"]),
            mbps=float(labels["mbps"]),
            load=float(labels["load"]),
            duration_s=s["parking_duration_s"],
            seed=seed,
        )

    every = {"protocol": PROTOCOLS, "load": LOADS}
    factors = product(**every, connections=s["parking_connections"], mbps=[1000])
    factors += product(**every, connections=[100], mbps=s["parking_capacities"])
    return cells(profile, "parking-scalability", factors, build)


def parking_compatibility(profile: Profile) -> list[Job]:
    """Parking lot: twenty reno flows and some of another protocol, half at each round trip."""
    s = profile.settings

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        protocols = ["reno"] * 20 + [labels["protocol"]] * int(labels["others"])
        return parking_lot(
            protocols,
            mbps=1000,
            load=float(labels["load"]),
            duration_s=s["parking_duration_s"],
            seed=seed,
        )

    others = [p for p in PROTOCOLS if p != "reno"]
    factors = product(
        protocol=others, others=s["parking_others"], load=s["parking_compatibility_loads"]
    )
    return cells(profile, "parking-compatibility", factors, build)


def parking_inter(profile: Profile) -> list[Job]:
    """Parking lot: two flows of every protocol together, one at each round trip."""
    s = profile.settings

    def build(labels: dict[str, Any], seed: int) -> dict[str, Any]:
        return parking_lot(
            [p for p in PROTOCOLS for _ in range(2)],
            mbps=1000,
            load=float(labels["load"]),
            duration_s=s["parking_duration_s"],
            seed=seed,
        )

    return cells(profile, "parking-inter", product(load=s["inter_loads"]), build)


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

CONTRAST = ["cubic", "htcp", "reno"]

EVERY = [e.name for e in EXPERIMENTS]
SHORT = [
    "connections",
    "contrast",
    "delay",
    "compatibility",
    "rtt-fairness",
    "convergence",
]
"""The experiments at 20% and 50% background on the dumbbell, which some tens of seconds can show."""

NIGHT = Profile(
    "night",
    "The levels of each factor that claims need, all backgrounds of the fairness experiments, 600 s as published, five seeds: some nights on two cores.",
    5,
    {
        "experiments": EVERY,
        "readings": [
            "ns2-2.29",
            "libra-paced",
            "libra-avoiding",
            "fast-100",
            "fast-100-libra-paced",
            "240-ms",
            "today",
            "uncapped",
        ],
        "duration_s": 600.0,
        "fast_duration_s": 600.0,
        "connections": [16],
        "connections_loads": [0.2],
        "capacity_loads": [0.2, 0.8],
        "capacities": [[1000, 2500], [1000]],
        "contrast_protocols": CONTRAST,
        "contrast_capacities": [2500],
        "more_connections": [100],
        "delays_s": [0.01, 0.2],
        "delay_loads": [0.2, 0.5],
        "delay_protocols": CONTRAST,
        "others": [20],
        "compatibility_loads": [0.2],
        "fairness_duration_s": 600.0,
        "loads": LOADS,
        "stability_loads": [0.8],
        "inter_loads": LOADS,
        "start_gap_s": None,
        "late_start_s": 150.0,
        "late_duration_s": 450.0,
        "convergence_loads": [0.2],
        "parking_duration_s": 600.0,
        "parking_loads": [0.5],
        "parking_htcp_loads": [0.5, 0.8],
        "parking_connections": [],
        "parking_capacities": [],
        "parking_others": [20],
        "parking_compatibility_loads": [0.5],
    },
)

QUICK = Profile(
    "quick",
    "The experiments at low background that some tens of seconds can show, one seed: minutes.",
    1,
    {
        **NIGHT.settings,
        "experiments": SHORT,
        "readings": ["ns2-2.29", "today", "libra-paced", "fast-paced", "fast-100"],
        "duration_s": 20.0,
        "fast_duration_s": 12.0,
        "fairness_duration_s": 20.0,
        "loads": [0.2],
        "late_start_s": 20.0,
        "late_duration_s": 20.0,
    },
)

FULL = Profile(
    "full",
    "As published: 600 s, all factors, capacities to 10 Gbit/s, five seeds.",
    5,
    {
        "experiments": EVERY,
        "readings": ["ns2-2.29", "today", "uncapped"],
        "duration_s": 600.0,
        "fast_duration_s": 600.0,
        "connections": [2**i for i in range(1, 9)],
        "connections_loads": LOADS,
        "capacity_loads": LOADS,
        "capacities": [[155, 622, 1000, 2500, 5000, 10000]] * 3,
        "contrast_protocols": list(PROTOCOLS),
        "contrast_capacities": [155, 622, 1000, 2500, 5000, 10000],
        "more_connections": [50, 100],
        "delays_s": [0.01, 0.05, 0.1, 0.2],
        "delay_loads": [0.0, 0.2, 0.5, 0.8],
        "delay_protocols": list(PROTOCOLS),
        "others": [5, 10, 20, 30, 40],
        "compatibility_loads": LOADS,
        "fairness_duration_s": 600.0,
        "loads": LOADS,
        "stability_loads": LOADS,
        "inter_loads": LOADS,
        "start_gap_s": 25.0,
        "late_start_s": 150.0,
        "late_duration_s": 450.0,
        "convergence_loads": LOADS,
        "parking_duration_s": 600.0,
        "parking_loads": LOADS,
        "parking_htcp_loads": LOADS,
        "parking_connections": [2**i for i in range(2, 9)],
        "parking_capacities": [155, 622, 2500, 5000, 10000],
        "parking_others": [5, 10, 20, 30, 40],
        "parking_compatibility_loads": LOADS,
    },
)
