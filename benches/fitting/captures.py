"""Captures at the sender that are made once and kept, those in real time with how late the emulated links were."""

from __future__ import annotations

import json
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
            run = gargalo.run(scenario, output=out, **options)
            (capture,) = out.glob("*.pcapng")
            if (late_s := run.info.get("late_p50_s")) is not None:
                made.with_suffix(".json").write_text(json.dumps({"late_p50_s": late_s}))
            shutil.move(capture, made)
    return made


def late_s(made: Path) -> float:
    """Return by how much packets of a capture were later than they should, in the median, each way; 0 if simulated."""
    told = made.with_suffix(".json")
    return json.loads(told.read_text())["late_p50_s"] if told.exists() else 0.0
