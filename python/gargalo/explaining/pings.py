"""What the echo requests of a ping met."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.explaining.model import Sentence, counted, instant, of_flow
from gargalo.summary import span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gargalo.results import Run
    from gargalo.row_types import FlowRow


def pings(run: Run, row: FlowRow, name: str) -> Iterator[Sentence]:
    """Describe the round trips of a flow's echo requests, of the whole run, and the longest with its direction."""
    mine = of_flow(run.pings, row["id"])
    if mine.is_empty():
        return
    answered = mine.drop_nulls("rtt_s")
    lost = int(mine["lost"].sum())
    figures: dict[str, Any] = {"sent": mine.height, "answered": answered.height, "lost": lost}
    text = f"{name} sent {counted(mine.height, 'echo request')}: {answered.height} had an answer, {lost} were lost"
    if waiting := mine["lost"].null_count():
        text += f", and of {waiting} it was not known when the flow ended"
    yield Sentence("flow", f"{text}.", row["start_s"], flow=row["id"], figures=figures)
    if answered.is_empty():
        return
    longest = answered.sort("rtt_s", "sent_s", descending=[True, False]).row(0, named=True)
    least, middle = (float(answered["rtt_s"].quantile(q, "linear") or 0.0) for q in (0.0, 0.5))
    text = (
        f"{name}: round trips took {span(least)} to {span(longest['rtt_s'])}, {span(middle)} in the median; the "
        f"longest, sent at {instant(longest['sent_s'])}, took {span(longest['forward_delay_s'])} there and "
        f"{span(longest['return_delay_s'])} back."
    )
    figures = {"least_s": least, "median_s": middle, "longest_s": longest["rtt_s"]}
    yield Sentence("flow", text, longest["sent_s"], flow=row["id"], figures=figures)
