"""What `crosscheck.py` compares: cells, algorithms and why some ratios are not one."""

from __future__ import annotations

from dataclasses import dataclass, field

Parameter = str | float | bool


@dataclass(frozen=True)
class Cell:
    """One path with one flow on it."""

    name: str
    summary: str
    rate_bps: int
    rtt_ms: float
    queue_packets: int
    duration_s: float
    warmup_s: float
    loss: float = 0.0
    """Probability that a data packet is lost at random."""
    mark_above: int = 0
    """ECN: packets are marked that meet so many waiting or more; 0: no ECN."""
    seeds: int = 1


@dataclass(frozen=True)
class Algorithm:
    """One congestion control in both simulators, set up alike."""

    name: str
    ns3: str
    cells: tuple[str, ...] = ("clean", "lossy", "long")
    params: dict[str, Parameter] = field(default_factory=dict)
    """Of ours."""
    attributes: dict[str, Parameter] = field(default_factory=dict)
    """Of ns-3's, with the name of the type before."""
    ack_every: int = 2
    """1 where ns-3 grows per acknowledgement and ours per segment acknowledged."""
    note: str = ""
    """Why these settings."""


CELLS = (
    Cell("clean", "20 Mbit/s, 40 ms, droptail 67 packets (1 BDP)", 20_000_000, 40, 67, 60, 10),
    Cell(
        "lossy",
        "20 Mbit/s, 40 ms, droptail 67 packets, 0.1 % random loss",
        20_000_000,
        40,
        67,
        60,
        10,
        loss=0.001,
        seeds=20,
    ),
    Cell(
        "long", "100 Mbit/s, 100 ms, droptail 417 packets (0.5 BDP)", 100_000_000, 100, 417, 60, 10
    ),
    Cell(
        "lan-ecn",
        "100 Mbit/s, 4 ms, marking from 5 packets on",
        100_000_000,
        4,
        250,
        20,
        2,
        mark_above=5,
    ),
)

# The slow start of ns-3's TcpNewReno and of what inherits it: a segment for each acknowledgement.
PER_ACK: dict[str, Parameter] = {"slow_start": "standard", "abc_limit": 1}

ALGORITHMS = (
    Algorithm("bbr", "TcpBbr"),
    Algorithm(
        "bic",
        "TcpBic",
        params={**PER_ACK, "s_max": 16, "s_min": 0.8, "search": 4, "reduce_from": "cwnd"},
        ack_every=1,
        note="The constants are those of Linux; its smooth part 5 of 4 is a least growth of 0.8.",
    ),
    Algorithm(
        "cubic",
        "TcpCubic",
        params={"slow_start": "standard", "abc_limit": 1000, "reduce_from": "cwnd"},
        attributes={"ns3::TcpCubic::HyStart": False},
        note="Slow start by bytes without limit; two hybrid slow starts would be two algorithms.",
    ),
    Algorithm("dctcp", "TcpDctcp", cells=("lan-ecn",)),
    Algorithm("hstcp", "TcpHighSpeed", params=PER_ACK, ack_every=1),
    Algorithm(
        "htcp",
        "TcpHtcp",
        params={**PER_ACK, "rtt_scaling": False},
        ack_every=1,
        note="ns-3 does not scale the increase by the round-trip time.",
    ),
    Algorithm(
        "hybla",
        "TcpHybla",
        params={
            **PER_ACK,
            "rtt0": "50ms",
            "scale_initial_window": False,
            "bandwidth_estimate": False,
        },
        ack_every=1,
        note="RTT0 is 50 ms there; initial window and end of slow start are NewReno's.",
    ),
    Algorithm("illinois", "TcpIllinois", params=PER_ACK, ack_every=1),
    Algorithm(
        "ledbat",
        "TcpLedbat",
        params={**PER_ACK, "initial_slow_start": True, "init_cwnd": 0},
        ack_every=1,
        note="ns-3 begins with NewReno's slow start and the transport's initial window.",
    ),
    Algorithm(
        "newreno",
        "TcpNewReno",
        params=PER_ACK,
        note="Both count acknowledgements.",
    ),
    Algorithm(
        "scalable",
        "TcpScalable",
        params={**PER_ACK, "a": 0.02},
        ack_every=1,
        note="ns-3's increase is 1/50.",
    ),
    Algorithm(
        "vegas",
        "TcpVegas",
        params={**PER_ACK, "decrease": 0.75},
        ack_every=1,
        note="ns-3 takes the threshold of Vegas' own slowing down for losses too: at least three"
        " quarters of the greatest window stay.",
    ),
    Algorithm(
        "veno",
        "TcpVeno",
        params={**PER_ACK, "reset_base": False},
        ack_every=1,
        note="ns-3 keeps the least round-trip time of the whole connection.",
    ),
    Algorithm("westwood+", "TcpWestwoodPlus", params=PER_ACK, ack_every=1),
    Algorithm(
        "yeah",
        "TcpYeah",
        params={**PER_ACK, "phy": 10_000},
        ack_every=1,
        note="ns-3 computes 1/phy (1/8) in integers, so that any queue at all ends the fast mode.",
    ),
)

EXPLANATIONS: dict[tuple[str, str], str] = {
    ("hstcp", "lossy"): (
        "Two differences. ns-3, like Linux, takes the entries of RFC 3649's appendix B for the upper"
        " bounds of steps: from 39 to 118 segments it grows by 2 and gives up 44 %. The formula"
        " behind the table goes from 1.0 and 50 % to 2 and 44 % there, so that at 50 segments ours"
        " is hardly more than Reno. And the acknowledgement that ends a recovery counts for a whole"
        " window in ns-3, which is three segments more after every loss. In our simulator ns-3's"
        " table alone gives 13.6 ± 0.4 Mbit/s, both together 14.5 ± 0.3."
    ),
    ("htcp", "lossy"): (
        "Within the bounds, but two slips of arithmetic in ns-3 show: its increase per"
        " acknowledgement is MSS²/cwnd plus alpha *bytes*, where the paper has alpha times"
        " MSS²/cwnd; and the relative change of throughput is an integer division, 0 up to a"
        " doubling, so that the adaptive backoff RTTmin/RTTmax, near 1 here for want of a queue, is"
        " seldom refused. In our simulator this arithmetic gives 13.7 ± 0.3 Mbit/s."
    ),
    ("ledbat", "lossy"): (
        "ns-3 3.44 bounds the window by the flight size without RFC 6817's ALLOWED_INCREASE. With an"
        " acknowledgement for every segment, what was in flight before it is the window itself:"
        " after the first loss the window never grows again, and every loss halves it (mended in"
        " ns-3.47, merge request 2624). In our simulator LEDBAT with that bound gets"
        " 0.7 ± 0.1 Mbit/s, and with the bound of the RFC 10.6 ± 0.7."
    ),
    ("ledbat", "long"): (
        "The same bound: after the loss that ends slow start ns-3's window stays where the"
        " reduction left it, at two thirds of the bandwidth-delay product."
    ),
    ("vegas", "lossy"): (
        "ns-3 raises ssthresh to three quarters of the window after every round trip and never"
        " lowers it, so that a window which has been at 70 segments falls to 52 and no further,"
        " however many losses come in a row. Ours falls by a quarter each time. In our simulator"
        " ns-3's rule gives 17.5 ± 0.1 Mbit/s."
    ),
    ("vegas", "long"): (
        "On both sides the bursts of slow start look like a queue and end it far too early, at"
        " different windows: ours by the first samples of a round at 81 segments of 833, ns-3's,"
        " which hands Vegas the smoothed round-trip time, at 144. From there it is one segment per"
        " round trip. In our simulator Vegas by the smoothed round-trip time gives 56.3 Mbit/s."
    ),
}
"""(algorithm, cell) -> why the ratio of the cell is, or nearly is, outside of 0.9..1.1."""
