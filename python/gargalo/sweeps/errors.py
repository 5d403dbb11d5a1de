"""What can go wrong with a sweep as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gargalo._core import Diagnostic

DAMAGED = "damaged"
"""The folder of a store to which damaged files are moved."""


class SweepError(ValueError):
    """A sweep is wrong: its file, an axis, a label; nothing has run and nothing was written.

    Attributes:
        diagnostics: What the engine says of a cell's scenario, if that is what is wrong; or the place in the sweep's
            file.
        key: The key of the sweep's file that is wrong, if it is one.

    """

    def __init__(
        self, text: str, diagnostics: Sequence[Diagnostic] = (), key: str | None = None
    ) -> None:
        super().__init__(text)
        self.diagnostics = tuple(diagnostics)
        self.key = key


class StoreError(RuntimeError):
    """A store cannot be read or written; finished runs are kept."""


class BadStoreError(StoreError):
    """A store cannot be used from the start; nothing was written."""


class DamagedError(BadStoreError):
    """A file of a store is not what was written; what it holds is to be done again.

    Attributes:
        file: Which one.
        what: The file and what is wrong with it.
        remedy: What the sweep does with --repair.

    """

    def __init__(
        self,
        store: Path,
        file: Path,
        why: str,
        count: int = 1,
        runs: Mapping[str, int] | None = None,
    ) -> None:
        self.file = file
        more = f" (and {count - 1} more of the store)" if count > 1 else ""
        self.what = f"{file} is damaged{more}: {why}"
        if file.parent == store or file.parent.name == "plans":
            self.remedy = "writes it anew"
        else:
            it, they = ("it", "it") if count == 1 else ("them", "they")
            self.remedy = (
                f"moves {it} to {store / DAMAGED} and does again what {they} held of its runs"
            )
            self.remedy += whose(runs)
        super().__init__(
            f"{self.what}; the sweep with --repair (gargalo sweep FILE --store {store} --repair, in Python "
            f"repair=True) {self.remedy}"
        )
        self._arguments = (store, file, why, count, runs)

    def among(self, count: int, runs: Mapping[str, int]) -> DamagedError:
        """Return it as one of several, which held at most so many runs: see `Store.held`."""
        store, file, why, *_ = self._arguments
        return DamagedError(store, file, why, count, runs)

    def __reduce__(
        self,
    ) -> tuple[type[DamagedError], tuple[Path, Path, str, int, Mapping[str, int] | None]]:
        """Travel between processes."""
        return type(self), self._arguments


def whose(runs: Mapping[str, int] | None) -> str:
    """Return how many runs damaged files held, for the end of a sentence; the sweep itself is called ""."""
    others = "; runs of other sweeps that were there are done again by these"
    if runs is None:
        return others
    told = ", ".join(f'"{name}" at most {n}' for name, n in runs.items() if name)
    return f", at most {runs.get('', 0)}" + (f"{others} ({told})" if told else "")


class ClusterError(RuntimeError):
    """A Dask cluster cannot be used, or was lost; finished runs are kept."""


class NoClusterError(ClusterError):
    """There is no usable cluster at an address; nothing was written."""


class WorkersError(RuntimeError):
    """Worker processes cannot be started; finished runs are kept."""
