"""The runs of the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gargalo.studies import Experiment, Profile
from gargalo.sweeps import Job, derive_seeds

from gargalo_studies.userspace_bbr import traces
from gargalo_studies.userspace_bbr.scenarios import (
    DELAY_MS,
    KERNELS,
    LAB,
    LINUXES,
    OURS,
    SENDERS,
    SIM,
    UNLIMITED,
    WITHOUT_SACK,
    Sender,
    bulk,
    kernel,
    link,
    ours,
    queue,
    rate_of,
    scenario,
    transfer,
    twin,
)
from gargalo_studies.userspace_bbr.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table, Value
    from gargalo.sweeps import Label, Labels

SEED = 2023
LOSSES = (0.0, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2)
RATES = (6.0, 12.0, 18.0, 24.0)
MBPS = 12.0
LOSS = 1e-3
"""Of the runs that vary the rate."""
BDP = 100
"""Packets of the standard link's bandwidth-delay product."""
TRACE_QUEUE = BDP
"""On traces, where without a limit nothing is lost and congestion controls do not differ."""
LONG_MB = 50.0
"""Of the transfers of the work, and of those that a claim about utilisation judges: their start counts little."""
TRACE_LIMITS = (UNLIMITED, TRACE_QUEUE)
"""Of queues on the traces that the order is judged by: mahimahi's default, and the bandwidth-delay product of A."""
MEANS = ("loss", "rate")
"""Experiments whose means and variation are judged."""
SIMULATED = (ours("bbr", "sim", paced=False), twin(kernel("reno")), twin(kernel("cubic")))
"""The senders of the work in the simulator."""
STATIC = 3
"""Runs of cells without randomness: enough for an interval."""


@dataclass(frozen=True, kw_only=True)
class Levels(Traces):
    """How much is sent, how often, and what the work did not vary."""

    mb: float = 12.0
    lossy_mb: float = 6.0
    """Above 0.1% loss."""
    rate_mb: float = 24.0
    """Where the rate varies."""
    trace_s: int = 25
    trace_repeat: int = 8
    lab: bool = True
    """Whether runs in the lab are done."""
    sim_repeat: int = 10
    """Of the work's senders in the simulator, where means are judged."""
    queue_packets: Sequence[int] = (BDP, 10 * BDP)
    competition_s: int = 30
    competition_packets: Sequence[int] = (BDP // 2, BDP, 4 * BDP, 10 * BDP)
    mix_s: int = 120
    """Length of runs with applications."""


def jobs_of(
    profile: Profile,
    experiment: str,
    cells: Iterable[tuple[Sender, Labels]],
    build: Callable[..., ScenarioTable],
) -> list[Job]:
    """Make the jobs of an experiment, whose scenarios are built of sender, repeat and labels.

    Each cell of a sender has the seeds of all others. The n-th packet of a run is lost in all of them or in none, for
    every sender, in both worlds. Simulated senders of the work have more seeds than others.
    """
    levels = Levels.of(profile)
    most = max(profile.repeat, levels.sim_repeat)
    seeds = derive_seeds(SEED, most)
    jobs = []
    for sender, labels in cells:
        if sender.world == "lab" and not levels.lab:
            continue
        chance = labels.get("loss", 1.0) != 0
        many = experiment in MEANS and sender in SIMULATED
        n = (most if many else profile.repeat) if chance else STATIC
        for repeat, seed in enumerate(seeds[:n]):
            made = build(sender, repeat, **labels)
            names = {"experiment": experiment, **sender.labels, **labels}
            jobs.append(Job(names, made, seed, repeat, world=sender.world))
    return jobs


def one_link(
    profile: Profile,
    experiment: str,
    cells: Sequence[Labels],
    senders: Sequence[Sender] = SENDERS,
) -> list[Job]:
    """A transfer over the standard link, or over one with other labels."""
    levels = Levels.of(profile)

    def build(
        sender: Sender,
        repeat: int,
        *,
        queue_packets: int,
        trace: str | None = None,
        mbps: float = MBPS,
        loss: float = 0.0,
        mb: float | None = None,
    ) -> ScenarioTable:
        if trace is not None:
            rate = {"trace": traces.trace_of(profile, trace, repeat)}
            return transfer(sender, rate, queue_packets, 0.0, LONG_MB, levels.trace_s)
        size = mb or size_of(levels, experiment, loss)
        return transfer(sender, rate_of(mbps), queue_packets, loss, size)

    return jobs_of(profile, experiment, [(s, c) for c in cells for s in senders], build)


def size_of(levels: Levels, experiment: str, loss: float) -> float:
    """Return the megabytes of a transfer."""
    if experiment == "rate":
        return levels.rate_mb
    return levels.lossy_mb if loss > LOSS else levels.mb


def standard(**more: Label) -> Labels:
    """Return the labels of the standard link with some changes."""
    return {"mbps": MBPS, "loss": LOSS, "queue_packets": UNLIMITED, **more}


def by_loss(profile: Profile) -> list[Job]:
    """A: loss varies."""
    return one_link(profile, "loss", [standard(loss=x) for x in LOSSES])


RATE_SENDERS = (
    *KERNELS, *(s for s in LAB if s.congestion == "bbr"), *LINUXES, *SIM, *WITHOUT_SACK[1:]
)  # fmt: skip


def by_rate(profile: Profile) -> list[Job]:
    """B: the rate varies."""
    return one_link(profile, "rate", [standard(mbps=x) for x in RATES], RATE_SENDERS)


def by_trace(profile: Profile) -> list[Job]:
    """C: cellular traces."""
    cells: list[Labels] = [
        {"trace": t, "queue_packets": TRACE_QUEUE} for t in traces.names(profile)
    ]
    judged = (kernel("reno"), kernel("cubic"), UNPACED)
    others = tuple(s for s in (*KERNELS, *LAB, *LINUXES, *SIM) if s not in judged)
    # Traces differ much: those that claims speak of have more of them.
    many = replace(profile, repeat=max(profile.repeat, Levels.of(profile).trace_repeat))
    return [
        *one_link(many, "traces", cells, judged),
        *one_link(profile, "traces", cells, others),
    ]


PACING_SENDERS = (
    kernel("bbr"),
    twin(kernel("bbr")),
    *(ours("bbr", w, paced=p) for w in ("lab", "sim") for p in (True, False)),
    *(ours("bbr3", "sim", paced=p) for p in (True, False)),
    *WITHOUT_SACK,
)


def trace_set(profile: Profile) -> list[Job]:
    """Many traces, each once, with two limits of the queue: what the order on traces is judged by."""
    files = traces.set_of(profile)
    cells: list[Labels] = [{"trace": t, "queue_packets": n} for t in files for n in TRACE_LIMITS]

    def build(sender: Sender, _repeat: int, *, trace: str, queue_packets: int) -> ScenarioTable:
        limit_s = Levels.of(profile).trace_s
        return transfer(sender, {"trace": files[trace]}, queue_packets, 0.0, LONG_MB, limit_s)

    jobs = jobs_of(profile, "trace set", [(s, c) for c in cells for s in SIMULATED], build)
    return [j for j in jobs if not j.repeat]


def long_transfers(profile: Profile) -> list[Job]:
    """The effect of pacing and SACK: BBR at 1% loss, 50 MB in every profile."""
    return one_link(profile, "pacing", [standard(loss=LOSSES[-1], mb=LONG_MB)], PACING_SENDERS)


UNPACED = ours("bbr", "lab", paced=False)
QUEUE_SENDERS = (*KERNELS, UNPACED, *LINUXES, *SIM)


def by_queue(profile: Profile) -> list[Job]:
    """Other queues, on the standard link and the traces."""
    sizes = Levels.of(profile).queue_packets
    cells: list[Labels] = [
        {**place, "queue_packets": n} for place in (standard(loss=0.0), standard()) for n in sizes
    ]
    cells += [{"trace": t, "queue_packets": UNLIMITED} for t in traces.names(profile)]
    return one_link(profile, "queue", cells, QUEUE_SENDERS)


RIVALS = ("cubic", "reno")
BBRS = ("bbr", "bbr2", "bbr3")
"""The versions of BBR, the work's first."""


def competing(profile: Profile) -> list[Job]:
    """Two flows over the standard link without random loss, by the queue's limit."""
    levels = Levels.of(profile)

    def build(
        sender: Sender, _repeat: int, *, rival: str, queue_packets: int, first: str
    ) -> ScenarioTable:
        other = Sender(rival, sender.stack, sender.world, paced=False)
        topology: dict[str, Table] = {"simple": {"link": link(rate_of(MBPS), queue_packets)}}
        flows: list[FlowTable] = [
            {**bulk(s, 1), "workload": {"bulk": {}}, "label": label}
            for s, label in ((sender, "mine"), (other, "rival"))
        ]
        # The second begins a second after the first, each of them up to a round trip later.
        flows[first == "rival"]["start"] = "0s"
        flows[first != "rival"]["start"] = "1s"
        made = scenario(topology, flows, sender.hosts(), limit_s=levels.competition_s)
        # Real time has chance of its own.
        return made if sender.world == "lab" else {**made, "start_jitter": "1RTT"}

    senders = (
        kernel("bbr"),
        twin(kernel("bbr")),
        *(ours(c, "sim", paced=True) for c in BBRS),
    )
    cells: list[tuple[Sender, Labels]] = [
        (s, {"rival": r, "queue_packets": n, "first": first})
        for s in senders
        for r in (RIVALS if s.stack == OURS else RIVALS[:1])
        for n in levels.competition_packets
        for first in ("mine", "rival")
    ]
    jobs = jobs_of(profile, "competition", cells, build)
    return [j for j in jobs if j.world == "sim" or (j.repeat or 0) < STATIC]


QUEUES: dict[str, Value] = {
    "droptail": queue(4 * BDP),
    "codel": "codel",
    "pie": "pie",
    "fq-codel": "fq-codel",
}
DOWNLOADS = tuple(
    ours(c, "sim", paced=p)
    for c, p in (("reno", False), ("cubic", False), ("bbr", True), ("bbr3", True))
)


def applications(profile: Profile) -> list[Job]:
    """A call, a game and a download over one queue; nothing is lost at random."""

    def build(sender: Sender, _repeat: int, *, discipline: str) -> ScenarioTable:
        shared = link(rate_of(MBPS), UNLIMITED, discipline=QUEUES[discipline])
        ends: FlowTable = {"from": "client", "to": "server", "transport": {"udp": {}}}
        flows: list[FlowTable] = [
            {**bulk(sender, 1), "workload": {"bulk": {}}},
            {**ends, "label": "call", "workload": {"voice": {}}},
            {
                **ends,
                "label": "game",
                "workload": {"cbr": {"rate": "64kbit/s", "packet_size": "200B"}},
            },
        ]
        limit_s = Levels.of(profile).mix_s
        return scenario({"simple": {"link": shared}}, flows, {}, limit_s=limit_s)

    cells: list[tuple[Sender, Labels]] = [(s, {"discipline": q}) for q in QUEUES for s in DOWNLOADS]
    return jobs_of(profile, "applications", cells, build)


def streaming(profile: Profile) -> list[Job]:
    """A film over the standard link, by loss."""

    def build(sender: Sender, _repeat: int, *, loss: float) -> ScenarioTable:
        topology: dict[str, Table] = {"simple": {"link": link(rate_of(MBPS), UNLIMITED, loss)}}
        film: FlowTable = {**bulk(sender, 1), "workload": {"video": {}}}
        return scenario(topology, [film], {}, limit_s=Levels.of(profile).mix_s)

    cells: list[tuple[Sender, Labels]] = [(s, {"loss": x}) for x in LOSSES for s in DOWNLOADS]
    return jobs_of(profile, "streaming", cells, build)


HOPS = 3


def parking_lot(profile: Profile) -> list[Job]:
    """A flow over three bottlenecks, each shared with a CUBIC; flows start within a round trip of each other."""
    levels = Levels.of(profile)

    def build(sender: Sender, _repeat: int, *, queue_packets: int) -> ScenarioTable:
        near = {"rate": "1Gbit/s", "delay": "1ms"}
        middle: Table = {
            "rate": rate_of(MBPS),
            "delay": f"{DELAY_MS / HOPS:.6g}ms",
            "queue": queue(queue_packets),
        }
        topology: dict[str, Table] = {
            "parking-lot": {"hops": HOPS, "access": near, "bottleneck": middle}
        }
        rival = ours("cubic", "sim", paced=False)
        more: FlowTable = {"workload": {"bulk": {}}}
        flows: list[FlowTable] = [
            {**bulk(sender, 1), **more, "from": "left", "to": "right", "label": "mine"}
        ]
        flows += [
            {**bulk(rival, 1), **more, "from": f"cross{i}", "to": f"sink{i}", "label": "rival"}
            for i in range(HOPS)
        ]
        made = scenario(topology, flows, {}, limit_s=levels.mix_s)
        return {**made, "start_jitter": "1RTT"}

    cells: list[tuple[Sender, Labels]] = [
        (s, {"queue_packets": n}) for n in levels.competition_packets for s in DOWNLOADS
    ]
    return jobs_of(profile, "parking lot", cells, build)


EXPERIMENTS = (
    Experiment("loss", "A: goodput by loss", by_loss),
    Experiment("rate", "B: goodput by rate", by_rate),
    Experiment("traces", "C: cellular traces", by_trace),
    Experiment("trace set", "C: many traces", trace_set),
    Experiment(
        "pacing", "Long transfers of BBR, paced and not, with SACK and without", long_transfers
    ),
    Experiment("queue", "The same with other queues", by_queue),
    Experiment("competition", "Two flows", competing),
    Experiment("applications", "A call and a game beside a download", applications),
    Experiment("streaming", "A film over a lossy link", streaming),
    Experiment("parking lot", "Several bottlenecks", parking_lot),
)
TWINS = tuple((k, twin(k)) for k in KERNELS)
"""Senders of the kernel's and what they are compared with in the simulator."""

QUICK = Profile(
    "quick",
    "All cells; transfers of 12 MB instead of 50 (24 where the rate varies, 6 above 0.1% loss), 25 s of each trace, "
    "four seeds instead of thirty: minutes.",
    4,
    Levels(),
)
FULL = Profile(
    "full",
    "As published: transfers of 50 MB, thirty seeds. The lab needs real time: hours.",
    30,
    Levels(mb=50.0, lossy_mb=50.0, rate_mb=50.0, trace_s=600, competition_s=120, mix_s=300),
)
