"""The runs of the study."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gargalo.studies import Experiment, Profile, Settings
from gargalo.sweeps import Job, derive_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gargalo.studies import FlowTable, ScenarioTable, Table, Transport, Value
    from gargalo.sweeps import Labels

SEED = 9000
ORDER = ("noq", "aioquic", "ngtcp2", "quiche", "quinn")
"""Of colours; other stacks come after these."""
CONGESTION = "cubic"
OWN = {"noq": "noq-cubic"}
"""What a stack's own CUBIC is called where it has another name; `cubic` over noq is the one of this project."""
DATAGRAM = "1200B"
"""UDP payload of a full packet in all stacks, without discovery of larger ones, which not all have."""
FULL_PACKET_BYTES = 1228
"""With IP and UDP headers."""
RATE_BPS = 20e6
RTT_S = 0.05
BUFFERS = (0.5, 1.0, 4.0)
"""In bandwidth-delay products."""
LATE_MS = (0, 2, 5, 10, 20)
"""How late one packet in fifty is; 0: none is."""
REORDERED = 0.02
ASKED_BPS = 0.75 * RATE_BPS
"""What the application of the flow with late packets sends: less than the link carries, so that no queue is full."""
ENOUGH = "5MB"
"""A queue of 2 s, for the flow with late packets."""
OBJECTS = 30
OBJECT_SIZE = "20kB"
PAGE_LOSS = 0.01
PAGES = 40
"""Pages of each repeat: one page is a short run, and its time depends on which packets are lost."""


@dataclass(frozen=True, kw_only=True)
class Levels(Settings):
    """How long runs are, and what queues count."""

    length_s: int = 20
    """Two flows have twice as long."""
    late_ms: Sequence[int] = (0, 5, 20)
    queue_in_packets: bool = False
    """Instead of bytes."""


QUICK = Profile("quick", "five seeds, 20 s each, two flows 40 s, 200 pages", 5, Levels())
FULL = Profile(
    "full",
    "all levels, ten seeds, a minute each, two flows two minutes, 400 pages",
    10,
    Levels(length_s=60, late_ms=LATE_MS),
)


def stacks() -> list[str]:
    """Return the stacks that are here and have this congestion control."""
    from gargalo import interop

    known = interop.known().values()
    found = [s.name for s in known if CONGESTION in s.congestion and not s.broken]
    return sorted(found, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))


def queue_of(profile: Profile, bdp: float) -> dict[str, str]:
    """Return a tail-drop queue of so many bandwidth-delay products, in bytes or in full packets."""
    size = bdp * RATE_BPS * RTT_S / 8
    if Levels.of(profile).queue_in_packets:
        return {"droptail": f"{size / FULL_PACKET_BYTES:.0f} packets"}
    return {"droptail": f"{size:.0f}B"}


def quic(stack: str) -> Transport:
    """Return a transport."""
    return {
        "quic": {
            "stack": stack,
            "congestion": OWN.get(stack, CONGESTION),
            "datagram_size": DATAGRAM,
            "mtu_discovery": False,
        }
    }


def one(profile: Profile, stack: str, **link: Value) -> ScenarioTable:
    """Return a flow that uploads until the end."""
    made: Table = {
        "rate": f"{RATE_BPS:.0f}bit/s",
        "delay": f"{RTT_S / 2 * 1e3:g}ms",
        "queue": queue_of(profile, 1.0),
    }
    return {
        "name": "quic-stacks",
        "duration": f"{Levels.of(profile).length_s}s",
        "topology": {"simple": {"link": {**made, **link}}},
        "flows": [{"from": "client", "to": "server", "label": stack, "transport": quic(stack)}],
    }


def jobs(
    profile: Profile,
    name: str,
    cells: Iterable[Labels],
    build: Callable[..., ScenarioTable],
    times: int = 1,
) -> list[Job]:
    """Return the runs of an experiment, so many for each repeat, built of their labels; cells have the same seeds."""
    seeds = derive_seeds(SEED, times * profile.repeat)
    return [
        Job({"experiment": name, **labels}, made, seed, repeat)
        for labels in cells
        for made in [build(**labels)]
        for repeat, seed in enumerate(seeds)
    ]


def alone(profile: Profile) -> list[Job]:
    """One flow, three buffers, a packet in ten thousand lost, so that seeds differ."""

    def build(stack: str, buffer: float) -> ScenarioTable:
        return one(profile, stack, queue=queue_of(profile, buffer), loss=1e-4)

    cells: list[Labels] = [{"stack": s, "buffer": b} for b in BUFFERS for s in stacks()]
    return jobs(profile, "alone", cells, build)


def versus(profile: Profile) -> list[Job]:
    """Every two stacks at one bottleneck, the second half a second to one and a half after the first."""
    names = stacks()

    def pair(stack: str, against: str) -> ScenarioTable:
        flows: list[FlowTable] = [
            {
                "from": f"left{i}",
                "to": f"right{i}",
                "label": label,
                "start": f"{i / 2}s",
                "transport": quic(name),
            }
            for i, (label, name) in enumerate((("stack", stack), ("against", against)))
        ]
        link: Table = {
            "rate": f"{RATE_BPS:.0f}bit/s",
            "delay": "20ms",
            "queue": queue_of(profile, 1.0),
            "loss": 1e-5,
        }
        return {
            "name": "quic-stacks",
            "start_jitter": "1s",
            "duration": f"{2 * Levels.of(profile).length_s}s",
            "topology": {
                "dumbbell": {"pairs": 2, "access": {"delay": "2500us"}, "bottleneck": link}
            },
            "flows": flows,
        }

    cells: list[Labels] = [{"stack": a, "against": b} for a in names for b in names]
    return jobs(profile, "versus", cells, pair)


def page(profile: Profile) -> list[Job]:
    """Thirty objects of 20 kB on streams of one connection, over a path that loses a packet in a hundred each way."""

    def build(stack: str) -> ScenarioTable:
        made = one(profile, stack, loss=PAGE_LOSS)
        work: Table = {"request": {"objects": OBJECTS, "size": OBJECT_SIZE, "order": "multiplexed"}}
        return {**made, "flows": [{**f, "workload": work} for f in made["flows"]]}

    return jobs(profile, "page", [{"stack": s} for s in stacks()], build, PAGES)


def late(profile: Profile) -> list[Job]:
    """A packet in fifty comes late, none is dropped: what is declared lost was not."""

    def build(stack: str, late_ms: int) -> ScenarioTable:
        reorder: Table = {"probability": REORDERED, "late": f"{late_ms}ms"}
        more: Table = {"reorder": reorder} if late_ms else {}
        made = one(profile, stack, queue={"droptail": ENOUGH}, **more)
        work: Table = {"cbr": {"rate": f"{ASKED_BPS:.0f}bit/s"}}
        return {**made, "flows": [{**f, "workload": work} for f in made["flows"]]}

    cells: list[Labels] = [
        {"stack": s, "late_ms": x} for x in Levels.of(profile).late_ms for s in stacks()
    ]
    return jobs(profile, "late", cells, build)


EXPERIMENTS = (
    Experiment("alone", "One flow alone: 20 Mbit/s, 50 ms, three buffers", alone),
    Experiment("versus", "Two stacks at one bottleneck", versus),
    Experiment("page", "Thirty objects of 20 kB, 1% loss each way", page),
    Experiment("late", "15 Mbit/s asked for, one packet in fifty late, none dropped", late),
)
