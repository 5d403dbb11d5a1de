"""Scenario builders, derived from the JSON Schema: `python -m gargalo._generate`.

Each class is a table of the scenario; a key that is a Python keyword has a trailing underscore.
Instances may stand wherever a scenario given as a dictionary has that table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A network, the flows on it and how long to watch them."""

    commands: Sequence[Command | Mapping[str, Any]] | None = None
    """Programs, in the lab."""
    description: str | None = None
    """What the scenario shows, in a sentence."""
    duration: str
    """Length of the run."""
    expect: Sequence[Expectation | Mapping[str, Any]] | None = None
    """What a run has to show: `gargalo check` says whether it does. Runs are the same without it."""
    flows: Sequence[Flow | Mapping[str, Any]] | None = None
    """What happens on the network, in the order of identifiers."""
    hosts: Mapping[str, Host | Mapping[str, Any]] | None = None
    """Hosts that are special, by name."""
    lab: Lab | Mapping[str, Any] | None = None
    """How the lab works."""
    measure: Measure | Mapping[str, Any] | None = None
    """The part of the run that figures are of."""
    name: str | None = None
    """Name in results. Default: the file's name without its extension."""
    record: Record | Mapping[str, Any] | None = None
    """What is recorded."""
    seed: int | None = None
    """Seed of every random stream; the same seed gives the same results, byte for byte."""
    start_jitter: str | None = None
    """Flows start by less than this later than they say, each by another time that follows from the seed and the flow, so that repeats with other seeds are other runs. Where the network is the same at all times, flows move against each other only: the first of them keeps its time. Where rates or delays have steps or traces, or there are outages, all move. As time, or in `RTT`, round trips on the flow's empty path. At most half of the time that a flow has. Flows that start at random anyway (`arrivals`, web, ftp, mix) are left alone. Sweeps with repeats set it to 1RTT."""
    topology: Topology | Mapping[str, Any]
    """Hosts, routers and links."""


@dataclass(frozen=True, kw_only=True)
class AckMap:
    """The acknowledgement frequency of the peer."""

    every: int | None = None
    """Number of packets per acknowledgement."""
    max_delay: str | None = None
    """Maximum acknowledgement delay. Default: the peer's."""
    reordering: int | None = None
    """Reordering of this many packets is acknowledged at once; 0: never."""


@dataclass(frozen=True, kw_only=True)
class AddressChange:
    """A host gets or loses the address of one of its links."""

    add: str | None = None
    """Name of the link whose address comes."""
    after: str
    """So long after the flow's start."""
    host: str | None = None
    """Which of the flow's hosts."""
    remove: str | None = None
    """Name of the link whose address goes: nothing arrives there any more."""


@dataclass(frozen=True, kw_only=True)
class Arrivals:
    """Copies of a flow that start at random times (a Poisson process), each with its own connection."""

    rate: str
    """Mean number of new flows per time."""


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """One transfer, as fast as the network allows."""

    bytes: str | None = None
    """Bytes to transfer; MB is decimal (1,000,000 bytes), MiB is binary. Default: unlimited, until the flow stops."""


@dataclass(frozen=True, kw_only=True)
class ByBuffer:
    """A rate that grows with the buffer."""

    cushion: str | None = None
    """The highest rate is used from this much above the reservoir."""
    reservoir: str | None = None
    """Buffered playing time below which the lowest rate is used."""


@dataclass(frozen=True, kw_only=True)
class ByThroughput:
    """The highest rate below a share of the harmonic mean of the throughput."""

    efficiency: float | None = None
    """The share of the harmonic mean that a rate may not exceed; above 1, rates may exceed the throughput."""
    window: int | None = None
    """Number of segments."""


@dataclass(frozen=True, kw_only=True)
class Cbr:
    """Packets at a constant rate."""

    packet_size: str | None = None
    """Payload of a packet."""
    rate: str | CbrRateMap | Mapping[str, Any]
    """Payload rate: constant, or steps over time."""


@dataclass(frozen=True, kw_only=True)
class CbrRateMap:
    """Payload rate that changes; give exactly one."""

    steps: Sequence[Sequence[Any]] | None = None
    """Pairs of an instant of the run and the rate from then on; the first instant is 0s. A rate of zero is a pause."""


@dataclass(frozen=True, kw_only=True)
class CoDel:
    """Controlled Delay (RFC 8289)."""

    ce_threshold: str | None = None
    """Mark every ECN-capable packet that waited longer than this. Default: none."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them."""
    interval: str | None = None
    """A worst-case round-trip time (INTERVAL, §4.3)."""
    limit: str | None = None
    """Packets that may wait."""
    target: str | None = None
    """Acceptable standing delay (TARGET, RFC 8289 §4.4)."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program that runs on a host with the kernel's stack."""

    background: bool | None = None
    """The run does not wait for it, and ends it (a server)."""
    host: str
    """Where it runs."""
    run: str
    """A line for `/bin/sh`."""
    start: str | None = None
    """When it starts."""


@dataclass(frozen=True, kw_only=True)
class CountMap:
    """A random number of things; give exactly one."""

    geometric: float | None = None
    """Geometric from 1 with this mean."""
    pareto: CountPareto | Mapping[str, Any] | None = None
    """Pareto, clipped and shifted to zero."""


@dataclass(frozen=True, kw_only=True)
class CountPareto:
    """Pareto distribution of a number: drawn from `min`, clipped to `max`, then `min` is subtracted and the result rounded (3GPP2 C.R1002)."""

    alpha: float
    """Tail index: a smaller one gives large numbers more often."""
    max: float
    """Largest value before the subtraction of `min`."""
    min: float
    """Smallest value before the subtraction."""


@dataclass(frozen=True, kw_only=True)
class DelayMap:
    """Propagation delay: the time from the departure of a packet's last byte to its arrival; give exactly one."""

    steps: Sequence[Sequence[Any]] | None = None
    """Pairs of an instant and the delay from then on (a route change); the first instant is 0s, the others increase. The delay at the time of departure applies to a packet. Packets keep their order unless the link reorders."""


@dataclass(frozen=True, kw_only=True)
class DelayedAck:
    """Delayed acknowledgements; options that are not given have the profile's value."""

    every: int | None = None
    """Number of full segments per acknowledgement (RFC 5681 §4.2: 2)."""
    quick: int | None = None
    """Number of segments at the start that are acknowledged at once (Linux's quick acknowledgements)."""
    timeout: str | None = None
    """Longest time for which an acknowledgement is delayed (RFC 5681 §4.2: at most 500 ms)."""


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a link: rate, delay, loss, queue."""

    aggregation: str | None = None
    """Packets that left the queue wait for the next multiple of this time and leave together: frames of many packets (Wi-Fi, IEEE 802.11n), grants (DOCSIS, cellular networks) and interrupts that are coalesced. Default: none."""
    delay: str | DelayMap | Mapping[str, Any] | None = None
    """Propagation delay of one direction: constant, or steps over time."""
    duplicate: str | float | None = None
    """Probability that a packet is duplicated."""
    ecn: bool | None = None
    """Whether the queue marks ECN-capable packets instead of dropping them; a value in the queue's own table has precedence. Default: that of the queue. Tail drop cannot mark."""
    icmp: bool | None = None
    """Whether the sender of a packet that is larger than the MTU receives an ICMP error with the MTU (RFC 1191), which returns without delay. Without it such packets disappear, as behind some firewalls (RFC 2923)."""
    jitter: str | JitterMap | Mapping[str, Any] | None = None
    """Random variation of the delay: half the width of a uniform distribution, or a table that names another one. Packets keep their order. Default: none."""
    loss: str | float | LossMap | Mapping[str, Any] | None = None
    """Packet loss that is not caused by congestion: a probability, or a model."""
    mtu: str | None = None
    """Largest packet, IP header included; larger ones are dropped."""
    outages: Sequence[Sequence[Any]] | None = None
    """Outages: spans of time in which every packet that arrives is lost, like `[["10s", "15s"]]`, in order and without overlap. The first instant is included, the second is not."""
    policer: Policer | Mapping[str, Any] | None = None
    """A policer in front of the queue: drops packets above a rate. Default: none."""
    queue: str | QueueMap | Mapping[str, Any] | None = None
    """The queue in front of the link: a name, or a table with its parameters."""
    rate: str | RateMap | Mapping[str, Any] | None = None
    """Transmission rate: a rate, `"unlimited"`, steps over time or a recorded trace."""
    reorder: Reorder | Mapping[str, Any] | None = None
    """Packet reordering. Default: none."""
    strip_mptcp: str | StripMap | Mapping[str, Any] | None = None
    """A middlebox at the entrance of the link that removes Multipath TCP options from packets, as some firewalls do."""


@dataclass(frozen=True, kw_only=True)
class DualPi2:
    """The coupled dual queue of L4S (RFC 9332; defaults: tc-dualpi2(8)): packets with ECT(1) or CE in one, all others in the other."""

    alpha: float | None = None
    """Integral gain in Hz: weight of the deviation from the target."""
    any_ect: bool | None = None
    """ECT(0) goes to the low-latency queue too, for DCTCP."""
    beta: float | None = None
    """Proportional gain in Hz: weight of the trend."""
    classic_protection: str | float | None = None
    """Share of the link that the classic queue gets at least while both have packets."""
    coupling: float | None = None
    """Factor k: the low-latency queue marks with k times the base probability, the classic queue drops or marks with its square."""
    derandomize: bool | None = None
    """Spread marks and drops evenly, as the RFC's pseudocode does, instead of drawing them."""
    drop_early: bool | None = None
    """Decide by the base probability on arrival, not on departure."""
    drop_on_overload: bool | None = None
    """Drop in both queues when the low-latency queue would mark everything; otherwise queues grow up to the limit."""
    ecn: bool | None = None
    """Use ECN. Without it, all packets use the classic queue and are dropped instead of marked (PI2)."""
    limit: str | None = None
    """Packets that may wait in both queues."""
    memory_limit: str | None = None
    """Bytes that may wait in both queues. Default: no limit."""
    min_step: str | None = None
    """The threshold applies only while more packets than this are in the low-latency queue (Th_len), the departing packet included. With 1, a single packet on a slow link is not marked."""
    ramp: str | None = None
    """With a threshold in time: the marking probability rises from 0 at the threshold to 1 at the threshold plus this. RFC 9332 appendix A uses a ramp of 400us above a threshold of 800us."""
    step_threshold: str | None = None
    """Marking threshold of the low-latency queue. A time: packets that waited longer are marked. Packets, bytes or multiples of BDP: packets that find more than this in the queue are marked."""
    target: str | None = None
    """Target queueing delay."""
    update: str | None = None
    """Time between two updates of the base probability (RFC 9332: the target, but at most a third of the largest round-trip time)."""


@dataclass(frozen=True, kw_only=True)
class Dumbbell:
    """Hosts `left0`, `left1`, … and `right0`, `right1`, … that share one bottleneck."""

    access: Link | Mapping[str, Any] | Sequence[Link | Mapping[str, Any]] | None = None
    """The links between hosts and routers: one for all, or a list with one for each pair (used on both sides). Default: perfect wires."""
    bottleneck: Link | Mapping[str, Any]
    """The link between the two routers."""
    pairs: int | None = None
    """Hosts on each side."""


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A figure of the results and what it has to be, for `gargalo check`."""

    at_least: float | str | bool | None = None
    """It is not less."""
    at_most: float | str | bool | None = None
    """It is not more."""
    by: str | None = None
    """In a sweep: what of a cell's repeats has to be so."""
    equals: float | str | bool | None = None
    """It is this."""
    metric: str
    """The figure by its place in the results: `flows.LABEL.COLUMN`, `links.NAME.FIGURE`, `summary.FIGURE`. `*` at the end of a name stands for any text, and each has to be as expected."""
    of: str | None = None
    """Another figure, of which the bounds are multiples; or the directory of results, whose figure of the same place it is then."""
    why: str | None = None
    """Why it has to be so, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Data from one host to another; with `count` or `arrivals`, many of the same kind."""

    arrivals: Arrivals | Mapping[str, Any] | None = None
    """Makes the flow a template of which copies start at random."""
    count: int | None = None
    """Number of copies. Default: 1, or with a `*` as many as there are hosts of that name."""
    from_: str
    """The host that sends the data (with requests: that asks for it). `left*` puts copy i on host `left`i."""
    label: str | None = None
    """Name in results and pictures; results are grouped by it. Default: the congestion control, or `udp`."""
    path: int | None = None
    """The path of `topology.multipath` that it takes in both directions, by number: 1 is `path1`. Multipath TCP and multipath QUIC choose among all paths themselves. Default: 0."""
    record: str | None = None
    """What is kept of it: a row in the tables, or no more than totals in the summary. Default: `full`, for web, ftp and mix `summary`."""
    start: str | None = None
    """When the flow starts, or arrivals begin."""
    stop: str | None = None
    """When its application stops. Default: at the end of the run."""
    to: str
    """The other host."""
    transport: Transport | Mapping[str, Any]
    """How data is carried."""
    workload: Workload | Mapping[str, Any] | None = None
    """What is carried. Default: bulk without end."""
    _names: ClassVar[Mapping[str, str]] = {"from_": "from"}


@dataclass(frozen=True, kw_only=True)
class FqCoDel:
    """A queue per flow with CoDel on each (RFC 8290)."""

    ce_threshold: str | None = None
    """Mark every ECN-capable packet that waited longer than this (§5.2.7). Default: none."""
    drop_batch: str | None = None
    """Maximum number of packets dropped at once from the longest queue."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (RFC 8290 §5.2.6)."""
    flows: int | None = None
    """Queues that flows are hashed to."""
    interval: str | None = None
    """A worst-case round-trip time."""
    limit: str | None = None
    """Packets that may wait in all queues."""
    memory_limit: str | None = None
    """Bytes that may wait in all queues."""
    quantum: str | None = None
    """Bytes that a queue may send per round (quantum)."""
    target: str | None = None
    """Acceptable standing delay."""


@dataclass(frozen=True, kw_only=True)
class Ftp:
    """Files that start as a Poisson process, each on its own connection, spread over the pairs of hosts."""

    files: str | None = None
    """Mean number of new files per time; or give `load`."""
    link: str | None = None
    """The link whose capacity is meant. Default: the slowest link on the route."""
    load: str | float | None = None
    """Bits on the wire from `from` to `to`, headers included: a rate, or a share of the capacity of `link`. The mean over the lifetime of the flow meets it."""
    size: str | SizeMap | Mapping[str, Any] | None = None
    """Size of a file."""


@dataclass(frozen=True, kw_only=True)
class GilbertElliott:
    """A two-state Markov chain (Gilbert 1960, Elliott 1963), in the parameters of `tc`'s `loss gemodel`."""

    h: str | float | None = None
    """Probability that a packet survives in the bad state."""
    k: str | float | None = None
    """Probability that a packet survives in the good state."""
    p: str | float
    """Probability of the transition from good to bad, per packet."""
    r: str | float
    """Probability of the transition from bad to good, per packet."""


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Named nodes and links; packets take the path with the fewest links."""

    hosts: Sequence[str] | None = None
    """The nodes that never forward packets of others. Default: those with only one link."""
    links: Sequence[GraphLink | Mapping[str, Any]]
    """The links between these nodes."""
    nodes: Sequence[str]
    """Names of all nodes."""


@dataclass(frozen=True, kw_only=True)
class GraphLink:
    """A link of a graph."""

    aggregation: str | None = None
    """Packets that left the queue wait for the next multiple of this time and leave together: frames of many packets (Wi-Fi, IEEE 802.11n), grants (DOCSIS, cellular networks) and interrupts that are coalesced. Default: none."""
    delay: str | DelayMap | Mapping[str, Any] | None = None
    """Propagation delay of one direction: constant, or steps over time."""
    down: Direction | Mapping[str, Any] | None = None
    """Overrides for packets from the second end to the first."""
    duplicate: str | float | None = None
    """Probability that a packet is duplicated."""
    ecn: bool | None = None
    """Whether the queue marks ECN-capable packets instead of dropping them; a value in the queue's own table has precedence. Default: that of the queue. Tail drop cannot mark."""
    from_: str
    """One end: the name of a node."""
    icmp: bool | None = None
    """Whether the sender of a packet that is larger than the MTU receives an ICMP error with the MTU (RFC 1191), which returns without delay. Without it such packets disappear, as behind some firewalls (RFC 2923)."""
    jitter: str | JitterMap | Mapping[str, Any] | None = None
    """Random variation of the delay: half the width of a uniform distribution, or a table that names another one. Packets keep their order. Default: none."""
    loss: str | float | LossMap | Mapping[str, Any] | None = None
    """Packet loss that is not caused by congestion: a probability, or a model."""
    mtu: str | None = None
    """Largest packet, IP header included; larger ones are dropped."""
    name: str | None = None
    """Name of the link. Default: `from-to`."""
    outages: Sequence[Sequence[Any]] | None = None
    """Outages: spans of time in which every packet that arrives is lost, like `[["10s", "15s"]]`, in order and without overlap. The first instant is included, the second is not."""
    policer: Policer | Mapping[str, Any] | None = None
    """A policer in front of the queue: drops packets above a rate. Default: none."""
    queue: str | QueueMap | Mapping[str, Any] | None = None
    """The queue in front of the link: a name, or a table with its parameters."""
    rate: str | RateMap | Mapping[str, Any] | None = None
    """Transmission rate: a rate, `"unlimited"`, steps over time or a recorded trace."""
    reorder: Reorder | Mapping[str, Any] | None = None
    """Packet reordering. Default: none."""
    strip_mptcp: str | StripMap | Mapping[str, Any] | None = None
    """A middlebox at the entrance of the link that removes Multipath TCP options from packets, as some firewalls do."""
    to: str
    """The other end."""
    up: Direction | Mapping[str, Any] | None = None
    """Overrides for packets from the first end to the second (client to server, left to right)."""
    _names: ClassVar[Mapping[str, str]] = {"from_": "from"}


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host, or with `*` at the end of the name several."""

    congestion: str | None = None
    """Congestion control of the kernel for programs that do not choose one. Default: the system's."""
    stack: str | None = None
    """Whose TCP/IP it has. The kernel's is there only in the lab; the simulator then refuses the scenario. Default: that of `lab.stack`."""
    sysctl: Mapping[str, str] | None = None
    """Settings of the host's network namespace, like `{ "net.ipv4.tcp_ecn" = "1" }`."""


@dataclass(frozen=True, kw_only=True)
class JitterMap:
    """Random variation of the delay, drawn for each packet independently: half the width of a uniform distribution, or a table that names another one."""

    distribution: str | None = None
    """Its shape; all have mean zero."""
    scale: str
    """Half the width of a uniform distribution, the standard deviation of the others."""


@dataclass(frozen=True, kw_only=True)
class KeepAlive:
    """Keep-alive probes; the defaults are Linux's."""

    idle: str | None = None
    """Idle time before the first probe."""
    interval: str | None = None
    """Time between probes."""
    probes: int | None = None
    """Unanswered probes before the connection is given up."""


@dataclass(frozen=True, kw_only=True)
class Lab:
    """How the lab works; without effect in the simulator."""

    busy_poll: str | None = None
    """Do not sleep when the next event is nearer than this: more exact, and takes a processor."""
    cpu: int | None = None
    """Run the network on this processor only."""
    offload: bool | None = None
    """Let hosts hand over many segments at once, as to a network card that segments."""
    stack: str | None = None
    """The stack of hosts that do not say."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link."""

    aggregation: str | None = None
    """Packets that left the queue wait for the next multiple of this time and leave together: frames of many packets (Wi-Fi, IEEE 802.11n), grants (DOCSIS, cellular networks) and interrupts that are coalesced. Default: none."""
    delay: str | DelayMap | Mapping[str, Any] | None = None
    """Propagation delay of one direction: constant, or steps over time."""
    down: Direction | Mapping[str, Any] | None = None
    """Overrides for packets from the second end to the first."""
    duplicate: str | float | None = None
    """Probability that a packet is duplicated."""
    ecn: bool | None = None
    """Whether the queue marks ECN-capable packets instead of dropping them; a value in the queue's own table has precedence. Default: that of the queue. Tail drop cannot mark."""
    icmp: bool | None = None
    """Whether the sender of a packet that is larger than the MTU receives an ICMP error with the MTU (RFC 1191), which returns without delay. Without it such packets disappear, as behind some firewalls (RFC 2923)."""
    jitter: str | JitterMap | Mapping[str, Any] | None = None
    """Random variation of the delay: half the width of a uniform distribution, or a table that names another one. Packets keep their order. Default: none."""
    loss: str | float | LossMap | Mapping[str, Any] | None = None
    """Packet loss that is not caused by congestion: a probability, or a model."""
    mtu: str | None = None
    """Largest packet, IP header included; larger ones are dropped."""
    outages: Sequence[Sequence[Any]] | None = None
    """Outages: spans of time in which every packet that arrives is lost, like `[["10s", "15s"]]`, in order and without overlap. The first instant is included, the second is not."""
    policer: Policer | Mapping[str, Any] | None = None
    """A policer in front of the queue: drops packets above a rate. Default: none."""
    queue: str | QueueMap | Mapping[str, Any] | None = None
    """The queue in front of the link: a name, or a table with its parameters."""
    rate: str | RateMap | Mapping[str, Any] | None = None
    """Transmission rate: a rate, `"unlimited"`, steps over time or a recorded trace."""
    reorder: Reorder | Mapping[str, Any] | None = None
    """Packet reordering. Default: none."""
    strip_mptcp: str | StripMap | Mapping[str, Any] | None = None
    """A middlebox at the entrance of the link that removes Multipath TCP options from packets, as some firewalls do."""
    up: Direction | Mapping[str, Any] | None = None
    """Overrides for packets from the first end to the second (client to server, left to right)."""


@dataclass(frozen=True, kw_only=True)
class LossMap:
    """Packet loss that is not caused by congestion; give exactly one."""

    independent: str | float | None = None
    """Each packet is lost with this probability, independently."""
    periodic: int | None = None
    """Every n-th packet is lost: packets n, 2n, 3n and so on, counted from 1."""
    gilbert_elliott: GilbertElliott | Mapping[str, Any] | None = None
    """Bursts: a two-state Markov chain."""
    _names: ClassVar[Mapping[str, str]] = {"gilbert_elliott": "gilbert-elliott"}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """The part of the run that figures are of: rates, ratios and distributions (goodput, utilization, loss, Jain's index, queueing delays, round-trip times)."""

    from_: str | None = None
    """When it begins: what is before is warm-up."""
    until: str | None = None
    """When it ends. Default: with the run."""
    _names: ClassVar[Mapping[str, str]] = {"from_": "from"}


@dataclass(frozen=True, kw_only=True)
class Media:
    """One direction of a video call over UDP with the congestion control NADA (RFC 8698): `from` sends video, `to` receives it and sends reports."""

    ecn: bool | None = None
    """Packets carry ECT(0), and CE marks are congestion signals."""
    feedback: str | None = None
    """Time between two reports of the receiver."""
    frame_rate: float | None = None
    """Frames per second."""
    max_rate: str | None = None
    """Highest rate of the encoder."""
    min_rate: str | None = None
    """Lowest rate of the encoder, RTP headers included."""
    packet_size: str | None = None
    """Largest payload of a packet, RTP header included."""
    priority: float | None = None
    """Weight of the flow relative to other NADA flows."""
    reaction: str | None = None
    """Minimum time between two changes of the encoder's rate (tau_v, RFC 8593 section 5)."""
    reference: str | None = None
    """Reference congestion level (XREF): the queueing delay at `max_rate`."""
    variation: str | float | None = None
    """Variation of frame sizes around their mean (scale of a Laplace distribution; RFC 8593 section 5)."""


@dataclass(frozen=True, kw_only=True)
class MigrationMap:
    """A migration of the client."""

    after: str
    """Time after the start of the flow."""
    change: str | None = None
    """What changes: the address, only the port as after a NAT rebinding, or the path."""


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Background traffic as a share of a link's capacity: constant bit rate over UDP, and files and web over the flow's transport."""

    direction: str | None = None
    """The loaded direction."""
    ftp: Ftp | Mapping[str, Any] | None = None
    """The files; their load follows from the share."""
    link: str | None = None
    """The loaded link. Default: the slowest link on the route."""
    load: str | float
    """Bits on the wire in each loaded direction, headers and acknowledgements included: a share of the link's capacity, or a rate."""
    packet_size: str | None = None
    """Payload of a constant-bit-rate packet."""
    shares: Shares | Mapping[str, Any] | None = None
    """Shares of the load."""
    web: Web | Mapping[str, Any] | None = None
    """The web traffic; its load follows from the share."""


@dataclass(frozen=True, kw_only=True)
class Mptcp:
    """Multipath TCP (RFC 8684)."""

    backup: Sequence[str] | None = None
    """Names of links whose subflows are backups: they carry data only when no other can."""
    changes: Sequence[AddressChange | Mapping[str, Any]] | None = None
    """Addresses that come and go, as in a hand-over."""
    checksum: bool | None = None
    """Request checksums over data and mappings (RFC 8684 §3.3.1); they are used if either side requests them."""
    clock_granularity: str | None = None
    """Clock granularity G of the retransmission timeout: the least of four times the variance (RFC 6298 §2)."""
    congestion: str | Mapping[str, Any] | None = None
    """Congestion control of both ends: a name, or a table of one name and its parameters, like `{ cubic = { beta = 0.7 } }`."""
    data_acks: str | None = None
    """Length of DATA_ACKs on the wire. They are `long` in any case once the peer's data sequence numbers are (RFC 8684 §3.3.2), as in Linux."""
    data_numbers: str | None = None
    """Length of data sequence numbers on the wire; Linux has `long`."""
    data_retries: int | None = None
    """Timeouts in a row before the connection is given up (Linux: 15)."""
    delayed_ack: bool | DelayedAck | Mapping[str, Any] | None = None
    """Delayed acknowledgements; false acknowledges each segment at once."""
    dsack: bool | None = None
    """Duplicate SACK reports (D-SACK, RFC 2883)."""
    ecn: bool | str | None = None
    """Explicit congestion notification; true is `classic`, with `congestion = "dctcp"` it is `dctcp` and with `"prague"` `l4s`, which are the defaults there."""
    fin_in_last_segment: bool | None = None
    """A FIN belongs to the last segment, as in Linux, also where the peer's window ends between them: it then goes past the window behind other segments, and a last segment alone waits for the window probe, which is without FIN. Otherwise the FIN waits for room in the window."""
    frto: bool | None = None
    """Detection of spurious timeouts (RFC 5682)."""
    gateways: Sequence[str] | None = None
    """Routers that the client may send packets by, for the path manager `binder`."""
    growth_at_recovery_end: bool | None = None
    """The acknowledgement that ends recovery grows the window too, as in Linux. Otherwise it does not: RFC 5681 §3.2 (6) sets the window to ssthresh."""
    initial_window: str | None = None
    """Initial congestion window, in packets or bytes. A packet is a full segment of the size that the handshake agrees on. Default: the profile's. `modern` has 10 segments, but at most 14600 bytes or 2 segments, whichever is larger (RFC 6928 §2); `linux-6` and `linux-4.1-mptcp-0.90` have 10 segments of any size; `rfc5681` has 2 to 4 segments by their size (RFC 5681 §3.1); `ns3-3.27` has 1."""
    initial_window_rule: str | None = None
    """The standard that says the initial window where `initial_window` does not, and the one after a lost SYN."""
    keep_alive: bool | KeepAlive | Mapping[str, Any] | None = None
    """Keep-alive probes (RFC 9293 §3.8.4). Default: never."""
    limited_transmit: bool | None = None
    """New data on the first duplicate acknowledgements (RFC 3042)."""
    links: Sequence[str] | None = None
    """Names of the links whose addresses take part from the beginning. Default: all links of the two hosts."""
    max_dup_thresh: int | None = None
    """The duplicate threshold grows with the reordering that SACK blocks show, from 3 segments up to this number (Linux: 300). 3: it is fixed (RFC 5681 §3.2, RFC 6675 §2). With `rack-tlp` it counts only until reordering is seen (RFC 8985 §6.2)."""
    max_rto: str | None = None
    """Maximum retransmission timeout."""
    max_subflows: int | None = None
    """Maximum number of subflows at a time; further joins are refused."""
    min_rto: str | None = None
    """Minimum retransmission timeout."""
    min_rto_above_srtt: bool | None = None
    """Linux's rule: `min_rto` bounds the variance term, so that the timeout is at least the round-trip time plus `min_rto`. Otherwise it bounds the sum (RFC 6298 §2.4)."""
    mss: str | None = None
    """Payload of a full segment. The MSS option announces that much plus the length of the timestamps option when timestamps are on, so that 1448 fills a packet of 1500 bytes; with a peer that has none, segments are that much longer (RFC 9293 §3.7.1). Default: the profile's, or less if the route's MTU is smaller. Where the profile's fills a packet of 1500 bytes, it is 1460 without timestamps and 1448 with them."""
    mtu_probing: str | None = None
    """Search of the path MTU with data segments (RFC 4821), for paths that drop long packets without an ICMP error. Linux's default is `off` too. The segments of Multipath TCP's subflows only become smaller."""
    nagle: bool | str | None = None
    """Nagle algorithm: hold back small segments while data is outstanding (RFC 9293 §3.7.4); true is `standard`, and Linux has `minshall`. Real programs turn it off with `TCP_NODELAY`."""
    opportunistic_retransmission: bool | str | None = None
    """Opportunistic retransmission: when data on a slower path fills the window, retransmit that data on a faster path that would be idle otherwise (Raiciu et al., NSDI 2012, mechanism 1). True is `late`; the profile `linux-4.1-mptcp-0.90` has `head`."""
    pacing: bool | str | PacingMap | Mapping[str, Any] | None = None
    """When the sender paces; false is `off`, true is `window`."""
    path_manager: str | Mapping[str, Any] | None = None
    """Which subflows there are. Default: `single-mesh`, or `full-mesh` if one of the hosts has a single link."""
    penalisation: bool | str | None = None
    """Penalisation: a path that filled the window in this way may carry half as much for a while, at most once per round trip (the same, mechanism 2). Under a scheduler that accounts for the window itself, only if it carries less than the path that waits. True is `cap`; the profile `linux-4.1-mptcp-0.90` has `halve`."""
    probe_interval: bool | str | None = None
    """Interval at which a path that the scheduler does not use carries a copy of a segment, so that its measurements stay current; false: never. Backups carry no copies."""
    probe_slack_fixed: bool | None = None
    """Several segments in flight are probed 2 ms after two round trips on short paths too, as Linux does; otherwise at most a round trip after (RFC 8985 §7.2 has no such slack)."""
    profile: str | None = None
    """Named set of defaults for all other options."""
    prr: bool | None = None
    """Proportional rate reduction in recovery (RFC 9937)."""
    receive_autotuning: bool | ReceiveAutotuning | Mapping[str, Any] | None = None
    """Growth of the receive window with what the application reads in a round trip, up to `receive_buffer` (dynamic right-sizing, as Linux has it). Not for Multipath TCP, whose window is that of the connection. Default: the window is `receive_buffer` from the start."""
    receive_buffer: str | None = None
    """The largest receive window that is announced."""
    receiver: str | None = None
    """How the receiving end misbehaves (RFC 9743 §7.6), in the simulator."""
    recovery: str | None = None
    """How losses are detected."""
    rescue_retransmission: bool | None = None
    """In recovery by `sack`, when nothing is known to be lost and nothing new can be sent, the highest segment is sent again, once (RFC 6675 §4, NextSeg (4))."""
    rto_restart: str | None = None
    """From when the retransmission timeout counts after an acknowledgement; they differ by at most a round trip."""
    sack: bool | None = None
    """Selective acknowledgements (RFC 2018)."""
    scheduler: str | Mapping[str, Any] | None = None
    """Which subflow carries the next segment: a name, or a table of one name and its parameters, like `{ round-robin = { segments = 4 } }`."""
    send_buffer: str | None = None
    """Capacity of the send buffer: bytes written and not acknowledged, sent or not. (Linux counts memory, which is more.) Default: the profile's, or `receive_buffer` if that is larger."""
    slow_start_after_idle: bool | None = None
    """Shrink the window to the restart window after an idle period (RFC 5681 §4.1)."""
    super_segments: bool | None = None
    """Contents that are written to an open connection are kept in super-segments as in Linux, each half of the largest window and 64 KiB at most: a write is taken in whole ones, and PSH stays at the end of a write."""
    syn_ack_retries: int | None = None
    """Retransmissions of a SYN-ACK before the connection is given up."""
    syn_retries: int | None = None
    """Retransmissions of a SYN before the connection is given up."""
    syn_timeout: str | None = None
    """Retransmission timeout of the handshake, and until there is a round-trip sample (RFC 6298 §2.1: 1 s)."""
    tail_loss_probe: bool | None = None
    """Tail loss probes (RFC 8985 §7); they need recovery by `rack-tlp` or `fack`."""
    time_wait: str | None = None
    """Length of TIME-WAIT, 2 MSL (RFC 9293 §3.6.1; Linux: 60 s). It must be longer than the peer retransmits its FIN; later FINs are answered with resets."""
    timestamps: bool | None = None
    """Timestamps (RFC 7323 §3)."""
    tls: bool | str | TlsMap | Mapping[str, Any] | None = None
    """TLS 1.3 between TCP and the application, as flights of its handshake and headers of its records; true and `"1.3"` are the same."""
    undo: bool | None = None
    """Detection of spurious retransmissions by timestamps (Eifel, RFC 3522) and by D-SACK (RFC 3708); the window reduction is undone."""
    unpaced_segments: int | None = None
    """Packets at the start of a connection that leave at once, before pacing begins (Linux: 10, with `fq` and without)."""
    whole_segments: bool | None = None
    """Amounts are whole segments, as Linux counts: PRR rounds up to them and reduces the window instead of what is in flight, and without SACK a segment that a duplicate acknowledgement stood for is not delivered twice."""
    window_scaling: bool | None = None
    """Window scaling (RFC 7323 §2)."""


@dataclass(frozen=True, kw_only=True)
class Multipath:
    """Two hosts, `client` and `server`, joined by several disjoint paths `path0`, `path1`, …."""

    paths: Sequence[Link | Mapping[str, Any]]
    """The paths; up is from client to server."""


@dataclass(frozen=True, kw_only=True)
class OnOff:
    """A constant rate in on periods, no packets in off periods."""

    off: str | PeriodMap | Mapping[str, Any]
    """Length of the off periods."""
    on: str | PeriodMap | Mapping[str, Any]
    """Length of the on periods."""
    packet_size: str | None = None
    """Payload of a packet."""
    rate: str
    """Payload rate while on."""


@dataclass(frozen=True, kw_only=True)
class PacingMap:
    """Pacing rate as a multiple of window over round-trip time; the defaults are Linux's."""

    avoidance: float | None = None
    """In congestion avoidance."""
    burst: str | None = None
    """Segments leave in bursts of what the rate gives in this time, of two segments at least and 64 KiB at most, as those of segmentation offload (Linux: 1 ms). Controls that give a rate set their own bursts."""
    slow_start: float | None = None
    """In slow start."""


@dataclass(frozen=True, kw_only=True)
class ParkingLot:
    """A chain of bottlenecks that a long flow shares with cross traffic on each."""

    access: Link | Mapping[str, Any] | None = None
    """The links between hosts and routers. Default: perfect wires."""
    bottleneck: Link | Mapping[str, Any] | Sequence[Link | Mapping[str, Any]]
    """The links between routers: one for all, or a list with one for each hop."""
    cross: ParkingLotCross | Mapping[str, Any] | None = None
    """Hosts whose flows cross one bottleneck."""
    groups: Sequence[ParkingLotGroup | Mapping[str, Any]] | None = None
    """Hosts whose flows cross all bottlenecks, in groups that differ in their round trip. Default: the pair `left` and `right`."""
    hops: int
    """Number of bottlenecks."""


@dataclass(frozen=True, kw_only=True)
class ParkingLotCross:
    """Pairs of hosts at each bottleneck of a parking lot."""

    pairs: int | None = None
    """Number of pairs at each bottleneck."""
    rtt: str | None = None
    """Round trip between two hosts of a pair without queues. The access links share equally what the bottleneck leaves of it. Default: it follows from the delay of `access`."""


@dataclass(frozen=True, kw_only=True)
class ParkingLotGroup:
    """Pairs of hosts at both ends of a parking lot."""

    pairs: int | None = None
    """Number of pairs."""
    rtt: str | None = None
    """Round trip between two hosts of a pair without queues. The access links share equally what the bottlenecks leave of it. Default: it follows from the delay of `access`."""


@dataclass(frozen=True, kw_only=True)
class PeriodMap:
    """Random length of a period; give exactly one."""

    exponential: str | None = None
    """Exponentially distributed with this mean."""


@dataclass(frozen=True, kw_only=True)
class Pie:
    """Proportional Integral controller Enhanced (RFC 8033)."""

    alpha: float | None = None
    """Weight of the deviation from the target, per second."""
    beta: float | None = None
    """Weight of the trend, per second."""
    derandomize: bool | None = None
    """Spread drops evenly: none before the probabilities since the last drop sum up to 0.85, one at the latest at 8.5 (§5.4)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them while the probability is below `mark_threshold`."""
    estimator: str | None = None
    """How the queueing delay is estimated."""
    limit: str | None = None
    """Packets that may wait."""
    mark_threshold: str | float | None = None
    """Drop even ECN-capable packets from this probability on (MARK_ECNTH, §5.1)."""
    max_burst: str | None = None
    """Duration of a burst that passes without drops (MAX_BURST)."""
    target: str | None = None
    """Reference delay (QDELAY_REF)."""
    update: str | None = None
    """Time between two updates of the probability (T_UPDATE)."""


@dataclass(frozen=True, kw_only=True)
class Ping:
    """Echo requests over UDP: `from` sends one each interval, `to` answers each at once with as many bytes."""

    count: int | None = None
    """Number of requests. Default: they go on until the flow stops."""
    interval: str | None = None
    """Time between two requests."""
    size: str | None = None
    """Payload of a request and of its answer. The least has room for a sequence number and a time stamp."""
    timeout: str | None = None
    """A request that has no answer for this long is lost; an answer that comes later counts nevertheless."""


@dataclass(frozen=True, kw_only=True)
class Policer:
    """A token bucket: drops packets above a rate."""

    burst: str
    """Size of the bucket, which is full at the start; at least the MTU."""
    rate: str
    """Rate at which tokens are added."""


@dataclass(frozen=True, kw_only=True)
class QueueMap:
    """The queue in front of a link: a name, or a table with its parameters; give exactly one."""

    droptail: str | None = None
    """First in, first out; packets that do not fit are dropped. The limit is in packets, bytes, time, or multiples of BDP: the link's rate (the highest of steps, the mean of a trace) times the base round-trip time of the longest route through the link that a flow takes. RFC 7567 §2.1"""
    red: Red | Mapping[str, Any] | None = None
    """Random Early Detection: drops with a probability that depends on the average queue length. Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; gentle: Floyd 2000"""
    codel: CoDel | Mapping[str, Any] | None = None
    """Controlled Delay: drops at an increasing rate while the queueing delay stays above the target. RFC 8289"""
    fq_codel: FqCoDel | Mapping[str, Any] | None = None
    """A queue per flow, sparse flows first, with CoDel on each. RFC 8290"""
    pie: Pie | Mapping[str, Any] | None = None
    """Proportional Integral controller Enhanced: adjusts the drop probability to keep the queueing delay at a target. RFC 8033"""
    step: Step | Mapping[str, Any] | None = None
    """Tail drop that marks every packet that finds more than a threshold in the queue. RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010 §3.1; in time: RFC 9332"""
    dualpi2: DualPi2 | Mapping[str, Any] | None = None
    """The coupled dual queue of L4S: a shallow queue for ECT(1), PI2 for all other packets, with about equal rates. RFC 9332; defaults: tc-dualpi2(8)"""
    _names: ClassVar[Mapping[str, str]] = {"fq_codel": "fq-codel"}


@dataclass(frozen=True, kw_only=True)
class Quic:
    """QUIC (RFC 9000): a production implementation in virtual time."""

    ack: AckMap | Mapping[str, Any] | None = None
    """Request fewer acknowledgements from the peer (draft-ietf-quic-ack-frequency). Default: every second packet is acknowledged (RFC 9000 §13.2.2)."""
    congestion: str | Mapping[str, Any] | str | None = None
    """Congestion control of both ends: a name, or a table of one name and its parameters. `noq-cubic`, `noq-newreno` and `noq-bbr3` are the implementation's own."""
    connection_window: str | None = None
    """Receive window of the connection."""
    crypto: str | None = None
    """`null` sends packets of the same sizes at the same times, but does not encrypt: for large sweeps."""
    datagram_size: str | None = None
    """UDP payload of a full packet, before discovery increases it. Default: the profile's, or less if the route's MTU is smaller."""
    ecn: bool | None = None
    """Explicit congestion notification."""
    handshake: str | None = None
    """`0-rtt` sends data before the handshake is complete, with a ticket of an earlier connection of the same hosts."""
    idle_timeout: str | None = None
    """An idle connection is closed after this time."""
    initial_window: str | None = None
    """Initial congestion window, in packets or bytes."""
    key_update: str | None = None
    """The client updates its keys this often (RFC 9001 §6). Default: never."""
    max_window: str | None = None
    """Upper limit of the effective congestion window. Default: no limit."""
    migration: MigrationMap | Mapping[str, Any] | None = None
    """The client's address changes (RFC 9000 §9). Default: it stays."""
    mtu_discovery: bool | str | None = None
    """Discovery of larger datagrams (RFC 8899): true up to 1452 bytes, or up to a size."""
    multipath: bool | int | None = None
    """Use disjoint paths between the hosts at once (draft-ietf-quic-multipath): true for up to eight, or how many at most."""
    options: Mapping[str, Any] | None = None
    """Options that a plug-in's stack has by itself, handed over as they are; tables `client` and `server` for different ones. Default: none."""
    pacing: bool | None = None
    """Pace packets over the round trip; false: only where the congestion control gives a rate."""
    packet_threshold: int | None = None
    """Packet threshold of loss detection (RFC 9002 §6.1.1)."""
    profile: str | None = None
    """Named set of defaults for all other options."""
    retry: bool | None = None
    """The server validates the client's address with a Retry packet before anything else (RFC 9000 §8.1.2)."""
    send_window: str | None = None
    """Capacity of the send buffer."""
    stack: str | Mapping[str, Any] | None = None
    """The implementation: `noq`, or the name of a plug-in; a table `{ client, server }` for different ends."""
    stream_window: str | None = None
    """Receive window of a stream."""
    streams: int | None = None
    """Number of streams of a bulk transfer."""
    time_threshold: float | None = None
    """Time threshold of loss detection, in round trips (RFC 9002 §6.1.2)."""
    unidirectional: bool | None = None
    """The streams of a bulk transfer are unidirectional (RFC 9000 §2.1)."""


@dataclass(frozen=True, kw_only=True)
class RateMap:
    """Transmission rate: constant, in steps, from a recorded trace, or unlimited; give exactly one."""

    steps: Sequence[Sequence[Any]] | None = None
    """Pairs of an instant and the rate from then on; the first instant is 0s, the others increase. A rate of zero is an outage; a packet in transmission continues after it."""
    trace: str | None = None
    """A file of packet-delivery opportunities in mahimahi's format, relative to the scenario; it is repeated at its end."""


@dataclass(frozen=True, kw_only=True)
class ReceiveAutotuning:
    """Growth of the receive window; the default is Linux's."""

    initial: str | None = None
    """The receive buffer at the start."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is recorded besides the summary."""

    capture_ends: str | None = None
    """At which end of these links. A program that follows connections takes what passes both for repetitions."""
    capture_payload: bool | None = None
    """Keep whole packets. Otherwise only headers are kept (with the true length), and whole QUIC datagrams of the simulator, which could not be decrypted otherwise."""
    captures: Sequence[str] | None = None
    """Names of links whose packets are captured (pcapng); `*` at the end of a name stands for anything."""
    datagrams: bool | None = None
    """Record every datagram of flows over UDP that arrives, with its one-way delay."""
    decisions: bool | None = None
    """Record every decision of MPTCP schedulers among the events: one for each segment."""
    events: bool | None = None
    """Record protocol events: losses, timeouts, recoveries."""
    flows: bool | None = None
    """Sample the state of flows: windows, round-trip times, rates."""
    gauges: bool | None = None
    """Record the internal quantities of the congestion control of TCP flows, and of QUIC flows with one path: with each sample, and whenever its phase changes or the sender loses, recovers or finds a loss spurious."""
    interval: str | None = None
    """Time between two samples of flows and links."""
    links: bool | None = None
    """Sample the state of links: queues, drops, marks."""
    qlog: bool | None = None
    """Write a qlog trace (`*.sqlog`) of each end of each QUIC flow."""
    verify: bool | None = None
    """Carry real bytes and compare them at the receiver (slow). With the profile `linux-6` they are written in super-segments, so that a small send buffer holds up to one more."""


@dataclass(frozen=True, kw_only=True)
class Red:
    """Random Early Detection (Floyd and Jacobson 1993; gentle: Floyd 2000; automatic values: Floyd et al."""

    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them, up to `max_threshold` (twice that if gentle)."""
    gentle: bool | None = None
    """Grow to probability 1 between once and twice `max_threshold`."""
    limit: str | None = None
    """Packets that may wait. Default: 1000, or four times the maximum threshold if that is more."""
    max_probability: str | float | None = None
    """Drop probability at `max_threshold` (max_p)."""
    max_threshold: float | None = None
    """Average queue in packets from which the probability is `max_probability` (max_th). Default: three times the minimum threshold."""
    min_threshold: float | None = None
    """Average queue in packets below which nothing is dropped (min_th). Default: what waits 2.5 ms at the rate of the link, with packets of its MTU, at least 5; at most a third of `max_threshold` if that is given."""
    weight: str | float | None = None
    """Weight of a new sample in the average, a fraction (w_q)."""


@dataclass(frozen=True, kw_only=True)
class Reorder:
    """Packet reordering."""

    correlation: str | float | None = None
    """Probability that a decision repeats the last one; the share of displaced packets stays `probability` (netem's averaging of random numbers changes it)."""
    early: str | None = None
    """A displaced packet arrives this much earlier. Default, if `late` is not given either: as early as possible, without propagation delay (as netem does)."""
    gap: int | None = None
    """Only every n-th packet may be displaced."""
    late: str | None = None
    """A displaced packet arrives this much later, and packets behind it overtake it."""
    probability: str | float
    """Probability that a packet is displaced."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """`from` sends requests, `to` answers with objects."""

    connections: int | None = None
    """Parallel connections, each its own flow; objects are assigned to them in turn."""
    frame: str | None = None
    """With `order = "multiplexed"` on one byte stream: maximum content of a frame, to which a header of 9 bytes is added (RFC 9113 section 4.1). Over QUIC each object has its own stream instead. Default: 16KiB."""
    give_up: str | None = None
    """An answer that is not complete this long after its request is cancelled (RFC 9000 §3.5), and the client goes on without it. Over QUIC, where each object has its own stream. Default: never."""
    objects: int | None = None
    """Number of objects. Default: as many as there are `sizes`, or 1."""
    order: str | None = None
    """Order of requests, and multiplexing of the answers on a connection. Default: `sequential`."""
    pipelined: bool | None = None
    """The same as `order = "pipelined"`. Default: `false`."""
    request_size: str | None = None
    """Size of a request."""
    size: str | SizeMap | Mapping[str, Any] | None = None
    """Size of every object: one for all, or a distribution from which each flow draws anew; or give `sizes`."""
    sizes: Sequence[str] | None = None
    """Size of each object, in order."""
    think_time: str | None = None
    """Time between the end of an answer and the next request, with `order = "sequential"`."""
    urgency: Sequence[int] | None = None
    """Urgency of each object, in order: from 0, whose answer goes first, to 7 (RFC 9218 §4.1); of the rest, 3. Over QUIC, with `order = "multiplexed"`."""


@dataclass(frozen=True, kw_only=True)
class SelectionMap:
    """How the rate of a segment is chosen; give exactly one."""

    throughput: ByThroughput | Mapping[str, Any] | None = None
    """From the throughput of the latest segments: J. Jiang, V. Sekar, H. Zhang, "Improving Fairness, Efficiency, and Stability in HTTP-based Adaptive Video Streaming with FESTIVE", CoNEXT 2012, sections 4.3 and 4.4, without its delayed update."""
    buffer: ByBuffer | Mapping[str, Any] | None = None
    """From the buffer alone, BBA-0: T.-Y. Huang, R. Johari, N. McKeown, M. Trunnell, M. Watson, "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, algorithm 1."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of a load, which add up to 1."""

    cbr: str | float | None = None
    """Constant bit rate over UDP."""
    ftp: str | float | None = None
    """File transfers over the flow's transport."""
    web: str | float | None = None
    """Web traffic over the flow's transport."""


@dataclass(frozen=True, kw_only=True)
class Simple:
    """Two hosts, `client` and `server`, and one link between them, named `link`."""

    link: Link | Mapping[str, Any]
    """The link; up is from client to server."""


@dataclass(frozen=True, kw_only=True)
class SizeHybrid:
    """A log-normal body and a Pareto tail."""

    alpha: float
    """Tail index of the sizes from `cut` on."""
    body: float
    """Share of sizes in the body."""
    cut: str
    """Where the tail begins."""
    max: str
    """Upper bound: larger sizes are not drawn."""
    mu: float
    """Mean of the logarithm of the sizes in the body, in bytes."""
    sigma: float
    """Standard deviation of the logarithm of the sizes in the body."""


@dataclass(frozen=True, kw_only=True)
class SizeLogNormal:
    """Log-normal distribution of sizes, conditioned on both bounds."""

    max: str
    """Upper bound: larger sizes are not drawn."""
    min: str | None = None
    """Lower bound: smaller sizes are not drawn."""
    mu: float
    """Mean of the logarithm of the size in bytes."""
    sigma: float
    """Standard deviation of the logarithm."""


@dataclass(frozen=True, kw_only=True)
class SizeMap:
    """Random size of an object or file; give exactly one."""

    exponential: str | None = None
    """Exponentially distributed with this mean."""
    pareto: SizePareto | Mapping[str, Any] | None = None
    """Pareto between two bounds."""
    lognormal: SizeLogNormal | Mapping[str, Any] | None = None
    """Log-normal between two bounds."""
    hybrid: SizeHybrid | Mapping[str, Any] | None = None
    """A log-normal body and a Pareto tail."""


@dataclass(frozen=True, kw_only=True)
class SizePareto:
    """Pareto distribution of sizes, conditioned on the upper bound."""

    alpha: float
    """Tail index; below 2 the variance, below 1 the mean would be infinite without the upper bound."""
    max: str
    """Upper bound: larger sizes are not drawn."""
    min: str
    """Smallest size that is drawn."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Tail drop that marks above a threshold, for DCTCP (RFC 8257 §3.1; Alizadeh et al., SIGCOMM 2010)."""

    drop_incapable: bool | None = None
    """Drop packets that would be marked but are not ECN-capable, as RED does."""
    ecn: bool | None = None
    """Mark ECN-capable packets; without it, none is marked."""
    limit: str | None = None
    """Packets that may wait."""
    mark_above: str | None = None
    """Marking threshold K. Packets, bytes or multiples of BDP, as with `droptail`: ECN-capable packets that find more than this in the queue are marked. A time: those that waited longer are marked."""


@dataclass(frozen=True, kw_only=True)
class StripMap:
    """The packets from which Multipath TCP options are removed; give exactly one."""

    after: str | None = None
    """All packets after this amount of payload has passed in this direction."""


@dataclass(frozen=True, kw_only=True)
class Tcp:
    """TCP."""

    clock_granularity: str | None = None
    """Clock granularity G of the retransmission timeout: the least of four times the variance (RFC 6298 §2)."""
    congestion: str | Mapping[str, Any] | None = None
    """Congestion control of both ends: a name, or a table of one name and its parameters, like `{ cubic = { beta = 0.7 } }`."""
    data_retries: int | None = None
    """Timeouts in a row before the connection is given up (Linux: 15)."""
    delayed_ack: bool | DelayedAck | Mapping[str, Any] | None = None
    """Delayed acknowledgements; false acknowledges each segment at once."""
    dsack: bool | None = None
    """Duplicate SACK reports (D-SACK, RFC 2883)."""
    ecn: bool | str | None = None
    """Explicit congestion notification; true is `classic`, with `congestion = "dctcp"` it is `dctcp` and with `"prague"` `l4s`, which are the defaults there."""
    fin_in_last_segment: bool | None = None
    """A FIN belongs to the last segment, as in Linux, also where the peer's window ends between them: it then goes past the window behind other segments, and a last segment alone waits for the window probe, which is without FIN. Otherwise the FIN waits for room in the window."""
    frto: bool | None = None
    """Detection of spurious timeouts (RFC 5682)."""
    growth_at_recovery_end: bool | None = None
    """The acknowledgement that ends recovery grows the window too, as in Linux. Otherwise it does not: RFC 5681 §3.2 (6) sets the window to ssthresh."""
    initial_window: str | None = None
    """Initial congestion window, in packets or bytes. A packet is a full segment of the size that the handshake agrees on. Default: the profile's. `modern` has 10 segments, but at most 14600 bytes or 2 segments, whichever is larger (RFC 6928 §2); `linux-6` and `linux-4.1-mptcp-0.90` have 10 segments of any size; `rfc5681` has 2 to 4 segments by their size (RFC 5681 §3.1); `ns3-3.27` has 1."""
    initial_window_rule: str | None = None
    """The standard that says the initial window where `initial_window` does not, and the one after a lost SYN."""
    keep_alive: bool | KeepAlive | Mapping[str, Any] | None = None
    """Keep-alive probes (RFC 9293 §3.8.4). Default: never."""
    limited_transmit: bool | None = None
    """New data on the first duplicate acknowledgements (RFC 3042)."""
    max_dup_thresh: int | None = None
    """The duplicate threshold grows with the reordering that SACK blocks show, from 3 segments up to this number (Linux: 300). 3: it is fixed (RFC 5681 §3.2, RFC 6675 §2). With `rack-tlp` it counts only until reordering is seen (RFC 8985 §6.2)."""
    max_rto: str | None = None
    """Maximum retransmission timeout."""
    min_rto: str | None = None
    """Minimum retransmission timeout."""
    min_rto_above_srtt: bool | None = None
    """Linux's rule: `min_rto` bounds the variance term, so that the timeout is at least the round-trip time plus `min_rto`. Otherwise it bounds the sum (RFC 6298 §2.4)."""
    mss: str | None = None
    """Payload of a full segment. The MSS option announces that much plus the length of the timestamps option when timestamps are on, so that 1448 fills a packet of 1500 bytes; with a peer that has none, segments are that much longer (RFC 9293 §3.7.1). Default: the profile's, or less if the route's MTU is smaller. Where the profile's fills a packet of 1500 bytes, it is 1460 without timestamps and 1448 with them."""
    mtu_probing: str | None = None
    """Search of the path MTU with data segments (RFC 4821), for paths that drop long packets without an ICMP error. Linux's default is `off` too. The segments of Multipath TCP's subflows only become smaller."""
    nagle: bool | str | None = None
    """Nagle algorithm: hold back small segments while data is outstanding (RFC 9293 §3.7.4); true is `standard`, and Linux has `minshall`. Real programs turn it off with `TCP_NODELAY`."""
    pacing: bool | str | PacingMap | Mapping[str, Any] | None = None
    """When the sender paces; false is `off`, true is `window`."""
    probe_slack_fixed: bool | None = None
    """Several segments in flight are probed 2 ms after two round trips on short paths too, as Linux does; otherwise at most a round trip after (RFC 8985 §7.2 has no such slack)."""
    profile: str | None = None
    """Named set of defaults for all other options."""
    prr: bool | None = None
    """Proportional rate reduction in recovery (RFC 9937)."""
    receive_autotuning: bool | ReceiveAutotuning | Mapping[str, Any] | None = None
    """Growth of the receive window with what the application reads in a round trip, up to `receive_buffer` (dynamic right-sizing, as Linux has it). Not for Multipath TCP, whose window is that of the connection. Default: the window is `receive_buffer` from the start."""
    receive_buffer: str | None = None
    """The largest receive window that is announced."""
    receiver: str | None = None
    """How the receiving end misbehaves (RFC 9743 §7.6), in the simulator."""
    recovery: str | None = None
    """How losses are detected."""
    rescue_retransmission: bool | None = None
    """In recovery by `sack`, when nothing is known to be lost and nothing new can be sent, the highest segment is sent again, once (RFC 6675 §4, NextSeg (4))."""
    rto_restart: str | None = None
    """From when the retransmission timeout counts after an acknowledgement; they differ by at most a round trip."""
    sack: bool | None = None
    """Selective acknowledgements (RFC 2018)."""
    send_buffer: str | None = None
    """Capacity of the send buffer: bytes written and not acknowledged, sent or not. (Linux counts memory, which is more.) Default: the profile's, or `receive_buffer` if that is larger."""
    slow_start_after_idle: bool | None = None
    """Shrink the window to the restart window after an idle period (RFC 5681 §4.1)."""
    super_segments: bool | None = None
    """Contents that are written to an open connection are kept in super-segments as in Linux, each half of the largest window and 64 KiB at most: a write is taken in whole ones, and PSH stays at the end of a write."""
    syn_ack_retries: int | None = None
    """Retransmissions of a SYN-ACK before the connection is given up."""
    syn_retries: int | None = None
    """Retransmissions of a SYN before the connection is given up."""
    syn_timeout: str | None = None
    """Retransmission timeout of the handshake, and until there is a round-trip sample (RFC 6298 §2.1: 1 s)."""
    tail_loss_probe: bool | None = None
    """Tail loss probes (RFC 8985 §7); they need recovery by `rack-tlp` or `fack`."""
    time_wait: str | None = None
    """Length of TIME-WAIT, 2 MSL (RFC 9293 §3.6.1; Linux: 60 s). It must be longer than the peer retransmits its FIN; later FINs are answered with resets."""
    timestamps: bool | None = None
    """Timestamps (RFC 7323 §3)."""
    tls: bool | str | TlsMap | Mapping[str, Any] | None = None
    """TLS 1.3 between TCP and the application, as flights of its handshake and headers of its records; true and `"1.3"` are the same."""
    undo: bool | None = None
    """Detection of spurious retransmissions by timestamps (Eifel, RFC 3522) and by D-SACK (RFC 3708); the window reduction is undone."""
    unpaced_segments: int | None = None
    """Packets at the start of a connection that leave at once, before pacing begins (Linux: 10, with `fq` and without)."""
    whole_segments: bool | None = None
    """Amounts are whole segments, as Linux counts: PRR rounds up to them and reduces the window instead of what is in flight, and without SACK a segment that a duplicate acknowledgement stood for is not delivered twice."""
    window_scaling: bool | None = None
    """Window scaling (RFC 7323 §2)."""


@dataclass(frozen=True, kw_only=True)
class TimeMap:
    """A random span of time; give exactly one."""

    exponential: str | None = None
    """Exponentially distributed with this mean."""
    pareto: TimePareto | Mapping[str, Any] | None = None
    """Pareto between two bounds."""


@dataclass(frozen=True, kw_only=True)
class TimePareto:
    """Pareto distribution of times, conditioned on the upper bound."""

    alpha: float
    """Tail index; below 2 the variance, below 1 the mean would be infinite without the upper bound."""
    max: str
    """Upper bound: longer times are not drawn."""
    min: str
    """Shortest time that is drawn."""


@dataclass(frozen=True, kw_only=True)
class TlsMap:
    """TLS 1.3 as flights of these sizes, headers of records included."""

    client_finished: str | None = None
    """The client's Finished. Default with `early_data`: 100 B, with EndOfEarlyData before it."""
    client_hello: str | None = None
    """ClientHello. Default with `early_data`: 330 B, as it then carries a ticket."""
    early_data: bool | None = None
    """The client has a ticket of an earlier connection and sends data with its ClientHello (0-RTT)."""
    record_size: str | None = None
    """Maximum data in a record; the receiver decrypts a record when it is complete (RFC 8446 §5.1)."""
    server_flight: str | None = None
    """From ServerHello to Finished; 3 to 4 kB with a typical certificate chain. Default with `early_data`: 232 B, as there is no certificate."""


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Hosts, routers and links; give exactly one."""

    simple: Simple | Mapping[str, Any] | None = None
    """Two hosts, `client` and `server`, and one link between them, named `link`."""
    dumbbell: Dumbbell | Mapping[str, Any] | None = None
    """Hosts `left0`, `left1`, … and `right0`, `right1`, … that share one bottleneck."""
    parking_lot: ParkingLot | Mapping[str, Any] | None = None
    """A chain of bottlenecks that a long flow shares with cross traffic on each."""
    multipath: Multipath | Mapping[str, Any] | None = None
    """Two hosts, `client` and `server`, joined by several disjoint paths `path0`, `path1`, …."""
    graph: Graph | Mapping[str, Any] | None = None
    """Named nodes and links; packets take the path with the fewest links."""
    _names: ClassVar[Mapping[str, str]] = {"parking_lot": "parking-lot"}


@dataclass(frozen=True, kw_only=True)
class Transport:
    """How data is carried; give exactly one."""

    tcp: Tcp | Mapping[str, Any] | None = None
    """TCP (RFC 9293)."""
    mptcp: Mptcp | Mapping[str, Any] | None = None
    """Multipath TCP (RFC 8684): subflows over several paths."""
    quic: Quic | Mapping[str, Any] | None = None
    """QUIC (RFC 9000): streams over UDP, with one path or several."""
    udp: Mapping[str, Any] | None = None
    """UDP: datagrams without congestion control."""


@dataclass(frozen=True, kw_only=True)
class Video:
    """Adaptive streaming over TCP: `to` requests and plays the segments of `from`, one after another."""

    buffer: str | None = None
    """Maximum buffered playing time. Default: 60 s, with `buffer` selection 240 s."""
    ladder: Sequence[str] | None = None
    """Available rates, in increasing order. The defaults are those of T.-Y. Huang et al., SIGCOMM 2014, and two higher ones."""
    length: str | None = None
    """Playing time of the video. Default: until the flow stops."""
    request_size: str | None = None
    """Size of a request."""
    segment: str | None = None
    """Playing time of a segment."""
    selection: str | SelectionMap | Mapping[str, Any] | None = None
    """How the rate of a segment is chosen."""
    startup: str | None = None
    """Buffered playing time at which playback starts, and resumes after a stall. Default: two segments."""


@dataclass(frozen=True, kw_only=True)
class Voice:
    """One direction of a call over UDP: `from` speaks, `to` listens."""

    codec: str | None = None
    """The codec; a packet is sent every 20 ms."""
    pause: str | PeriodMap | Mapping[str, Any] | None = None
    """Length of pauses. The default is that of ITU-T P.59."""
    playout: str | None = None
    """When a packet is played."""
    talk: str | PeriodMap | Mapping[str, Any] | None = None
    """Length of talk spurts. The default is that of ITU-T P.59."""


@dataclass(frozen=True, kw_only=True)
class Web:
    """Web browsing: sessions that start as a Poisson process, spread over the pairs of hosts."""

    connections: int | None = None
    """Connections of a page at the same time."""
    embedded: int | CountMap | Mapping[str, Any] | None = None
    """Number of objects that a page embeds. Default: that of the model."""
    embedded_size: str | SizeMap | Mapping[str, Any] | None = None
    """Size of an embedded object. Default: that of the model."""
    link: str | None = None
    """The link whose capacity is meant. Default: the slowest link on the route."""
    load: str | float | None = None
    """Bits on the wire from `from` to `to`, headers included: a rate, or a share of the capacity of `link`. The mean over the lifetime of the flow meets it; sessions are active from the beginning."""
    main_size: str | SizeMap | Mapping[str, Any] | None = None
    """Size of the main object of a page. Default: that of the model."""
    model: str | None = None
    """The model that gives the defaults of the following keys."""
    pages: int | CountMap | Mapping[str, Any] | None = None
    """Pages of a session."""
    parsing_time: str | TimeMap | Mapping[str, Any] | None = None
    """From the main object's last byte to the request of the first embedded one."""
    persistent: bool | None = None
    """Use connections for several objects, one after another (HTTP/1.1); otherwise each object has its own connection (HTTP/1.0)."""
    request_size: str | None = None
    """Size of a request."""
    sessions: str | None = None
    """Mean number of new sessions per time; or give `load`."""
    think_time: str | TimeMap | Mapping[str, Any] | None = None
    """From one page's request to the next. Default: that of the model, for `ngmn` exponential with mean 30 s."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The traffic of a flow; give exactly one."""

    bulk: Bulk | Mapping[str, Any] | None = None
    """One transfer, as fast as the network allows."""
    request: Request | Mapping[str, Any] | None = None
    """`from` sends requests, `to` answers with objects."""
    cbr: Cbr | Mapping[str, Any] | None = None
    """Packets at a constant rate."""
    onoff: OnOff | Mapping[str, Any] | None = None
    """A constant rate in on periods, no packets in off periods."""
    web: Web | Mapping[str, Any] | None = None
    """Web browsing: sessions of pages, each object a short flow."""
    ftp: Ftp | Mapping[str, Any] | None = None
    """Files that start at random instants, each a flow."""
    mix: Mix | Mapping[str, Any] | None = None
    """Background traffic as a share of a link's capacity."""
    media: Media | Mapping[str, Any] | None = None
    """One direction of a video call with congestion control."""
    voice: Voice | Mapping[str, Any] | None = None
    """One direction of a call."""
    ping: Ping | Mapping[str, Any] | None = None
    """Echo requests: round trips over time."""
    video: Video | Mapping[str, Any] | None = None
    """Adaptive streaming: a video in segments, whose rate the player chooses."""


__all__ = [
    "AckMap",
    "AddressChange",
    "Arrivals",
    "Bulk",
    "ByBuffer",
    "ByThroughput",
    "Cbr",
    "CbrRateMap",
    "CoDel",
    "Command",
    "CountMap",
    "CountPareto",
    "DelayMap",
    "DelayedAck",
    "Direction",
    "DualPi2",
    "Dumbbell",
    "Expectation",
    "Flow",
    "FqCoDel",
    "Ftp",
    "GilbertElliott",
    "Graph",
    "GraphLink",
    "Host",
    "JitterMap",
    "KeepAlive",
    "Lab",
    "Link",
    "LossMap",
    "Measure",
    "Media",
    "MigrationMap",
    "Mix",
    "Mptcp",
    "Multipath",
    "OnOff",
    "PacingMap",
    "ParkingLot",
    "ParkingLotCross",
    "ParkingLotGroup",
    "PeriodMap",
    "Pie",
    "Ping",
    "Policer",
    "QueueMap",
    "Quic",
    "RateMap",
    "ReceiveAutotuning",
    "Record",
    "Red",
    "Reorder",
    "Request",
    "Scenario",
    "SelectionMap",
    "Shares",
    "Simple",
    "SizeHybrid",
    "SizeLogNormal",
    "SizeMap",
    "SizePareto",
    "Step",
    "StripMap",
    "Tcp",
    "TimeMap",
    "TimePareto",
    "TlsMap",
    "Topology",
    "Transport",
    "Video",
    "Voice",
    "Web",
    "Workload",
]
