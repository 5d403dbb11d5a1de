"""The runs of the study."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gargalo.judging import Profile
from gargalo.studies.model import Experiment
from gargalo.studies.mptcp_schedulers import scenarios as sc
from gargalo.studies.mptcp_schedulers.networks import BACKGROUNDS, hand_over, shared
from gargalo.sweeps.job import Job, derive_seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gargalo.studies.mptcp_schedulers.scenarios import Paths

SEED = 2017
LOSSES = tuple(n / 100 for n in range(13))
TRACE_S = 30
"""Length of the runs whose course is kept."""


def jobs_of(
    profile: Profile,
    experiment: str,
    cells: Iterable[dict[str, Any]],
    build: Callable[[dict[str, Any]], dict[str, Any]],
) -> list[Job]:
    """Make the jobs of an experiment; all cells have the same seeds: the n-th packet of a path is lost in all or none.

    Cells that `differs` have more of them.
    """
    most = max(profile.repeat, profile.settings["repeat_unsteady"])
    seeds = derive_seeds(SEED, most)
    jobs = []
    for labels in cells:
        made = build(labels)
        named = {"experiment": experiment, **labels}
        repeats = most if differs(experiment, labels) else profile.repeat
        jobs += [Job(named, made, seed, repeat) for repeat, seed in enumerate(seeds[:repeats])]
    return jobs


def differs(experiment: str, labels: dict[str, Any]) -> bool:
    """Whether a cell that a claim needs differs much from seed to seed: paths without loss, where queues overflow."""
    match experiment:
        case "mixed" | "mesh":
            return int(labels.get("exp", 8)) <= len(sc.EXPS) // 2
        case "schedulers":
            return bool(labels["mesh"] == sc.SINGLE)
        case "assumptions":
            return float(labels.get("loss", 1.0)) <= LOSSES[1] and labels["variant"] in DECIDING
        case "background":
            pair = labels["congestion"] in (sc.LIA, "cubic") and labels["scheduler"] == sc.LL
            return bool(pair and labels["background"] == "tcp")
        case "hand-over":
            return True
    return False


def paths_of(labels: dict[str, Any]) -> Paths:
    """Return the paths that labels speak of."""
    return sc.mixed(labels["exp"]) if "exp" in labels else sc.congested(labels["loss"])


UNEVEN = (3, 4)
"""Of E2: no loss, rates differ; the first overflows of such different queues have long effects."""


def size_of(profile: Profile, labels: dict[str, Any]) -> float:
    """Return the megabytes of an upload: without loss the start lasts longer, so that it is longer."""
    if labels.get("exp") in UNEVEN:
        name = "uneven_mb"
    else:
        name = "mb" if max(paths_of(labels).losses) > 0 else "clean_mb"
    return float(profile.settings[name])


def upload(profile: Profile, labels: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One MPTCP upload as its labels say."""
    paths = paths_of(labels)
    transport = sc.mptcp(labels["congestion"], labels["scheduler"], labels["mesh"], **more)
    return sc.transfer(paths, transport, size_of(profile, labels))


def cells_of(
    places: Iterable[dict[str, Any]],
    schedulers: Sequence[str] = sc.SCHEDULERS,
    congestion: Sequence[str] = sc.COUPLED,
    meshes: Sequence[str] = (sc.FULL,),
) -> list[dict[str, Any]]:
    """Combine places with senders."""
    return [
        {**place, "congestion": c, "scheduler": s, "mesh": m}
        for place in places
        for m in meshes
        for c in congestion
        for s in schedulers
    ]


def fewer(profile: Profile) -> Profile:
    """Return the profile for what the work did not have."""
    return replace(profile, repeat=min(profile.repeat, profile.settings["repeat_new"]))


def plain(profile: Profile, experiment: str, cells: Iterable[dict[str, Any]]) -> list[Job]:
    """MPTCP uploads over the five paths."""
    return jobs_of(profile, experiment, cells, lambda labels: upload(profile, labels))


ALL_LOSSES: tuple[dict[str, Any], ...] = tuple({"loss": x} for x in LOSSES)
ALL_EXPS: tuple[dict[str, Any], ...] = tuple({"exp": n} for n in sc.EXPS)
FEW: tuple[dict[str, Any], ...] = (*({"loss": x} for x in (0.0, 0.01, 0.06)), *({"exp": n} for n in (3, 4, 7, 8)))  # fmt: skip
"""Where schedulers and controls that the work did not have are measured."""


def by_loss(profile: Profile) -> list[Job]:
    """E1."""
    return plain(profile, "congested", cells_of(ALL_LOSSES))


def by_exp(profile: Profile) -> list[Job]:
    """E2."""
    return plain(profile, "mixed", cells_of(ALL_EXPS))


def by_mesh(profile: Profile) -> list[Job]:
    """One subflow a path instead of five, with the kernel's scheduler."""
    cells = cells_of((*ALL_LOSSES[:2], *ALL_EXPS), sc.SCHEDULERS[:1], meshes=(sc.SINGLE,))
    return plain(profile, "mesh", cells)


def single_path(profile: Profile) -> list[Job]:
    """One TCP on the best path."""

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        paths = paths_of(labels)
        return sc.transfer(paths.only(paths.best), sc.tcp(labels["congestion"]), size_of(profile, labels))  # fmt: skip

    cells = [{**p, "congestion": c} for p in (*ALL_LOSSES[:1], *ALL_EXPS) for c in ("reno", "cubic")]  # fmt: skip
    return jobs_of(profile, "single path", cells, build)


def other_schedulers(profile: Profile) -> list[Job]:
    """Schedulers the work did not have, and all of them with one CUBIC a path."""
    cells = [
        *cells_of(FEW, sc.OTHERS, (sc.LIA,)),
        *cells_of(FEW, (*sc.SCHEDULERS, *sc.OTHERS), ("cubic",), (sc.SINGLE,)),
    ]
    return plain(fewer(profile), "schedulers", cells)


def uncoupled(profile: Profile) -> list[Job]:
    """Congestion controls that are not coupled."""
    return plain(fewer(profile), "uncoupled", cells_of(FEW, (sc.LL,), sc.UNCOUPLED, (sc.FULL, sc.SINGLE)))  # fmt: skip


ASSUMED = "as assumed"
VARIANTS: dict[str, tuple[sc.Shaping, dict[str, Any]]] = {
    "no penalisation": (sc.ASSUMED, {"penalisation": False}),
    "no opportunistic retransmission": (sc.ASSUMED, {"opportunistic_retransmission": False, "penalisation": False}),
    "window 16 MiB": (sc.ASSUMED, sc.tcp_options(16 << 20)),
    "queue 100 packets": (sc.Shaping(queue="100 packets"), {}),
    "queue 50 ms": (sc.Shaping(queue="50ms"), {}),
    "loss and delay both ways": (sc.Shaping(both_ways=True), {}),
    "RACK": (sc.ASSUMED, {"recovery": "rack-tlp"}),
}  # fmt: skip
"""Other assumptions about what the work does not say, and about what our stack does differently from the kernel."""
DECIDING = ("no penalisation", "RACK")
"""Variants that explain a claim."""
DOUBTFUL: tuple[dict[str, Any], ...] = (
    *cells_of(ALL_LOSSES[:2], (sc.LL,)),
    *cells_of(({"loss": 0.04}, {"loss": 0.08}), (sc.LL, sc.LWS), (sc.OLIA, sc.WVEGAS)),
    *cells_of(({"exp": 3}, {"exp": 4}), (sc.LL,), (sc.OLIA,), meshes=(sc.FULL, sc.SINGLE)),
)
"""Cells by which claims are decided."""


def assumptions(profile: Profile) -> list[Job]:
    """The cells that decide claims, under other assumptions."""

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        paths = paths_of(labels)
        shaping, more = VARIANTS[labels["variant"]]
        transport = sc.mptcp(labels["congestion"], labels["scheduler"], labels["mesh"], **more)
        return sc.transfer(paths, transport, size_of(profile, labels), shaping=shaping)

    cells = [{"variant": v, **cell} for v in VARIANTS for cell in DOUBTFUL]
    return jobs_of(fewer(profile), "assumptions", cells, build)


def background(profile: Profile) -> list[Job]:
    """Others on the paths: a TCP on each, or UDP at a third of each path's rate."""

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        transport = sc.mptcp(labels["congestion"], labels["scheduler"], labels["mesh"])
        return shared(paths_of(labels), transport, labels["background"], profile.settings["background_s"])  # fmt: skip

    places = ({"loss": 0.0}, {"exp": 4})
    schedulers = (*sc.SCHEDULERS, sc.OTHERS[0], "adaptive")
    cells = [
        {"background": b, **cell}
        for b in BACKGROUNDS
        for cell in cells_of(places, schedulers, (sc.LIA,), (sc.SINGLE,))
    ]
    cells += [
        {"background": b, **cell}
        for b in BACKGROUNDS
        for cell in cells_of(places, (sc.LL,), (*sc.COUPLED[1:], "cubic"), (sc.SINGLE,))
    ]
    return jobs_of(fewer(profile), "background", cells, build)


def hand_overs(profile: Profile) -> list[Job]:
    """An address goes and comes back during an upload."""
    cells = [
        {"congestion": c, "scheduler": s, "backup": b}
        for c in (sc.LIA, "cubic")
        for s in (sc.LL, sc.OTHERS[0], "redundant")
        for b in (False, True)
    ]
    return jobs_of(fewer(profile), "hand-over", cells, lambda x: hand_over(x["congestion"], x["scheduler"], backup=x["backup"]))  # fmt: skip


QUIC_CONTROLS = ("reno", "cubic")


def quic(profile: Profile) -> list[Job]:
    """QUIC over several paths beside MPTCP with one subflow a path."""

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        paths = paths_of(labels)
        control, protocol = labels["congestion"], labels["protocol"]
        buffers = f"{sc.WINDOW}B"
        if protocol == "quic":
            made: dict[str, Any] = {
                "quic": {
                    "multipath": True,
                    "congestion": control,
                    "connection_window": buffers,
                    "stream_window": buffers,
                    "send_window": buffers,
                }
            }
        else:
            scheduler = sc.LL if protocol.endswith("2017") else sc.OTHERS[0]
            made = sc.mptcp(control, scheduler, sc.SINGLE)
            if scheduler != sc.LL:
                made["mptcp"] |= {"recovery": "rack-tlp", "probe_interval": True}
        return sc.transfer(paths, made, size_of(profile, labels))

    protocols = ("quic", "mptcp 2017", "mptcp today")
    cells = [{**p, "congestion": c, "protocol": n} for p in FEW for c in QUIC_CONTROLS for n in protocols]  # fmt: skip
    return jobs_of(fewer(profile), "quic", cells, build)


def traces(profile: Profile) -> list[Job]:
    """Runs whose course is kept, for figures and explanations."""

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        transport = sc.mptcp(labels["congestion"], labels["scheduler"], labels["mesh"])
        record = {"flows": True, "links": True, "events": False, "interval": "100ms"}
        return sc.transfer(paths_of(labels), transport, 1e5, limit_s=TRACE_S, record=record)

    cells = [
        *cells_of(({"loss": 0.0}, {"loss": 0.01}, {"exp": 4}), sc.SCHEDULERS, (sc.OLIA,), (sc.FULL,)),
        *cells_of(({"loss": 0.0}, {"loss": 0.01}, {"exp": 4}), sc.SCHEDULERS[:1], (sc.WVEGAS, sc.BALIA), (sc.FULL,)),
        *cells_of(({"loss": 0.0}, {"exp": 4}), sc.SCHEDULERS[:1], (sc.OLIA,), (sc.SINGLE,)),
    ]  # fmt: skip
    return jobs_of(replace(profile, repeat=1), "traces", cells, build)


EXPERIMENTS = (
    Experiment("congested", "E1: congested paths", by_loss),
    Experiment("mixed", "E2: loss, rate and delay alike or different", by_exp),
    Experiment("mesh", "Single mesh", by_mesh),
    Experiment("single path", "One TCP on the best path", single_path),
    Experiment("schedulers", "Other schedulers", other_schedulers),
    Experiment("uncoupled", "Uncoupled congestion control", uncoupled),
    Experiment("assumptions", "Other assumptions", assumptions),
    Experiment("background", "Beside TCP and UDP", background),
    Experiment("hand-over", "An address goes and comes back", hand_overs),
    Experiment("quic", "MPQUIC beside MPTCP", quic),
    Experiment("traces", "The course of some runs", traces),
)
QUICK = Profile(
    "quick",
    "All cells; uploads of 60 MB instead of 1.5 GB, 200 MB where nothing is lost at random, 600 MB in Exp3 and Exp4; five "
    "seeds, three of what the work did not have, eight where they differ much.",
    5,
    {
        "mb": 60.0,
        "clean_mb": 200.0,
        "uneven_mb": 600.0,
        "background_s": 25,
        "repeat_new": 3,
        "repeat_unsteady": 8,
    },
)
FULL = Profile(
    "full",
    "As published: uploads of 1.5 GB; five seeds, eight where they differ much.",
    5,
    {
        "mb": 1500.0,
        "clean_mb": 1500.0,
        "uneven_mb": 1500.0,
        "background_s": 120,
        "repeat_new": 5,
        "repeat_unsteady": 8,
    },
)

__all__ = ["EXPERIMENTS", "FULL", "QUICK"]
