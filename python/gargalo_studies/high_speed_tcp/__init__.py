"""TCP variants for paths of large bandwidth-delay product: a dissertation of 2008, repeated."""

from gargalo.metrics import POSITIVE, SHARE
from gargalo.studies import Study

from gargalo_studies.high_speed_tcp.claims import CLAIMS
from gargalo_studies.high_speed_tcp.experiments import EXPERIMENTS, FULL, NIGHT, QUICK
from gargalo_studies.high_speed_tcp.figures import figures, tables
from gargalo_studies.high_speed_tcp.readings import READINGS
from gargalo_studies.high_speed_tcp.scenarios import PROTOCOLS

STUDY = Study(
    name="high-speed-tcp",
    title="High-speed TCP: scalability, compatibility, fairness, convergence, stability",
    summary="eight TCP variants for large bandwidth-delay products with background traffic",
    source="a master's dissertation of 2008 (UNICAMP): about 1,250 simulations of 600 s in ns-2.29, one run each",
    description=(
        "BIC, CUBIC, FAST, HSTCP, H-TCP, Libra, Reno and Scalable TCP on a dumbbell and a parking lot "
        "with web, file and constant-rate background traffic in both directions."
    ),
    measure="gargalo_studies.high_speed_tcp.measure:measure",
    bounds={
        "main_utilization": SHARE,
        "link_utilization": SHARE,
        "jain": SHARE,
        "converged": SHARE,
        "share": SHARE,
        "spread": POSITIVE,
        "variation": POSITIVE,
        "flow_goodput_bps": POSITIVE,
        "dropped_packets": POSITIVE,
        "timeouts": POSITIVE,
        "goodput": POSITIVE,
        "long_short": POSITIVE,
        "convergence_s": POSITIVE,
    },
    profiles={p.name: p for p in (QUICK, NIGHT, FULL)},
    experiments=EXPERIMENTS,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    algorithms=PROTOCOLS,
    readings=READINGS,
    notes=(
        "reno is RFC 5681 with SACK recovery; in a reading all protocols and the background run "
        "over the same transport.",
        "A third of each run is not judged (slow start and first convergence).",
    ),
)
