"""`gargalo shell`: a program behind an emulated link."""

from __future__ import annotations

import os
import signal
from collections import deque
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from gargalo import _core
from gargalo.cli.common import BAD_INPUT, FAILED, PATH, fail
from gargalo.cli.help import command
from gargalo.scenarios.scenario import to_toml
from gargalo.terminal.live import HISTORY, bars
from gargalo.terminal.text import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from gargalo.cli.common import Command

BASE = "GARGALO_BASE"
"""Names the outermost end of the links that a program is behind."""
NARROW = 76
"""Below this many columns of the terminal, counts are left out."""


def link_option(name: str, metavar: str, text: str) -> Callable[[Command], Command]:
    """Return an option of the link."""
    kind = PATH if name.endswith("trace") else None
    return click.option(f"--{name}", type=kind, metavar=metavar, help=text)


@command(
    examples=[
        ("gargalo shell --delay 25ms --rate 12Mbit/s", "A shell behind that link."),
        (
            "gargalo shell --delay 25ms -- sh -c 'ping -c 3 $GARGALO_BASE'",
            "A program; the quotes are for a variable that is set inside.",
        ),
        ("gargalo shell --rate 5Mbit/s --print-scenario", "The link as a scenario."),
    ]
)
@click.argument(
    "command",
    nargs=-1,
    required=False,
    metavar="[-- COMMAND ...]",
    help="The program; default: your shell.",
)
@link_option("delay", "TIME", "One-way delay, like 25ms.")
@link_option("rate", "RATE", "Rate, like 12Mbit/s.")
@link_option("loss", "SHARE", "Random loss, like 0.1%.")
@link_option("trace", "FILE", "Packet-delivery trace instead of a rate.")
@link_option("queue", "QUEUE", 'Queue, like "droptail=100 packets", codel or fq-codel.')
@link_option("jitter", "TIME", "Variation of the delay.")
@link_option("up-delay", "TIME", "Only from the program.")
@link_option("down-delay", "TIME", "Only to the program.")
@link_option("up-rate", "RATE", "Only from the program.")
@link_option("down-rate", "RATE", "Only to the program.")
@link_option("up-loss", "SHARE", "Only from the program.")
@link_option("down-loss", "SHARE", "Only to the program.")
@link_option("up-trace", "FILE", "Only from the program.")
@link_option("down-trace", "FILE", "Only to the program.")
@link_option("up-queue", "QUEUE", "Only from the program.")
@link_option("down-queue", "QUEUE", "Only to the program.")
@link_option("mtu", "BYTES", "Largest packet, like 1500B.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, metavar="N", help="Of loss and jitter."
)
@click.option(
    "--outside",
    metavar="LINE",
    help="A shell line at the outer end, in the background: say 'iperf3 -s'.",
)
@click.option(
    "--nat", is_flag=True, help="As root: reach the network beyond this machine (nft or iptables)."
)
@click.option("--isolated", is_flag=True, help="Even as root: between two empty namespaces.")
@click.option(
    "--busy-poll", metavar="TIME", help="Do not sleep when the next event is nearer than this."
)
@click.option(
    "--cpu", type=click.IntRange(min=0), metavar="N", help="Run the link on this processor."
)
@click.option("--no-offload", is_flag=True, help="One packet per system call.")
@click.option(
    "--uplink-log", type=PATH, metavar="FILE", help="What happens there, as mahimahi writes it."
)
@click.option(
    "--downlink-log", type=PATH, metavar="FILE", help="What happens there, as mahimahi writes it."
)
@click.option("--graph", is_flag=True, help="Show throughput, queueing delay and drops, live.")
@click.option("--print-scenario", is_flag=True, help="Print the link as a scenario and leave.")
def shell(
    command: tuple[str, ...],
    delay: str | None,
    rate: str | None,
    loss: str | None,
    trace: Path | None,
    queue: str | None,
    jitter: str | None,
    up_delay: str | None,
    down_delay: str | None,
    up_rate: str | None,
    down_rate: str | None,
    up_loss: str | None,
    down_loss: str | None,
    up_trace: Path | None,
    down_trace: Path | None,
    up_queue: str | None,
    down_queue: str | None,
    mtu: str | None,
    seed: int,
    outside: str | None,
    nat: bool,
    isolated: bool,
    busy_poll: str | None,
    cpu: int | None,
    no_offload: bool,
    uplink_log: Path | None,
    downlink_log: Path | None,
    graph: bool,
    print_scenario: bool,
) -> None:
    """Run a program behind an emulated link; shells nest.

    The program finds the outer end at $GARGALO_BASE. Without root it is alone with that end and what
    --outside runs there; as root, or inside another shell, the outer end is in the network where
    the command was given.
    """
    both = direction(rate, delay, loss, trace, queue, jitter, "")
    up = direction(up_rate, up_delay, up_loss, up_trace, up_queue, None, "up-")
    down = direction(down_rate, down_delay, down_loss, down_trace, down_queue, None, "down-")
    sizes = {} if mtu is None else {"mtu": mtu}
    link = {**both, **sizes, **{name: d for name, d in (("up", up), ("down", down)) if d}}
    if cpu is not None and cpu >= os.sysconf("SC_NPROCESSORS_CONF"):
        fail(
            f"--cpu: there is no processor {cpu}; they are counted from 0, and there are {os.cpu_count()}"
        )
    lab = {"busy_poll": busy_poll, "cpu": cpu, "offload": False if no_offload else None}
    text = scenario_of(link, seed, {k: v for k, v in lab.items() if v is not None})
    if print_scenario:
        print(text, end="")
        return
    check(text)
    if outside is not None and BASE in os.environ:
        fail(
            f"--outside: this shell is inside another, so that ${BASE} is the end of that one, and "
            "not where this would "
            "run; give --outside to the outermost shell"
        )
    if graph and not command:
        fail("--graph needs a command: the view and a shell cannot share the terminal")
    request = {
        "kept": os.geteuid() == 0 and not isolated,
        "watch": graph,
        "shell": {
            "scenario": text,
            "command": list(command),
            "outside": outside,
            "nat": nat,
            "logs": [None if p is None else str(p.absolute()) for p in (uplink_log, downlink_log)],
        },
    }
    raise Exit(execute(request, graph=graph))


def scenario_of(link: dict[str, Any], seed: int, lab: dict[str, Any]) -> str:
    """Return the text of a scenario of one link."""
    scenario: dict[str, Any] = {
        "name": "shell",
        "seed": seed,
        "duration": "60s",
        "topology": {"simple": {"link": link}},
    }
    return to_toml({**scenario, "lab": lab} if lab else scenario)


def direction(
    rate: str | None,
    delay: str | None,
    loss: str | None,
    trace: Path | None,
    queue: str | None,
    jitter: str | None,
    prefix: str,
) -> dict[str, Any]:
    """Return a direction of the link as in a scenario."""
    if rate is not None and trace is not None:
        fail(f"--{prefix}rate and --{prefix}trace exclude each other")
    made: dict[str, Any] = {}
    if rate is not None:
        made["rate"] = rate
    if trace is not None:
        made["rate"] = {"trace": str(trace.absolute())}
    if delay is not None:
        made["delay"] = delay
    if jitter is not None:
        made["jitter"] = jitter
    if loss is not None:
        made["loss"] = loss
    if queue is not None:
        name, equals, value = queue.partition("=")
        made["queue"] = {name.strip(): value.strip()} if equals else name.strip()
    return made


def check(text: str) -> None:
    """End the command with a message if the link is not valid."""
    from gargalo.running import resolve

    try:
        resolve(text)
    except _core.ScenarioError as e:
        told = [f"{option_of(d.path or '')}{d.sentence()}" for d in e.diagnostics]
        fail("\nerror: ".join(told) or str(e))


def option_of(path: str) -> str:
    """Return the option that a key of the scenario is from, to put before a message; nothing of others."""
    parts = path.replace("_", "-").split(".")
    if parts[:3] == ["topology", "simple", "link"]:
        way = [parts.pop(3)] if parts[3:4] in (["up"], ["down"]) else []
        key = "trace" if parts[3:5] == ["rate", "trace"] else "".join(parts[3:4])
        return f"--{'-'.join([*way, key])}: "
    return f"--{parts[-1]}: " if parts[0] in ("lab", "seed") else ""


def execute(request: dict[str, Any], *, graph: bool) -> int:
    """Run the program inside and return its exit code."""
    from gargalo.lab import Inside

    def nothing(*_: object) -> None:
        """Let the program handle Ctrl-C."""

    before = signal.signal(signal.SIGINT, nothing)
    try:
        inside = Inside(request)
        events = warned(inside.events())
        failure = show(events) if graph else next(filter(None, map(failed, events)), None)
        for _ in events:
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    if failure is not None:
        fail(failure[1], BAD_INPUT if failure[0] == "scenario" else FAILED)
    return inside.process.returncode


def warned(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events; warn when the line at the outer end has failed, which the program cannot see."""
    for event in events:
        if event.get("outside"):
            code = event["outside"]
            say(f"warning: what --outside started has ended with exit code {code}")
        yield event


def failed(event: dict[str, Any]) -> tuple[str, str] | None:
    """Return what went wrong, if this event says so."""
    return (event["error"], event["message"]) if "error" in event else None


def show(events: Iterable[dict[str, Any]]) -> tuple[str, str] | None:
    """Draw the link until the program ends; return what went wrong."""
    from rich.live import Live

    from gargalo.terminal.screen import Screen

    view = View()
    console = Screen(stderr=True, highlight=False)
    with Live(console=console, refresh_per_second=10, transient=False) as live:
        for event in events:
            failure = failed(event)
            if failure is not None:
                return failure
            if "link" in event:
                view.add(*event["link"])
                live.update(view.draw(console.width))
    return None


class View:
    """The last seconds of both directions."""

    def __init__(self) -> None:
        self.time_s = 0.0
        self.rates: tuple[deque[float], deque[float]] = (
            deque(maxlen=HISTORY),
            deque(maxlen=HISTORY),
        )
        self.delays: tuple[deque[float], deque[float]] = (
            deque(maxlen=HISTORY),
            deque(maxlen=HISTORY),
        )
        self.latest: list[list[Any]] = [[0, None, 0.0, 0, 0]] * 2

    def add(self, time_s: float, up: list[Any], down: list[Any]) -> None:
        """Add the latest tenth of a second."""
        self.time_s = time_s
        self.latest = [up, down]
        for i, sample in enumerate((up, down)):
            self.rates[i].append(float(sample[0]))
            self.delays[i].append(float(sample[2]))

    def draw(self, width: int) -> RenderableType:
        """Return a table with a row for each direction."""
        from rich import box
        from rich.table import Table

        shown = max(8, min(HISTORY, (width - 60) // 2))
        title = f"{self.time_s:.1f} s"
        table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", collapse_padding=True)
        names = ["", "Mbit/s", "throughput", "queue ms", "queueing delay", "packets", "dropped"]
        if width < NARROW:
            names = names[:-2]
        for name in names:
            table.add_column(name, justify="right" if name in {"Mbit/s", "queue ms"} else "left")
        for i, name in enumerate(("up", "down")):
            rate, capacity, delay, packets, dropped = self.latest[i]
            top = capacity or max(self.rates[i], default=1.0) or 1.0
            table.add_row(
                name,
                f"{rate / 1e6:.2f}",
                bars(list(self.rates[i])[-shown:], top),
                f"{delay * 1e3:.1f}",
                bars(list(self.delays[i])[-shown:], max(self.delays[i], default=0.0)),
                *([] if width < NARROW else [str(packets), str(dropped)]),
            )
        return table
