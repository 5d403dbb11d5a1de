"""BBR in a user-space TCP against the kernel's TCP: an experiment of 2023, repeated in the lab and in the simulator."""

from gargalo.metrics import OPINION, POSITIVE, SHARE
from gargalo.studies import Study

from gargalo_studies.userspace_bbr import experiments as ex
from gargalo_studies.userspace_bbr.claims import CLAIMS
from gargalo_studies.userspace_bbr.figures import figures, tables
from gargalo_studies.userspace_bbr.readings import READINGS
from gargalo_studies.userspace_bbr.scenarios import NAMES
from gargalo_studies.userspace_bbr.traces import prepare_all

STUDY = Study(
    name="userspace-bbr",
    title="BBR in user space: the lab, the simulator and the kernel",
    summary="BBR in a user-space TCP against the kernel's reno and cubic, in real time and simulated",
    source=(
        "a bachelor's monograph of 2023 (UnB): BBR v1 added to the user-space TCP smoltcp, without "
        "pacing, against the kernel's "
        "NewReno and CUBIC, by iperf3 through mahimahi"
    ),
    description=(
        "Transfers over one link of 50 ms each way; loss, rate and cellular traces are varied. Senders are the Linux "
        "kernel's and our user-space TCP, in the lab and in the simulator, paced and not. "
        "Simulated with the stacks of the work "
        "and with today's."
    ),
    measure="gargalo_studies.userspace_bbr.measure:measure",
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
        "Queues have no limit, as mahimahi's by default, except where a limit is said.",
        "The n-th packet that enters the link in a run is lost for all senders of a seed, in the "
        "lab and in the simulator.",
        "The two kinds of traces of the lab and the bounds of some claims were chosen after first "
        "looks, the set of traces "
        "that the order is judged by was not; the documentation says which.",
        "Random loss is on the way of the data only.",
    ),
    prepare=prepare_all,
    readings=READINGS,
    at_once=24,
)
