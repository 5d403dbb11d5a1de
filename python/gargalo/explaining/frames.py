"""What the frames of a call met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.explaining.model import Sentence, counted, instant, of_flow
from gargalo.summary import span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gargalo.results import Run
    from gargalo.row_types import FlowRow


def frames(run: Run, row: FlowRow, name: str) -> Iterator[Sentence]:
    """Describe the frames of a flow's encoder, of the whole run: how many arrived, how late, and the latest of all."""
    mine = of_flow(run.media_frames, row["id"])
    if mine.is_empty():
        return
    whole = mine.drop_nulls("delay_s")
    figures: dict[str, Any] = {"encoded": mine.height, "completed": whole.height}
    text = f"{name} encoded {counted(mine.height, 'frame')}: {whole.height} arrived with all of their packets."
    yield Sentence("flow", text, row["start_s"], flow=row["id"], figures=figures)
    if whole.is_empty():
        return
    latest = whole.sort("delay_s", "encoded_s", descending=[True, False]).row(0, named=True)
    least, middle = (float(whole["delay_s"].quantile(q, "linear") or 0.0) for q in (0.0, 0.5))
    text = (
        f"{name}: from the encoder to the arrival of its last packet a frame took {span(least)} to "
        f"{span(latest['delay_s'])}, {span(middle)} in the median; the latest left the encoder at "
        f"{instant(latest['encoded_s'])}."
    )
    figures = {"least_s": least, "median_s": middle, "longest_s": latest["delay_s"]}
    yield Sentence("flow", text, latest["encoded_s"], flow=row["id"], figures=figures)
