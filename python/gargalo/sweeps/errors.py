"""What can go wrong with a sweep as a whole."""

from __future__ import annotations


class SweepError(ValueError):
    """A sweep is wrong: its file, an axis, a label; nothing has run and nothing was written."""


class StoreError(RuntimeError):
    """A store cannot be read or written; finished runs are kept."""


class BadStoreError(StoreError):
    """A store cannot be used from the start; nothing was written."""


class ClusterError(RuntimeError):
    """A Dask cluster cannot be used, or was lost; finished runs are kept."""


class NoClusterError(ClusterError):
    """There is no usable cluster at an address; nothing was written."""


class WorkersError(RuntimeError):
    """Worker processes cannot be started; finished runs are kept."""
