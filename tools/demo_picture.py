#!/usr/bin/env python3
"""Draw the picture of the README from what `make demo` runs: `make pictures`.

Beside it go the figures of that run (docs/images/cellular-race.csv), whose digest the picture carries. A test compares
them with what the demo gives now.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import gargalo
import polars as pl
from gargalo import metrics

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = "examples/cellular-race.toml"
PICTURE = ROOT / "docs" / "images" / "cellular-race.png"
FIGURES = PICTURE.with_suffix(".csv")
DIGEST = "Source"
"""Where the picture says which figures it belongs to (a keyword of PNG's text chunks)."""


def figures(run: gargalo.Run) -> str:
    """Return the goodput of each flow in Mbit/s, second by second, as CSV."""
    bins = metrics.throughput_bins(run.flow_samples, 1.0, flows=run.flows)
    names = run.flows.select(pl.col("id").alias("flow"), "label")
    rates = (
        bins.join(names, on="flow", maintain_order="left")
        .with_columns((pl.col("throughput_bps") / 1e6).round(3))
        .pivot("label", index="time_s", values="throughput_bps")
    )
    out = io.StringIO()
    rates.write_csv(out)
    return out.getvalue()


def digest(text: str) -> str:
    """Return what the picture says of its figures."""
    return f"{FIGURES.name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def main() -> None:
    """Draw it."""
    run = gargalo.run(ROOT / SCENARIO)
    text = figures(run)
    FIGURES.write_text(text, encoding="utf-8")
    run.plot.goodput().savefig(PICTURE, dpi=130, metadata={DIGEST: digest(text)})
    print(f"{PICTURE.relative_to(ROOT)}, {FIGURES.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
