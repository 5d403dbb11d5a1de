"""Whether the figures can be believed: the simulator, our stack in the lab, the kernel and theory, cell by cell."""

from gargalo.metrics import POSITIVE, SHARE
from gargalo.studies import Study

from gargalo_studies.fidelity import experiments as ex
from gargalo_studies.fidelity.claims import CLAIMS
from gargalo_studies.fidelity.figures import figures, tables
from gargalo_studies.fidelity.scenarios import CONTROLS
from gargalo_studies.userspace_bbr.traces import prepare

STUDY = Study(
    name="fidelity",
    title="Fidelity: the simulator, the lab, the kernel and theory",
    summary="the simulator against the kernel's TCP and against our stack in real time, and against theory",
    source="the Linux kernel of this machine; RFC 9438; Mathis et al., 1997",
    description=(
        "Single flows by loss, rate, delay, queue and trace, short transfers, two flows that start apart, ECN, and an "
        "application that pauses; each with the kernel's reno, cubic and bbr, and with ours in both worlds."
    ),
    measure="gargalo_studies.fidelity.measure:measure",
    bounds={
        "rate_bps": POSITIVE,
        "completion_s": POSITIVE,
        "window": POSITIVE,
        "share": SHARE,
        "timeouts": POSITIVE,
        "retransmitted_packets": POSITIVE,
    },
    profiles={p.name: p for p in (ex.QUICK, ex.FULL)},
    experiments=ex.EXPERIMENTS,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    algorithms=CONTROLS,
    notes=(
        "Our stack has the profile linux-6; cubic is cubic-linux there. The response functions are "
        "of the RFCs' controls.",
        "The kernel's host does not pace, except for bbr. Both ends of a flow have the same stack.",
        "The n-th packet that enters the link in a run is lost for all senders of a seed, in the "
        "lab and in the simulator.",
    ),
    prepare=prepare,
    at_once=8,
)
