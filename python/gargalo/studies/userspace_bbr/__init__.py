"""BBR in a user-space TCP against the kernel's TCP: an experiment of 2023, repeated in the lab and in the simulator."""

from gargalo.metrics.intervals import OPINION, POSITIVE, SHARE
from gargalo.studies.model import Study
from gargalo.studies.userspace_bbr import experiments as ex
from gargalo.studies.userspace_bbr.claims import CLAIMS
from gargalo.studies.userspace_bbr.figures import figures, tables
from gargalo.studies.userspace_bbr.scenarios import NAMES
from gargalo.studies.userspace_bbr.traces import prepare

STUDY = Study(
    name="userspace-bbr",
    title="BBR in user space: the lab, the simulator and the kernel",
    summary="BBR in a user-space TCP against the kernel's reno and cubic, in real time and simulated",
    source=(
        "a bachelor's monograph of 2023 (UnB): BBR v1 added to the user-space TCP smoltcp, without pacing, against the kernel's "
        "NewReno and CUBIC, by iperf3 through mahimahi"
    ),
    description=(
        "Transfers over one link of 50 ms each way; loss, rate and cellular traces are varied. Senders are the Linux "
        "kernel's and our user-space TCP, in the lab and in the simulator, paced and not."
    ),
    measure="gargalo.studies.userspace_bbr.measure:measure",
    bounds={
        "completed": SHARE,
        "share": SHARE,
        "rate_bps": POSITIVE,
        "timeouts": POSITIVE,
        "lost_packets": POSITIVE,
        "retransmitted_packets": POSITIVE,
        "dropped_packets": POSITIVE,
        "bitrate_bps": POSITIVE,
        "rebuffering_s": POSITIVE,
        "startup_s": POSITIVE,
        "game_p95_s": POSITIVE,
        "mos": OPINION,
    },
    profiles={p.name: p for p in (ex.QUICK, ex.FULL)},
    experiments=ex.EXPERIMENTS,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    algorithms=NAMES,
    notes=(
        "In the lab all receivers are the kernel's. The kernel's reno and cubic do not pace, its bbr does.",
        "Queues have no limit, as mahimahi's by default, except where a limit is said and on traces: 100 packets.",
        "The n-th packet that enters the link in a run is lost for all senders of a seed, in the lab and in the simulator.",
        "The generated traces and the bounds of some claims were chosen after first looks; the documentation says which.",
        "Random loss is on the way of the data only.",
    ),
    prepare=prepare,
    at_once=24,
)

__all__ = ["STUDY"]
