"""The stacks with which the study is repeated, and what was tried on claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.studies import Reading

from gargalo_studies.mptcp_schedulers import scenarios as sc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gargalo.studies import ScenarioTable, Table

    Change = Callable[[ScenarioTable], ScenarioTable]

THEN, TODAY = "linux-4.1-mptcp-0.90", "today"
WINDOW = "3MiB"
"""Half of the 6 MiB at which tcp_rmem ended."""
REAL: dict[str, Table] = {
    sc.LIA: {"arithmetic": "exact"},
    sc.OLIA: {"arithmetic": "exact", "least_window": 2},
    sc.BALIA: {"arithmetic": "exact", "whole_ratio": False},
}
"""The controls of the drafts, with the least window of that kernel."""
QUEUE_MS = 5.0
"""Of E1, where the work gives no latency."""


def of_its_time(scenario: ScenarioTable, **changes: Any) -> ScenarioTable:
    """Give all flows the stack of the work's time, with changes of Multipath TCP's options; a kernel stays as it is."""
    if "lab" in scenario:
        return scenario
    for flow in scenario["flows"]:
        ((kind, options),) = flow["transport"].items()
        if kind == "udp":
            continue
        if kind == "quic":
            windows = dict.fromkeys(("connection_window", "stream_window", "send_window"), WINDOW)
            flow["transport"] = {kind: {**options, **windows}}
            continue
        more = dict(changes) if kind == "mptcp" else {}
        made = {**options, "profile": THEN}
        if callable(control := more.pop("congestion", None)):
            made["congestion"] = control(options["congestion"])
        flow["transport"] = {kind: {**made, **more}}
    return scenario


def limited(scenario: ScenarioTable) -> ScenarioTable:
    """Take a path's latency as the longest wait in its queue (tbf), with no delay besides the network's."""
    for up in sc.directions(scenario):
        added = float(str(up["delay"]).removesuffix("ms")) - sc.LAN_MS
        up["delay"] = sc.milliseconds(sc.LAN_MS)
        up["queue"] = {"droptail": sc.milliseconds(round(added, 6) or QUEUE_MS)}
    return scenario


def queues(packets: int) -> Change:
    """Return the change that gives paths queues of so many packets."""

    def apply(scenario: ScenarioTable) -> ScenarioTable:
        for up in sc.directions(scenario):
            up["queue"] = {"droptail": f"{packets} packets"}
        return scenario

    return apply


def with_(*networks: Change, **changes: Any) -> Change:
    """Return the stack of the work's time with changes."""

    def apply(scenario: ScenarioTable) -> ScenarioTable:
        for network in networks:
            scenario = network(scenario)
        return of_its_time(scenario, **changes)

    return apply


UNHELPED = {"opportunistic_retransmission": False, "penalisation": False}
SCHEDULERS = ("lossy-lws", "lossy-lts", "lossy-same", "exp4-olia")
MESHES = ("rises", "single-doubles", "single-worse", "below-tcp")
MEANS = ("average-gain", "lossy-alike")
"""Claims of the work that some plausible reading may turn; the last need all of E2."""
NEW = ("default-leads", "adaptive", "background", "mpquic")
"""Claims that the work did not have, on which three readings are tried."""
NEW_EXPERIMENTS = ("schedulers", "background", "quic")


def decides(labels: Mapping[str, Any]) -> bool:
    """Whether a cell is one by which `SCHEDULERS` and `MESHES` are decided."""
    if labels["experiment"] in ("congested", "single path"):
        return True
    if int(labels.get("exp") or 8) not in (3, 4):
        return False
    mesh = labels["experiment"] == "mesh"
    return bool(mesh or labels["scheduler"] == sc.LL or labels["congestion"] == sc.OLIA)


def decides_meshes(labels: Mapping[str, Any]) -> bool:
    """Whether a cell is one by which the two meshes are compared without loss."""
    if labels["experiment"] not in ("mixed", "mesh") or int(labels.get("exp") or 0) not in (3, 4):
        return False
    return bool(labels["experiment"] == "mesh" or labels["scheduler"] == sc.LL)


def decides_all(labels: Mapping[str, Any]) -> bool:
    """Whether a cell is one by which `MEANS` are decided too."""
    return labels["experiment"] == "mixed" or decides(labels)


def hypothesis(
    name: str,
    title: str,
    description: str,
    apply: Change,
    *,
    means: bool = False,
    new: bool = False,
) -> Reading:
    """Make a reading that is tried on claims of the work; with `new`, on others too."""
    claims = (*SCHEDULERS, *MESHES, *(MEANS if means else ()), *(NEW if new else ()))
    of_the_work = decides_all if means else decides

    def cells(labels: Mapping[str, Any]) -> bool:
        return new if labels["experiment"] in NEW_EXPERIMENTS else of_the_work(labels)

    return Reading(name, title, description, apply, claims=claims, cells=cells)


READINGS = (
    Reading(
        THEN,
        "kernel 0.90",
        "The profile linux-4.1-mptcp-0.90: FACK, penalisation that halves windows, windows of 3 "
        "MiB; lia, olia and balia in the "
        "integers of their modules, CUBIC in Linux' integers.",
        of_its_time,
    ),
    Reading(
        TODAY,
        "today",
        "Subflows of a current Linux (linux-6: RACK-TLP, send buffer of 4 MiB), controls in real "
        "numbers, our opportunistic "
        "retransmission and penalisation, which limits what is in flight.",
    ),
    hypothesis(
        "queue-latency",
        "0.90, latency of the queue",
        "The latency of a path is tbf's, the longest wait in its queue, and no delay; 5 ms in E1, "
        "for which none is given.",
        with_(limited),
        means=True,
        new=True,
    ),
    hypothesis(
        "unhelped",
        "0.90 without both mechanisms",
        "Neither opportunistic retransmission nor penalisation.",
        with_(**UNHELPED),
        means=True,
        new=True,
    ),
    hypothesis(
        "queue-latency-unhelped",
        "0.90, latency of the queue, without both",
        "Both changes together.",
        with_(limited, **UNHELPED),
        means=True,
    ),
    hypothesis(
        "short-queues",
        "0.90, queues of 100 packets",
        "A tenth of netem's default limit.",
        with_(queues(100)),
    ),
    *(
        Reading(
            f"queues-{n}",
            f"0.90, queues of {n} packets",
            "Shorter than any default: of 25 subflows most have no room there.",
            with_(queues(n)),
            claims=("single-doubles", "single-worse"),
            cells=decides_meshes,
        )
        for n in (40, 20, 10)
    ),
    hypothesis(
        "large-buffers",
        "0.90, buffers of 16 MiB",
        "As a guide to tuning would have set them.",
        with_(receive_buffer="16MiB", send_buffer="16MiB"),
        new=True,
    ),
    hypothesis(
        "real-numbers",
        "0.90, controls in real numbers",
        "The controls of RFC 6356 and the drafts instead of the kernel's modules.",
        with_(congestion=lambda name: {name: REAL[name]} if name in REAL else name),
    ),
)
