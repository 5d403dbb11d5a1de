"""The readings of the study: the hosts of its time, today's, and what else the work leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gargalo.studies import Reading

from gargalo_studies.high_speed_tcp.scenarios import ACCESS_S, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gargalo.studies import FlowTable, ScenarioTable, Table

WINDOW = 1000
"""Most segments in flight of a main flow in ns-2.29 (`window_`), which the published rates fit."""
BACKGROUND_WINDOW = 20
"""ns-2's own default of `window_`, which the background was left with."""
MSS = 1460
PACED = {"fast": "controller", "libra": "window"}
"""Pacing belongs to these two in their papers; ns-2 sends as acknowledgements arrive."""


def flows_of(scenario: ScenarioTable, *, background: bool) -> Iterable[FlowTable]:
    """Return the background sources, or the main flows."""
    return (f for f in scenario["flows"] if ("workload" in f) == background)


def ns2(
    scenario: ScenarioTable,
    *,
    window: int | None = WINDOW,
    background_window: int | None = BACKGROUND_WINDOW,
    recovery: str | None = None,
    paced: str | None = None,
    parameters: Mapping[str, Table] | None = None,
) -> ScenarioTable:
    """Give main flows and background the TCP of ns-2.29.

    Args:
        scenario: It is changed.
        window: Most segments in flight of a main flow; None: no limit.
        background_window: The same of a flow of the background.
        recovery: Of losses, if not by SACK.
        paced: Which of `PACED` paces.
        parameters: Of congestion controls, instead of the profile's.

    """
    for flow in flows_of(scenario, background=False):
        tcp = flow["transport"]["tcp"]
        name = str(tcp["congestion"])
        if parameters and name in parameters:
            tcp["congestion"] = {name: parameters[name]}
        tcp.update(hosts_of_2005(window))
        if name == paced:
            tcp["pacing"] = PACED[name]
        if recovery is not None:
            tcp["recovery"] = recovery
    for flow in flows_of(scenario, background=True):
        flow["transport"]["tcp"].update(hosts_of_2005(background_window))
    return scenario


def hosts_of_2005(window: int | None) -> Table:
    """Return the settings of a TCP of ns-2.29 with a window, in segments."""
    profile: Table = {"profile": "ns2-2.29"}
    if window == WINDOW:
        return profile
    size = "64MiB" if window is None else f"{window * MSS}B"
    return {**profile, "receive_buffer": size, "send_buffer": size}


def capped(**changes: Any) -> Callable[[ScenarioTable], ScenarioTable]:
    """Return `ns2` with other arguments."""
    return lambda scenario: ns2(scenario, **changes)


def farther(scenario: ScenarioTable) -> ScenarioTable:
    """Return `ns2` with the delay of the work on the bottleneck, and that of the access links beside it."""
    bottleneck = cast("Table", scenario["topology"]["dumbbell"]["bottleneck"])
    delay_s = float(str(bottleneck["delay"]).removesuffix("s")) + 2 * ACCESS_S
    bottleneck["delay"] = seconds(delay_s)
    return ns2(scenario)


def is_plain_dumbbell(labels: Mapping[str, Any]) -> bool:
    """Whether the access links have the usual delay: not where round trips differ, and not in the parking lot."""
    experiment = str(labels["experiment"])
    return experiment != "rtt-fairness" and not experiment.startswith("parking")


def decides(labels: Mapping[str, Any]) -> bool:
    """Whether a claim needs a run."""
    return labels["experiment"] not in ("start-fairness", "inter-fairness", "parking-inter")


SLOW = {"libra", "reno"}
"""Libra and Reno grow by 0.07 and 1 segments a round trip: what they lose comes back in minutes."""


def longer(scenario: ScenarioTable) -> ScenarioTable:
    """Return `ns2` with runs five times as long, where no main flow is of another protocol than Libra and Reno."""
    main = {f["transport"]["tcp"]["congestion"] for f in flows_of(scenario, background=False)}
    if main <= SLOW:
        duration_s = float(scenario["duration"].removesuffix("s"))
        scenario["duration"] = f"{5 * duration_s:g}s"
    return ns2(scenario)


PARAMETERS = (
    "sixteen-fill",
    "who-scales",
    "reno-suffers",
    "rtt-fairness",
    "convergence",
    "stability",
    "parking-lot",
)

READINGS = (
    Reading(
        "ns2-2.29",
        "ns-2.29, windows of 1,000",
        "the TCP profile ns2-2.29 with its window of 1,000 segments for the main flows, which the "
        "published rates fit and "
        "the text never states; windows of 20 segments, ns-2's default, for the background; BIC "
        "with beta 0.875, CUBIC of "
        "2005, FAST with alpha 200, Libra with a capacity of 1.",
        ns2,
    ),
    Reading(
        "today",
        "today",
        "this engine's defaults: SACK with RACK-TLP, PRR, HyStart++, buffers of 64 MiB and the "
        "present parameters of each "
        "congestion control, for main flows and background.",
    ),
    Reading(
        "uncapped",
        "ns-2.29, no cap",
        "ns-2.29 without a limit to the windows of the main flows, which the published rates exclude: "
        "what the limit does.",
        capped(window=None),
        cells=decides,
    ),
    Reading(
        "libra-paced",
        "Libra paced",
        "ns-2.29 with the randomised pacing that Libra's paper describes.",
        capped(paced="libra"),
        PARAMETERS,
    ),
    Reading(
        "fast-paced",
        "FAST paced",
        "ns-2.29 with the pacing that FAST's paper describes.",
        capped(paced="fast"),
        PARAMETERS,
    ),
    Reading(
        "fast-100",
        "FAST with alpha 100",
        "ns-2.29 with the other constant that published experiments at 1 Gbit/s used.",
        capped(parameters={"fast": {"alpha": 100}}),
        PARAMETERS,
    ),
    Reading(
        "fast-100-libra-paced",
        "FAST with alpha 100, Libra paced",
        "ns-2.29 with both.",
        capped(paced="libra", parameters={"fast": {"alpha": 100}}),
        ("sixteen-fill", "who-scales"),
    ),
    Reading(
        "libra-measured",
        "Libra with a capacity in Mbit/s",
        "ns-2.29 with Libra's capacity measured by packet pairs and taken in Mbit/s, a thousand times as much.",
        capped(parameters={"libra": {"capacity": 0}}),
        PARAMETERS,
    ),
    Reading(
        "libra-avoiding",
        "Libra without slow start",
        "ns-2.29 with a threshold of 4 segments for Libra, so that it is in congestion avoidance "
        "from the start, where its paper "
        "defines it.",
        capped(parameters={"libra": {"initial_slow_start_threshold": 4}}),
        PARAMETERS,
    ),
    Reading(
        "240-ms",
        "round trips of 240 ms",
        "ns-2.29 with 100 ms on the dumbbell's bottleneck and 10 ms on each of its access links: a "
        "window of 1,000 segments "
        "is 50 Mbit/s there, and 49.4 is published.",
        farther,
        (
            "sixteen-fill",
            "above-a-gigabit",
            "who-scales",
            "reno-suffers",
            "convergence",
            "stability",
        ),
        cells=is_plain_dumbbell,
    ),
    Reading(
        "longer",
        "Libra and Reno five times as long",
        "ns-2.29; runs of Libra and Reno are five times as long, as they need minutes to grow back.",
        longer,
        ("sixteen-fill", "reno-suffers"),
    ),
    Reading(
        "newreno",
        "NewReno recovery",
        "ns-2.29 with the recovery of Agent/TCP/Newreno.",
        capped(recovery="newreno"),
        ("convergence", "stability"),
    ),
    Reading(
        "background",
        "background without a cap",
        "ns-2.29 with background flows of up to 1,000 segments.",
        capped(background_window=WINDOW),
        ("rtt-fairness", "stability"),
    ),
)
