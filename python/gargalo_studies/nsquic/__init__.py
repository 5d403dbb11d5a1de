"""QUIC against thirteen TCPs: a simulation study of 2018, repeated with its defaults and with today's."""

from gargalo.metrics import POSITIVE, SHARE
from gargalo.studies import Study

from gargalo_studies.nsquic import experiments as ex
from gargalo_studies.nsquic.claims import CLAIMS
from gargalo_studies.nsquic.figures import figures
from gargalo_studies.nsquic.readings import READINGS
from gargalo_studies.nsquic.tables import tables
from gargalo_studies.nsquic.transports import QUIC, TCPS, TLS

STUDY = Study(
    name="nsquic",
    title="QUIC against TCP: then and now",
    summary="Google QUIC of 2018 against thirteen TCPs in ns-3, and how much of it was old defaults",
    source="a master's dissertation and tool paper of 2018 (USP): Google QUIC v41 as an application of ns-3.27",
    description=(
        "A client asks for 1 kB to 1 GB over one link or a dumbbell; bandwidth, delay, loss, size and the number of "
        "nodes are varied. Once with the stacks of that time, once with today's."
    ),
    measure="gargalo_studies.nsquic.measure:measure",
    bounds={
        "completed": SHARE,
        "jain": SHARE,
        "time_s": POSITIVE,
        "fastest_s": POSITIVE,
        "median_s": POSITIVE,
        "receive_rate_bps": POSITIVE,
        "lost_packets": POSITIVE,
        "retransmitted_packets": POSITIVE,
        "spurious_losses": POSITIVE,
        "dropped_packets": POSITIVE,
        "time": POSITIVE,
        "receive_rate": POSITIVE,
        "wire_rate_bps": POSITIVE,
        "object_p50_s": POSITIVE,
        "object_p95_s": POSITIVE,
        "object_mean_s": POSITIVE,
        "page_s": POSITIVE,
    },
    profiles={p.name: p for p in (ex.QUICK, ex.FULL)},
    experiments=ex.EXPERIMENTS,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    algorithms=(QUIC, *TCPS, TLS, *ex.DETECTION, *ex.PAGES, *list(ex.HANDSHAKES)[:2], *ex.PAIRS),
    readings=READINGS,
    notes=(
        "QUIC is a real implementation in virtual time; its packets are not encrypted here, which changes neither "
        "sizes nor times. BBR beside the stacks of 2018 is an addition: it was not in ns-3.27.",
        "Runs without loss or reordering are deterministic and done once.",
    ),
)
