"""MPTCP schedulers and a path manager for disjoint paths: measurements in a Linux kernel of 2017, repeated."""

from gargalo.metrics import POSITIVE, SHARE
from gargalo.studies import Study

from gargalo_studies.mptcp_schedulers import experiments as ex
from gargalo_studies.mptcp_schedulers.claims import CLAIMS
from gargalo_studies.mptcp_schedulers.figures import figures, tables
from gargalo_studies.mptcp_schedulers.readings import READINGS
from gargalo_studies.mptcp_schedulers.scenarios import OTHERS, SCHEDULERS

STUDY = Study(
    name="mptcp-schedulers",
    title="MPTCP schedulers over five disjoint paths",
    summary="three schedulers and single mesh against Linux MPTCP's defaults, with four coupled congestion controls",
    source=(
        "a master's dissertation of 2017 (UNIFEI): schedulers LWS, LTS and HSR and the path "
        "manager single mesh in Linux MPTCP v0.90, "
        "two hosts with five Gigabit links shaped by tc and netem"
    ),
    description=(
        "An upload over five paths, congested alike (E1) or alike and different in loss, rate and "
        "delay (E2), with 25 or 5 "
        "subflows; with the work's kernel and with a stack of today. Beside it: messages of 3 MB, "
        "schedulers of later years, background "
        "flows, hand-over, QUIC."
    ),
    measure="gargalo_studies.mptcp_schedulers.measure:measure",
    bounds={
        "completed": SHARE,
        "retransmitted_share": SHARE,
        "share": SHARE,
        "rate_bps": POSITIVE,
        "timeouts": POSITIVE,
        "out_of_order_bytes": POSITIVE,
        "reinjected_packets": POSITIVE,
        "opportunistic_packets": POSITIVE,
        "duplicate_bytes": POSITIVE,
        "others_bps": POSITIVE,
        "queue": POSITIVE,
        "dropped": POSITIVE,
        "duplicate_acks": POSITIVE,
        "out_of_order": POSITIVE,
        "rate": POSITIVE,
        "gap_s": POSITIVE,
        "before_bps": POSITIVE,
        "alone_bps": POSITIVE,
        "after_bps": POSITIVE,
    },
    profiles={p.name: p for p in (ex.QUICK, ex.FULL)},
    experiments=ex.EXPERIMENTS,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    algorithms=(*SCHEDULERS, *OTHERS),
    readings=READINGS,
    notes=(
        "Assumed, since the work does not say: netem on the sender's interfaces alone, with its "
        "default limit of 1000 packets, so "
        "that rate, loss and added delay are on the way of the data; 0.1 ms each way and 0.05 ms of jitter otherwise.",
        "Where a plausible reading turns a claim, it is inconclusive, and that reading decides: a "
        "rise from 0 to 1%, single mesh worse under "
        "LIA and wVegas and full mesh below one TCP hold if the work's latency is delay, and not "
        "if it is the longest wait in a queue.",
        "Data of subflow (i, j) of a full mesh goes by path i, its acknowledgements come by path j.",
        "All cells have the same seeds: the n-th packet of a path is lost in all or in none.",
    ),
)
