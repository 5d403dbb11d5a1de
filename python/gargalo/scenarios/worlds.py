"""Which features of scenarios the simulator and the lab have."""

from __future__ import annotations

from dataclasses import dataclass

from gargalo import _core


@dataclass(frozen=True)
class Capability:
    """A feature of scenarios, and which world has it."""

    key: str
    """The key that asks for it, like `flows.*.transport.tcp`; `*` is any item of a list and any name."""
    example: str
    """What asks for it, as in TOML (below a flow if the key is one of flows); empty if both do it."""
    sim: str | None
    """Why the simulator does not, in a sentence without full stop; `None`: it does."""
    lab: str | None
    """Why the lab does not; `None`: it does."""


def capabilities() -> list[Capability]:
    """List topologies, transports, workloads, what can be recorded, and every key that one world lacks.

    What a world lacks is an error of the scenario where it is run there, with the place of the key.
    """
    return [Capability(**row) for row in _core.capabilities()]


def entries() -> list[dict[str, object]]:
    """List them as `gargalo list` does."""
    return [
        {
            "name": c.key,
            "summary": f"only lab: {c.sim}"
            if c.sim
            else f"only sim: {c.lab}"
            if c.lab
            else "sim and lab",
            "source": "",
            "example": c.example,
            "sim": c.sim is None,
            "lab": c.lab is None,
        }
        for c in capabilities()
    ]
