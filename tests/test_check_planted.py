"""Thirty scenarios that are tests, and faults planted in a stack, a plug-in and a link: which of them find which."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import LONG, command, environment
from toy_stack import SOURCE

HEAD = 'seed = 3\nduration = "6s"\n[record]\nverify = true\n[topology.simple]\n'
FLOW = '[[flows]]\nlabel = "f"\nfrom = "client"\nto = "server"\n'
CONTROL = '''
import gargalo

@gargalo.congestion("mine")
class Mine(gargalo.WindowBased):
    """Grows by a segment each round trip, and keeps KEPT of what is in flight after a loss."""

    def increase(self, acked, ack, path):
        self.grow(float(self.mss) * float(acked) / float(self.window))

    def decrease(self, event, path):
        return KEPT * self.flight_size(event)
'''


def expect(metric: str, **bounds: object) -> str:
    """Return a table of an expectation."""
    told = "".join(f"{k} = {json.dumps(v)}\n" for k, v in bounds.items())
    return f'[[expect]]\nmetric = "{metric}"\n{told}'


def scenario(link: str, flow: str, *expectations: str) -> str:
    """Return a scenario of one flow."""
    return f"{HEAD}link = {{ {link} }}\n{FLOW}{flow}\n" + "".join(expectations)


def scenarios() -> dict[str, str]:
    """Return the thirty, by name: of a stack, of a congestion control and of links, ten each."""
    found = {}
    toy = 'transport.quic = { stack = "toy", congestion = "fixed" }\n'
    usual = 'rate = "10Mbit/s", delay = "10ms"'
    for size in (1, 10, 100, 500):
        whole = expect("flows.f.delivered_bytes", equals=size * 1000)
        flow = f'{toy}workload.bulk = {{ bytes = "{size}kB" }}'
        found[f"stack-bulk-{size}"] = scenario(usual, flow, whole)
        lossy = scenario(
            f"{usual}, loss = 0.03", flow, whole, expect("flows.f.lost_packets", at_most=60)
        )
        found[f"stack-loss-{size}"] = lossy
    for size in (2, 20):
        flow = f'{toy}workload.request = {{ objects = 3, size = "{size}kB" }}'
        done = expect("flows.f.completed_objects", equals=3)
        found[f"stack-request-{size}"] = scenario(usual, flow, done)

    mine = 'transport.tcp = { congestion = "mine" }\nworkload.bulk = {}'
    for rate, delay in ((5, 10), (5, 40), (10, 10), (10, 40), (20, 10)):
        link = f'rate = "{rate}Mbit/s", delay = "{delay}ms", queue.droptail = "1BDP"'
        fast = expect("links.link.utilization", at_least="70%")
        found[f"control-rate-{rate}-{delay}"] = scenario(link, mine, fast)
        # At half of a full queue on the average, and more only for a moment.
        short = expect("links.link.queue_delay_p50_s", at_most=f"{2 * delay}ms")
        few = expect("flows.f.retransmitted_packets", at_most=300)
        found[f"control-queue-{rate}-{delay}"] = scenario(link, mine, short, few)

    tcp = 'transport.tcp = {}\nworkload.bulk = { bytes = "2MB" }'
    kinds = {
        "delay": ('rate = "10Mbit/s", delay = "30ms"', expect("flows.f.rtt_min_s", at_least="60ms", at_most="63ms")),
        "rate": ('rate = "4Mbit/s", delay = "10ms"', expect("flows.f.completion_s", at_most=4.6)),
        "clean": (usual, expect("links.link.lost_packets", equals=0)),
        "random": (f"{usual}, loss = 0.01", expect("links.link.lost_packets", at_least=5, at_most=30)),
        "periodic": (f"{usual}, loss.periodic = 100", expect("links.link.lost_packets", at_least=13, at_most=16)),
        "duplicates": (f"{usual}, duplicate = 0.02", expect("links.link.duplicated_packets", at_least=10)),
        "outage": (f'{usual}, outages = [["1s", "2s"]]', expect("flows.f.completion_s", at_least=2, at_most=5)),
        "queue": (f'{usual}, queue.droptail = "20 packets"', expect("links.link.queue_delay_max_s", at_most="25ms")),
        "marks": (f'{usual}, queue.step = {{ mark_above = "5 packets" }}', expect("flows.f.ce_marks", at_least=1)),
        "policer": (
            f'{usual}, policer = {{ rate = "3Mbit/s", burst = "15kB" }}',
            expect("flows.f.goodput_bps", at_most="3.2Mbit/s"),
        ),
    }  # fmt: skip
    for name, (link, figure) in kinds.items():
        flow = tcp.replace("{}", "{ ecn = true }") if name == "marks" else tcp
        found[f"link-{name}"] = scenario(link, flow, figure)
    return found


GOOD = {
    "toy.py": SOURCE + '\n\ngargalo.quic_stack("toy")(Toy)\n',
    "mine.py": f"KEPT = 0.5\n{CONTROL}",
}


def changed(file: str, *changes: tuple[str, str]) -> dict[str, str]:
    """Return the plug-ins with changes of one."""
    text = GOOD[file]
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return {**GOOD, file: text}


STACK = {name for name in scenarios() if name.startswith("stack-")}
CONTROLS = {name for name in scenarios() if name.startswith("control-")}
LINKS = {name for name in scenarios() if name.startswith("link-")}
LOSSY = {name for name in STACK if "loss" in name}
PLANTED: dict[str, tuple[dict[str, str], tuple[str, ...], set[str], set[str] | None]] = {
    # What, the plug-ins, changes of the scenarios; which must find it, and which may (None: any, as all have the link).
    "a stack that changes a byte": (
        changed(
            "toy.py",
            (
                "self.host.received(stream, data)",
                "self.host.received(stream, bytes(b ^ 1 for b in data))",
            ),
        ),
        (),
        STACK,
        set(),
    ),
    "a stack that sends nothing again": (
        changed(
            "toy.py", ("            if at + AGAIN <= now:", "            if at + 1000 <= now:")
        ),
        (),
        {"stack-loss-100", "stack-loss-500"},
        LOSSY,
    ),
    "a stack that fails in a call": (
        changed(
            "toy.py",
            (
                "    def datagram_in(self, now, datagram):\n",
                "    def datagram_in(self, now, datagram):\n        1 / 0\n",
            ),
        ),
        (),
        STACK,
        set(),
    ),
    "a control that does not slow down": (
        changed("mine.py", ("KEPT = 0.5", "KEPT = 1.0")),
        (),
        {n for n in CONTROLS if "queue" in n},
        set(),
    ),
    "a control that slows down too much": (
        changed("mine.py", ("KEPT = 0.5", "KEPT = 0.03")),
        (),
        {"control-rate-10-40"},
        {n for n in CONTROLS if "rate" in n},
    ),
    "a control that raises": (
        changed("mine.py", ("return KEPT", "raise KeyError; return KEPT")),
        (),
        CONTROLS,
        set(),
    ),
    "a link that is slower": (
        GOOD,
        ("topology.simple.link.rate=3Mbit/s",),
        {"link-rate"},
        None,
    ),
    "a link with more delay": (
        GOOD,
        ("topology.simple.link.delay=35ms",),
        {"link-delay"},
        None,
    ),
    "a link that loses": (
        GOOD,
        ("topology.simple.link.loss=0.05",),
        {"link-clean", "link-random", "link-periodic"},
        None,
    ),
    "a link without duplicates": (
        GOOD,
        ("topology.simple.link.duplicate=0",),
        {"link-duplicates"},
        set(),
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The thirty."""
    made = tmp_path_factory.mktemp("planted")
    (made / "scenarios").mkdir()
    for name, text in scenarios().items():
        (made / "scenarios" / f"{name}.toml").write_text(text)
    return made


def check(folder: Path, files: dict[str, str], changes: tuple[str, ...]) -> tuple[int, set[str]]:
    """Check them with these plug-ins; return the exit code, and the names of those that found something."""
    for name, text in files.items():
        (folder / name).write_text(text)
    more = [word for c in changes for word in ("--set", c)]
    plugins = [word for name in files for word in ("--plugin", folder / name)]
    done = subprocess.run(
        command("check", "scenarios", *plugins, *more, "--json", "--keep", folder / "kept"),
        cwd=folder, capture_output=True, text=True, env=environment(), timeout=200, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)["scenarios"]
    assert len(told) == 30
    return done.returncode, {Path(c["file"]).stem for c in told if not c["passed"]}


def test_all_thirty_pass_and_a_wrong_one_is_told_apart(folder):
    assert check(folder, GOOD, ()) == (0, set())
    # A setting that no scenario can have is not a result.
    code, found = check(folder, GOOD, ("topology.simple.link.rat=3Mbit/s",))
    assert (code, len(found)) == (2, 30)


TOGETHER = (
    "a stack that changes a byte, a control that does not slow down, a link without duplicates"
)
"""Which have no scenario in common. Each alone, and the others, with LONG=1."""
PLANTED[TOGETHER] = (
    {
        "toy.py": PLANTED["a stack that changes a byte"][0]["toy.py"],
        "mine.py": PLANTED["a control that does not slow down"][0]["mine.py"],
    },
    ("topology.simple.link.duplicate=0",),
    STACK | PLANTED["a control that does not slow down"][2] | {"link-duplicates"},
    set(),
)


@pytest.mark.parametrize("what", PLANTED if LONG else [TOGETHER])
def test_a_planted_fault_is_found_by_the_checks_that_should(folder, what):
    files, changes, must, may = PLANTED[what]
    code, found = check(folder, files, changes)
    assert code == 1
    assert must <= found, sorted(must - found)
    if may is not None:
        assert found <= must | may, sorted(found - must - may)
