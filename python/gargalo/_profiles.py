"""The reference of TCP's profiles: what each of them sets, and what its congestion controls are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gargalo import _core
from gargalo.running import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

USUAL = {"tcp": "modern", "quic": "rfc9000"}
"""The profile of each transport with which others are compared."""
PLAIN = "reno"
HEAD = """\
# Profiles

What the named profiles of [TCP](../tcp.md#profiles) and [QUIC](../quic.md) set, beside the defaults `modern` and `rfc9000`, and what
they have under the name of a congestion control. A scenario overrides each of them; `gargalo resolve FILE` prints what came of it.
Where TCP's `initial_window` is not set it follows from the size of segments, by `initial_window_rule`.

"""


def resolved(kind: str, profile: str, control: str) -> dict[str, Any]:
    """Return the options of a transport that follow from a profile and the name of a congestion control."""
    flow = {
        "from": "client",
        "to": "server",
        "transport": {kind: {"profile": profile, "congestion": control}},
        "workload": {"bulk": {}},
    }
    link = {"rate": "10Mbit/s", "delay": "10ms"}
    scenario = {"duration": "1s", "topology": {"simple": {"link": link}}, "flows": [flow]}
    options: dict[str, Any] = resolve(scenario)["flows"][0]["transport"][kind]
    return options


def changed(options: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not as usual."""
    return {k: v for k, v in options.items() if v != usual.get(k)}


def controls(kind: str, profile: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the implementation and the parameters of each congestion control that the profile has otherwise."""
    found = {}
    for entry in _core.congestion():
        name = entry["name"]
        ((own, given),) = resolved(kind, profile, name)["congestion"].items()
        ((_, usual),) = resolved(kind, USUAL[kind], own)["congestion"].items()
        if own != name or changed(given, usual):
            found[name] = (own, changed(given, usual))
    return found


def value(found: object) -> str:
    """Write a value as a scenario does."""
    if isinstance(found, dict):
        return f"{{ {', '.join(f'{k} = {value(v)}' for k, v in found.items())} }}"
    return json.dumps(found)


def page() -> str:
    """Write the page."""
    text = HEAD
    for entry in _core.profiles():
        title, _, summary = entry["summary"].partition(" ")
        kind, name = title.lower(), entry["name"]
        text += f"## {name}\n\n{title}: {summary}. Source: {entry['source']}.\n\n"
        ours = changed(resolved(kind, name, PLAIN), resolved(kind, USUAL[kind], PLAIN))
        rows = {k: v for k, v in ours.items() if k not in ("profile", "congestion")}
        if rows:
            text += "| option | value |\n| --- | --- |\n"
            text += "".join(f"| `{k}` | `{value(v)}` |\n" for k, v in rows.items()) + "\n"
        known = controls(kind, name)
        if known:
            text += "| congestion control | stands for | with |\n| --- | --- | --- |\n"
            for control, (own, given) in known.items():
                told = ", ".join(f"`{k} = {value(v)}`" for k, v in given.items())
                text += f"| `{control}` | `{own}` | {told} |\n"
            text += "\n"
    return text.rstrip() + "\n"
