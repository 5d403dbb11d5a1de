"""What differs between QUIC stacks with the same congestion control: goodput, fairness, small objects, reordering."""

from gargalo.metrics import POSITIVE, SHARE
from gargalo.studies import Study

from gargalo_studies.quic_stacks import experiments as ex
from gargalo_studies.quic_stacks.claims import CLAIMS
from gargalo_studies.quic_stacks.figures import figures, tables

STUDY = Study(
    name="quic-stacks",
    title="QUIC stacks with the same CUBIC",
    summary="What differs between QUIC stacks that all say CUBIC: goodput, fairness, small objects, reordering",
    source="our own; the questions are those of Kakhki et al. 2017 and of Mishra and Leong 2023",
    description=(
        "Both ends of a connection are the same stack, with the CUBIC that it has itself. One flow "
        "alone with three buffers; "
        "two stacks at one bottleneck; a page of small objects; a path that reorders and drops "
        "nothing. The stacks are those that "
        "`gargalo stacks` lists; what is not installed is left out."
    ),
    measure="gargalo_studies.quic_stacks.measure:measure",
    bounds={
        "goodput_bps": POSITIVE,
        "queue_s": POSITIVE,
        "share": SHARE,
        "page_s": POSITIVE,
        "object_p50_s": POSITIVE,
        "object_p95_s": POSITIVE,
        "object_span": SHARE,
        "utilization": SHARE,
        "drops": POSITIVE,
        "dropped_share": SHARE,
        "lost_share": SHARE,
        "timeouts": POSITIVE,
        "sent_ratio": POSITIVE,
        "packet_bytes": POSITIVE,
        "acks": POSITIVE,
    },
    profiles={p.name: p for p in (ex.QUICK, ex.FULL)},
    experiments=ex.EXPERIMENTS,
    claims=CLAIMS,
    figures=figures,
    tables=tables,
    algorithms=ex.ORDER,
    notes=(
        "CUBIC is the only congestion control that all of these stacks have. All run in virtual "
        "time with the same seeds: "
        "the n-th packet of a link is lost, or late, in all or none.",
        "All send datagrams of at most 1200 bytes without discovery of larger ones, start with a "
        "window of ten of them, and have "
        "windows of flow control and send buffers of 64 MiB. Queues count bytes, which favours small packets; "
        "--set queue_in_packets=true has them count packets, which favours large ones. Everything "
        "else is each stack's default.",
        "The order of streams is not a stack's alone: quiche takes from the application what its "
        "congestion window allows, so "
        "the application's order counts, and with ngtcp2 the application chooses the stream of each packet.",
    ),
)
