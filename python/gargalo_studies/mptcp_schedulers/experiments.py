"""The runs of the study."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gargalo.studies import Experiment, Profile
from gargalo.sweeps import Job, derive_seeds

from gargalo_studies.mptcp_schedulers import scenarios as sc
from gargalo_studies.mptcp_schedulers.networks import BACKGROUNDS, hand_over, shared
from gargalo_studies.mptcp_schedulers.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gargalo_studies.mptcp_schedulers.scenarios import Paths

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
        case "penalisation" | "hand-over":
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


def losses(profile: Profile) -> list[dict[str, Any]]:
    """Return the places of E1."""
    return [{"loss": x} for x in LOSSES if x in profile.settings["losses"]]


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
    return plain(profile, "congested", cells_of(losses(profile)))


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
    cells = cells_of(FEW, (*sc.SCHEDULERS, *sc.OTHERS[:2]), ("cubic",), (sc.SINGLE,))
    if profile.settings["beyond"]:
        cells += cells_of(FEW, sc.OTHERS, (sc.LIA,))
        cells += cells_of(FEW, sc.OTHERS[2:], ("cubic",), (sc.SINGLE,))
    return plain(fewer(profile), "schedulers", cells)


def uncoupled(profile: Profile) -> list[Job]:
    """Congestion controls that are not coupled."""
    if not profile.settings["beyond"]:
        return []
    return plain(fewer(profile), "uncoupled", cells_of(FEW, (sc.LL,), sc.UNCOUPLED, (sc.FULL, sc.SINGLE)))  # fmt: skip


KERNEL, OURS = "this machine's kernel, lab", "simulated"
"""Whose Multipath TCP sends, in the experiment on today's kernel."""


def kernel(profile: Profile) -> list[Job]:
    """Today's kernel in the lab, and the stack of a reading in the same networks: CUBIC, one subflow a path."""
    few = fewer(profile)

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        transport = sc.mptcp(labels["congestion"], sc.LL, labels["mesh"])
        made = sc.transfer(paths_of(labels), transport, few.settings["lab_mb"])
        return made | ({"lab": {"stack": "kernel"}} if labels["sender"] == KERNEL else {})

    cells = [
        {**place, "congestion": "cubic", "mesh": sc.SINGLE, "sender": sender}
        for sender in (KERNEL, OURS)
        for place in FEW
    ]
    jobs = jobs_of(few, "kernel", cells, build)
    return [replace(j, world="lab") if j.labels["sender"] == KERNEL else j for j in jobs]


def penalisation(profile: Profile) -> list[Job]:
    """E1 without penalisation."""
    cells = cells_of(ALL_LOSSES[:2], (sc.LL,), sc.COUPLED[:3])
    return jobs_of(profile, "penalisation", cells, lambda x: upload(profile, x, penalisation=False))


def messages(profile: Profile) -> list[Job]:
    """Messages of 3 MB one after another on one connection, instead of one upload."""

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        transport = sc.mptcp(labels["congestion"], labels["scheduler"], labels["mesh"])
        flow = sc.messages(transport, size_of(profile, labels))
        return sc.scenario(sc.topology(paths_of(labels)), [flow])

    cells = cells_of(({"loss": 0.0}, {"loss": 0.04}, {"exp": 4}), sc.SCHEDULERS, (sc.OLIA,))
    cells += cells_of(({"exp": 3}, {"exp": 4}), (sc.LL,), (sc.OLIA,), (sc.SINGLE,))
    return jobs_of(profile, "messages", cells, build)


def background(profile: Profile) -> list[Job]:
    """Others on the paths: a TCP on each, or UDP at a third of each path's rate."""

    def build(labels: dict[str, Any]) -> dict[str, Any]:
        transport = sc.mptcp(labels["congestion"], labels["scheduler"], labels["mesh"])
        return shared(paths_of(labels), transport, labels["background"], profile.settings["background_s"])  # fmt: skip

    places = ({"loss": 0.0}, {"exp": 4})
    found = cells_of(places, (sc.LL,), (sc.LIA, "cubic"), (sc.SINGLE,))
    cells = [{"background": "tcp", **cell} for cell in found]
    if profile.settings["beyond"]:
        found += cells_of(places, (*sc.SCHEDULERS[1:], *sc.OTHERS[:2]), (sc.LIA,), (sc.SINGLE,))
        found += cells_of(places, (sc.LL,), sc.COUPLED[1:], (sc.SINGLE,))
        cells = [{"background": b, **cell} for b in BACKGROUNDS for cell in found]
    return jobs_of(profile, "background", cells, build)


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
        control, window = labels["congestion"], f"{sc.WINDOW}B"
        made = sc.mptcp(control, sc.OTHERS[0], sc.SINGLE)
        if labels["protocol"] == "quic":
            windows = dict.fromkeys(("connection_window", "stream_window", "send_window"), window)
            made = {"quic": {"multipath": True, "congestion": control, **windows}}
        return sc.transfer(paths_of(labels), made, size_of(profile, labels))

    cells = [{**p, "congestion": c, "protocol": n} for p in FEW for c in QUIC_CONTROLS for n in ("quic", "mptcp")]  # fmt: skip
    return jobs_of(fewer(profile), "quic", cells, build)


def traces(profile: Profile) -> list[Job]:
    """Runs whose course is kept, for figures and explanations."""
    if not profile.settings["beyond"]:
        return []

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
    Experiment("kernel", "Today's kernel in the lab", kernel),
    Experiment("penalisation", "Without penalisation", penalisation),
    Experiment("messages", "Messages of 3 MB", messages),
    Experiment("background", "Beside TCP and UDP", background),
    Experiment("hand-over", "An address goes and comes back", hand_overs),
    Experiment("quic", "MPQUIC beside MPTCP", quic),
    Experiment("traces", "The course of some runs", traces),
)
QUICK = Profile(
    "quick",
    "The cells that claims need; uploads of 60 MB instead of 1.5 GB, 100 MB where nothing is lost at random, 200 MB in Exp3 "
    "and Exp4; losses of 0, 1, 4, 8 and 12%; three seeds, four where they differ much, two of what the work did not have.",
    3,
    {
        "losses": [0.0, 0.01, 0.04, 0.08, 0.12],
        "mb": 60.0,
        "clean_mb": 100.0,
        "uneven_mb": 200.0,
        "lab_mb": 60.0,
        "background_s": 15,
        "repeat_new": 3,
        "repeat_unsteady": 4,
        "beyond": False,
        "readings": [r.name for r in READINGS],
    },
)
FULL = Profile(
    "full",
    "As published: uploads of 1.5 GB, losses of 0 to 12%; five seeds, eight where they differ much. In both stacks.",
    5,
    {
        "losses": list(LOSSES),
        "mb": 1500.0,
        "clean_mb": 1500.0,
        "uneven_mb": 1500.0,
        "lab_mb": 1500.0,
        "background_s": 120,
        "repeat_new": 5,
        "repeat_unsteady": 8,
        "beyond": True,
        "readings": [r.name for r in READINGS if r.claims is None],
    },
)

__all__ = ["EXPERIMENTS", "FULL", "QUICK"]
