"""Tables: the published figures beside ours, advantages by cell, and every cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from gargalo.reporting import TableBlock
from gargalo.studies.drawing import cell_tables, names_of

from gargalo_studies.nsquic.experiments import CORNERS, FACTORS, STANDARD
from gargalo_studies.nsquic.gains import beside, gain, levels, ratio
from gargalo_studies.nsquic.published import level_text, receive_rates
from gargalo_studies.nsquic.transports import CUBIC, STEPS, TLS

if TYPE_CHECKING:
    from gargalo.studies import Context

LABELS = (
    "protocol",
    "pair",
    "step",
    "where",
    "mbps",
    "delay_s",
    "loss",
    "kb",
    "nodes",
    "reordered",
)
METRICS = (
    "time_s",
    "fastest_s",
    "median_s",
    "completed",
    "receive_rate_bps",
    "jain",
    "object_mean_s",
    "object_p95_s",
    "page_s",
    "lost_packets",
    "retransmitted_packets",
    "spurious_losses",
    "dropped_packets",
)


def beside_published(context: Context) -> pl.DataFrame:
    """Return the published receive rates with ours."""
    rows = context.experiment("simple")
    cell = ["mbps", "kb", "protocol"]
    if rows.height == 0 or not {*cell, "delay_s", "loss", "wire_rate_bps"} <= set(rows.columns):
        return pl.DataFrame()
    known = rows.filter(
        (pl.col("delay_s") == STANDARD["delay_s"]) & (pl.col("loss") == STANDARD["loss"])
    )
    mine = known.group_by(cell).agg(pl.col("wire_rate_bps").mean().alias("here_bps"))
    return receive_rates().join(mine, on=cell, how="left", maintain_order="left")


def advantages(context: Context) -> pl.DataFrame:
    """Return TCP's time over QUIC's by network and cell, of CUBIC alone and behind TLS."""
    rows = []
    for network in ("simple", "dumbbell"):
        for factor in FACTORS:
            for level in levels(context.experiment(network), factor):
                found = [gain(context, network, factor, level, over=o).mean for o in (CUBIC, TLS)]
                what = {"network": network, "factor": level_text(factor, level)}
                rows.append({**what, "cubic": found[0], "cubic_with_tls": found[1]})
    return pl.DataFrame(rows)


def step_gains(context: Context) -> pl.DataFrame:
    """Return the advantage after each change of the defaults."""
    if context.experiment("steps").height == 0:
        return pl.DataFrame()
    rows = [
        {
            "step": s.name,
            **{w: ratio(context, "steps", step=s.name, where=w).mean for w in CORNERS},
            "beside each other, 100 kB: rates": beside(context, s.name).mean,
        }
        for s in STEPS
    ]
    return pl.DataFrame(rows)


def tables(context: Context) -> list[TableBlock]:
    """Return the tables of which there are runs."""
    found = []
    for title, caption, frame in (
        (
            "Mean receive rate: published and here",
            "Of one flow over one link, from the handshake's first answer to the last byte, headers included, as "
            "the flow monitor of ns-3 counts. The published figures are of one run each.",
            beside_published(context),
        ),
        (
            "Advantage after each step",
            "CUBIC's time over QUIC's, 1 MB; the same in all readings.",
            step_gains(context),
        ),
        ("Advantage by cell", "TCP's time over QUIC's.", advantages(context)),
    ):
        if frame.height:
            found.append(TableBlock(title, caption, frame, group="defaults"))
    spread = pl.col("time_s").std().alias("time_std_s")
    return [*found, *cell_tables(context, names_of(context), LABELS, METRICS, spread)]
