"""The runs of the study: each place with every control, in the kernel, in our stack in the lab, and simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from gargalo_studies.userspace_bbr.traces import Traces, trace_of
from gargalo_studies.userspace_bbr.traces import names as trace_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table
    from gargalo.sweeps import Labels

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
SETTLED: ScenarioTable = {"measure": {"from": f"{2 * SECOND_S:g}s"}, "start_jitter": "1RTT"}
"""Of flows that share a bottleneck: shares are of the time from then on, and repeats start at other times."""
RTTS_MS = (40.0, 160.0)
"""Of two flows with different round trips."""
CROWD = 8
"""Flows of Reno beside one of BBR."""


@dataclass(frozen=True, kw_only=True)
class Levels(Traces):
    """How much is sent, and for how long."""

    mb: float = 8.0
    lossy_mb: float = 4.0
    """Where more than 0.1% are lost."""
    trace_s: int = 20
    trace_repeat: int = 1
    pair_s: int = 40
    """Of flows that share a bottleneck, and of pauses."""
    response_s: int = 400


def jobs_of(
    profile: Profile,
    experiment: str,
    places: Iterable[Labels],
    build: Callable[..., ScenarioTable],
    controls: Sequence[str] = CONTROLS,
    stacks: Sequence[Stack] = STACKS,
) -> list[Job]:
    """Make the jobs of an experiment, whose scenarios are built of stack, control, repeat and place.

    All senders of a place have the same seeds, so that the n-th packet is lost in all of them or in none.
    """
    jobs = []
    seeds = derive_seeds(SEED, profile.repeat)
    for place in places:
        for control in controls:
            for stack in stacks:
                for repeat, seed in enumerate(seeds):
                    made = build(stack, control, repeat, **place)
                    labels: Labels = {"experiment": experiment, **place, "control": control}
                    labels |= {"stack": stack.name, "world": stack.world}
                    jobs.append(Job(labels, made, seed, repeat, world=stack.world))
    return jobs


def transfers(profile: Profile, experiment: str, places: Iterable[Labels]) -> list[Job]:
    """One transfer at each place: less where loss leaves little."""
    levels = Levels.of(profile)

    def build(
        stack: Stack,
        control: str,
        _repeat: int,
        *,
        mbps: float = MBPS,
        delay_ms: float = DELAY_MS,
        loss: float = 0.0,
        queue_packets: int | None = None,
        kb: float = 0,
    ) -> ScenarioTable:
        queue = {"droptail": f"{queue_packets} packets"} if queue_packets else None
        shared = link(mbps, delay_ms=delay_ms, queue=queue, loss=loss)
        mb = kb / 1e3 or (levels.lossy_mb if loss > LOSS else levels.mb)
        work: Table = {"bulk": {"bytes": f"{round(1e6 * mb)}B"}}
        return scenario(stack, simple(shared), [flow(stack.transport(control), work)], LIMIT_S)

    return jobs_of(profile, experiment, places, build)


def simple(shared: Table) -> dict[str, Table]:
    """A topology of one link."""
    return {"simple": {"link": shared}}


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
    places: list[Labels] = [
        {"kb": kb, "mbps": rate, "queue_packets": BDP} for kb in SHORT_KB for rate in SHORT_MBPS
    ]
    return transfers(profile, "short", places)


def by_trace(profile: Profile) -> list[Job]:
    """Cellular traces with a queue of 100 packets."""

    def build(stack: Stack, control: str, repeat: int, *, trace: str) -> ScenarioTable:
        shared = link(
            {"trace": trace_of(profile, trace, repeat)}, queue={"droptail": f"{BDP} packets"}
        )
        work = flow(stack.transport(control), {"bulk": {}})
        return scenario(stack, simple(shared), [work], Levels.of(profile).trace_s)

    return jobs_of(profile, "trace", [{"trace": t} for t in trace_names(profile)], build)


def pairs(profile: Profile) -> list[Job]:
    """Two flows of one control that start apart, on every queue; shares are of the time with both settled."""

    def build(stack: Stack, control: str, _repeat: int, *, queue: str) -> ScenarioTable:
        mbps = RATES[2] if queue in DEEP else MBPS
        shared = link(mbps, queue=(QUEUES | DEEP)[queue], jitter=processing(mbps))
        both: list[FlowTable] = [
            {**flow(stack.transport(control), {"bulk": {}}), "label": label, "start": f"{start:g}s"}
            for label, start in (("first", 0.0), ("second", SECOND_S))
        ]
        return scenario(stack, simple(shared), both, Levels.of(profile).pair_s, SETTLED)

    return jobs_of(profile, "pair", [{"queue": q} for q in (*QUEUES, *DEEP)], build)


def different_round_trips(profile: Profile) -> list[Job]:
    """Two flows of one control that start together, with different round trips."""

    def build(stack: Stack, control: str, _repeat: int, *, queue_packets: int) -> ScenarioTable:
        topology = round_trips(RTTS_MS, queue_packets)
        both: list[FlowTable] = [
            {**flow(stack.transport(control), {"bulk": {}}), "from": f"left{i}", "to": f"right{i}"}
            for i in range(len(RTTS_MS))
        ]
        return scenario(stack, topology, both, Levels.of(profile).pair_s, SETTLED)

    places: list[Labels] = [{"queue_packets": n} for n in (BDP // 2, BDP, 4 * BDP)]
    return jobs_of(profile, "round-trips", places, build)


def crowds(profile: Profile) -> list[Job]:
    """A BBR flow beside eight of Reno, which start with it."""

    def build(stack: Stack, control: str, _repeat: int, *, queue: str) -> ScenarioTable:
        shared = link(RATES[2], queue=DEEP[queue], jitter=processing(RATES[2]))
        flows: list[FlowTable] = [
            {**flow(stack.transport(c), {"bulk": {}}), "start": f"{0.1 * i:g}s"}
            for i, c in enumerate([control, *["reno"] * CROWD])
        ]
        return scenario(stack, simple(shared), flows, Levels.of(profile).pair_s, SETTLED)

    return jobs_of(profile, "crowd", [{"queue": q} for q in DEEP], build, ("bbr",))


def marked(profile: Profile) -> list[Job]:
    """ECN by CoDel, which marks instead of dropping."""

    def build(stack: Stack, control: str, _repeat: int, *, mbps: float) -> ScenarioTable:
        shared = link(mbps, queue={"codel": {"ecn": True}})
        work: Table = {"bulk": {"bytes": f"{round(1e6 * Levels.of(profile).mb)}B"}}
        flows = [flow(stack.transport(control, ecn=True), work)]
        return scenario(stack, simple(shared), flows, LIMIT_S)

    # The kernel's BBR ignores marks and does not negotiate them.
    controls = [c for c in CONTROLS if c != "bbr"]
    return jobs_of(profile, "ecn", [{"mbps": x} for x in (MBPS, *RATES[:2])], build, controls)


def paused(profile: Profile) -> list[Job]:
    """An application that writes 8 Mbit/s for two seconds and pauses for one."""

    def build(stack: Stack, control: str, _repeat: int, *, loss: float) -> ScenarioTable:
        shared = link(MBPS, queue={"droptail": f"{BDP} packets"}, loss=loss)
        work: Table = {"onoff": {"rate": "8Mbit/s", "on": "2s", "off": "1s"}}
        flows = [flow(stack.transport(control), work)]
        return scenario(stack, simple(shared), flows, Levels.of(profile).pair_s)

    return jobs_of(profile, "pause", [{"loss": x} for x in (0.0, LOSS)], build)


EVERY = (100, 400, 1600, 6400)
"""Of the response functions: each packet of this number is lost."""


def responses(profile: Profile) -> list[Job]:
    """The mean window of the RFCs' controls when every n-th packet is lost, simulated only."""

    def build(_stack: Stack, control: str, _repeat: int, *, every: int) -> ScenarioTable:
        shared = link(1000.0, loss={"periodic": every})
        # One acknowledgement for each segment, as in the models.
        tcp: Table = {"congestion": control, "delayed_ack": False}
        seconds = Levels.of(profile).response_s
        work = flow({"tcp": tcp}, {"bulk": {}})
        more: ScenarioTable = {"measure": {"from": f"{seconds / 4:g}s"}}
        return scenario(SIM, simple(shared), [work], seconds, more)

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

QUICK = Profile(
    "quick",
    "All cells, three seeds; transfers of 8 MB: some 26 minutes of real time.",
    3,
    Levels(),
)
FULL = Profile(
    "full",
    "Ten seeds, transfers of 24 MB: hours of real time.",
    10,
    Levels(mb=24.0, lossy_mb=12.0, trace_s=60, pair_s=120),
)
