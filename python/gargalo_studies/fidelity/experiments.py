"""The runs of the study: each place with every control, in the kernel, in our stack in the lab, and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.studies import Experiment, Profile
from gargalo.sweeps import Job, derive_seeds

from gargalo_studies.fidelity.scenarios import (
    BDP,
    CONTROLS,
    DEEP,
    DELAY_MS,
    MBPS,
    QUEUES,
    SIM,
    STACKS,
    Stack,
    flow,
    link,
    processing,
    round_trips,
    scenario,
)
from gargalo_studies.userspace_bbr.traces import names as trace_names
from gargalo_studies.userspace_bbr.traces import trace_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Place = dict[str, Any]
    Build = Callable[[Stack, str, Place, int], dict[str, Any]]

SEED = 2026
LIMIT_S = 120
"""A transfer that takes longer counts with what it had delivered by then."""
LOSSES = (0.0, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
RATES = (6.0, 24.0, 48.0)
DELAYS_MS = (5.0, 20.0, 100.0)
LOSS = 1e-3
"""Where the rate or the delay varies."""
PACKETS = (BDP // 4, BDP // 2, BDP, 2 * BDP, 4 * BDP)
SHORT_KB = (10, 100, 1000, 10_000)
SHORT_MBPS = (12.0, 48.0)
SECOND_S = 5.0
"""When the second of two flows starts."""
SETTLED: dict[str, Any] = {"measure": {"from": f"{2 * SECOND_S:g}s"}, "start_jitter": "1RTT"}
"""Of flows that share a bottleneck: shares are of the time from then on, and repeats start at other times."""
RTTS_MS = (40.0, 160.0)
"""Of two flows with different round trips."""
CROWD = 8
"""Flows of Reno beside one of BBR."""


def jobs_of(
    profile: Profile,
    experiment: str,
    places: Iterable[Place],
    build: Build,
    controls: Sequence[str] = CONTROLS,
    stacks: Sequence[Stack] = STACKS,
) -> list[Job]:
    """Make the jobs of an experiment.

    All senders of a place have the same seeds, so that the n-th packet is lost in all of them or in none.
    """
    jobs = []
    seeds = derive_seeds(SEED, profile.repeat)
    for place in places:
        for control in controls:
            for stack in stacks:
                for repeat, seed in enumerate(seeds):
                    made = build(stack, control, place, repeat)
                    labels = {"experiment": experiment, **place, "control": control}
                    labels |= {"stack": stack.name, "world": stack.world}
                    jobs.append(Job(labels, made, seed, repeat, world=stack.world))
    return jobs


def transfers(profile: Profile, experiment: str, places: Iterable[Place]) -> list[Job]:
    """One transfer at each place."""

    def build(stack: Stack, control: str, place: Place, _repeat: int) -> dict[str, Any]:
        packets = place.get("queue_packets")
        shared = link(
            place.get("mbps", MBPS),
            delay_ms=place.get("delay_ms", DELAY_MS),
            queue={"droptail": f"{packets} packets"} if packets else None,
            loss=place.get("loss", 0.0),
        )
        mb = place.get("kb", 0) / 1e3 or size(profile, place)
        work = {"bulk": {"bytes": f"{round(1e6 * mb)}B"}}
        return scenario(stack, shared, [flow(stack.transport(control), work)], LIMIT_S)

    return jobs_of(profile, experiment, places, build)


def size(profile: Profile, place: Place) -> float:
    """Return the megabytes of a transfer: less where loss leaves little."""
    lossy = place.get("loss", 0.0) > LOSS
    return float(profile.settings["lossy_mb" if lossy else "mb"])


def by_loss(profile: Profile) -> list[Job]:
    """Random loss varies."""
    return transfers(profile, "loss", [{"loss": x} for x in LOSSES])


def by_rate(profile: Profile) -> list[Job]:
    """The rate varies."""
    return transfers(profile, "rate", [{"loss": LOSS, "mbps": x} for x in RATES])


def by_delay(profile: Profile) -> list[Job]:
    """The delay varies."""
    return transfers(profile, "delay", [{"loss": LOSS, "delay_ms": x} for x in DELAYS_MS])


def by_queue(profile: Profile) -> list[Job]:
    """The limit of the queue varies, and nothing else is lost."""
    return transfers(profile, "queue", [{"queue_packets": n} for n in PACKETS])


def short(profile: Profile) -> list[Job]:
    """Short transfers, judged by the time to their completion."""
    places = [
        {"kb": kb, "mbps": rate, "queue_packets": BDP} for kb in SHORT_KB for rate in SHORT_MBPS
    ]
    return transfers(profile, "short", places)


def by_trace(profile: Profile) -> list[Job]:
    """Cellular traces with a queue of 100 packets."""

    def build(stack: Stack, control: str, place: Place, repeat: int) -> dict[str, Any]:
        rate = {"trace": trace_of(profile, place["trace"], repeat)}
        shared = link(rate, queue={"droptail": f"{BDP} packets"})
        work = flow(stack.transport(control), {"bulk": {}})
        return scenario(stack, shared, [work], profile.settings["trace_s"])

    return jobs_of(profile, "trace", [{"trace": t} for t in trace_names(profile)], build)


def pairs(profile: Profile) -> list[Job]:
    """Two flows of one control that start apart, on every queue; shares are of the time after the second has settled."""
    seconds = profile.settings["pair_s"]

    def build(stack: Stack, control: str, place: Place, _repeat: int) -> dict[str, Any]:
        name = place["queue"]
        deep = name in DEEP
        mbps = RATES[2] if deep else MBPS
        queue = DEEP[name] if deep else QUEUES[name]
        shared = link(mbps, queue=queue, jitter=processing(mbps))
        both = [
            flow(stack.transport(control), {"bulk": {}}, label=label, start=f"{start:g}s")
            for label, start in (("first", 0.0), ("second", SECOND_S))
        ]
        return scenario(stack, shared, both, seconds, **SETTLED)

    return jobs_of(profile, "pair", [{"queue": q} for q in (*QUEUES, *DEEP)], build)


def different_round_trips(profile: Profile) -> list[Job]:
    """Two flows of one control that start together, with different round trips."""
    seconds = profile.settings["pair_s"]

    def build(stack: Stack, control: str, place: Place, _repeat: int) -> dict[str, Any]:
        topology = round_trips(RTTS_MS, place["queue_packets"])
        both = [
            flow(stack.transport(control), {"bulk": {}}, **{"from": f"left{i}", "to": f"right{i}"})
            for i in range(len(RTTS_MS))
        ]
        return scenario(stack, {}, both, seconds, topology=topology, **SETTLED)

    places = [{"queue_packets": n} for n in (BDP // 2, BDP, 4 * BDP)]
    return jobs_of(profile, "round-trips", places, build)


def crowds(profile: Profile) -> list[Job]:
    """A BBR flow beside eight of Reno, which start with it."""
    seconds = profile.settings["pair_s"]

    def build(stack: Stack, control: str, place: Place, _repeat: int) -> dict[str, Any]:
        shared = link(RATES[2], queue=DEEP[place["queue"]], jitter=processing(RATES[2]))
        senders = [control, *["reno"] * CROWD]
        flows = [
            flow(stack.transport(c), {"bulk": {}}, start=f"{0.1 * i:g}s")
            for i, c in enumerate(senders)
        ]
        return scenario(stack, shared, flows, seconds, **SETTLED)

    return jobs_of(profile, "crowd", [{"queue": q} for q in DEEP], build, ("bbr",))


def marked(profile: Profile) -> list[Job]:
    """ECN by CoDel, which marks instead of dropping."""

    def build(stack: Stack, control: str, place: Place, _repeat: int) -> dict[str, Any]:
        shared = link(place["mbps"], queue={"codel": {"ecn": True}})
        work = {"bulk": {"bytes": f"{round(1e6 * profile.settings['mb'])}B"}}
        flows = [flow(stack.transport(control, ecn=True), work)]
        return scenario(stack, shared, flows, LIMIT_S)

    # The kernel's BBR ignores marks and does not negotiate them.
    controls = [c for c in CONTROLS if c != "bbr"]
    return jobs_of(profile, "ecn", [{"mbps": x} for x in (MBPS, *RATES[:2])], build, controls)


def paused(profile: Profile) -> list[Job]:
    """An application that writes 8 Mbit/s for two seconds and pauses for one."""

    def build(stack: Stack, control: str, place: Place, _repeat: int) -> dict[str, Any]:
        shared = link(MBPS, queue={"droptail": f"{BDP} packets"}, loss=place["loss"])
        work = {"onoff": {"rate": "8Mbit/s", "on": "2s", "off": "1s"}}
        flows = [flow(stack.transport(control), work)]
        return scenario(stack, shared, flows, profile.settings["pair_s"])

    return jobs_of(profile, "pause", [{"loss": x} for x in (0.0, LOSS)], build)


EVERY = (100, 400, 1600, 6400)
"""Of the response functions: each packet of this number is lost."""


def responses(profile: Profile) -> list[Job]:
    """The mean window of the RFCs' controls when every n-th packet is lost, simulated only."""

    def build(_stack: Stack, control: str, place: Place, _repeat: int) -> dict[str, Any]:
        shared = link(1000.0)
        shared["up"]["loss"] = {"periodic": place["every"]}
        # One acknowledgement for each segment, as in the models.
        tcp = {"congestion": control, "delayed_ack": False}
        seconds = profile.settings["response_s"]
        measure = {"from": f"{seconds / 4:g}s"}
        work = flow({"tcp": tcp}, {"bulk": {}})
        return scenario(SIM, shared, [work], seconds, measure=measure)

    jobs = jobs_of(
        profile, "response", [{"every": n} for n in EVERY], build, ("reno", "cubic"), (SIM,)
    )
    return [j for j in jobs if j.repeat == 0]


EXPERIMENTS = (
    Experiment(
        "loss", "Goodput by loss: 12 Mbit/s, 50 ms each way, no limit of the queue", by_loss
    ),
    Experiment("rate", "Goodput by rate: 0.1% lost", by_rate),
    Experiment("delay", "Goodput by delay: 0.1% lost", by_delay),
    Experiment("queue", "Goodput by the queue's limit, nothing else lost", by_queue),
    Experiment("trace", "Goodput on cellular traces", by_trace),
    Experiment("ecn", "Goodput with CoDel that marks", marked),
    Experiment("pause", "Goodput of an application that pauses", paused),
    Experiment("short", "Completion of short transfers", short),
    Experiment("pair", "Two flows that start apart", pairs),
    Experiment("round-trips", "Two flows with different round trips", different_round_trips),
    Experiment("crowd", "A flow of BBR beside eight of Reno", crowds),
    Experiment("response", "Response functions", responses),
)

SETTINGS: dict[str, Any] = {
    "mb": 8.0,
    "lossy_mb": 4.0,
    "trace_s": 20,
    "trace_repeat": 1,
    "traces": "",
    "pair_s": 40,
    "response_s": 400,
}
QUICK = Profile("quick", "All cells, three seeds; transfers of 8 MB: some 26 minutes of real time.", 3, SETTINGS)  # fmt: skip
FULL = Profile(
    "full",
    "Ten seeds, transfers of 24 MB: hours of real time.",
    10,
    {**SETTINGS, "mb": 24.0, "lossy_mb": 12.0, "trace_s": 60, "pair_s": 120},
)
