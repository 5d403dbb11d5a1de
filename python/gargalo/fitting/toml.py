"""A fit as a scenario in TOML that a reader can change: each parameter with where it lies, and what is not known."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from gargalo.quantities import measured

if TYPE_CHECKING:
    from gargalo.fitting.estimate import Interval
    from gargalo.fitting.model import Fit

WIDTH = 100
STEPS_A_LINE = 4
KEYS = {
    "rate": (("", "rate_bps", "bit/s"),),
    "delay": (("half of the round trip: ", "base_rtt_s", "s"),),
    "queue": (("", "buffer_bytes", "byte"),),
    "jitter": (("", "jitter_s", "s"),),
    "aggregation": (("", "aggregation_s", "s"),),
    "reorder": (("probability ", "reorder_probability", "%"), ("by ", "reorder_by_s", "s")),
    "policer": (("rate ", "policer_rate_bps", "bit/s"),),
}
"""Keys of a direction: the parameters that they are, each with a word before it and its unit."""


def between(interval: Interval, unit: str) -> str:
    """Write where a parameter lies."""
    if interval.low is None and interval.high is None:
        return "not known"
    if interval.high is None:
        return f"at least {measured(interval.low, unit)}"
    return f"{measured(interval.low, unit)} to {measured(interval.high, unit)}"


def toml(fit: Fit) -> str:
    """Return the scenario of a fit, with comments."""
    scenario = fit.scenario
    link = scenario["topology"]["simple"]["link"]
    lines = [f"# The path of {fit.seen.label} in {fit.name}, fitted to its packets."]
    if fit.unknown:
        lines.append("# What the recording cannot tell:")
        for told in fit.unknown:
            lines += textwrap.wrap(told, WIDTH, initial_indent="# - ", subsequent_indent="#   ")
    lines += [f"{key} = {value(scenario[key])}" for key in ("name", "description", "duration")]
    lines += ["", "[topology.simple.link.up]  # the way of the data"]
    for key, written in link["up"].items():
        lies = [
            word + between(fit.intervals[name], unit)
            for word, name, unit in KEYS.get(key, ())
            if name in fit.intervals
        ]
        about = f"  # {'; '.join(lies)}" if lies else ""
        text = f"{key} = {value(written)}"
        lines += [text + about] if "\n" not in text else [about.strip(), text] if about else [text]
    lines += ["", "[topology.simple.link.down]  # the way of the acknowledgements"]
    lines += [f"{key} = {value(written)}" for key, written in link["down"].items()]
    for flow in scenario["flows"]:
        lines += ["", "[[flows]]"]
        for key, written in flow.items():
            if key in ("transport", "workload"):
                (kind, inner), *_ = written.items()
                lines.append(f"{key}.{kind} = {value(inner)}")
            else:
                lines.append(f"{key} = {value(written)}")
    return "\n".join(lines) + "\n"


def value(of: Any) -> str:
    """Write a value; long lists of steps in lines."""
    if isinstance(of, dict):
        inside = ", ".join(f"{k} = {value(v)}" for k, v in of.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(of, list):
        parts = [value(v) for v in of]
        if len(parts) <= STEPS_A_LINE or not isinstance(of[0], list):
            return f"[{', '.join(parts)}]"
        rows = [", ".join(parts[n : n + STEPS_A_LINE]) for n in range(0, len(parts), STEPS_A_LINE)]
        return "[\n  " + ",\n  ".join(rows) + ",\n]"
    return json.dumps(of)
