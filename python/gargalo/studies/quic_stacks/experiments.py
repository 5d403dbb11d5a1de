"""The runs of the study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.judging import Profile
from gargalo.studies.model import Experiment
from gargalo.sweeps.job import Job, derive_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SEED = 9000
ORDER = ("noq", "aioquic", "ngtcp2", "quiche", "quinn")
"""Of colours; other stacks come after these."""
CONGESTION = "cubic"
RATE_BPS = 20e6
RTT_S = 0.05
PACKET_BITS = 8 * 1500
BUFFERS = (0.5, 1.0, 4.0)
"""In bandwidth-delay products."""
LATE_MS = (0, 2, 5, 10, 20)
"""How late one packet in fifty is; 0: none is."""
REORDERED = 0.02
OBJECTS = 30
OBJECT_SIZE = "20kB"
PAGE_LOSS = 0.01

QUICK = Profile(
    "quick", "a few seeds, half a minute each, minutes in all", 3, {"length_s": 20, "late_ms": [0, 5, 20]}
)  # fmt: skip
FULL = Profile(
    "full", "all levels, ten seeds, a minute each", 10, {"length_s": 60, "late_ms": list(LATE_MS)}
)


def stacks() -> list[str]:
    """Return the stacks that are here and have this congestion control."""
    from gargalo import interop

    known = interop.known().values()
    found = [s.name for s in known if CONGESTION in s.congestion and not s.broken]
    return sorted(found, key=lambda n: (ORDER.index(n) if n in ORDER else len(ORDER), n))


def buffer(bdp: float) -> dict[str, str]:
    """Return a tail-drop queue of so many bandwidth-delay products."""
    return {"droptail": f"{round(bdp * RATE_BPS * RTT_S / PACKET_BITS)} packets"}


def quic(stack: str) -> dict[str, Any]:
    """Return a transport."""
    return {"quic": {"stack": stack, "congestion": CONGESTION}}


def one(profile: Profile, stack: str, **link: Any) -> dict[str, Any]:
    """Return a flow that uploads until the end."""
    made = {"rate": f"{RATE_BPS:.0f}bit/s", "delay": f"{RTT_S / 2 * 1e3:g}ms", "queue": buffer(1.0)}
    return {
        "name": "quic-stacks",
        "duration": f"{profile.settings['length_s']}s",
        "topology": {"simple": {"link": {**made, **link}}},
        "flows": [{"from": "client", "to": "server", "label": stack, "transport": quic(stack)}],
    }


def jobs(
    profile: Profile,
    name: str,
    cells: Iterable[dict[str, Any]],
    build: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> list[Job]:
    """Return the runs of an experiment; all cells have the same seeds."""
    seeds = derive_seeds(SEED, profile.repeat)
    return [
        Job({"experiment": name, **labels}, made, seed, repeat)
        for labels in cells
        for made in [build(labels)]
        for repeat, seed in enumerate(seeds)
    ]


def alone(profile: Profile) -> list[Job]:
    """One flow, three buffers, a packet in ten thousand lost, so that seeds differ."""
    cells = [{"stack": s, "buffer": b} for b in BUFFERS for s in stacks()]
    return jobs(
        profile,
        "alone",
        cells,
        lambda c: one(profile, c["stack"], queue=buffer(c["buffer"]), loss=1e-4),
    )


def versus(profile: Profile) -> list[Job]:
    """Every two stacks at one bottleneck, the second half a second after the first."""
    names = stacks()

    def pair(labels: Mapping[str, Any]) -> dict[str, Any]:
        flows = [
            {
                "from": f"left{i}",
                "to": f"right{i}",
                "label": label,
                "start": f"{i / 2}s",
                "transport": quic(labels[label]),
            }
            for i, label in enumerate(("stack", "against"))
        ]
        link = {"rate": f"{RATE_BPS:.0f}bit/s", "delay": "20ms", "queue": buffer(1.0), "loss": 1e-5}
        return {
            "name": "quic-stacks",
            "duration": f"{2 * profile.settings['length_s']}s",
            "topology": {
                "dumbbell": {"pairs": 2, "access": {"delay": "2500us"}, "bottleneck": link}
            },
            "flows": flows,
        }

    cells = [{"stack": a, "against": b} for a in names for b in names]
    return jobs(profile, "versus", cells, pair)


def page(profile: Profile) -> list[Job]:
    """Thirty objects of 20 kB on streams of one connection, over a path that loses a packet in a hundred."""

    def build(labels: Mapping[str, Any]) -> dict[str, Any]:
        made = one(profile, labels["stack"], loss=PAGE_LOSS)
        work = {"request": {"objects": OBJECTS, "size": OBJECT_SIZE, "order": "multiplexed"}}
        return {**made, "flows": [{**f, "workload": work} for f in made["flows"]]}

    return jobs(profile, "page", [{"stack": s} for s in stacks()], build)


def late(profile: Profile) -> list[Job]:
    """A packet in fifty comes late, none is lost in the network: what is declared lost was not."""

    def build(labels: Mapping[str, Any]) -> dict[str, Any]:
        by = labels["late_ms"]
        more = {"reorder": {"probability": REORDERED, "late": f"{by}ms"}} if by else {}
        return one(profile, labels["stack"], queue=buffer(4.0), **more)

    cells = [{"stack": s, "late_ms": x} for x in profile.settings["late_ms"] for s in stacks()]
    return jobs(profile, "late", cells, build)


EXPERIMENTS = (
    Experiment("alone", "One flow alone: 20 Mbit/s, 50 ms, three buffers", alone),
    Experiment("versus", "Two stacks at one bottleneck", versus),
    Experiment("page", "Thirty objects of 20 kB, 1% loss", page),
    Experiment("late", "One packet in fifty late, none lost", late),
)
