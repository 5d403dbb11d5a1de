"""Which congestion control sent a flow: all that are known, over the fitted path, and which of them behave as it did.

Nothing is learnt in advance. Each candidate is simulated over the path, and over paths that differ from it by as much
as a fit may: what its own runs differ by is its spread, and the recording is compared with that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gargalo import _core
from gargalo.fitting.behaviour import Likeness, behaviour
from gargalo.fitting.carrying import carry
from gargalo.fitting.exact import LEAST_AGREED, SIMPLER, exactly, simpler, told, with_buffer
from gargalo.fitting.finding import find
from gargalo.fitting.observed import CLOCK_S, FitError, Observed
from gargalo.fitting.predicting import simulate
from gargalo.fitting.reordering import in_order
from gargalo.fitting.search import unexplained
from gargalo.plugins.registry import registered
from gargalo.recording import concluded, read
from gargalo.results import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path as File

    from numpy.typing import NDArray

    from gargalo.fitting.behaviour import Behaviour
    from gargalo.fitting.path import Path

    Floats = NDArray[np.float64]

RUNS = 5
"""Of a candidate that is near, to know by how much its own runs differ."""
NEARER, WITHIN = 2.0, 0.5
"""Candidates within so many times the distance of the nearest, and a bit, are run again."""
LEAST_NEAR, MOST_NEAR = 3, 12
"""At so many distances."""
EQUAL = 1e-6
"""Distances that differ by less are the same."""
TOLD = 2
"""Candidates whose slow starts are told."""
RATE, PROPAGATION, BUFFER = 0.004, 0.004, 0.02
"""Standard deviations of what the paths of these runs differ by, as shares."""
MOST_S = 60.0
"""Of a longer recording the first part is looked at: what an algorithm does, it does within a minute."""
MOST_PACKETS = 120_000
UNKNOWN = 1.0
"""Distance from which on nothing is near, over a path whose delays do not vary."""
UNKNOWN_NOISY = 2.0
"""The same where they do: what hosts and links do to times, the simulated ones do not do in the same way."""
SLACK = 0.03
"""Costs that differ by less are the same."""
MISMATCH = 0.2
"""Nor if they differ by less than this share of what the nearest is off by."""
SHARE = 0.3
"""Nor are two told apart whose costs differ by less than this share of what they do if one of them is right."""
FACTORS = (1.0, 1.015, 1.03, 1.045)
"""Of the rate that was sustained: what the link may have more."""
NOISE = 0.02
LEAST_GAPS = 20
MOST_JITTER = 0.04
"""As a share of the round trip."""
LIMITED = 0.2
"""Share of the time in which something else than the congestion control limited a flow, from which on it is said."""
MARKED = 0.001
STACKS = ("modern", "linux-6")
"""Profiles of the sender's TCP: its recovery and pacing are not those of the congestion control."""
TCP = "flows.0.transport.tcp."
PROFILE = TCP + "profile"
USUAL_BYTES, USUAL_EVERY, USUAL_WINDOW, MOST_WINDOW = 1448, 2, 10, 100
"""Of the simulated TCP: payload of a segment, segments for an acknowledgement, and the initial window."""
SAME = 0.5
"""Where delays vary, slow starts that are this near to the recording's are not told apart."""
INSTEAD = {("cubic", "linux-6")}
"""A profile that has another of the candidates for this one."""
SLOW_START = ("slow_start", "hystart_detect")
"""Parameters of congestion controls that choose a slow start."""


@dataclass(frozen=True)
class Candidate:
    """What may have sent a flow."""

    congestion: str
    slow_start: str | None = None
    """The value of its parameter; None: its default, or it has no choice."""
    parameter: str = ""
    stack: str = STACKS[0]

    @property
    def setting(self) -> Any:
        """What a scenario has."""
        if self.slow_start is None:
            return self.congestion
        return {self.congestion: {self.parameter: self.slow_start}}


@dataclass(frozen=True)
class Ranked:
    """A congestion control, and how far its behaviour is from that of the recording."""

    congestion: str
    distance: float
    """In units of what its own runs differ by; below 1 is near."""
    slow_start: tuple[str, ...]
    """The slow starts of it that begin as the recording did; empty: it has no choice, or the begin is not there."""
    apart: Mapping[str, float]
    """The distance in each group of numbers."""
    tied: bool
    """It cannot be told from the nearest one."""


@dataclass(frozen=True)
class Identified:
    """Which congestion control sent a flow."""

    name: str
    """Of the recording."""
    flow: str
    path: Path
    """The path that candidates were simulated over."""
    ranking: Sequence[Ranked]
    """From the nearest."""
    notes: Sequence[str]
    """What makes the answer less certain."""
    bound: float
    """Distance from which on nothing is near."""

    @property
    def answer(self) -> tuple[str, ...]:
        """Those that it may be; several cannot be told apart on this path; empty: unknown, nothing is near."""
        if not self.ranking or self.ranking[0].distance > self.bound:
            return ()
        return tuple(r.congestion for r in self.ranking if r.tied)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as data."""
        return {
            "name": self.name,
            "flow": self.flow,
            "answer": list(self.answer),
            "unknown": not self.answer,
            "bound": self.bound,
            "ranking": [
                {
                    "congestion": r.congestion,
                    "distance": r.distance,
                    "tied": r.tied,
                    "slow_start": list(r.slow_start),
                    "apart": dict(r.apart),
                }
                for r in self.ranking
            ],
            "path": {
                "rate_bps": self.path.rate_bps,
                "base_rtt_s": self.path.base_rtt_s,
                "buffer_bytes": self.path.buffer_bytes,
                "loss": self.path.loss,
            },
            "notes": list(self.notes),
        }


def identify(
    recording: str | File | Sequence[str | File] | Run,
    *,
    flow: int | None = None,
    candidates: Sequence[str] | None = None,
    progress: Callable[[float], object] | None = None,
) -> Identified:
    """Tell which congestion control sent a TCP flow that was captured at its sender.

    Args:
        recording: Captures, or what `read` returned with `packets=True`.
        flow: Number of the flow; by default the one with most packets.
        candidates: Congestion controls that it may be; by default all built-in and registered ones.
        progress: Called with the share of the work that is done, 0 to 1.

    Raises:
        RunError: A file cannot be read, or is no capture.
        FitError: The flow tells nothing of its path: it was captured elsewhere, or is too short.
        ValueError: A candidate is not known.

    """
    found = recording if isinstance(recording, Run) else read(recording, packets=True)
    everything = Observed.of(found, flow)
    if everything.transport != "tcp":
        msg = f"flow {everything.label} is of QUIC: congestion controls are identified of TCP flows"
        raise FitError(msg)
    known = known_names()
    wanted = list(known if candidates is None else candidates)
    for name in wanted:
        if name not in known:
            msg = f'"{name}" is no congestion control: there are {", ".join(known)}'
            raise ValueError(msg)
    seen = everything.until(min(MOST_S, float(everything.sent_s[:MOST_PACKETS][-1]) + 1e-9))
    path = path_of(seen)
    contest = Contest(seen, path, progress or (lambda _: None))
    return Identified(
        str(found.info["name"]),
        seen.label,
        path,
        contest.ranking(wanted),
        _notes(everything, found, flow),
        UNKNOWN_NOISY if contest.noisy else UNKNOWN,
    )


def known_names() -> list[str]:
    """Return all congestion controls of this process, without other names for the same."""
    return [*(c["name"] for c in _core.congestion()), *sorted(registered()["congestion"])]


def path_of(seen: Observed) -> Path:
    """Fit a path whose buffer is the one that would have dropped these packets.

    A packet more or less is another path where the buffer has few of them. A bucket that fills as fast as the link is
    no policer but its queue, and noise looks like a rate that changes: the simplest path that tells the losses is
    taken.
    """
    path = find(seen)[0].path
    seen = in_order(seen)
    if path.cross or not seen.lost.any():
        return path
    plain = [replace(path, policer=None)]
    if path.policer:
        plain.append(replace(plain[0], rate=((0.0, path.policer.rate_bps),)))
    if len(path.rate) > 1:
        usual = _sustained(seen)
        plain += [replace(plain[0], rate=((0.0, usual * f),)) for f in FACTORS]
    tried = [with_buffer(seen, p) for p in plain]
    agreed, best = max(tried, key=simpler)
    if agreed < max(LEAST_AGREED, told(seen, path) - SIMPLER if path.policer else 0.0):
        return path
    nearest = [exactly(seen, p) for p in (best, replace(path, loss=0.0))]
    best = max(nearest, key=simpler)[1]
    return replace(best, loss=unexplained(seen, best, seen.sent_s[carry(best, seen).lost]))


def _sustained(seen: Observed) -> float:
    """Return the rate at which data is acknowledged in nine tenths of the seconds, at most."""
    begins = np.arange(0.0, max(seen.duration_s - 1.0, 0.1), 0.1)
    total = np.concatenate([[0.0], np.cumsum(seen.acks.delivered_bytes)])
    ends = np.searchsorted(seen.acks.time_s, begins + 1.0)
    return float(
        np.quantile(total[ends] - total[np.searchsorted(seen.acks.time_s, begins)], 0.9) * 8
    )


class Contest:
    """Candidates against a flow."""

    def __init__(self, seen: Observed, path: Path, progress: Callable[[float], object]) -> None:
        """Look at the flow."""
        self.seen = seen
        self.path = path
        self.startup = seen.handshake_s is not None
        self.behaviour = behaviour(seen, path, startup=self.startup)
        self.sender = _sender(seen, startup=self.startup)
        jitter = _jitter(seen, path)
        self.noisy = any(jitter)
        self.same = SAME if self.noisy else SLACK
        self.paths = [_another(path, n, jitter) for n in range(RUNS)]
        self.progress = progress

    def ranking(self, wanted: Sequence[str]) -> list[Ranked]:
        """Return all candidates from the nearest."""
        found: dict[Candidate, list[Behaviour]] = {}
        for n, name in enumerate(wanted):
            self._run(found, Candidate(name))
            self.progress(0.3 * (n + 1) / len(wanted))
        # How it begins is another question: the slow start is a choice of its own.
        begun = self._near(found, "startup")
        for n, candidate in enumerate(begun):
            for stack in STACKS[1:]:
                if (candidate.congestion, stack) not in INSTEAD:
                    self._run(found, replace(candidate, stack=stack))
            self.progress(0.3 + 0.1 * (n + 1) / len(begun))
        begun = self._near(found, "startup")
        for n, candidate in enumerate(begun):
            if n < TOLD or self._likeness(found[candidate]).apart.get("startup", 0.0) > self.same:
                for other in _starts(candidate):
                    self._run(found, other)
            self.progress(0.4 + 0.2 * (n + 1) / len(begun))
        near = self._near(found)
        for n, candidate in enumerate(near):
            for _ in range(1, RUNS):
                self._run(found, candidate)
            self.progress(0.6 + 0.4 * (n + 1) / len(near))
        return self._ranked(found, near)

    def _run(self, found: dict[Candidate, list[Behaviour]], candidate: Candidate) -> None:
        """Run a candidate once more, over the next path."""
        n = len(found.setdefault(candidate, []))
        try:
            run = simulate(
                self.paths[n],
                candidate.congestion,
                self.seen.duration_s,
                {**self.sender, "congestion": candidate.setting, PROFILE: candidate.stack},
                seed=n + 1,
            )
        except FitError:
            # It sent next to nothing over this path.
            return
        found[candidate].append(behaviour(run.seen, self.path, startup=self.startup))

    def _likeness(self, runs: list[Behaviour]) -> Likeness:
        return Likeness.of(self.behaviour, runs)

    def _best(self, found: Mapping[Candidate, list[Behaviour]], *without: str) -> list[Candidate]:
        """Return for each name the candidate that is nearest, from the nearest."""
        distance = {
            c: self._likeness(runs[:1]).without(*without) for c, runs in found.items() if runs
        }
        best: dict[str, Candidate] = {}
        for candidate in sorted(distance, key=lambda c: distance[c]):
            best.setdefault(candidate.congestion, candidate)
        return list(best.values())

    def _near(self, found: Mapping[Candidate, list[Behaviour]], *without: str) -> list[Candidate]:
        """Return the candidates that may be it, from the nearest: the others are too far to become it."""
        order = self._best(found, *without)
        distance = [self._likeness(found[c][:1]).without(*without) for c in order]
        most = NEARER * distance[0] + WITHIN
        near: list[Candidate] = []
        places = 0
        for candidate, own, before in zip(order, distance, [-1.0, *distance], strict=False):
            # Those that do the same are at one place: none of them is left out alone.
            places += own > before + EQUAL
            if places > MOST_NEAR or (places > LEAST_NEAR and own > most):
                break
            near.append(candidate)
        return near

    def _ranked(
        self, found: Mapping[Candidate, list[Behaviour]], near: Sequence[Candidate]
    ) -> list[Ranked]:
        likeness = {c: self._likeness(found[c]) for c in near}
        order = sorted(near, key=lambda c: (round(likeness[c].cost, 2), _is_coupled(c.congestion)))
        ranked = []
        # What none of them explains does not tell them apart.
        slack = max(SLACK, MISMATCH * likeness[order[0]].distance)
        for candidate in order:
            more = likeness[candidate].cost - likeness[order[0]].cost
            ranked.append(
                Ranked(
                    candidate.congestion,
                    likeness[candidate].distance,
                    self._slow_starts(found, candidate),
                    likeness[candidate].apart,
                    tied=candidate == order[0]
                    or more <= max(slack, SHARE * _separation(found[order[0]], found[candidate])),
                )
            )
        done = {candidate.congestion for candidate in near}
        for candidate in self._best(found):
            if candidate.congestion in done:
                continue
            rest = self._likeness(found[candidate])
            ranked.append(Ranked(candidate.congestion, rest.distance, (), rest.apart, tied=False))
        return ranked

    def _slow_starts(
        self, found: Mapping[Candidate, list[Behaviour]], candidate: Candidate
    ) -> tuple[str, ...]:
        """Return the slow starts that begin as the recording did."""
        parameter = _start_of(candidate.congestion)
        if not self.startup or parameter is None:
            return ()
        apart = {
            c.slow_start or parameter.usual: self._likeness(runs[:1]).apart["startup"]
            for c, runs in found.items()
            if runs and (c.congestion, c.stack) == (candidate.congestion, candidate.stack)
        }
        least = min(apart.values())
        return tuple(k for k, v in apart.items() if v <= max(least + SLACK, self.same))


def _separation(runs: list[Behaviour], others: list[Behaviour]) -> float:
    """Return by how much runs of one are nearer to its other runs than to those of another candidate, in the median.

    If the one sent the recording, that is nearer to it by as much; if the other did, it is as much nearer to that.
    """
    costs = []
    for n, run in enumerate(runs):
        own = runs[:n] + runs[n + 1 :]
        costs.append(Likeness.of(run, others).cost - Likeness.of(run, own).cost)
    return float(np.median(costs))


def _is_coupled(congestion: str) -> bool:
    """Tell those for several paths, which over one do what a simpler one does."""
    return any(
        c["name"] == congestion and c["summary"].startswith("multipath:")
        for c in _core.congestion()
    )


@dataclass(frozen=True)
class Parameter:
    """A parameter that chooses a slow start."""

    name: str
    usual: str
    values: tuple[str, ...]


def _start_of(congestion: str) -> Parameter | None:
    """Return the parameter of a built-in congestion control that chooses its slow start."""
    for listed in _core.congestion():
        if listed["name"] != congestion:
            continue
        for parameter in listed["parameters"]:
            if parameter["name"] in SLOW_START:
                values = parameter["valid"].removeprefix("one of ").split(", ")
                return Parameter(parameter["name"], parameter["default"].strip('"'), tuple(values))
    return None


def _starts(candidate: Candidate) -> list[Candidate]:
    """Return the same congestion control with its other slow starts."""
    parameter = _start_of(candidate.congestion)
    if parameter is None:
        return []
    return [
        replace(candidate, slow_start=value, parameter=parameter.name)
        for value in parameter.values
        if value != parameter.usual
    ]


def _another(path: Path, number: int, jitter: tuple[float, ...]) -> Path:
    """Return a path that differs by as much as a fit may; the first is the one that was fitted."""
    varied = replace(path, jitter_s=max(path.jitter_s, jitter[number % len(jitter)]))
    if number == 0:
        return varied
    rng = np.random.default_rng(number)
    rate, base, buffer = np.exp(rng.normal(0, [RATE, PROPAGATION, BUFFER]))
    return replace(
        varied.with_rate(rate),
        base_rtt_s=path.base_rtt_s * base,
        buffer_bytes=path.buffer_bytes * buffer,
    )


def _jitter(seen: Observed, path: Path) -> tuple[float, ...]:
    """Return by how much delays vary, as some values: acknowledgements of what waited come at the rate of the path.

    Algorithms that look for the largest rate, as BBR does, behave in another way where rates vary.
    """
    acks = seen.acks
    packet = float(np.median(seen.size_bytes)) * 8 / path.rate_bps
    queue = np.nan_to_num(acks.rtt_s, nan=-1.0) - path.base_rtt_s - packet
    waited = queue > 2 * packet + NOISE * path.base_rtt_s
    both = waited[1:] & waited[:-1]
    if both.sum() < LEAST_GAPS:
        return (0.0,)
    expected = acks.delivered_bytes[1:] * 8 / path.rate_bps
    off = np.abs(np.diff(acks.time_s) - expected)[both]
    usual, most = (float(v) for v in np.quantile(off, [0.5, 0.95]))
    if usual < CLOCK_S / 10:
        return (0.0,)
    most = min(most, MOST_JITTER * path.base_rtt_s)
    return (min(usual, most), most / 2, most, 1.5 * most, 0.0)


def _sender(seen: Observed, *, startup: bool) -> dict[str, Any]:
    """Return what the packets show of both ends beside the congestion control, as settings of a scenario."""
    found: dict[str, Any] = {}
    full = int(np.quantile(seen.payload_bytes, 0.9))
    if full != USUAL_BYTES:
        found[TCP + "mss"] = f"{full}B"
    every = round(float(np.median(seen.acks.packets)))
    if every < USUAL_EVERY:
        found[TCP + "delayed_ack"] = False
    elif every > USUAL_EVERY:
        found[TCP + "delayed_ack"] = {"every": every}
    if startup:
        first = np.nanmin(seen.acknowledged_s)
        window = int((seen.sent_s < min(first, 0.9 * seen.acks.rtt_s[0])).sum())
        if window != USUAL_WINDOW and 1 <= window <= MOST_WINDOW:
            found[TCP + "initial_window"] = f"{window} packets"
    return found


def _notes(seen: Observed, recording: Run, flow: int | None) -> list[str]:
    """Return what makes the answer less certain."""
    notes = []
    for share, what in (
        (seen.application_limited, "the application had nothing to send"),
        (seen.receiver_limited, "the receiver's window was full"),
    ):
        if share > LIMITED:
            notes.append(
                f"in {share:.0%} of the time {what}: then no congestion control is at work"
            )
    if seen.handshake_s is None:
        notes.append("the handshake is not in the recording: the startup is not compared")
    if flow is None:
        flow = int(recording.packets["flow"].value_counts(sort=True)["flow"][0])
    told = {f["id"]: f for f in concluded(recording)}.get(flow, {})
    if told.get("ecn_echoes"):
        notes.append(
            f"{told['ecn_echoes']} acknowledgements echo marks (ECN): the fitted path does not mark, so candidates "
            "are compared by what they do without marks"
        )
    return notes
