"""Diagnostics of scenarios as values: making them, and writing them as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gargalo._core import Diagnostic, RunError, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def scenario_error(text: str, diagnostics: Iterable[Diagnostic]) -> ScenarioError:
    """Return an error that has its text and the same as values."""
    error = ScenarioError(text)
    error.diagnostics = tuple(diagnostics)
    return error


def unreadable(path: Path, what: str, remedy: str) -> ScenarioError:
    """Return the error for a scenario file that cannot be read."""
    found = Diagnostic(f"{path}: {what}", file=str(path), help=remedy)
    return scenario_error(found.sentence(), [found])


def sentence(error: BaseException) -> str:
    """Return what an error says, on one line: of a scenario the first diagnostic, without the picture."""
    first, *others = getattr(error, "diagnostics", ()) or (None,)
    if first is None:
        return " ".join(str(error).split())
    more = f" (and {len(others)} more)" if others else ""
    return " ".join(first.sentence().split()) + more


def rendered(error: BaseException) -> list[str]:
    """Return what a cell of a notebook shows of an error: one line, with the place in the scenario."""
    found = getattr(error, "diagnostics", ())
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    told = str(found[0] if found else error)
    return [f"{type(error).__name__}: {' '.join(told.split())}{more}"]


# IPython's way to show an exception.
for _kind in (ScenarioError, RunError):
    _kind._render_traceback_ = rendered  # type: ignore[union-attr]
