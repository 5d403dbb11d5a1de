"""`gargalo iperf3` and `gargalo connect`: our TCP on a real network, through a TUN device."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import FAILED, INTERRUPTED, PATH, fail, key_value
from gargalo.cli.help import command
from gargalo.plugins.native import PluginError, is_library, load
from gargalo.terminal.text import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PORT = 5201
"""iperf3's."""
BLOCK = 128 << 10
LARGEST_BLOCK = 1 << 20
LARGEST_WINDOW = 512 << 20

congestion_option = click.option(
    "-C",
    "--congestion",
    metavar="ALGO",
    help="Congestion control, one of gargalo list congestion; default: cubic.",
)
params_option = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="A parameter of the congestion control; may be repeated.",
)
library_option = click.option(
    "--plugin",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="Shared library with congestion controls.",
)
pacing_option = click.option(
    "--pacing/--no-pacing",
    default=None,
    show_default=False,
    help="Pace always, or never. Default: when the congestion control asks for it.",
)
mtu_option = click.option(
    "--mtu",
    type=click.IntRange(min=1280, max=65535),
    default=1500,
    metavar="BYTES",
    help="MTU of the device.",
)
no_offload_option = click.option(
    "--no-offload",
    is_flag=True,
    help="One packet per system call, each with its checksums: slower.",
)
nat_option = click.option(
    "--nat", is_flag=True, help="Masquerade beyond this machine (nft or iptables)."
)
window_option = click.option(
    "-w", "--window", metavar="N[KMG]", help="Send and receive buffers in bytes."
)
bitrate_option = click.option(
    "-b", "--bitrate", default="0", metavar="N[KMG]", help="Bit/s of each stream; 0: no limit."
)
omit_option = click.option(
    "-O",
    "--omit",
    type=click.IntRange(min=0, max=600),
    default=0,
    metavar="S",
    help="Leave out the first seconds.",
)
interval_option = click.option(
    "-i",
    "--interval",
    type=click.FloatRange(min=0, max=60),
    default=1.0,
    metavar="S",
    help="Seconds between reports; 0: none.",
)
capture_option = click.option(
    "--capture", type=PATH, metavar="FILE", help="Write all packets to a pcapng file; no offload."
)


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


def address(name: str, v4: bool, v6: bool) -> str:
    """Find the address of a host, of the requested family."""
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
        raise Exit(INTERRUPTED) from None
    except _core.ScenarioError as error:
        fail(str(error), diagnostics=error.diagnostics)
    except _core.RunError as error:
        fail(str(error), FAILED)
    if problem is not None:
        with contextlib.suppress(BrokenPipeError):
            say(f"error: {problem}")
        raise Exit(FAILED)


def refuse_udp(_context: click.Context, _option: click.Parameter, value: bool) -> None:
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


@command(
    examples=[
        ("gargalo iperf3 -c 192.0.2.1 -C bbr", "Our BBR to a server; iperf3 -s runs there."),
        ("gargalo iperf3 -c 192.0.2.1 -R -t 30 -J", "It sends; 30 s; JSON."),
        ("gargalo iperf3 -s", "Be a server of an ordinary iperf3."),
    ]
)
@click.option("-c", "--client", metavar="HOST", help="Test with this server.")
@click.option("-s", "--server", is_flag=True, help="Be a server.")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(min=1, max=65535),
    default=PORT,
    metavar="N",
    help="Its port.",
)
@click.option(
    "-t",
    "--time",
    type=click.IntRange(min=0, max=86400),
    metavar="S",
    help="Seconds; 10 if no end.",
)
@click.option("-n", "--bytes", "size", metavar="N[KMG]", help="Bytes instead of -t.")
@click.option("-k", "--blockcount", "blocks", metavar="N[KMG]", help="Blocks instead of -t.")
@click.option(
    "-P",
    "--parallel",
    type=click.IntRange(min=1, max=128),
    default=1,
    metavar="N",
    help="Streams in each direction.",
)
@click.option("-R", "--reverse", is_flag=True, help="The server sends.")
@click.option("--bidir", is_flag=True, help="Both send.")
@bitrate_option
@congestion_option
@click.option(
    "-M", "--set-mss", "mss", type=click.IntRange(min=88, max=32767), metavar="N", help="MSS."
)
@window_option
@interval_option
@omit_option
@click.option("-J", "--json", "as_json", is_flag=True, help="Report as one JSON object.")
@click.option("--json-stream", is_flag=True, help="Report as JSON, an object a line.")
@click.option("-1", "--one-off", is_flag=True, help="Serve one test, then end.")
@click.option("-l", "--length", metavar="N[KMG]", help="Bytes of a block.")
@click.option("-4", "--version4", "v4", is_flag=True, help="IPv4 only.")
@click.option("-6", "--version6", "v6", is_flag=True, help="IPv6 only.")
@click.option("-u", "--udp", "_udp", is_flag=True, callback=refuse_udp, hidden=True, is_eager=True)
@params_option
@library_option
@pacing_option
@mtu_option
@no_offload_option
@nat_option
@capture_option
def iperf3(
    client: str | None,
    server: bool,
    port: int,
    time: int | None,
    size: str | None,
    blocks: str | None,
    parallel: int,
    reverse: bool,
    bidir: bool,
    bitrate: str,
    congestion: str | None,
    mss: int | None,
    window: str | None,
    interval: float,
    omit: int,
    as_json: bool,
    json_stream: bool,
    one_off: bool,
    length: str | None,
    v4: bool,
    v6: bool,
    _udp: bool,
    params: tuple[str, ...],
    plugin: tuple[Path, ...],
    pacing: bool | None,
    mtu: int,
    no_offload: bool,
    nat: bool,
    capture: Path | None,
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
        "common": common(congestion, params, plugin, pacing, mtu, no_offload, nat, capture),
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


def library(file: Path) -> Path:
    """Return a plug-in that is a shared library; end the command if it is something else."""
    if not is_library(file):
        fail(f"--plugin {file}: a real network takes shared libraries (.so), no Python classes")
    try:
        load(file)
    except PluginError as e:
        fail(f"--plugin {e}")
    return file


def common(
    congestion: str | None,
    params: tuple[str, ...],
    plugin: tuple[Path, ...],
    pacing: bool | None,
    mtu: int,
    no_offload: bool,
    nat: bool,
    capture: Path | None,
) -> dict[str, Any]:
    """Return the options of both commands."""
    return {
        "congestion": congestion or "cubic",
        "params": [key_value("--param", p, "beta=0.7") for p in params],
        "plugins": [str(library(file)) for file in plugin],
        "pacing": pacing,
        "mtu": mtu,
        "offload": not no_offload,
        "nat": nat,
        "capture": None if capture is None else str(capture),
    }


@command(
    examples=[
        ("gargalo connect 192.0.2.1 7 -C reno < file", "Send a file, print what comes."),
        ("gargalo connect --listen 8000 --receive file", "Wait for one connection."),
    ]
)
@click.argument("host", required=False, metavar="[HOST]", help="Connect to it.")
@click.argument(
    "port",
    type=click.IntRange(min=1, max=65535),
    required=False,
    metavar="[PORT]",
    help="Its port.",
)
@click.option(
    "--listen",
    type=click.IntRange(min=1, max=65535),
    metavar="PORT",
    help="Wait for one connection instead.",
)
@click.option("--send", type=PATH, metavar="FILE", help="Send it instead of standard input.")
@click.option(
    "--receive", type=PATH, metavar="FILE", help="Write there instead of standard output."
)
@congestion_option
@params_option
@library_option
@pacing_option
@window_option
@click.option(
    "--keep-open",
    is_flag=True,
    help="Do not close at the end of the input; end when the peer does.",
)
@click.option("-4", "v4", is_flag=True, help="IPv4 only.")
@click.option("-6", "v6", is_flag=True, help="IPv6 only.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@mtu_option
@no_offload_option
@nat_option
@capture_option
def connect(
    host: str | None,
    port: int | None,
    listen: int | None,
    send: Path | None,
    receive: Path | None,
    congestion: str | None,
    params: tuple[str, ...],
    plugin: tuple[Path, ...],
    pacing: bool | None,
    window: str | None,
    keep_open: bool,
    v4: bool,
    v6: bool,
    quiet: bool,
    mtu: int,
    no_offload: bool,
    nat: bool,
    capture: Path | None,
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
        "common": common(congestion, params, plugin, pacing, mtu, no_offload, nat, capture),
        "remote": None if host is None else address(host, v4, v6),
        "port": port if listen is None else listen,
        "window": amount(window, "-w", 1024) or 0,
        "send": None if send is None else str(send),
        "receive": None if receive is None else str(receive),
        "progress": not quiet and sys.stderr.isatty(),
        "keep_open": keep_open,
    }
    execute("wire_connect", options)
