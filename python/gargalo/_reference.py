"""Pages of the reference that are made of the commands and of the package's docstrings; see `gargalo._generate`."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gargalo.cli.help import Command, Group

COMMANDS = """\
# Commands

Made of the commands themselves; `gargalo COMMAND --help` has the same. Results go to standard output, everything else to standard error;
[exit codes](../quickstart.md#exit-codes) are the same for all. Where a scenario, a sweep or a trace is read, `-` is standard input.

| command | what it does |
| --- | --- |
"""
PYTHON = """\
# Python package

Made of the docstrings of the package. Times are seconds, amounts bytes, rates bit/s, unless a name or a text says else.
[Python](../python.md) introduces it, with examples; [Metrics](../metrics.md) has the functions of `gargalo.metrics`; the classes of
`gargalo.scenario_types` are the tables of the [scenario](scenario.md).

"""
SECTIONS = {
    "Scenarios and runs": (
        "gargalo",
        "run load read resolve capabilities Scenario Run Progress Interrupted Capability trace_generate",
    ),
    "Fitting a path": (
        "gargalo.fitting",
        "fit identify Fit Identified Ranked Path Bursts Reordering Policer Interval Predicted Compared FitError",
    ),
    "Scenarios that are tests": (
        "gargalo.checking",
        "check judge faults Options Checked Expectation Outcome Fault ExpectationError",
    ),
    "Pictures": ("gargalo.plots", "Plots Picture"),
    "Errors": ("gargalo", "ScenarioError RunError PluginError Diagnostic"),
    "Sweeps": (
        "gargalo.sweeps",
        "sweep plan execute load axis Sweep Job SweepProgress Failure SweepError",
    ),
    "Studies": (
        "gargalo.studies",
        "find run_study Study Profile Settings Experiment Claim Reading Context Outcome",
    ),
    "Evaluation": ("gargalo.evaluation", "evaluate"),
    "Congestion controls": (
        "gargalo",
        "congestion register load_plugin Controller WindowBased Init Established Sent Acked RateSample Lost Congestion "
        "Spurious Path Sibling",
    ),
    "Schedulers and path managers": (
        "gargalo",
        "scheduler path_manager Scheduler PathManager ConnectionInit Context PathView SendAll View "
        "SubflowView LocalAddress RemoteAddress Open",
    ),
    "QUIC stacks": (
        "gargalo",
        "quic_stack QuicStack QuicConfig QuicHost QuicDatagram QuicStats QuicPath",
    ),
    "Virtual clocks for libraries": (
        "gargalo.virtual",
        "runs is_running urandom time utcnow module",
    ),
}
"""Headings of the page on the package: a module, and names in it."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def cell(text: str) -> str:
    """Write text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


# --- commands


def commands_page() -> str:
    """Write the reference of all commands."""
    from gargalo.cli.app import SECTIONS, app
    from gargalo.cli.help import Context, first_line

    context = Context(app, info_name="gargalo", **app.context_settings)
    text, pages = COMMANDS, ""
    for heading, names in SECTIONS.items():
        pages += f"## {heading}\n\n"
        for name in names:
            found: Any = app.get_command(context, name)
            about = first_line(found)
            text += f"| [`{name}`](#gargalo-{name}) | {cell(about)} |\n"
            pages += command(found, f"gargalo {name}", context)
            if isinstance(found, click.Group):
                inside = Context(found, parent=context, info_name=name)
                for below in found.list_commands(inside):
                    under: Any = found.get_command(inside, below)
                    pages += command(under, f"gargalo {name} {below}", inside)
    return f"{text}\n{pages.rstrip()}\n"


def command(found: Command | Group, name: str, above: click.Context) -> str:
    """Write a command: what it does, its arguments and options, examples."""
    context = click.Context(found, parent=above, info_name=name.split()[-1])
    usage = " ".join([name, *found.collect_usage_pieces(context)])
    text = f"### {name}\n\n{prose(found.help or '')}\n\n```text\n{usage}\n```\n\n"
    arguments = [p for p in found.params if isinstance(p, click.Argument)]
    options = [p for p in found.params if isinstance(p, click.Option) and not p.hidden]
    if arguments:
        text += "| argument | meaning |\n| --- | --- |\n"
        for a in arguments:
            named, about = a.get_help_record(context)
            text += f"| `{cell(named)}` | {cell(about)} |\n"
        text += "\n"
    if options:
        text += "| option | default | meaning |\n| --- | --- | --- |\n"
        text += "".join(option(o, context) for o in options) + "\n"
    if found.examples:
        lines = "\n".join(f"{e.line}    # {e.about}" for e in found.examples)
        text += f"```sh\n{lines}\n```\n\n"
    return text


def option(found: click.Option, context: click.Context) -> str:
    """Write an option as a row of a table."""
    told = found.get_help_record(context)
    named = told[0] if told else ""
    extra = found.get_help_extra(context)
    limits = f" {cell(extra['range'])}." if "range" in extra else ""
    default = f"`{cell(extra['default'])}`" if "default" in extra else ""
    return f"| `{cell(named)}` | {default} | {cell(found.help or '')}{limits} |\n"


# --- the package


@cache
def definitions(path: Path) -> dict[str, Definition]:
    """Return the classes and functions of a file by name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return {n.name: n for n in tree.body if isinstance(n, kinds)}


def definition(value: Any) -> Definition:
    """Return where a class or a function is defined, in the package or in the stub of the engine.

    Raises:
        LookupError: It is nowhere.

    """
    owner = getattr(value, "__self__", None)  # A method of a class that is given out as a function.
    if inspect.isclass(owner):
        return next(n for n in definition(owner).body if _named(n, value.__name__))  # type: ignore[return-value]
    stub = Path(__file__).with_name("_core.pyi")
    file = inspect.getsourcefile(importlib.import_module(value.__module__))
    for path in (Path(file or stub), stub):
        if path.suffix in (".py", ".pyi") and value.__name__ in definitions(path):
            return definitions(path)[value.__name__]
    msg = f"{value.__name__} is defined in no file"
    raise LookupError(msg)


def _named(node: ast.AST, name: str) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name


def python_page() -> str:
    """Write the reference of the Python package."""
    text = PYTHON
    for heading, (module, names) in SECTIONS.items():
        text += f"## {heading}\n\n"
        found = importlib.import_module(module)
        for name in names.split():
            text += entry(f"{module}.{name}", definition(getattr(found, name)), name)
    return text.rstrip() + "\n"


def entry(path: str, node: Definition, name: str) -> str:
    """Write a class or a function."""
    about = prose(ast.get_docstring(node) or "")
    text = f"### {path}\n\n"
    if not isinstance(node, ast.ClassDef):
        return f"{text}```python\n{signature(node, name)}\n```\n\n{about}\n\n"
    bases = [ast.unparse(b) for b in node.bases]
    shown = f"class {name}({', '.join(bases)})" if bases else f"class {name}"
    fields, methods = members(node)
    text += f"```python\n{shown}\n```\n\n{about}\n\n"
    if fields:
        text += "| attribute | type | meaning |\n| --- | --- | --- |\n"
        text += "".join(f"| `{n}` | `{cell(k)}` | {cell(d)} |\n" for n, k, d in fields) + "\n"
    for method in methods:
        told = prose(ast.get_docstring(method) or "")
        text += f"```python\n{signature(method, method.name)}\n```\n\n{told}\n\n"
    return text


def members(node: ast.ClassDef) -> tuple[list[tuple[str, str, str]], list[ast.FunctionDef]]:
    """Return the public attributes of a class, each with its type and meaning, and its public methods."""
    fields, methods = [], []
    for n, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name):
            if not n.target.id.startswith("_"):
                fields.append((n.target.id, ast.unparse(n.annotation), _text(after)))
        elif isinstance(n, ast.FunctionDef) and not n.name.startswith("_"):
            if any(ast.unparse(d).endswith("property") for d in n.decorator_list):
                kind = "" if n.returns is None else ast.unparse(n.returns)
                fields.append((n.name, kind, ast.get_docstring(n) or ""))
            else:
                methods.append(n)
    return fields, methods


def _text(node: ast.stmt | None) -> str:
    """Return the text of a string that stands alone, as below an attribute."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return ""


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> str:
    """Write how a function is called; a line for each argument if it is long."""
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    a = node.args
    before = [*a.posonlyargs, *a.args]
    defaults: list[ast.expr | None] = [None] * (len(before) - len(a.defaults))
    parts = [_argument(*p) for p in zip(before, [*defaults, *a.defaults], strict=True)]
    if a.posonlyargs:
        parts.insert(len(a.posonlyargs), "/")
    if a.vararg is not None:
        parts.append(f"*{_argument(a.vararg, None)}")
    elif a.kwonlyargs:
        parts.append("*")
    parts += [_argument(*p) for p in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
    if a.kwarg is not None:
        parts.append(f"**{_argument(a.kwarg, None)}")
    parts = [p for p in parts if p not in ("self", "cls")]
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= 88:
        return line
    inside = "".join(f"    {p},\n" for p in parts)
    return f"{name}(\n{inside}){returns}"


def _argument(node: ast.arg, default: ast.expr | None) -> str:
    kind = "" if node.annotation is None else f": {ast.unparse(node.annotation)}"
    if default is None:
        return f"{node.arg}{kind}"
    equals = " = " if kind else "="
    return f"{node.arg}{kind}{equals}{ast.unparse(default)}"


def prose(text: str) -> str:
    """Write a docstring as Markdown: its sections as lists, its examples as code."""
    parts = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(map(_paragraph, parts))


def _paragraph(text: str) -> str:
    head, _, rest = text.partition("\n")
    if re.fullmatch(r"(Args|Raises|Returns|Attributes|Yields):", head):
        return f"{TITLES[head]}\n\n{_items(rest.splitlines())}"
    if text.startswith(">>>"):
        code = [re.sub(r"^(>>>|\.\.\.) ?", "", line) for line in text.splitlines()]
        return "```python\n" + "\n".join(code) + "\n```"
    return text


TITLES = {
    "Args:": "Arguments:",
    "Raises:": "Raises:",
    "Returns:": "Returns:",
    "Attributes:": "Attributes:",
    "Yields:": "Yields:",
}


def _items(lines: Iterable[str]) -> str:
    """Write `name: text` with its indented lines as a list."""
    items: list[str] = []
    for line in lines:
        found = re.match(r"    (\w[\w.`, ]*): (.*)", line)
        if found and not line.startswith("     "):
            items.append(f"- `{found[1]}`: {found[2]}")
        elif items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(f"- {line.strip()}")
    return "\n".join(items)
