"""Writes what is derived: from the scenario model, the results tables, the commands and the docstrings.

`python -m gargalo._generate` in the repository rewrites `python/gargalo/scenario_types.py`, `row_types.py` and the
pages in `docs/reference/`; with `--check` it only says which are out of date (exit code 1).
"""

from __future__ import annotations

import json
import keyword
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gargalo import _core, _profiles, scripts
from gargalo._reference import cell, commands_page, python_page
from gargalo.exploring import lessons
from gargalo.scenarios.model import Model, Node, first_sentence
from gargalo.scenarios.worlds import capabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path.cwd()
MOST_PLACES = 3
"""Of one part of a scenario, in its reference."""
DEEPEST = 8
"""Keys of a place."""
SCHEDULERS = """\
# Schedulers

Which subflow of [Multipath TCP](../mptcp.md) carries the next segment: `transport.mptcp = { scheduler = "ecf" }`, with
parameters `scheduler = { round-robin = { segments = 4 } }`. Yours can be the next:
[Python](../mptcp.md#a-scheduler-in-python).

"""
PATH_MANAGERS = """\
# Path managers

Which subflows [Multipath TCP](../mptcp.md) opens: `transport.mptcp = { path_manager = "full-mesh" }`, with parameters
`path_manager = { ndiffports = { subflows = 3 } }`. Yours can be the next:
[Python](../mptcp.md#a-path-manager-in-python).

"""


SCRIPTS = """\
# All scripts

The [packet scripts](../scripts.md) of the repository, from the RFCs. Each runs on our stack and on the kernel, here Linux 6.18.

"""

CAPABILITIES = """\
# Simulator and lab

Who does what a scenario asks for: `sim` in virtual time, `lab` ([the lab](../lab.md)) in real time. What a world lacks is refused before
anything runs, at the key that asks for it, with its line and column. Every other key of the [scenario](scenario.md) is read by both; those
of `[lab]` have no effect in the simulator, and hosts with the kernel's stack do with a flow's options what the kernel can.
`gargalo list capabilities` and `gargalo.capabilities()` have the same table.

| key | sim | lab | asked for by |
| --- | --- | --- | --- |
"""


def type_name(model: Model, node: Node, *, link: bool) -> str:
    """Describe the values a node takes."""
    name = model.reference(node)
    if name:
        if name in model.definitions and is_section(model.definitions[name]):
            return f"[{name}](#{name.lower()})" if link else f"{name} | Mapping[str, Any]"
        if name in model.definitions:
            return type_name(model, model.definitions[name], link=link)
    if "enum" in node:
        values = [json.dumps(v) for v in node["enum"]]
        return ", ".join(f"`{v}`" for v in values) if link else "str"
    several = node.get("anyOf") or node.get("oneOf")
    if several:
        parts = [type_name(model, n, link=link) for n in several if n.get("type") != "null"]
        return (", or " if link else " | ").join(dict.fromkeys(parts)) or "Any"
    if "const" in node:
        return f"`{json.dumps(node['const'])}`" if link else "str"
    kinds = node.get("type", "any")
    kinds = [k for k in ([kinds] if isinstance(kinds, str) else kinds) if k != "null"]
    named = []
    for kind in kinds:
        if kind == "array" and "items" in node:
            inside = type_name(model, node["items"], link=link)
            named.append(f"list of {inside}" if link else f"Sequence[{inside}]")
        elif kind == "object" and isinstance(node.get("additionalProperties"), dict):
            inside = type_name(model, node["additionalProperties"], link=link)
            named.append(f"table of {inside}" if link else f"Mapping[str, {inside}]")
        elif kind == "string" and node.get("format") and link:
            named.append(f"{node['format']} with its unit")
        elif link:
            named.append({"object": "table", "array": "list"}.get(kind, kind))
        else:
            plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
            named.append(
                plain.get(
                    kind, {"object": "Mapping[str, Any]", "array": "Sequence[Any]"}.get(kind, "Any")
                )
            )
    return (" or " if link else " | ").join(named) or "Any"


def is_section(node: Node) -> bool:
    """Whether a definition is a table with keys of its own."""
    return bool(node.get("properties")) or Model.variants(node) is not None


def rows(node: Node) -> list[tuple[str, Node, bool]]:
    """Return the keys of a table: name, content, required."""
    needed = node.get("required", [])
    return [(k, v, k in needed) for k, v in node.get("properties", {}).items()]


def described(model: Model, node: Node) -> str:
    """Return a node's description, or that of what it refers to."""
    name = model.reference(node)
    own = node.get("description")
    return str(own or (model.definitions.get(name, {}).get("description", "") if name else ""))


def places(model: Model) -> dict[str, list[str]]:
    """Return where in a scenario each definition stands: dotted paths as `--set` takes them, the shortest first."""
    found: dict[str, list[str]] = {}
    todo: list[tuple[str, Node]] = [("", model.root)]
    while todo:
        path, node = todo.pop(0)
        name = model.reference(node)
        if name in model.definitions:
            at = found.setdefault(name, [])
            if path in at or path.count(".") > DEEPEST:
                continue
            at.append(path)
            if len(at) > MOST_PLACES:
                continue
            node = model.definitions[name]
        below = f"{path}." if path else ""
        todo += [(f"{below}{k}", v) for k, v in node.get("properties", {}).items()]
        if isinstance(node.get("additionalProperties"), dict):
            todo.append((f"{below}NAME", node["additionalProperties"]))
        if "items" in node:
            todo.append((f"{below}0", node["items"]))
        todo += [(path, n) for n in (*node.get("anyOf", []), *node.get("oneOf", []))]
    return found


def section(model: Model, title: str, node: Node, at: Sequence[str] = ()) -> str:
    """Write a part of the scenario reference."""
    text = f"## {title}\n\n{node.get('description', '')}\n\n"
    if at:
        shown = ", ".join(f"`{path}`" for path in at[:MOST_PLACES])
        text += f"Place: {shown}{', …' if len(at) > MOST_PLACES else ''}\n\n"
    variants = Model.variants(node)
    if variants:
        text += "| one of | value | meaning |\n| --- | --- | --- |\n"
        for name, (about, content) in variants.items():
            kind = cell(type_name(model, content, link=True))
            text += f"| `{name}` | {kind} | {cell(about or described(model, content))} |\n"
    else:
        text += "| key | value | default | meaning |\n| --- | --- | --- | --- |\n"
        for name, content, needed in rows(node):
            default = content.get("default")
            shown = (
                "**required**"
                if needed
                else f"`{json.dumps(default)}`"
                if default is not None
                else ""
            )
            kind = cell(type_name(model, content, link=True))
            text += f"| `{name}` | {kind} | {shown} | {cell(described(model, content))} |\n"
    return text + "\n"


def scenario_page(model: Model) -> str:
    """Write the scenario reference."""
    text = (
        "# Scenario reference\n\n"
        'A scenario is a TOML file. Quantities are strings with units (`"12Mbit/s"`, `"50ms"`, '
        '`"1500B"`, `"250 packets"`, `"1BDP"`, `"0.1%"`); a bare number where a unit is needed is an '
        "error. `gargalo schema` prints the JSON Schema this page is made from.\n\n"
        "Each part names its places in a scenario as `--set` takes them: keys with dots between "
        "them, numbers from 0 for "
        "entries of a list (`*` for all), `NAME` where names are free: `--set "
        "flows.0.transport.tcp.congestion=bbr`.\n\n"
    )
    at = places(model)
    text += section(model, "Scenario", model.root)
    for name, node in model.definitions.items():
        if is_section(node):
            text += section(model, name, node, at.get(name, ()))
    return text.rstrip() + "\n"


def tables_page() -> str:
    """Write the reference of results tables."""
    text = (
        "# Results tables\n\nEach is a Parquet file of a results directory and a data frame of a "
        "`gargalo.Run`. Everything is in SI, the unit is in the name.\n\n"
    )
    for table in _core.tables():
        text += f"## {table['name']}\n\n{table['doc']}\n\n"
        text += "| column | type | unit | meaning |\n| --- | --- | --- | --- |\n"
        for c in table["columns"]:
            kind = c["type"] + (" or missing" if c["nullable"] else "")
            unit = "" if c["unit"] == "1" else c["unit"]
            text += f"| `{c['name']}` | {kind} | {unit} | {cell(c['doc'])} |\n"
        text += "\n"
    return text.rstrip() + "\n"


def capabilities_page() -> str:
    """Write the table of what each world does."""
    text = CAPABILITIES
    for c in capabilities():
        asked = f"`{cell(c.example)}`" if c.example else ""
        sim, lab = (cell(f"no: {why}") if why else "yes" for why in (c.sim, c.lab))
        text += f"| `{c.key}` | {sim} | {lab} | {asked} |\n"
    return text


def parameters(entry: dict[str, Any]) -> str:
    """Write an algorithm's parameters as a table."""
    if not entry["parameters"]:
        return "None.\n\n"
    ranges = any(p["valid"] for p in entry["parameters"])
    text = "| parameter | default | valid | meaning |\n| --- | --- | --- | --- |\n"
    if not ranges:
        text = "| parameter | default | meaning |\n| --- | --- | --- |\n"
    for p in entry["parameters"]:
        valid = f" {cell(p['valid'])} |" if ranges else ""
        text += f"| `{p['name']}` | `{p['default']}` |{valid} {cell(p['doc'])} |\n"
    return text + "\n"


def algorithms(entries: list[dict[str, Any]]) -> str:
    """Write a list of algorithms with their parameters."""
    text = ""
    for e in entries:
        text += f"## {e['name']}\n\n{sentence(e['summary'])} Source: {e['source']}.\n\n"
        if e["parameters"]:
            text += parameters(e)
    return text


def sentence(text: str) -> str:
    """Begin with a capital and end with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def filled(page: str, marker: str, content: str) -> str:
    """Replace what stands between `<!-- marker: … -->` and `<!-- end of marker -->`."""
    begin, end = f"<!-- {marker}:", f"<!-- end of {marker} -->"
    if begin not in page or end not in page:
        msg = f"the comments `{begin} … -->` and `{end}` are missing"
        raise ValueError(msg)
    head, _, rest = page.partition(begin)
    opening, _, rest = rest.partition("-->")
    _, _, tail = rest.partition(end)
    return f"{head}{begin}{opening}-->\n\n{content.strip()}\n\n{end}{tail}"


def has_pictures(page: str) -> bool:
    """Return whether a congestion control's page shows it alone on a path.

    A coupled one is then another; its page says so in a comment: `<!-- no pictures: ... -->`.
    """
    return "<!-- no pictures:" not in page


def congestion_page(entry: dict[str, Any], path: Path) -> str:
    """Fill the parameters and the pictures into the page of a congestion control."""
    name = entry["name"]
    if not path.exists():
        msg = f"{path} is missing: every congestion control has a page; reno.md is an example"
        raise FileNotFoundError(msg)
    page = path.read_text(encoding="utf-8")
    also = " or ".join(f"`{a}`" for a in entry["aliases"])
    use = f'`congestion = "{name}"`'
    intro = f"In a scenario {use}{f' (or {also})' if also else ''}"
    if entry["parameters"]:
        first = entry["parameters"][0]
        given = f"{first['name']} = {first['default']}"
        intro += f", with parameters `congestion = {{ {key_of(name)} = {{ {given} }} }}`"
    pictures = (
        f"![Congestion window and queueing delay of {name} against time](../images/congestion/{name}-time.svg)\n\n"
        "Alone on a link of 100 Mbit/s and 50 ms with one bandwidth-delay product of buffer.\n\n"
        f"![Mean congestion window of {name} against loss rate](../images/congestion/{name}-loss.svg)\n\n"
        "Mean window on the same link when every n-th packet is lost, against 1.2/√p.\n"
    )
    try:
        page = filled(page, "parameters", f"{intro}.\n\n{parameters(entry)}")
        return filled(page, "pictures", pictures) if has_pictures(page) else page
    except ValueError as e:
        msg = f"{path}: {e}"
        raise ValueError(msg) from None


def key_of(name: str) -> str:
    """Write a key as TOML wants it."""
    return name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'


def congestion_index(entries: list[dict[str, Any]]) -> str:
    """Write the list of all congestion controls."""
    text = (
        "# Congestion controls\n\n"
        "Every one is a file of its own, has the published defaults, and says where it comes from. How "
        "they compare on six networks: [comparison](comparison.md); how they compare with ns-3's: "
        "[cross-check](../crosscheck.md). Yours can be the next: "
        "[Rust](../contributing.md) or [Python](../python.md).\n\n"
        "| name | what it does | source |\n| --- | --- | --- |\n"
    )
    for e in entries:
        text += f"| [{e['name']}]({e['name']}.md) | {cell(e['summary'])} | {cell(e['source'])} |\n"
    return text


def lessons_page(path: Path) -> str:
    """Return the page of the lessons, with what each says of itself."""
    told = []
    for of in map(lessons.lesson, lessons.names()):
        steps = "\n".join(f"{n}. {s.title}" for n, s in enumerate(of.steps, 1))
        told.append(
            f"## {of.title}\n\n{of.teaches} About {of.minutes} minutes.\n\n"
            f"```sh\ngargalo explore --lesson {of.name}\n```\n\n{steps}\n\n"
            f"To know before: {of.needs[:1].lower()}{of.needs[1:]}\n\nSource: {of.source}.\n\n"
            f"![A step of the lesson {of.name}](images/lessons/{of.name}.png)"
        )
    return filled(path.read_text(encoding="utf-8"), "lessons", "\n\n".join(told))


def identifier(name: str) -> str:
    """Make a Python identifier of a key."""
    name = name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def types_module(model: Model) -> str:
    """Write frozen dataclasses for every table of the model."""
    text = (
        '"""Scenario builders, derived from the JSON Schema: `python -m gargalo._generate`.\n\n'
        "Each class is a table of the scenario; a key that is a Python keyword has a trailing underscore.\n"
        "Instances may stand wherever a scenario given as a dictionary has that table.\n"
        '"""\n\nfrom __future__ import annotations\n\n'
        "from collections.abc import Mapping, Sequence\n"
        "from dataclasses import dataclass, field\nfrom typing import Any, ClassVar\n"
    )
    named = {"Scenario": model.root, **model.definitions}
    written = []
    for name, node in named.items():
        variants = Model.variants(node)
        if variants:
            fields = [
                (k, {**c, "description": t or described(model, c)}, False)
                for k, (t, c) in variants.items()
            ]
        else:
            fields = rows(node)
        if not fields:
            continue
        written.append(name)
        about = first_sentence(str(node.get("description", name))).replace("\\", "")
        if variants:
            about = about.removesuffix(": one of the following") + "; give exactly one"
        text += f'\n\n@dataclass(frozen=True, kw_only=True)\nclass {name}:\n    """{about}."""\n\n'
        for key, content, needed in fields:
            default = "" if needed else " = None"
            kind = type_name(model, content, link=False)
            kind = kind if needed else f"{kind} | None"
            text += f"    {identifier(key)}: {kind}{default}\n"
            text += (
                f'    """{" ".join(described(model, content).split())}"""\n'
                if described(model, content)
                else ""
            )
        renamed = {identifier(k): k for k, _, _ in fields if identifier(k) != k}
        if renamed:
            text += f"    _names: ClassVar[Mapping[str, str]] = {json.dumps(renamed)}\n"
    text = text.replace(
        "from dataclasses import dataclass, field\n", "from dataclasses import dataclass\n"
    )
    if "ClassVar[" not in text:
        text = text.replace("from typing import Any, ClassVar\n", "from typing import Any\n")
    return text + f"\n\n__all__ = {json.dumps(sorted(written), indent=4)}\n".replace("\n]", ",\n]")


PYTHON_TYPES = {"u64": "int", "f64": "float", "string": "str", "bool": "bool"}


def row_types_module() -> str:
    """Write the type of a row of the table of flows."""
    (flows,) = (t for t in _core.tables() if t["name"] == "flows")
    text = (
        '"""Rows of results tables, derived from their schema: `python -m gargalo._generate`."""\n\n'
        'from typing import TypedDict\n\nFlowRow = TypedDict(\n    "FlowRow",\n    {\n'
    )
    for c in flows["columns"]:
        kind = PYTHON_TYPES[c["type"]] + (" | None" if c["nullable"] else "")
        text += f'        "{c["name"]}": {kind},\n'
    about = f"A row of `flows`: {flows['doc'][0].lower()}{flows['doc'][1:]}"
    return f'{text}    }},\n)\n"""{about}"""\n'


def files() -> dict[str, str]:
    """Return the derived files."""
    model = Model.load()
    controls = _core.congestion()
    pages = Path("docs/congestion")
    queues = '# Queueing disciplines\n\nOn every link direction: `queue = { droptail = "100 packets" }`.\n\n'
    return {
        "python/gargalo/scenario_types.py": types_module(model),
        "python/gargalo/row_types.py": row_types_module(),
        "docs/reference/scenario.md": scenario_page(model),
        "docs/reference/tables.md": tables_page(),
        "docs/reference/commands.md": commands_page(),
        "docs/reference/python.md": python_page(),
        "docs/lessons.md": lessons_page(ROOT / "docs" / "lessons.md"),
        "docs/congestion/index.md": congestion_index(controls),
        **{
            str(pages / f"{e['name']}.md"): congestion_page(e, ROOT / pages / f"{e['name']}.md")
            for e in controls
        },
        "docs/reference/capabilities.md": capabilities_page(),
        "docs/reference/scripts.md": SCRIPTS + scripts.page(ROOT / "scripts"),
        "docs/reference/profiles.md": _profiles.page(),
        "docs/reference/queues.md": (queues + algorithms(_core.queues())).rstrip() + "\n",
        "docs/reference/schedulers.md": (SCHEDULERS + algorithms(_core.schedulers())).rstrip()
        + "\n",
        "docs/reference/path-managers.md": (
            PATH_MANAGERS + algorithms(_core.path_managers())
        ).rstrip()
        + "\n",
    }


def stale(root: Path) -> list[str]:
    """Return the derived files that are out of date."""
    return [
        name
        for name, text in files().items()
        if not (root / name).exists() or (root / name).read_text(encoding="utf-8") != text
    ]


def main() -> None:
    """Write or check the files below the current directory."""
    if not (ROOT / "python" / "gargalo").is_dir():
        sys.exit("run this at the top of the repository")
    if "--check" in sys.argv[1:]:
        old = stale(ROOT)
        for name in old:
            print(f"{name} is out of date: run `make reference`", file=sys.stderr)
        sys.exit(1 if old else 0)
    for name, text in files().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
