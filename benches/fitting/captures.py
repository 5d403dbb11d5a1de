"""Captures at the sender that are made once and kept."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import gargalo


def captured(made: Path, scenario: dict[str, Any], **options: Any) -> Path:
    """Run a scenario that captures at one place, unless its capture is there; `options` are those of `gargalo.run`."""
    if not made.exists():
        with tempfile.TemporaryDirectory(prefix="fitting-") as place:
            out = Path(place) / "run"
            gargalo.run(scenario, output=out, **options)
            (capture,) = out.glob("*.pcapng")
            shutil.move(capture, made)
    return made
