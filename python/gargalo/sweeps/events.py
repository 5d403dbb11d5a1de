"""What the executors of a sweep report, and what they have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from gargalo.sweeps.job import Task
    from gargalo.sweeps.rows import Tables


@dataclass(frozen=True)
class Moved:
    """A run got on."""

    run: str
    packets: int
    """Simulated so far in this run."""


@dataclass(frozen=True)
class Done:
    """A run is finished."""

    run: str
    packets: int
    tables: Tables = field(default_factory=dict)
    """What it leaves, but for tables that the executor has written to the store."""


@dataclass(frozen=True)
class Failed:
    """A run failed; to repeat it would fail again."""

    run: str
    reason: str
    trace: str = ""
    """The traceback of what was raised, or of where it hung; empty if unknown."""


@dataclass(frozen=True)
class Crashed:
    """The process that did a run died; the run may or may not be the cause."""

    run: str
    reason: str


Event: TypeAlias = Moved | Done | Failed | Crashed


class Executor(Protocol):
    """Something that does several runs at a time."""

    def room(self) -> int:
        """Return how many more runs can be given now."""
        ...

    def start(self, task: Task) -> None:
        """Begin a run."""
        ...

    def poll(self, timeout_s: float) -> list[Event]:
        """Wait for news, at most for this time.

        Raises:
            StoreError: The store cannot be written any more.
            ClusterError: The cluster is lost.
            WorkersError: No worker can be started.

        """
        ...

    def close(self) -> None:
        """Stop everything, runs included."""
        ...
