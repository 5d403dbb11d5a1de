"""The summary of a run as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gargalo.names import flow_names, with_path
from gargalo.quantities import decimal
from gargalo.terminal.fitting import NONE, Column, show_table
from gargalo.terminal.text import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from rich.console import Console

    from gargalo.results import Run

MOST_ROWS = 20
FLOWS = (
    Column("flow", justify="left", least=24),
    Column("congestion", justify="left"),
    Column("goodput"),
    Column("completion", 3),
    Column("RTT p50", 4),
    Column("RTT p95", 1),
    Column("retransmitted", 2),
    Column("timeouts", 5),
)
DELAYS = (Column("one-way p50", 4), Column("one-way p95", 1))
"""Further columns of flows over UDP, whose delays are no round-trip times."""
SUBFLOWS = (
    Column("flow", justify="left", least=24),
    Column("path", justify="left"),
    Column("open", 4, justify="left"),
    Column("goodput"),
    Column("share", 1),
    Column("packets", 6),
    Column("retransmitted", 3),
    Column("RTT", 2),
    Column("RTT p95", 5),
)
PROGRAMS = (
    Column("host", justify="left"),
    Column("program", justify="left", least=24),
    Column("exit code"),
    Column("last line", 1, justify="left", least=24),
)
BACKGROUND = (
    Column("counted together", justify="left", least=24),
    Column("flows", 3),
    Column("asked", 4),
    Column("offered", 2),
    Column("goodput"),
    Column("completion p50", 1),
)
LINKS = (
    Column("link", justify="left", least=24),
    Column("utilization"),
    Column("queue p50", 3),
    Column("queue p95", 1),
    Column("dropped", 2),
    Column("marked", 4),
)


def rate(bps: float | None) -> str:
    """Write a rate."""
    return NONE if bps is None else f"{count(bps)}bit/s"


def span(seconds: float | None) -> str:
    """Write a span of time."""
    if seconds is None:
        return NONE
    return f"{decimal(seconds, 3)} s" if seconds >= 1 else f"{decimal(seconds * 1e3, 3)} ms"


def window(facts: Mapping[str, Any]) -> str:
    """Write the part of a run that its figures are of, from its summary; empty if that does not have it."""
    start, end = facts.get("measured_from_s"), facts.get("measured_until_s")
    return "" if start is None or end is None else f"{decimal(start)} s to {decimal(end)} s"


def measured_in(runs: pl.DataFrame) -> str | None:
    """Write the part of the runs that their figures are of; None if the table does not have it."""
    columns = ["measured_from_s", "measured_until_s"]
    if not set(columns) <= set(runs.columns):
        return None
    windows = runs.select(columns).unique().to_dicts()
    if len(windows) > 1:
        return "of each run's own window, measured_from_s to measured_until_s"
    return f"of {window(windows[0])} of each run" if windows and window(windows[0]) else None


def percent(share: float | None) -> str:
    """Write a share."""
    return NONE if share is None else f"{share * 100:.1f}%"


def show(run: Run, console: Console) -> None:
    """Print flows, links and the run itself."""
    if not console.is_terminal:
        console.width = max(console.width, 120)
    # Rows, not data frames: their library takes longer to load than most runs.
    flows = run._rows("flows", MOST_ROWS + 1)
    more = len(flows) > MOST_ROWS
    called = run.names if more else flow_names(flows)
    show_table("Flows", *flow_table(flows[:MOST_ROWS], called), console)
    if more:
        console.print(f"  … and {run.flows.height - MOST_ROWS} more flows\n")

    if run._rows("subflows", 1):
        _show_subflows(run, console, called)

    if run.commands:
        show_table("Programs", PROGRAMS, [_program(c) for c in run.commands], console)

    groups = (run.summary.get("background") or {}).get("groups", [])
    if groups:
        show_table("Background", BACKGROUND, [_group(g) for g in groups[:MOST_ROWS]], console)
        if len(groups) > MOST_ROWS:
            console.print(f"  … and {len(groups) - MOST_ROWS} more groups\n")

    # Links without a rate, queue or drop are left out.
    links = [link for link in run.links if link["utilization"] or link["dropped_packets"]]
    if not run.is_recording:
        show_table("Links", LINKS, [link_cells(link) for link in links[:MOST_ROWS]], console)
    if len(links) > MOST_ROWS:
        console.print(f"  … and {len(links) - MOST_ROWS} more links\n")

    info = run.info
    packets, wall = info.get("packets", 0), info.get("wall_s", 0)
    speed = f" ({count(packets / wall)}packets/s)" if wall else ""
    jain = run.summary.get("jain_index")
    fairness = "" if jain is None or len(flows) < 2 else f"Jain's index {jain:.3f}, "
    if "pings_sent" in run.summary:
        console.print(pinged(run.summary))
    if len(flows) and (during := window(run.summary)):
        console.print(f"all flows: {rate(run.summary['goodput_bps'])} from {during}")
    if run.is_recording:
        console.print(f"{count(packets)}packets in {span(info.get('duration_s'))}")
        return
    console.print(
        f"{fairness}seed {info.get('seed')}, {count(packets)}packets in {span(wall)}{speed}"
    )


def pinged(facts: Mapping[str, Any]) -> str:
    """Write what `ping` prints at its end, from the summary of a run that has pings."""
    loss = facts["ping_loss"]
    told = f"pings: {facts['pings_sent']} sent, {facts['pings_answered']} answered"
    told += f", {percent(loss)} lost" if loss is not None else ""
    if facts["ping_duplicates"]:
        told += f", {facts['ping_duplicates']} duplicates"
    times = [span(facts[f"ping_rtt_{which}_s"]) for which in ("min", "mean", "max", "mdev")]
    return f"{told}; RTT min/mean/max/mdev {' / '.join(times)}"


def flow_table(
    flows: Sequence[Mapping[str, Any]], called: Mapping[int, str]
) -> tuple[tuple[Column, ...], list[list[str]]]:
    """Return the columns and the rows of flows: with one-way delays if one of them is of datagrams."""
    rows = [flow_cells(f, called) for f in flows]
    if all(f["transport"] != "udp" and f["delay_p50_s"] is None for f in flows):
        return FLOWS, rows
    return FLOWS + DELAYS, [row + delay_cells(f) for row, f in zip(rows, flows, strict=True)]


def flow_cells(f: Mapping[str, Any], called: Mapping[int, str]) -> list[str]:
    """Return the cells of a flow, as in `FLOWS`, with the name that distinguishes it."""
    sent, again, timeouts = f["sent_packets"], f["retransmitted_packets"], f["timeouts"]
    share = again / sent if sent and again is not None else None
    return [
        called[f["id"]],
        f["congestion"] or f["transport"],
        rate(f["goodput_bps"]),
        span(f["completion_s"]),
        span(f["rtt_p50_s"]),
        span(f["rtt_p95_s"]),
        NONE if again is None else f"{again} ({percent(share)})",
        NONE if timeouts is None else str(timeouts),
    ]


def delay_cells(f: Mapping[str, Any]) -> list[str]:
    """Return the cells of a flow's one-way delays, as in `DELAYS`."""
    # Results of older versions have them among the round-trip times.
    return [span(f.get(f"delay_{p}_s")) for p in ("p50", "p95")]


def _program(c: Mapping[str, Any]) -> list[str]:
    printed = (c["stdout"] or c["stderr"]).strip().splitlines()
    code = NONE if c["exit_code"] is None else str(c["exit_code"])
    return [c["host"], " ".join(c["run"].split()), code, printed[-1] if printed else ""]


def _group(g: Mapping[str, Any]) -> list[str]:
    return [
        g["label"],
        f"{g['completed_flows']} of {g['flows']}",
        rate(g["asked_bps"]),
        rate(g["offered_bps"]),
        rate(g["goodput_bps"]),
        span(g.get("completion_p50_s")),
    ]


def _show_subflows(run: Run, console: Console, called: Mapping[int, str]) -> None:
    """Print what each path carried."""
    import polars as pl

    labels = run.flows.select(pl.col("id").alias("flow"), "end_s")
    rows = with_path(run.subflows).join(labels, on="flow", how="left", maintain_order="left")
    total = pl.col("measured_bytes").sum().over("flow")
    rows = rows.with_columns(
        pl.when(total > 0).then(pl.col("measured_bytes") / total).alias("share"),
        pl.coalesce("closed_s", "end_s").alias("until_s"),
    )
    shown = []
    for s in rows.head(MOST_ROWS).iter_rows(named=True):
        sent, again = s["sent_packets"], s["retransmitted_packets"]
        own = [
            called[s["flow"]],
            s["path"] + (" (backup)" if s["backup"] else ""),
            f"{decimal(s['opened_s'], 4)} to {decimal(s['until_s'], 4)} s",
            rate(s["goodput_bps"]),
            percent(s["share"]),
            str(sent),
            f"{again} ({percent(again / sent if sent else None)})",
            span(s["rtt_mean_s"]),
            span(s["rtt_p95_s"]),
        ]
        shown.append(own)
    show_table("Subflows", SUBFLOWS, shown, console)
    if len(rows) > MOST_ROWS:
        console.print(f"  … and {len(rows) - MOST_ROWS} more subflows\n")


def link_cells(link: Mapping[str, Any]) -> list[str]:
    """Return the cells of a link direction, as in `LINKS`."""
    name = link["name"]
    if link.get("direction") and not name.endswith(link["direction"]):
        name = f"{name} {link['direction']}"
    return [
        name,
        percent(link.get("utilization")),
        span(link.get("queue_delay_p50_s")),
        span(link.get("queue_delay_p95_s")),
        str(link.get("dropped_packets", 0)),
        str(link.get("marked_packets", 0)),
    ]
