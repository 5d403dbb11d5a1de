"""`gargalo list`, `gargalo resolve` and `gargalo schema`: what there is to write in a scenario."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import rich_click as click

from gargalo import _core
from gargalo.cli_common import (
    change,
    in_color,
    json_option,
    load_plugin,
    plugin_option,
    printable,
    refuse,
    scenario_argument,
    set_option,
    to_json,
)

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
]
"""What can be listed."""


@click.command()
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
    try:
        if as_json:
            print(to_json(running.resolve(file, set=settings, color=color)))
        else:
            print(running.resolve_toml(file, set=settings, color=color), end="")
    except _core.ScenarioError as e:
        refuse(e, colored=color)


@click.command("list")
@click.argument(
    "what",
    type=click.Choice(get_args(What)),
    metavar="WHAT",
    help=f"What to list: {', '.join(get_args(What))}.",
)
@click.option(
    "--parameters", is_flag=True, help="With the keys of each: default, allowed values, meaning."
)
@json_option("As JSON, parameters included.")
def list_(
    what: What,
    parameters: bool,
    as_json: bool,
) -> None:
    """Print what is available: name, one line about it, its source."""
    entries = listing(what)
    if as_json:
        print(to_json(entries))
        return
    print_entries(entries, parameters=parameters)


def listing(what: What) -> list[dict[str, Any]]:
    """Return the entries of a list."""
    if what == "studies":
        from gargalo.studies import STUDIES

        return [
            {"name": t.name, "summary": t.summary, "source": t.source} for t in STUDIES.values()
        ]
    if what in REGISTRIES:
        return REGISTRIES[what]()
    if what == "tables":
        return [{"name": t["name"], "summary": t["doc"], "source": ""} for t in _core.tables()]
    if what == "capabilities":
        from gargalo.worlds import entries

        return entries()
    from gargalo.model import Model

    return Model.load().listing(CHOICES[what])


REGISTRIES = {
    "congestion": _core.congestion,
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
    """Print one line for each entry and, if asked for, one line for each of its parameters."""
    entries = [{**e, "names": ", ".join([e["name"], *e.get("aliases", [])])} for e in entries]
    width = max((len(e["names"]) for e in entries), default=0)
    for e in entries:
        source = f"  [{e['source']}]" if e["source"] else ""
        print(printable(f"{e['names']:<{width}}  {e['summary']}{source}"))
        if not parameters:
            continue
        own = e.get("parameters", [])
        columns = [max((len(p[key]) for p in own), default=0) for key in ("name", "default")]
        for p in own:
            head = f"    {p['name']:<{columns[0]}}  {p['default']:<{columns[1]}}"
            print(printable(f"{head}  {p['doc'].rstrip('.')}; {p['valid']}"))


@click.command()
def schema() -> None:
    """Print the JSON Schema of scenarios (for editors: taplo, VS Code)."""
    print(json.dumps(json.loads(_core.schema()), indent=2, ensure_ascii=False))
