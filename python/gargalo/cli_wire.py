"""`gargalo iperf3` and `gargalo connect`: our TCP on a real network, through a TUN device."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gargalo import _core
from gargalo.cli_common import FAILED, INTERRUPTED, err, fail

if TYPE_CHECKING:
    from collections.abc import Callable

PORT = 5201
"""iperf3's."""
BLOCK = 128 << 10
LARGEST_BLOCK = 1 << 20
LARGEST_WINDOW = 512 << 20

Congestion = Annotated[
    str | None,
    typer.Option(
        "-C",
        "--congestion",
        metavar="ALGO",
        help="Congestion control, one of gargalo list congestion; default: cubic.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="KEY=VALUE",
        help="A parameter of the congestion control; may be repeated.",
    ),
]
PacingChoice = Annotated[
    bool | None,
    typer.Option(
        "--pacing/--no-pacing",
        help="Pace always, or never. Default: when the congestion control asks for it.",
        show_default=False,
    ),
]
Mtu = Annotated[int, typer.Option(metavar="BYTES", min=1280, max=65535, help="MTU of the device.")]
NoOffload = Annotated[
    bool,
    typer.Option(
        "--no-offload", help="One packet per system call, each with its checksums: slower."
    ),
]
NatChoice = Annotated[
    bool, typer.Option("--nat", help="Masquerade beyond this machine (nft or iptables).")
]
Window = Annotated[
    str | None,
    typer.Option("-w", "--window", metavar="N[KMG]", help="Send and receive buffers in bytes."),
]
Bitrate = Annotated[
    str,
    typer.Option("-b", "--bitrate", metavar="N[KMG]", help="Bit/s of each stream; 0: no limit."),
]
Omit = Annotated[
    int,
    typer.Option("-O", "--omit", min=0, max=600, metavar="S", help="Leave out the first seconds."),
]
Interval = Annotated[
    float,
    typer.Option("-i", "--interval", min=0, max=60, help="Seconds between reports; 0: none."),
]
Capture = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write all packets to a pcapng file; no offload."),
]


def amount(text: str | None, option: str, base: int) -> int | None:
    """Read iperf3's quantities: a number with K, M, G or T."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([kmgtKMGT]?)", text.strip())
    if match is None:
        fail(f"{option} {text}: write a number, or one with K, M, G or T as in 10M")
    scale: int = base ** (" KMGT".index(match[2].upper()) if match[2] else 0)
    value = round(float(match[1]) * scale)
    if value >= 1 << 63:
        fail(f"{option} {text}: too much")
    return value


def parameters(given: list[str] | None) -> list[tuple[str, str]]:
    """Split each `key=value`."""
    pairs = []
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            fail(f"--param {text}: write --param KEY=VALUE, as in --param beta=0.7")
        pairs.append((key.strip(), value.strip()))
    return pairs


def address(name: str, v4: bool, v6: bool) -> str:
    """Find the address of a host, of the family asked for."""
    one_of({"-4": v4, "-6": v6})
    family = socket.AF_INET if v4 else socket.AF_INET6 if v6 else socket.AF_UNSPEC
    try:
        found = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        fail(f"{name}: {reason}", FAILED)
    host = str(found[0][4][0])
    if "%" in host:
        fail(
            f"{host}: an address of one link only cannot be reached from another; use a global one"
        )
    return host


def write(text: str, is_error: bool) -> None:
    """Print the output of a program."""
    stream = sys.stderr if is_error else sys.stdout
    stream.write(text)
    stream.flush()


def execute(command: str, options: Any) -> None:
    """Run a program on a user-space host; what goes wrong is a sentence and an exit code."""
    program: Callable[[str, Callable[[str, bool], None]], str | None] | None
    program = getattr(_core, command, None)
    if program is None:
        fail("our TCP on a real network needs Linux", FAILED)
    try:
        problem = program(json.dumps(options), write)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except _core.ScenarioError as error:
        fail(str(error), diagnostics=error.diagnostics)
    except _core.RunError as error:
        fail(str(error), FAILED)
    if problem is not None:
        with contextlib.suppress(BrokenPipeError):
            err.print(f"error: {problem}", markup=False)
        raise typer.Exit(FAILED)


def refuse_udp(value: bool) -> None:
    """End the command: UDP is not supported."""
    if value:
        fail("-u: UDP tests are not offered; without -u the test runs over TCP")


def only(role: str, wrong: dict[str, bool]) -> None:
    """Refuse options that mean nothing to a client or a server."""
    for option, given in wrong.items():
        if given:
            fail(f"{option} is for {role} only")


def one_of(options: dict[str, bool]) -> None:
    """Refuse options that exclude each other."""
    if sum(options.values()) > 1:
        fail(f"{' and '.join(options)}: choose one")


def one_end(options: dict[str, Any]) -> bool:
    """Return whether an end of the test is given; refuse more than one."""
    given = [option for option, value in options.items() if value is not None]
    if len(given) > 1:
        fail(f"{' '.join(given)}: give one end of the test only, -t, -n or -k")
    return bool(given)


def at_most(text: str | None, option: str, most: int) -> int:
    """Read a number of bytes; 0 if there is none."""
    value = amount(text, option, 1024) or 0
    if value > most:
        fail(f"{option} {text}: at most {most >> 20}M")
    return value


def iperf3(
    client: Annotated[
        str | None, typer.Option("-c", "--client", metavar="HOST", help="Test with this server.")
    ] = None,
    server: Annotated[bool, typer.Option("-s", "--server", help="Be a server.")] = False,
    port: Annotated[int, typer.Option("-p", "--port", min=1, max=65535, help="Its port.")] = PORT,
    time: Annotated[
        int | None,
        typer.Option("-t", "--time", min=0, max=86400, metavar="S", help="Seconds; 10 if no end."),
    ] = None,
    size: Annotated[
        str | None, typer.Option("-n", "--bytes", metavar="N[KMG]", help="Bytes instead of -t.")
    ] = None,
    blocks: Annotated[
        str | None,
        typer.Option("-k", "--blockcount", metavar="N[KMG]", help="Blocks instead of -t."),
    ] = None,
    parallel: Annotated[
        int, typer.Option("-P", "--parallel", min=1, max=128, help="Streams in each direction.")
    ] = 1,
    reverse: Annotated[bool, typer.Option("-R", "--reverse", help="The server sends.")] = False,
    bidir: Annotated[bool, typer.Option("--bidir", help="Both send.")] = False,
    bitrate: Bitrate = "0",
    congestion: Congestion = None,
    mss: Annotated[
        int | None, typer.Option("-M", "--set-mss", min=88, max=32767, metavar="N", help="MSS.")
    ] = None,
    window: Window = None,
    interval: Interval = 1.0,
    omit: Omit = 0,
    as_json: Annotated[
        bool, typer.Option("-J", "--json", help="Report as one JSON object.")
    ] = False,
    json_stream: Annotated[
        bool, typer.Option("--json-stream", help="Report as JSON, an object a line.")
    ] = False,
    one_off: Annotated[
        bool, typer.Option("-1", "--one-off", help="Serve one test, then end.")
    ] = False,
    length: Annotated[
        str | None, typer.Option("-l", "--length", metavar="N[KMG]", help="Bytes of a block.")
    ] = None,
    v4: Annotated[bool, typer.Option("-4", "--version4", help="IPv4 only.")] = False,
    v6: Annotated[bool, typer.Option("-6", "--version6", help="IPv6 only.")] = False,
    _udp: Annotated[
        bool, typer.Option("-u", "--udp", callback=refuse_udp, hidden=True, is_eager=True)
    ] = False,
    params: Parameters = None,
    pacing: PacingChoice = None,
    mtu: Mtu = 1500,
    no_offload: NoOffload = False,
    nat: NatChoice = False,
    capture: Capture = None,
) -> None:
    """Measure our TCP with iperf3's protocol, as client or server of an ordinary iperf3.

    The letters are iperf3's. Our side sends with the congestion control given by -C; where the server
    sends too, it is asked to use the same.
    """
    if (client is None) != server:
        fail("give -c HOST to test with a server, or -s to be one")
    one_of({"-J": as_json, "--json-stream": json_stream})
    one_of({"--bidir": bidir, "-R": reverse})
    if interval and interval < 0.1:
        fail(f"-i {interval}: between 0.1 and 60 seconds, or 0 for a report at the end only")
    ends = one_end({"-t": time, "-n": size, "-k": blocks})
    given = ends or parallel > 1 or reverse or bidir or bitrate != "0" or omit > 0
    if server:
        only("clients", {"-t, -n, -k, -P, -R, --bidir, -b and -O": given, "--nat": nat})
    else:
        only("servers", {"-1": one_off})
    if "/" in bitrate:
        fail(f"-b {bitrate}: bursts are not offered; write -b {bitrate.partition('/')[0]}")
    options = {
        "common": common(congestion, params, pacing, mtu, no_offload, nat, capture),
        "server": None if client is None else (address(client, v4, v6), client),
        "port": port,
        "interval": interval,
        "format": "json" if as_json else "json-stream" if json_stream else "text",
        "one_off": one_off,
        "v4": not v6,
        "v6": not v4,
        "time": time,
        "bytes": amount(size, "-n", 1024),
        "blocks": amount(blocks, "-k", 1024),
        "omit": omit,
        "parallel": parallel,
        "reverse": reverse,
        "bidir": bidir,
        "rate": amount(bitrate, "-b", 1000),
        "block": at_most(length, "-l", LARGEST_BLOCK) or BLOCK,
        "mss": mss or 0,
        "window": at_most(window, "-w", LARGEST_WINDOW),
        "tell_congestion": congestion is not None and (reverse or bidir),
    }
    execute("wire_iperf3", options)


def common(
    congestion: str | None,
    params: list[str] | None,
    pacing: bool | None,
    mtu: int,
    no_offload: bool,
    nat: bool,
    capture: Path | None,
) -> dict[str, Any]:
    """Return the options of both commands."""
    return {
        "congestion": congestion or "cubic",
        "params": parameters(params),
        "pacing": pacing,
        "mtu": mtu,
        "offload": not no_offload,
        "nat": nat,
        "capture": None if capture is None else str(capture),
    }


def connect(
    host: Annotated[str | None, typer.Argument(metavar="[HOST]", help="Connect to it.")] = None,
    port: Annotated[int | None, typer.Argument(metavar="[PORT]", min=1, max=65535)] = None,
    listen: Annotated[
        int | None,
        typer.Option(min=1, max=65535, metavar="PORT", help="Wait for one connection instead."),
    ] = None,
    send: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Send it instead of standard input.")
    ] = None,
    receive: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there instead of standard output.")
    ] = None,
    congestion: Congestion = None,
    params: Parameters = None,
    pacing: PacingChoice = None,
    window: Window = None,
    keep_open: Annotated[
        bool,
        typer.Option(
            "--keep-open", help="Do not close at the end of the input; end when the peer does."
        ),
    ] = False,
    v4: Annotated[bool, typer.Option("-4", help="IPv4 only.")] = False,
    v6: Annotated[bool, typer.Option("-6", help="IPv6 only.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    mtu: Mtu = 1500,
    no_offload: NoOffload = False,
    nat: NatChoice = False,
    capture: Capture = None,
) -> None:
    """Send standard input over our TCP and print what comes, like nc.

    The end of the input closes our direction only; the command ends when both are closed. Web servers
    often treat that as a client that has gone: use --keep-open with them. Exit code 1 when the connection
    was refused, reset or timed out.
    """
    if listen is None and (host is None or port is None):
        fail("give HOST PORT to connect, or --listen PORT to wait for a connection")
    if listen is not None and host is not None:
        fail("HOST and --listen: choose one")
    if nat and listen is not None:
        fail("--nat is for connections that we open")
    options = {
        "common": common(congestion, params, pacing, mtu, no_offload, nat, capture),
        "remote": None if host is None else address(host, v4, v6),
        "port": port if listen is None else listen,
        "window": amount(window, "-w", 1024) or 0,
        "send": None if send is None else str(send),
        "receive": None if receive is None else str(receive),
        "progress": not quiet and sys.stderr.isatty(),
        "keep_open": keep_open,
    }
    execute("wire_connect", options)
