"""The runs of the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gargalo.studies import Experiment, Profile, Settings
from gargalo.sweeps import Job, derive_seeds

from gargalo_studies.mptcp_schedulers import scenarios as sc
from gargalo_studies.mptcp_schedulers.networks import BACKGROUNDS, hand_over, shared
from gargalo_studies.mptcp_schedulers.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gargalo.studies import ScenarioTable, Table
    from gargalo.sweeps import Labels

    from gargalo_studies.mptcp_schedulers.scenarios import Paths

SEED = 2017
LOSSES = tuple(n / 100 for n in range(13))
TRACE_S = 30
"""Length of the runs whose course is kept."""


@dataclass(frozen=True, kw_only=True)
class Levels(Settings):
    """How much is sent, and how often."""

    losses: Sequence[float] = (0.0, 0.01, 0.04, 0.08, 0.12)
    mb: float = 60.0
    clean_mb: float = 100.0
    """Where nothing is lost at random."""
    uneven_mb: float = 200.0
    """In Exp3 and Exp4."""
    lab_mb: float = 60.0
    background_s: int = 15
    repeat_new: int = 3
    """Of what the work did not have."""
    repeat_unsteady: int = 4
    """Where runs differ much."""
    beyond: bool = False
    """More of what the work did not have."""


def jobs_of(
    profile: Profile,
    experiment: str,
    cells: Iterable[Labels],
    build: Callable[..., ScenarioTable],
) -> list[Job]:
    """Make the jobs of an experiment, whose scenarios are built of the labels.

    All cells have the same seeds: the n-th packet of a path is lost in all or none. Cells that `differs` have more of
    them.
    """
    most = max(profile.repeat, Levels.of(profile).repeat_unsteady)
    seeds = derive_seeds(SEED, most)
    jobs = []
    for labels in cells:
        made = build(**labels)
        named = {"experiment": experiment, **labels}
        repeats = most if differs(experiment, labels) else profile.repeat
        jobs += [Job(named, made, seed, repeat) for repeat, seed in enumerate(seeds[:repeats])]
    return jobs


def differs(experiment: str, labels: Labels) -> bool:
    """Whether a cell that a claim needs differs much from seed to seed: paths without loss, where queues overflow."""
    match experiment:
        case "mixed" | "mesh":
            return int(labels.get("exp", 8)) <= len(sc.EXPS) // 2
        case "penalisation" | "hand-over":
            return True
    return False


def paths_of(loss: float = 0.0, exp: int | None = None) -> Paths:
    """Return the paths that labels speak of: of E1 with a loss, or an experiment of E2."""
    return sc.congested(loss) if exp is None else sc.mixed(exp)


UNEVEN = (3, 4)
"""Of E2: no loss, rates differ; the first overflows of such different queues have long effects."""


def size_of(profile: Profile, loss: float = 0.0, exp: int | None = None) -> float:
    """Return the megabytes of an upload: without loss the start lasts longer, so that it is longer."""
    levels = Levels.of(profile)
    if exp in UNEVEN:
        return levels.uneven_mb
    return levels.mb if max(paths_of(loss, exp).losses) > 0 else levels.clean_mb


def losses(profile: Profile) -> list[Labels]:
    """Return the places of E1."""
    return [{"loss": x} for x in LOSSES if x in Levels.of(profile).losses]


def upload(profile: Profile, congestion: str, scheduler: str, mesh: str, **place: Any) -> ScenarioTable:  # fmt: skip
    """One MPTCP upload as its labels say."""
    transport = sc.mptcp(congestion, scheduler, mesh)
    return sc.transfer(paths_of(**place), transport, size_of(profile, **place))


def cells_of(
    places: Iterable[Labels],
    schedulers: Sequence[str] = sc.SCHEDULERS,
    congestion: Sequence[str] = sc.COUPLED,
    meshes: Sequence[str] = (sc.FULL,),
) -> list[Labels]:
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
    return replace(profile, repeat=min(profile.repeat, Levels.of(profile).repeat_new))


def plain(profile: Profile, experiment: str, cells: Iterable[Labels]) -> list[Job]:
    """MPTCP uploads over the five paths."""
    return jobs_of(profile, experiment, cells, partial(upload, profile))


ALL_LOSSES: tuple[Labels, ...] = tuple({"loss": x} for x in LOSSES)
ALL_EXPS: tuple[Labels, ...] = tuple({"exp": n} for n in sc.EXPS)
FEW: tuple[Labels, ...] = (*ALL_LOSSES[:2], ALL_LOSSES[6], *ALL_EXPS[2:4], *ALL_EXPS[6:])
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

    def build(congestion: str, **place: Any) -> ScenarioTable:
        paths = paths_of(**place)
        return sc.transfer(paths.only(paths.best), sc.tcp(congestion), size_of(profile, **place))

    cells: list[Labels] = [
        {**p, "congestion": c} for p in (*ALL_LOSSES[:1], *ALL_EXPS) for c in ("reno", "cubic")
    ]
    return jobs_of(profile, "single path", cells, build)


def other_schedulers(profile: Profile) -> list[Job]:
    """Schedulers the work did not have, and all of them with one CUBIC a path."""
    cells = cells_of(FEW, (*sc.SCHEDULERS, *sc.OTHERS[:2]), ("cubic",), (sc.SINGLE,))
    if Levels.of(profile).beyond:
        cells += cells_of(FEW, sc.OTHERS, (sc.LIA,))
        cells += cells_of(FEW, sc.OTHERS[2:], ("cubic",), (sc.SINGLE,))
    return plain(fewer(profile), "schedulers", cells)


def uncoupled(profile: Profile) -> list[Job]:
    """Congestion controls that are not coupled."""
    if not Levels.of(profile).beyond:
        return []
    return plain(fewer(profile), "uncoupled", cells_of(FEW, (sc.LL,), sc.UNCOUPLED, (sc.FULL, sc.SINGLE)))  # fmt: skip


KERNEL, OURS = "this machine's kernel, lab", "simulated"
"""Whose Multipath TCP sends, in the experiment on today's kernel."""


def kernel(profile: Profile) -> list[Job]:
    """Today's kernel in the lab, and the stack of a reading in the same networks: CUBIC, one subflow a path."""
    few = fewer(profile)

    def build(congestion: str, mesh: str, sender: str, **place: Any) -> ScenarioTable:
        transport = sc.mptcp(congestion, sc.LL, mesh)
        made = sc.transfer(paths_of(**place), transport, Levels.of(few).lab_mb)
        return {**made, "lab": {"stack": "kernel"}} if sender == KERNEL else made

    cells: list[Labels] = [
        {**place, "congestion": "cubic", "mesh": sc.SINGLE, "sender": sender}
        for sender in (KERNEL, OURS)
        for place in FEW
    ]
    jobs = jobs_of(few, "kernel", cells, build)
    return [replace(j, world="lab") if j.labels["sender"] == KERNEL else j for j in jobs]


def penalisation(profile: Profile) -> list[Job]:
    """E1 without penalisation."""

    def build(congestion: str, scheduler: str, mesh: str, loss: float) -> ScenarioTable:
        transport = sc.mptcp(congestion, scheduler, mesh, penalisation=False)
        return sc.transfer(paths_of(loss), transport, size_of(profile, loss))

    cells = cells_of(ALL_LOSSES[:2], (sc.LL,), sc.COUPLED[:3])
    return jobs_of(profile, "penalisation", cells, build)


def messages(profile: Profile) -> list[Job]:
    """Messages of 3 MB one after another on one connection, instead of one upload."""

    def build(congestion: str, scheduler: str, mesh: str, **place: Any) -> ScenarioTable:
        flow = sc.messages(sc.mptcp(congestion, scheduler, mesh), size_of(profile, **place))
        return sc.scenario(sc.topology(paths_of(**place)), [flow])

    cells = cells_of(({"loss": 0.0}, {"loss": 0.04}, {"exp": 4}), sc.SCHEDULERS, (sc.OLIA,))
    cells += cells_of(({"exp": 3}, {"exp": 4}), (sc.LL,), (sc.OLIA,), (sc.SINGLE,))
    return jobs_of(profile, "messages", cells, build)


def background(profile: Profile) -> list[Job]:
    """Others on the paths: a TCP on each, or UDP at a third of each path's rate."""

    def build(congestion: str, scheduler: str, mesh: str, background: str, **place: Any) -> ScenarioTable:  # fmt: skip
        transport = sc.mptcp(congestion, scheduler, mesh)
        return shared(paths_of(**place), transport, background, Levels.of(profile).background_s)

    places: tuple[Labels, ...] = ({"loss": 0.0}, {"exp": 4})
    found = cells_of(places, (sc.LL,), (sc.LIA, "cubic"), (sc.SINGLE,))
    cells: list[Labels] = [{"background": "tcp", **cell} for cell in found]
    if Levels.of(profile).beyond:
        found += cells_of(places, (*sc.SCHEDULERS[1:], *sc.OTHERS[:2]), (sc.LIA,), (sc.SINGLE,))
        found += cells_of(places, (sc.LL,), sc.COUPLED[1:], (sc.SINGLE,))
        cells = [{"background": b, **cell} for b in BACKGROUNDS for cell in found]
    return jobs_of(profile, "background", cells, build)


def hand_overs(profile: Profile) -> list[Job]:
    """An address goes and comes back during an upload."""
    cells: list[Labels] = [
        {"congestion": c, "scheduler": s, "backup": b}
        for c in (sc.LIA, "cubic")
        for s in (sc.LL, sc.OTHERS[0], "redundant")
        for b in (False, True)
    ]
    return jobs_of(fewer(profile), "hand-over", cells, hand_over)


QUIC_CONTROLS = ("reno", "cubic")


def quic(profile: Profile) -> list[Job]:
    """QUIC over several paths beside MPTCP with one subflow a path."""

    def build(congestion: str, protocol: str, **place: Any) -> ScenarioTable:
        made = sc.mptcp(congestion, sc.OTHERS[0], sc.SINGLE)
        if protocol == "quic":
            keys = ("connection_window", "stream_window", "send_window")
            windows = dict.fromkeys(keys, f"{sc.WINDOW}B")
            made = {"quic": {"multipath": True, "congestion": congestion, **windows}}
        return sc.transfer(paths_of(**place), made, size_of(profile, **place))

    cells: list[Labels] = [
        {**p, "congestion": c, "protocol": n}
        for p in FEW
        for c in QUIC_CONTROLS
        for n in ("quic", "mptcp")
    ]
    return jobs_of(fewer(profile), "quic", cells, build)


def traces(profile: Profile) -> list[Job]:
    """Runs whose course is kept, for figures and explanations."""
    if not Levels.of(profile).beyond:
        return []

    def build(congestion: str, scheduler: str, mesh: str, **place: Any) -> ScenarioTable:
        transport = sc.mptcp(congestion, scheduler, mesh)
        record: Table = {"flows": True, "links": True, "events": False, "interval": "100ms"}
        return sc.transfer(paths_of(**place), transport, 1e5, limit_s=TRACE_S, record=record)

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
    "The cells that claims need; uploads of 60 MB instead of 1.5 GB, 100 MB where nothing is lost "
    "at random, 200 MB in Exp3 "
    "and Exp4; losses of 0, 1, 4, 8 and 12%; three seeds, four where they differ much, two of what "
    "the work did not have.",
    3,
    Levels(),
)
FULL = Profile(
    "full",
    "As published: uploads of 1.5 GB, losses of 0 to 12%; five seeds, eight where they differ much. In both stacks.",
    5,
    Levels(
        losses=LOSSES,
        mb=1500.0,
        clean_mb=1500.0,
        uneven_mb=1500.0,
        lab_mb=1500.0,
        background_s=120,
        repeat_new=5,
        repeat_unsteady=8,
        beyond=True,
        readings=tuple(r.name for r in READINGS if r.claims is None),
    ),
)
