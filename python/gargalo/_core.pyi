"""The Rust engine."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path as FilePath
from typing import Any, Literal, TypeAlias, final

from typing_extensions import Self, disjoint_base

from gargalo.plugins.stack import QuicDatagram

__version__: str
__engine__: str
"""The version and a digest of the sources that the engine was built from, like `0.1.0+1a2b3c4d`."""
_LinkDirection = tuple[int, int | None, float, int, int]
"""Carried bit/s, capacity in bit/s, queueing delay in s, packets waiting, packets dropped."""

Address: TypeAlias = IPv4Address | IPv6Address
_Kind: TypeAlias = Literal["congestion", "scheduler", "path_manager", "stack"]

@final
class Diagnostic:
    """One thing that is wrong with a scenario."""

    def __new__(
        cls,
        message: str,
        *,
        path: str | None = None,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        help: str | None = None,  # noqa: A002
    ) -> Diagnostic: ...
    @property
    def path(self) -> str | None:
        """The key, dotted, like `flows.0.start`; None if no key is wrong, as in a text that is not TOML."""
    @property
    def file(self) -> str | None:
        """The file, `scenario` for a text, or the override as `--set KEY=VALUE`."""
    @property
    def line(self) -> int | None:
        """Line of the file, from 1; None for an override, and where no line is wrong."""
    @property
    def column(self) -> int | None:
        """Column in characters, from 1."""
    @property
    def message(self) -> str:
        """What is wrong, in one sentence that names the key."""
    @property
    def help(self) -> str | None:
        """What to write instead, if that is known."""
    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str | int | None]]: ...
    def to_json(self) -> dict[str, str | int | None]:
        """Return all fields."""
    def sentence(self) -> str:
        """Return the message and the help, without the place."""

class ScenarioError(ValueError):
    """A scenario is wrong; the text shows where and what to write instead, `diagnostics` has it as values."""

    diagnostics: tuple[Diagnostic, ...]
    """Everything that is wrong, in the order of the text; empty only if raised by others with a text alone."""

class RunError(RuntimeError):
    """A run could not be done; the text says why."""

_Sample: TypeAlias = tuple[int, float, int, float | None, int]

@final
class RunResult:
    @property
    def json(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def setup(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def keyboard_interrupt(self) -> bool: ...
    @property
    def directory(self) -> FilePath | None: ...
    def table(self, name: str) -> bytes: ...
    def rows(self, name: str, most: int) -> str: ...

@final
class ResultsDir:
    """A results directory that appears whole or not at all."""

    def __new__(cls, target: FilePath, replace: bool = False) -> ResultsDir: ...
    @property
    def path(self) -> FilePath: ...
    def commit(self) -> FilePath: ...
    def discard(self) -> None: ...

def replaceable(directory: FilePath, name: str | None = None) -> bool: ...
def recover(parent: FilePath) -> list[str]: ...
def verify(directory: FilePath, names: Sequence[str]) -> bool: ...
def add_files(directory: FilePath, names: Sequence[str], make: bool = False) -> None: ...
def bad_name(name: str) -> str | None: ...

@disjoint_base
class Window:
    """The congestion window of a class derived from `gargalo.WindowBased`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    @property
    def window(self) -> int: ...
    @window.setter
    def window(self, value: float) -> None: ...
    @property
    def threshold(self) -> int | None: ...
    @threshold.setter
    def threshold(self, value: float | None) -> None: ...
    @property
    def mss(self) -> int: ...
    def grow(self, amount: float) -> None: ...
    def set_window(self, window: float) -> None: ...
    def in_slow_start(self) -> bool: ...
    def leave_slow_start(self) -> None: ...
    def on_ack(self, ack: Acked, path: Path) -> None: ...
    def on_send(self, sent: Sent, path: Path) -> None: ...
    def on_recovered(self, now: float, path: Path) -> None: ...
    def cwnd(self) -> float: ...
    def ssthresh(self) -> float | None: ...
    def phase(self) -> str: ...
    def increase(self, acked: int, ack: Acked, path: Path) -> None: ...
    def segments_per_round(self, path: Path) -> float: ...
    def _begin(self, mss: int, initial_window: int) -> None: ...
    def _become(self, other: Window) -> None: ...
    def _reduce(self, event: Congestion, target: float) -> None: ...
    def _undo(self, event: Spurious) -> bool: ...
    def _resize(self, path: Path) -> None: ...

@final
class Init:
    """What a controller starts from."""

    @property
    def now(self) -> float: ...
    @property
    def mss(self) -> int: ...
    @property
    def initial_window(self) -> int: ...
    @property
    def seed(self) -> int: ...

@final
class Sent:
    """A packet is about to leave."""

    @property
    def now(self) -> float: ...
    @property
    def bytes(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def app_limited(self) -> bool: ...
    @property
    def retransmission(self) -> bool: ...
    @property
    def idle(self) -> float | None: ...
    @property
    def rto(self) -> float | None: ...
    @property
    def restart_window(self) -> int | None: ...
    @property
    def was_app_limited(self) -> bool | None: ...

@final
class Acked:
    """An acknowledgement that delivered something new or carried an RTT sample."""

    @property
    def now(self) -> float: ...
    @property
    def bytes(self) -> int: ...
    @property
    def acknowledged(self) -> int: ...
    @property
    def ce_bytes(self) -> int: ...
    @property
    def rtt(self) -> float | None: ...
    @property
    def sent_at(self) -> float | None: ...
    @property
    def in_flight_before(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def cwnd_limited(self) -> bool: ...
    @property
    def in_recovery(self) -> bool: ...
    @property
    def round_start(self) -> bool: ...
    @property
    def count(self) -> int: ...
    @property
    def least_rtt(self) -> float | None: ...
    @property
    def sample(self) -> RateSample | None: ...

@final
class RateSample:
    """A delivery-rate sample."""

    @property
    def delivered(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def interval(self) -> float: ...
    @property
    def delivery_rate(self) -> int: ...
    @property
    def prior_delivered(self) -> int: ...
    @property
    def total_delivered(self) -> int: ...
    @property
    def tx_in_flight(self) -> int: ...
    @property
    def app_limited(self) -> bool: ...
    @property
    def retransmission(self) -> bool: ...

@final
class Lost:
    """A segment was marked lost."""

    @property
    def now(self) -> float: ...
    @property
    def bytes(self) -> int: ...
    @property
    def sent_at(self) -> float: ...
    @property
    def tx_in_flight(self) -> int: ...
    @property
    def new_burst(self) -> bool: ...
    @property
    def in_flight(self) -> int: ...

@final
class Established:
    """The handshake is complete."""

    @property
    def now(self) -> float: ...
    @property
    def window(self) -> int: ...

@final
class Congestion:
    """A congestion event."""

    @property
    def now(self) -> float: ...
    @property
    def cause(self) -> Literal["loss", "ecn", "timeout"]: ...
    @property
    def consecutive(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def in_flight(self) -> int: ...

@final
class Spurious:
    """The latest congestion event was spurious."""

    @property
    def now(self) -> float: ...
    @property
    def cause(self) -> Literal["loss", "ecn", "timeout"]: ...

@final
class Path:
    """The path a controller serves."""

    @property
    def mss(self) -> int: ...
    @property
    def srtt(self) -> float | None: ...
    @property
    def latest_rtt(self) -> float | None: ...
    @property
    def min_rtt(self) -> float | None: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def siblings(self) -> list[Sibling]: ...
    @property
    def index(self) -> int: ...

@final
class Sibling:
    """What a coupled congestion control may know of a subflow."""

    @property
    def cwnd(self) -> int: ...
    @property
    def srtt(self) -> float | None: ...
    @property
    def min_rtt(self) -> float | None: ...
    @property
    def mss(self) -> int: ...
    @property
    def since_loss(self) -> int: ...
    @property
    def between_losses(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def can_send(self) -> bool: ...

@final
class QuicHost:
    """What a stack tells of, and takes random bytes from."""

    def random(self, length: int) -> bytes:
        """Return random bytes of this object's own stream."""
    def event(
        self,
        kind: str,
        early_data: bool | None = None,
        text: str | None = None,
        resent: bool = False,
    ) -> None:
        """Report an event.

        It is "early" (client: early data may be written), "connected" (the handshake is complete), "closed" (the
        connection has ended in order) or "failed" (`text` says why, and has "timed out" if that is why). `early_data`,
        of "connected": whether early data was accepted; None if there was none. The stack has discarded rejected data
        and its streams, and the host writes them again, unless it is `resent` by the stack itself.

        Raises:
            ValueError: There is no such event.

        """
    def received(self, stream: int, data: bytes, fin: bool = False) -> None:
        """Stream data has arrived, in order, each byte once; `fin`: the stream ends after it. It counts as read."""
    def session(self, data: bytes) -> None:
        """Client: a session to resume from later, as bytes of the stack's own choice."""
    def secret(self, line: str) -> None:
        """Give a line for an SSLKEYLOGFILE."""
    def qlog(self, data: bytes) -> None:
        """Give bytes of a qlog file."""
    def notice(self, kind: str, detail: str = "") -> None:
        """Give a row for the table of events: a word such as "loss", and details."""
    def rtt_sample(self, rtt: float) -> None:
        """Give a round-trip sample in seconds.

        Raises:
            ValueError: It is negative or not finite.

        """
    def path_rtt_sample(self, path: int, rtt: float) -> None:
        """Give a round-trip sample of a path in seconds, in place of `rtt_sample`.

        Raises:
            ValueError: It is negative or not finite.

        """
    def datagram(self, data: bytes) -> None:
        """A datagram has arrived (RFC 9221)."""
    def stopped(self, stream: int) -> None:
        """The peer asks for the end of a stream (STOP_SENDING): the host calls `reset_stream`."""
    def reset(self, stream: int) -> None:
        """The peer has reset a stream: an error, unless the host has called `stop_sending` for it."""
    def packet(
        self,
        event: str,
        kind: str,
        number: int,
        size: int | None = None,
        ack_eliciting: bool = True,
    ) -> None:
        """Tell what has happened to a packet, with the feature "packets".

        `event` is "sent", "received", "acknowledged" or "lost", the last two of packets that were sent; `kind` is
        "initial", "0-rtt", "handshake" or "1-rtt". `size` is its length in bytes, if that is known.

        Raises:
            ValueError: There is no such word.

        """
    def send(self, datagram: QuicDatagram) -> None:
        """Give a datagram that is sent now, before those of `datagram_out`.

        Raises:
            ValueError: It is empty or longer than UDP has room for.

        """

@final
class NativeStack:
    """The QUIC stack of a shared library."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def congestion(self) -> tuple[str, ...]: ...
    @property
    def specifications(self) -> dict[str, str]: ...
    @property
    def features(self) -> list[str]: ...
    @property
    def file(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def library(self) -> bytes: ...
    def watch(self) -> bool: ...

def calls_outside() -> dict[str, int]: ...

@final
class ConnectionInit:
    """What a scheduler or a path manager starts from."""

    def __new__(cls, seed: int = 0) -> ConnectionInit: ...
    @property
    def seed(self) -> int:
        """Seed for a random stream of its own; another for every connection and end."""

@final
class PathView:
    """What a scheduler may know of a subflow."""

    def __new__(
        cls,
        index: int,
        *,
        id: int | None = None,  # noqa: A002
        srtt: float | None = None,
        rttvar: float | None = None,
        latest_rtt: float | None = None,
        min_rtt: float | None = None,
        rto: float = 1.0,
        cwnd: int = 14480,
        ssthresh: int | None = None,
        in_flight: int = 0,
        queued: int = 0,
        mss: int = 1448,
        delivery_rate: int | None = None,
        pacing_rate: int | None = None,
        backup: bool = False,
        in_loss: bool = False,
        usable: bool = True,
        can_send: bool = True,
        sent_packets: int = 0,
        lost_packets: int = 0,
        link: str | None = None,
        peer_link: str | None = None,
        in_slow_start: bool | None = None,
    ) -> PathView: ...
    @property
    def index(self) -> int:
        """Position in `Context.paths`."""
    @property
    def id(self) -> int:
        """Number of the subflow, never given twice in a connection."""
    @property
    def srtt(self) -> float | None:
        """Smoothed round-trip time in seconds; None before the first measurement."""
    @property
    def rttvar(self) -> float | None:
        """Mean deviation of the round-trip time in seconds."""
    @property
    def latest_rtt(self) -> float | None:
        """Latest round-trip sample in seconds."""
    @property
    def min_rtt(self) -> float | None:
        """Least round-trip time in seconds."""
    @property
    def rto(self) -> float:
        """Retransmission timeout in seconds."""
    @property
    def cwnd(self) -> int:
        """Congestion window in bytes."""
    @property
    def ssthresh(self) -> int | None:
        """Slow-start threshold in bytes; None: infinite, or there is none."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight."""
    @property
    def queued(self) -> int:
        """Bytes given to the subflow and not sent yet."""
    @property
    def mss(self) -> int:
        """Payload of a full segment in bytes."""
    @property
    def delivery_rate(self) -> int | None:
        """Latest delivery rate in bit/s measured while the network was the limit."""
    @property
    def pacing_rate(self) -> int | None:
        """Pacing rate in bit/s; None: not paced."""
    @property
    def backup(self) -> bool:
        """To be used only when no other path works (RFC 8684 §3.3.8)."""
    @property
    def in_loss(self) -> bool:
        """A retransmission timer has expired and nothing new was acknowledged since."""
    @property
    def usable(self) -> bool:
        """New data may be given to it; False while it is opening or closing."""
    @property
    def can_send(self) -> bool:
        """Its windows have room and its pacer is ready."""
    @property
    def sent_packets(self) -> int:
        """Data packets sent so far."""
    @property
    def lost_packets(self) -> int:
        """Packets marked lost so far."""
    @property
    def link(self) -> str | None:
        """Name of the link by which what we send leaves; none if there is no name."""
    @property
    def peer_link(self) -> str | None:
        """Name of the link by which what the peer sends leaves."""
    @property
    def latency(self) -> float:
        """The smoothed round-trip time in seconds for comparisons: infinite while unknown."""
    @property
    def space(self) -> int:
        """Congestion window less bytes in flight, in whole segments; may be negative."""
    @property
    def in_slow_start(self) -> bool:
        """Whether the window about doubles every round trip: slow start, or BBR's Startup."""

@final
class Context:
    """What a scheduler decides by."""

    def __new__(
        cls,
        paths: Sequence[PathView],
        *,
        now: float = 0.0,
        unsent: int = ...,
        more: bool = False,
        window: int = ...,
        window_room: int = ...,
        blocked: int = 0,
    ) -> Context: ...
    @property
    def now(self) -> float:
        """The present, in seconds."""
    @property
    def paths(self) -> list[PathView]:
        """All subflows, in the order in which they were opened."""
    @property
    def unsent(self) -> int:
        """Bytes written and never sent."""
    @property
    def more(self) -> bool:
        """The application wants to write more than the send buffer takes."""
    @property
    def window(self) -> int:
        """The peer's window in bytes from the first byte not acknowledged by it, or the send buffer if smaller."""
    @property
    def window_room(self) -> int:
        """What of it may still be filled by new data, in bytes."""
    @property
    def blocked(self) -> int:
        """Segments sent again so far because data on a slower path filled the window."""
    def candidates(self) -> list[PathView]:
        """Paths for new data: usable, not in loss, and backups only if there is nothing else."""
    def ready(self) -> list[PathView]:
        """Candidates that can send now."""
    def lowest_latency(self) -> PathView | None:
        """The ready path of least smoothed round-trip time, the earlier one of equals."""

@final
class SendAll:
    """A choice: new data goes to this path and a copy of it to every other one."""

    def __new__(cls, path: PathView | int) -> SendAll: ...
    @property
    def path(self) -> PathView | int: ...

@final
class LocalAddress:
    """An address of this host."""

    def __new__(
        cls,
        id: int,  # noqa: A002
        address: Address | str,
        backup: bool = False,
        link: str | None = None,
    ) -> LocalAddress: ...
    @property
    def id(self) -> int:
        """Its identifier in this connection; 0 is that of the initial subflow."""
    @property
    def address(self) -> Address: ...
    @property
    def backup(self) -> bool:
        """Subflows of it are backups."""
    @property
    def link(self) -> str | None:
        """Name of its link; none if there is no name."""

@final
class RemoteAddress:
    """An address of the peer."""

    def __new__(
        cls,
        id: int,  # noqa: A002
        address: Address | str,
        port: int,
        link: str | None = None,
    ) -> RemoteAddress: ...
    @property
    def id(self) -> int:
        """Its identifier; 0 is that of the initial subflow."""
    @property
    def address(self) -> Address: ...
    @property
    def port(self) -> int:
        """The port to connect to."""
    @property
    def link(self) -> str | None:
        """Name of its link; none if there is no name."""

@final
class SubflowView:
    """A subflow that exists or is being opened."""

    def __new__(
        cls, local: int, remote: int | None = None, gateway: Address | str | None = None
    ) -> SubflowView: ...
    @property
    def local(self) -> int:
        """Identifier of our address."""
    @property
    def remote(self) -> int | None:
        """Identifier of the peer's address; None: it came from an address never announced."""
    @property
    def gateway(self) -> Address | None:
        """By way of this gateway."""

@final
class Open:
    """A subflow to be opened."""

    def __new__(cls, local: int, remote: int, gateway: Address | str | None = None) -> Open: ...
    @property
    def local(self) -> int:
        """Identifier of our address."""
    @property
    def remote(self) -> int:
        """Identifier of the peer's address."""
    @property
    def gateway(self) -> Address | None:
        """By way of this gateway."""

@final
class View:
    """What a path manager decides by."""

    def __new__(
        cls,
        *,
        is_client: bool,
        local: Sequence[LocalAddress],
        remote: Sequence[RemoteAddress],
        gateways: Sequence[Address | str] = ...,
        subflows: Sequence[SubflowView] = ...,
    ) -> View: ...
    @property
    def is_client(self) -> bool:
        """We opened the connection; usually only such a host opens subflows."""
    @property
    def local(self) -> list[LocalAddress]:
        """Our addresses, in the order of their identifiers."""
    @property
    def remote(self) -> list[RemoteAddress]:
        """The peer's addresses that accept subflows, in the order of their identifiers."""
    @property
    def gateways(self) -> list[Address]:
        """Gateways of our network, if the host knows any."""
    @property
    def subflows(self) -> list[SubflowView]:
        """All subflows."""
    def pairs(self) -> list[tuple[LocalAddress, RemoteAddress]]:
        """Our and the peer's addresses between which packets can pass: those of one family."""
    def count(self, local: int, remote: int) -> int:
        """Subflows between two addresses."""

def schema() -> str: ...
def tables() -> list[dict[str, Any]]: ...

@final
class NativeCongestion:
    """A congestion control of a shared library."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def library(self) -> bytes: ...
    def listed(self) -> dict[str, Any]: ...

def native_congestion(file: str, library: bytes) -> list[NativeCongestion]: ...
def native_congestion_named(file: str, library: bytes, name: str) -> NativeCongestion: ...
def tell_crashes_to(descriptor: int) -> None: ...
def has_stuck_calls() -> bool: ...
def plugin_headers() -> dict[str, str]: ...
def seal_library(library: bytes) -> bytes: ...
def congestion() -> list[dict[str, Any]]: ...
def schedulers() -> list[dict[str, Any]]: ...
def path_managers() -> list[dict[str, Any]]: ...
def queues() -> list[dict[str, Any]]: ...
def profiles() -> list[dict[str, Any]]: ...
def capabilities() -> list[dict[str, Any]]: ...
def lacking(text: str, world: str) -> list[str]: ...
def resolve(
    text: str,
    path: FilePath | None,
    overrides: list[tuple[str, str]],
    names: Mapping[str, Sequence[str]],
    color: bool = False,
    toml: bool = False,
) -> str: ...
def setup(
    text: str,
    path: FilePath | None,
    overrides: list[tuple[str, str]],
    names: Mapping[str, Sequence[str]],
    color: bool = False,
) -> str: ...
def run(
    text: str,
    path: FilePath | None,
    overrides: list[tuple[str, str]],
    classes: Mapping[str, Mapping[str, Any]] | Mapping[_Kind, Mapping[str, Any]],
    progress: Callable[[float, float, int, int, str, float, list[_Sample]], bool | None]
    | None = None,
    output: FilePath | None = None,
    replace: bool = False,
    world: str = "sim",
    memory_limit: int | None = None,
) -> RunResult: ...
def read_recording(
    paths: Sequence[FilePath],
    name: str,
    interval_s: float,
    anonymise: bool = False,
    packets: bool = False,
    progress: Callable[[float, int], object] | None = None,
    output: FilePath | None = None,
    replace: bool = False,
) -> RunResult: ...
def kind_of_log(start: bytes) -> str | None: ...
def carry(direction: str, times_ns: bytes, sizes_bytes: bytes, seed: int) -> bytes: ...
def native_stack(file: str, library: bytes) -> NativeStack | None: ...
def nearest(name: str, known: Sequence[str]) -> str | None: ...
def memory_bytes(text: str) -> int: ...
def memory_limit() -> int | None: ...
def trace_generate(
    *,
    seed: int,
    duration: str = "60s",
    initial_rate: str = "5Mbit/s",
    max_rate: str = "12Mbit/s",
    volatility: float = 200.0,
    outage_escape: float = 1.0,
) -> str:
    """A synthetic cellular trace (Sprout, NSDI 2013) as text; quantities are written with their units.

    `volatility` is in packets/s per square root of a second, `outage_escape` per second.
    """

def trace_info(text: str) -> dict[str, Any]: ...
def trace_from_rates(rows: list[tuple[float, float]]) -> str: ...
def trace_rates(text: str, bin: str) -> list[tuple[float, int]]: ...  # noqa: A002
def enter_sandbox(kept: bool = False) -> None: ...
def shell(
    request: str,
    watch: Callable[[float, _LinkDirection, _LinkDirection, int | None], object],
) -> int: ...
def scripts(request: str, done: Callable[[int, str], object]) -> None: ...
def wire_iperf3(options: str, write: Callable[[str, bool], None]) -> str | None: ...
def wire_connect(options: str, write: Callable[[str, bool], None]) -> str | None: ...
