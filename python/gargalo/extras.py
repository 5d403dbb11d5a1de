"""Libraries beside the base: who needs one that is not installed says so in a sentence with the command.

Extras are sets of libraries that `pip install 'gargalo[NAME]'` installs: `plots` draws pictures, `report` has what
sweeps, comparisons, reports, studies and evaluations need, `explore` shows a scenario in the browser, `cluster` runs
sweeps on many machines, `all` is everything.
"""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "matplotlib": "plots",
    "numpy": "plots",
    "cloudpickle": "report",
    "jinja2": "report",
    "plotly": "report",
    "scipy": "report",
    "starlette": "explore",
    "tomlkit": "explore",
    "uplot": "explore",
    "uvicorn": "explore",
    "distributed": "cluster",
}
"""The smallest extra that installs a library."""
ORDER = ("plots", "explore", "report", "cluster")
"""The smaller first. Each but `explore` has what those before it have, and of several that lack the last is named."""


class MissingExtraError(ImportError):
    """A library is missing that an extra of the package installs."""


def need(what: str, *libraries: str) -> None:
    """Raise :class:`MissingExtraError` unless all `libraries` of `EXTRAS` can be imported.

    `what`, in the plural, needs them.
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        extra = max((EXTRAS[name] for name in missing), key=ORDER.index)
        *first, last = missing
        named, are = (f"{', '.join(first)} and {last}", "are") if first else (last, "is")
        told = f"{what} need {named}, which {are} not installed: pip install 'gargalo[{extra}]'"
        raise MissingExtraError(told, name=missing[0])
