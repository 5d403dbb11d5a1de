"""Specifications of picoquic's simulator as scenarios: lines `key: value`, as `pico_sim` reads them.

Times are in microseconds, rates in Gbit/s. What a scenario here cannot say is an error, not left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gargalo._core import Diagnostic
from gargalo.diagnostics import scenario_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import NoReturn

KEYS = (
    "main_start_time",
    "main_target_time",
    "background_start_time",
    "main_scenario_text",
    "background_scenario_text",
    "main_cc_algo",
    "main_cc_options",
    "background_cc_algo",
    "background_cc_options",
    "nb_connections",
    "data_rate_in_gbps",
    "latency",
    "jitter",
    "wifi_jitter",
    "queue_delay_max",
    "l4s_max",
    "icid",
    "qlog_dir",
    "link_scenario",
    "qperf_log",
    "media_stats_start",
    "media_excluded",
    "media_latency_average",
    "media_latency_max",
    "seed_cwin",
    "seed_rtt",
)
LINE = re.compile(r"([a-z0-9_]+)\s*:(.*)")
USUAL_RATE = 10_000_000
"""Of a link that does not say, in bit/s."""
USUAL_LATENCY = 10_000
MOST_CONNECTIONS = 5
LEFT_OVER = 3
"""A run lasts so many times the target, for what is late; without one it lasts this:"""
USUAL_DURATION = 60_000_000
MOST_STEPS = 10_000
BATCH = re.compile(
    r"(?:=\s*(?P<id>\w*|-)\s*:\s*(?:(?P<after>[A-Za-z]\w*|-)\s*:\s*)?)?"
    r"(?:\*\s*(?P<repeat>\d+)\s*:\s*)?(?P<post>\d+)\s*:\s*(?P<size>\d+)\s*:?"
)

PERIOD = re.compile(r"(\d+)((?::[DULJQS][\d.]+)*):?")
PART = re.compile(r"([DULJQS])([\d.]+)")
QUEUE = {"J": "jitter", "Q": "queue_delay_max", "S": "l4s_max"}
"""What a link has of a queue, by its letter in items."""
MOST_DIGITS = 15
"""Of a number."""
MOST_STREAMS = 10_000


@dataclass
class Period:
    """The link for some time; rates in bit/s, times in microseconds."""

    duration_us: int
    up_bps: int
    down_bps: int
    latency_us: int


STOCK: dict[str, tuple[tuple[int, float], ...]] = {
    "none": ((0, 1),),
    "black_hole": ((2_000_000, 1), (2_000_000, 0), (0, 1)),
    "drop_and_back": ((1_500_000, 1), (2_000_000, 0.5), (0, 1)),
    "low_and_up": ((2_500_000, 0.5), (0, 1)),
    "wifi_suspension": ((1_800_000, 1), (200_000, 0)),
}
"""Named courses of the rate: microseconds, 0 for the rest of the time, and a factor. They begin anew at their end."""


def is_one(text: str) -> bool:
    """Tell a specification from a scenario, of which no line begins with a word and a colon, and from other texts.

    All its lines have the form, and half of them a key: the rest are slips.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or not LINE.fullmatch(lines[0]):
        return False
    found = [LINE.fullmatch(line) for line in lines]
    known = sum(of is not None and of[1] in KEYS for of in found)
    return all(found) and 2 * known >= len(lines)


def scenario_of(text: str, file: Path) -> dict[str, Any]:
    """Return the scenario of a specification: picoquic at both ends, the main connection and the others.

    Args:
        text: Its lines.
        file: Its name, for messages.

    Raises:
        ScenarioError: It is wrong, or says what a scenario here cannot say.

    """
    values = _Values(_lines(text, file), file)
    target = values.whole("main_target_time", 0)
    duration = LEFT_OVER * target or USUAL_DURATION
    values.refuse("seed_cwin", "picoquic's memory of a path is not handed over")
    values.refuse("seed_rtt", "picoquic's memory of a path is not handed over")
    for key in (
        "media_stats_start",
        "media_excluded",
        "media_latency_average",
        "media_latency_max",
    ):
        values.refuse(key, "streams of media are not read")
    count = values.whole("nb_connections", 0)
    if not 1 <= count <= MOST_CONNECTIONS:
        values.fail("nb_connections", f"it must be 1 to {MOST_CONNECTIONS}")
    flows = [_flow(values, "main")]
    if count > 1:
        flows.append({**_flow(values, "background"), "count": count - 1})
    made: dict[str, Any] = {
        "name": re.sub(r"[^A-Za-z0-9_.-]", "-", file.stem) or "specification",
        "seed": values.seed(),
        "duration": _time(duration),
        "topology": {"simple": {"link": _link(values, duration)}},
        "flows": flows,
    }
    if "qlog_dir" in values.lines:
        made["record"] = {"qlog": True}
    if target:
        start = values.whole("main_start_time", 0)
        if target <= start:
            values.fail("main_target_time", "the main connection begins later")
        made["expect"] = [
            {
                "metric": "flows.main.completion_s",
                "at_most": (target - start) / 1e6,
                "why": "main_target_time",
            }
        ]
    return made


@dataclass
class _Values:
    lines: Mapping[str, tuple[int, str]]
    """Number and value of each."""
    file: Path

    def get(self, key: str, usual: str) -> str:
        return self.lines.get(key, (0, usual))[1]

    def fail(self, key: str, why: str) -> NoReturn:
        number, value = self.lines.get(key, (0, ""))
        raise _wrong(self.file, number, f"{key}: {value}" if value else key, why)

    def refuse(self, key: str, why: str) -> None:
        if self.get(key, "0") not in ("0", ""):
            self.fail(key, why)

    def number(self, key: str, usual: float) -> float:
        """Return a number, which has digits and a point, as `pico_sim` reads it."""
        value = self.get(key, "")
        return self.read(key, value) if value else usual

    def whole(self, key: str, usual: int) -> int:
        value = self.number(key, usual)
        if value != int(value):
            self.fail(key, "it must be a whole number")
        return int(value)

    def read(self, key: str, text: str) -> float:
        if not re.fullmatch(r"\d+(\.\d*)?", text) or len(text) > MOST_DIGITS:
            self.fail(
                key,
                f"{text[: MOST_DIGITS + 1]!r} must be a number of up to {MOST_DIGITS} digits, not negative",
            )
        return float(text)

    def seed(self) -> int:
        digits = self.get("icid", "1")
        if not re.fullmatch(r"[0-9A-Fa-f]{1,40}", digits):
            self.fail("icid", "it must have up to 40 hexadecimal digits")
        return int(digits, 16) % (1 << 63) or 1


def _wrong(file: Path, line: int, what: str, why: str) -> Exception:
    place = f"{file}:{line}" if line else str(file)
    found = Diagnostic(f"{place}: {what}", file=str(file), line=line or None, help=why)
    return scenario_error(found.sentence(), [found])


def _lines(text: str, file: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        of = LINE.fullmatch(line.strip())
        if of is None or of[1] not in KEYS:
            raise _wrong(
                file, number, line.strip(), "no line `key: value` of a specification of pico_sim"
            )
        if of[1] in found:
            raise _wrong(file, number, line.strip(), f"line {found[of[1]][0]} has it already")
        found[of[1]] = number, of[2].strip()
    return found


def _flow(values: _Values, which: str) -> dict[str, Any]:
    congestion = values.get(f"{which}_cc_algo", "newreno")
    quic: dict[str, Any] = {"stack": "picoquic", "congestion": congestion}
    if options := values.get(f"{which}_cc_options", ""):
        quic["options"] = {"congestion_options": options}
    if values.whole("l4s_max", 0) or re.search(r":S[\d.]", values.get("link_scenario", "")):
        quic["ecn"] = True
    return {
        "label": which,
        "from": "client",
        "to": "server",
        "start": _time(values.whole(f"{which}_start_time", 0)),
        "transport": {"quic": quic},
        "workload": {"request": _request(values, f"{which}_scenario_text")},
    }


def _request(values: _Values, key: str) -> dict[str, Any]:
    """Return the requests of a scenario of quicperf: streams of batches, all at once or one after another."""
    streams = [s.strip() for s in values.get(key, "").split(";") if s.strip()]
    if not streams:
        values.fail(key, "it has no stream")
    sizes: list[int] = []
    posts: set[int] = set()
    follows: list[bool] = []
    before: str | None = None
    for stream in streams:
        of = BATCH.fullmatch(stream)
        if of is None:
            values.fail(
                key, f"{stream!r} is no batch `[=id:][*n:]post:response`: media are not read"
            )
        after = of["after"] if of["after"] not in (None, "-") else None
        if after is not None and after != before:
            values.fail(key, f"{stream!r} follows another stream than the one before it")
        repeat = int(values.read(key, of["repeat"] or "1"))
        if len(sizes) + repeat > MOST_STREAMS:
            values.fail(key, f"it has more than {MOST_STREAMS} streams")
        if after is not None and repeat > 1:
            values.fail(key, f"{stream!r} is repeated after another one")
        sizes += [int(values.read(key, of["size"]))] * repeat
        posts.add(int(values.read(key, of["post"])))
        follows += [after is not None] * repeat
        before = of["id"]
    if len(posts) > 1:
        values.fail(key, "its requests have several sizes")
    rest = set(follows[1:])
    if len(rest) > 1:
        values.fail(key, "some of its streams follow others, and some do not")
    order = {"order": "multiplexed"} if rest == {False} else {}
    bytes_of = [f"{size}B" for size in sizes]
    return {"sizes": bytes_of, "request_size": f"{max(1, *posts)}B", **order}


def _link(values: _Values, duration: int) -> dict[str, Any]:
    if values.whole("wifi_jitter", 0):
        values.fail("wifi_jitter", "links here do not have picoquic's model of Wi-Fi")
    rate = _rate(values, "data_rate_in_gbps", values.number("data_rate_in_gbps", 0)) or USUAL_RATE
    latency = values.whole("latency", 0) or USUAL_LATENCY
    course = values.get("link_scenario", "none")
    queue = {k: values.whole(key, 0) for k, key in QUEUE.items()}
    if course in STOCK:
        periods = [Period(d, round(rate * f), round(rate * f), latency) for d, f in STOCK[course]]
    elif course[:1].isdigit():
        periods, queue = _periods(values, course)
    else:
        values.fail(
            "link_scenario", f"links here know {', '.join(STOCK)} and items `duration:D…:U…:L…`"
        )
    up, down = (
        _course([(t, f"{v}bit/s") for t, v in _steps(periods, of, duration, values)])
        for of in ("up_bps", "down_bps")
    )
    link: dict[str, Any] = {"up": {"rate": up}, "down": {"rate": down}}
    if up == down:
        link = {"rate": up}
    # The jitter there is a normal distribution above the latency, a third of its mean wide.
    jitter, wait, step = queue["J"], queue["Q"], queue["S"]
    delays = _steps(periods, "latency_us", duration, values)
    link["delay"] = _course([(t, _time(v + jitter)) for t, v in delays])
    if jitter:
        link["jitter"] = {"scale": f"{max(1, round(jitter / 3))}us", "distribution": "normal"}
    if step:
        fastest = max(max(p.up_bps, p.down_bps) for p in periods)
        most = {"memory_limit": f"{fastest * wait // 8_000_000}B"} if wait else {}
        link["queue"] = {"dualpi2": {"step_threshold": _time(step), **most}}
    elif wait:
        link["queue"] = {"droptail": _time(wait)}
    else:
        # No packet is dropped for want of room.
        link["queue"] = {"droptail": "1000000 packets"}
    return link


def _rate(values: _Values, key: str, gbps: float) -> int:
    rate = round(gbps * 1e9)
    if gbps and not rate:
        values.fail(key, "the rate is less than 1 bit/s")
    return rate


def _periods(values: _Values, course: str) -> tuple[list[Period], dict[str, int]]:
    """Return the periods of items, and what of the queue they have; what an item lacks is 0, as there."""
    key = "link_scenario"
    found: list[Period] = []
    queues: list[dict[str, int]] = []
    for item in filter(None, course.split(";")):
        of = PERIOD.fullmatch(item.strip())
        if of is None:
            values.fail(
                key,
                f"{item!r} is no period `duration:D…:U…:L…:J…:Q…:S…`: links here read no other letters",
            )
        told = {k: values.read(key, v) for k, v in PART.findall(of[2])}
        up, down = (_rate(values, key, told.get(k, 0)) for k in "UD")
        duration = int(values.read(key, of[1]))
        found.append(Period(duration, up, down, int(told.get("L", 0))))
        queues.append({k: int(told.get(k, 0)) for k in QUEUE})
    if any(queue != queues[0] for queue in queues):
        values.fail(key, "links here have one J, Q and S for all periods")
    for name in QUEUE.values():
        values.refuse(name, "with items of `link_scenario` it has no effect there: give it in them")
    return found, queues[0]


def _steps(
    periods: Sequence[Period], of: str, duration: int, values: _Values
) -> Iterable[tuple[int, int]]:
    """Return the instants at which a value changes, and the value from then on; periods begin anew."""
    at, last, number = 0, None, 0
    while at < duration:
        period = periods[number % len(periods)]
        value = getattr(period, of)
        if value != last:
            yield at, value
        last = value
        if not period.duration_us or len(periods) == 1:
            return
        at += period.duration_us
        number += 1
        if number > MOST_STEPS:
            values.fail("link_scenario", f"it changes more than {MOST_STEPS} times")


def _course(steps: Sequence[tuple[int, str]]) -> Any:
    """Write a value that may change over time."""
    return steps[0][1] if len(steps) == 1 else {"steps": [[_time(t), v] for t, v in steps]}


def _time(us: int) -> str:
    return f"{us}us"
