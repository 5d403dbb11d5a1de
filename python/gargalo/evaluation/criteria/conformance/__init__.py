"""Whether algorithms do what their specifications say: cases of BBR, Reno, CUBIC and HighSpeed."""

from gargalo.evaluation.criteria.conformance.cases import BBR
from gargalo.evaluation.criteria.conformance.classic import CUBIC, HSTCP, RENO
from gargalo.evaluation.criteria.conformance.model import criterion

CRITERIA = (
    criterion(
        "conformance-bbr",
        "Conformance to the BBR draft",
        "draft-ietf-ccwg-bbr, BBR Example Test Cases",
        "The 22 test cases of the draft's appendix, one flow at 20 Mbit/s and 50 ms (in some other "
        "rates): applications that "
        "limit, rates times and by ten, a policer, batches of acknowledgements, spurious "
        "recoveries, pauses. Its state machine "
        "and its model are read from the engine's records. The appendix names no numbers for some; "
        "ours are with each case.",
        ("bbr3", "bbr", "bbr2"),
        BBR,
        of_stacks=True,
    ),
    criterion(
        "conformance-reno",
        "Conformance to RFC 5681",
        "RFC 5681",
        "One flow at 50 Mbit/s and 100 ms with losses at known instants, its window below what the path holds.",
        ("reno",),
        RENO,
        repeat=1,
    ),
    criterion(
        "conformance-cubic",
        "Conformance to RFC 9438",
        "RFC 9438",
        "One flow at 50 and 100 Mbit/s and 100 ms with losses at known instants, its window below what the path holds.",
        ("cubic",),
        CUBIC,
        repeat=1,
    ),
    criterion(
        "conformance-hstcp",
        "Conformance to RFC 3649",
        "RFC 3649",
        "One flow over 100 ms that a first loss leaves at a window of 38, 1000, 10000 and 83333 "
        "segments: its growth over three "
        "round trips, and its reduction at the next loss.",
        ("hstcp",),
        HSTCP,
        repeat=1,
    ),
)
"""One criterion for each specification; deterministic algorithms over paths without chance run once."""
