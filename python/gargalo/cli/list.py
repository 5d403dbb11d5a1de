"""`gargalo list`, `gargalo resolve` and `gargalo schema`: what there is to write in a scenario."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import click

from gargalo import _core
from gargalo.cli.common import (
    change,
    given,
    json_option,
    load_plugin,
    plugin_option,
    refuse,
    refuse_another,
    scenario_argument,
    set_option,
    to_json,
)
from gargalo.cli.help import command
from gargalo.terminal.detection import in_color
from gargalo.terminal.text import definitions, definitions_each, printable, say

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

What: TypeAlias = Literal[
    "congestion",
    "schedulers",
    "path-managers",
    "transports",
    "queues",
    "rates",
    "losses",
    "workloads",
    "topologies",
    "profiles",
    "tables",
    "capabilities",
    "studies",
    "lessons",
]
"""What can be listed."""


@command(
    examples=[
        ("gargalo resolve race.toml", "The whole scenario; it runs the same, to the byte."),
        ("gargalo resolve race.toml --set seed=2 --json", "Changed, as JSON."),
        ("gargalo new - | gargalo resolve -", "From standard input."),
    ]
)
@scenario_argument
@set_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@plugin_option
def resolve(
    file: Path,
    changes: tuple[str, ...],
    as_json: bool,
    plugin: tuple[Path, ...],
) -> None:
    """Print a scenario with every default written out: a scenario that runs the same."""
    from gargalo import running

    for path in plugin:
        load_plugin(path)
    color = in_color()
    settings = dict(change(c) for c in changes)
    scenario = given(file)
    try:
        if as_json:
            print(to_json(running.resolve(scenario, set=settings, color=color)))
        else:
            print(running.resolve_toml(scenario, set=settings, color=color), end="")
    except _core.ScenarioError as e:
        refuse_another(scenario, "scenario")
        refuse(e, colored=color)


KINDS: dict[What, str] = {
    "congestion": "Congestion controls of TCP, Multipath TCP and QUIC",
    "transports": "Transports of a flow",
    "workloads": "What the applications of a flow do",
    "topologies": "Shapes of a network",
    "queues": "Queueing disciplines of a link",
    "rates": "What the rate of a link can be",
    "losses": "What the loss of a link can be",
    "profiles": "Defaults of TCP stacks, as sets of options",
    "schedulers": "Which subflow of Multipath TCP sends next",
    "path-managers": "Which subflows Multipath TCP opens",
    "tables": "Tables of results",
    "capabilities": "What the simulator and the lab can do",
    "studies": "Published experiments that can be repeated",
    "lessons": "Stories with questions, for the explorer: gargalo explore --lesson NAME",
}
"""What each list is about."""


@command(
    "list",
    examples=[
        ("gargalo list", "What can be listed."),
        ("gargalo list congestion", "Congestion controls: name, summary, source."),
        ("gargalo list queues --parameters", "With the keys of each."),
        ("gargalo list congestion --plugin mine.so", "With those of a shared library."),
    ],
)
@click.argument(
    "what",
    type=click.Choice(get_args(What)),
    required=False,
    metavar="[WHAT]",
    help=f"{', '.join(get_args(What)[:-1])} or {get_args(What)[-1]}; without it, these in words.",
)
@click.option(
    "--parameters", is_flag=True, help="With the keys of each: default, allowed values, meaning."
)
@json_option("As JSON, parameters included.")
@plugin_option
def list_(
    what: What | None,
    parameters: bool,
    as_json: bool,
    plugin: tuple[Path, ...],
) -> None:
    """Print what is available: name, one line about it, its source."""
    for path in plugin:
        load_plugin(path)
    if what is None:
        kinds = [{"name": n, "summary": about, "source": ""} for n, about in KINDS.items()]
        if as_json:
            print(to_json(kinds))
            return
        print(definitions(list(KINDS.items())))
        say("list one: gargalo list NAME, and gargalo list NAME --parameters for the keys of each")
        return
    entries = listing(what)
    if as_json:
        print(to_json(entries))
        return
    print_entries(entries, parameters=parameters)


def listing(what: What) -> list[dict[str, Any]]:
    """Return the entries of a list."""
    if what == "studies":
        from gargalo.studies import STUDIES

        return [study_entry(name) for name in STUDIES]
    if what == "lessons":
        from gargalo.exploring import lessons

        known = map(lessons.lesson, lessons.names())
        return [{"name": x.name, "summary": x.teaches, "source": x.source} for x in known]
    if what == "congestion":
        from gargalo.plugins.registry import registered

        loaded = registered()["congestion"].values()
        own = [c.listed() for c in loaded if isinstance(c, _core.NativeCongestion)]
        return [*_core.congestion(), *own]
    if what in REGISTRIES:
        return REGISTRIES[what]()
    if what == "tables":
        return [{"name": t["name"], "summary": t["doc"], "source": ""} for t in _core.tables()]
    if what == "capabilities":
        from gargalo.scenarios.worlds import entries

        return entries()
    from gargalo.scenarios.model import Model

    return Model.load().listing(CHOICES[what])


def study_entry(name: str) -> dict[str, str]:
    """Return the entry of a study; of one that cannot be used, why."""
    from gargalo.studies import StudyError, find

    try:
        study = find(name)
    except StudyError as e:
        return {"name": name, "summary": str(e), "source": ""}
    return {"name": name, "summary": study.summary, "source": study.source}


REGISTRIES = {
    "schedulers": _core.schedulers,
    "path-managers": _core.path_managers,
    "queues": _core.queues,
    "profiles": _core.profiles,
}
# Definitions of the schema that are a choice.
CHOICES = {
    "transports": "Transport",
    "rates": "RateMap",
    "losses": "LossMap",
    "workloads": "Workload",
    "topologies": "Topology",
}


def print_entries(entries: Iterable[dict[str, Any]], *, parameters: bool = False) -> None:
    """Print each entry and, on request, its parameters: a line each, wrapped in a terminal."""
    rows, own = [], []
    for e in entries:
        source = f"  [{e['source']}]" if e["source"] else ""
        rows.append((", ".join([e["name"], *e.get("aliases", [])]), f"{e['summary']}{source}"))
        own.append(e.get("parameters", []))
    if not parameters:
        print(printable(definitions(rows)))
        return
    for text, keys in zip(definitions_each(rows), own, strict=True):
        print(printable(text))
        widest = max((len(p["name"]) for p in keys), default=0)
        told = [
            (f"{p['name']:<{widest}}  {p['default']}", f"{p['doc'].rstrip('.')}; {p['valid']}")
            for p in keys
        ]
        if told:
            print(printable(definitions(told, indent=4)))


@command(examples=[("gargalo schema > scenario.schema.json", "For the completion of an editor.")])
def schema() -> None:
    """Print the JSON Schema of scenarios (for editors: taplo, VS Code)."""
    print(json.dumps(json.loads(_core.schema()), indent=2, ensure_ascii=False))
