"""What can go wrong with a sweep as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class SweepError(ValueError):
    """A sweep is wrong: its file, an axis, a label; nothing has run and nothing was written."""


class StoreError(RuntimeError):
    """A store cannot be read or written; finished runs are kept."""


class BadStoreError(StoreError):
    """A store cannot be used from the start; nothing was written."""


class DamagedError(BadStoreError):
    """A file of a store is not what was written; what it holds is to be done again.

    Attributes:
        file: Which one.
        what: The file and what is wrong with it.

    """

    def __init__(self, store: Path, file: Path, why: str, count: int = 1) -> None:
        self.file = file
        more = f" (and {count - 1} more of the store)" if count > 1 else ""
        self.what = f"{file} is damaged{more}: {why}"
        super().__init__(
            f"{self.what}; the sweep with --repair (gargalo sweep FILE --store {store} --repair, in Python "
            "repair=True) does what it held again, and nothing else"
        )
        self._arguments = (store, file, why, count)

    def among(self, count: int) -> DamagedError:
        """Return it as one of several."""
        store, file, why, _ = self._arguments
        return DamagedError(store, file, why, count)

    def __reduce__(self) -> tuple[type[DamagedError], tuple[Path, Path, str, int]]:
        """Travel between processes."""
        return type(self), self._arguments


class ClusterError(RuntimeError):
    """A Dask cluster cannot be used, or was lost; finished runs are kept."""


class NoClusterError(ClusterError):
    """There is no usable cluster at an address; nothing was written."""


class WorkersError(RuntimeError):
    """Worker processes cannot be started; finished runs are kept."""
