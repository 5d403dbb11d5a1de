"""Multipath TCP from Python and the command: classes as schedulers and path managers, lists, errors."""

from __future__ import annotations

import ipaddress
import json
import random
import statistics

import gargalo
import pytest

PAIR = """\
name     = "pair"
seed     = 5
duration = "4s"

[topology.multipath]
paths = [
  { rate = "10Mbit/s", delay = "10ms", queue = { droptail = "1BDP" } },
  { rate = "4Mbit/s", delay = "40ms", queue = { droptail = "1BDP" }, loss = { independent = 0.002 } },
]

[[flows]]
from  = "client"
to    = "server"
label = "both"
transport.mptcp = { congestion = "lia", scheduler = "lowest-latency", path_manager = "single-mesh", receive_buffer = "400kB" }
workload.bulk = {}
"""
SCHEDULER = "flows.0.transport.mptcp.scheduler"
PATH_MANAGER = "flows.0.transport.mptcp.path_manager"
TABLES = (
    "flows",
    "flow_samples",
    "subflows",
    "subflow_samples",
    "link_samples",
    "events",
    "objects",
)


def same(a: gargalo.Run, b: gargalo.Run) -> None:
    for name in TABLES:
        one, other = a._table(name), b._table(name)
        assert one.height or name == "objects", name
        assert one.equals(other), name


class Fastest(gargalo.Scheduler):
    """Lowest latency, once more."""

    def select(self, context):
        return min(context.ready(), key=lambda p: p.latency, default=None)


class ByIndex(gargalo.Scheduler):
    def select(self, context):
        best = context.lowest_latency()
        return None if best is None else best.index


class Everywhere(gargalo.Scheduler):
    def select(self, context):
        best = context.lowest_latency()
        return None if best is None else gargalo.SendAll(best)


@pytest.mark.parametrize(
    ("builtin", "mine"),
    [("lowest-latency", Fastest), ("lowest-latency", ByIndex), ("redundant", Everywhere)],
)
def test_a_scheduler_in_python_is_the_builtin(builtin, mine):
    changes = {"record.decisions": True, "record.interval": "20ms"}
    rust = gargalo.run(PAIR, set={**changes, SCHEDULER: builtin})
    python = gargalo.run(PAIR, set={**changes, SCHEDULER: "mine"}, schedulers={"mine": mine})
    same(rust, python)
    assert rust.flows["delivered_bytes"][0] > 2e6


def test_a_window_aware_scheduler_penalises_only_slower_subflows():
    class Minds(Fastest):
        def minds_window(self):
            return True

    class Perhaps(Fastest):
        def minds_window(self):
            return "perhaps"

    scarce = {SCHEDULER: "mine", "flows.0.transport.mptcp.receive_buffer": "64kB"}

    def runs(rate):
        changes = {**scarce, "topology.multipath.paths.0.rate": rate}
        off = {**changes, "flows.0.transport.mptcp.penalisation": False}
        return [
            gargalo.run(PAIR, set=c, schedulers={"mine": s})
            for c, s in ((changes, Minds), (changes, Fastest), (off, Fastest))
        ]

    # The path of longer delay, which fills the window, carries more, or less.
    minds, penalised, never = runs("1Mbit/s")
    same(minds, never)
    assert not penalised.subflow_samples.equals(never.subflow_samples)
    minds, penalised, never = runs("10Mbit/s")
    assert not minds.subflow_samples.equals(never.subflow_samples)
    with pytest.raises(TypeError, match=r"Perhaps.minds_window\(\) returned 'perhaps'"):
        gargalo.run(PAIR, set=scarce, schedulers={"mine": Perhaps})


class Single(gargalo.PathManager):
    """Single mesh, once more."""

    def missing(self, view):
        if not view.is_client:
            return []
        local = {s.local for s in view.subflows}
        remote = {s.remote for s in view.subflows}
        found = []
        for ours, theirs in view.pairs():
            if ours.id not in local and theirs.id not in remote:
                local.add(ours.id)
                remote.add(theirs.id)
                found.append(gargalo.Open(ours.id, theirs.id))
        return found


class Full(gargalo.PathManager):
    def missing(self, view):
        if view.is_client:
            for ours, theirs in view.pairs():
                if view.count(ours.id, theirs.id) == 0:
                    yield ours.id, theirs.id


@pytest.mark.parametrize(
    ("builtin", "mine", "subflows"), [("single-mesh", Single, 2), ("full-mesh", Full, 4)]
)
def test_a_path_manager_in_python_is_the_builtin(builtin, mine, subflows):
    rust = gargalo.run(PAIR, set={PATH_MANAGER: builtin})
    python = gargalo.run(PAIR, set={PATH_MANAGER: "mine"}, path_managers={"mine": mine})
    same(rust, python)
    assert rust.subflows.height == subflows


def test_a_server_that_announces_nothing():
    class Quiet(Full):
        def announces(self):
            return False

    run = gargalo.run(PAIR, set={PATH_MANAGER: "quiet"}, path_managers={"quiet": Quiet})
    assert set(run.subflows["peer_link"]) == {"path0"}
    assert run.subflows.height == 2


def test_parameters_and_seeds_reach_the_classes():
    seen, managers = [], []

    class Chance(gargalo.Scheduler):
        def __init__(self, init, slow=0.5, word="", flag=False):
            self.random = random.Random(init.seed)
            self.slow = slow
            seen.append((slow, word, flag, init.seed))

        def select(self, context):
            ready = context.ready()
            if len(ready) == 2:
                return ready[self.random.random() < self.slow]
            return ready[0] if ready else None

    class Many(Full):
        def __init__(self, init, most=2):
            managers.append(most)

    changes = {
        SCHEDULER: {"chance": {"slow": 0.25, "word": "x", "flag": True}},
        PATH_MANAGER: {"many": {"most": 3}},
    }
    classes = {"schedulers": {"chance": Chance}, "path_managers": {"many": Many}}
    first = gargalo.run(PAIR, set=changes, **classes)
    seeds = [s[-1] for s in seen]
    assert {s[:-1] for s in seen} == {(0.25, "x", True)}
    assert len(set(seeds)) == len(seeds) >= 2, "each end has its own"
    assert set(managers) == {3}
    same(first, gargalo.run(PAIR, set=changes, **classes))
    other = gargalo.run(PAIR, seed=6, set=changes, **classes)
    assert not set(seeds) & {s[-1] for s in seen[2 * len(seeds) :]}
    assert not other.subflow_samples.equals(first.subflow_samples)


def test_what_a_scheduler_sees():
    contexts = []

    class Look(gargalo.Scheduler):
        def select(self, context):
            assert context.now >= 0
            assert [p.index for p in context.paths] == list(range(len(context.paths)))
            assert context.window_room <= context.window
            assert set(context.ready()) <= set(context.candidates()) <= set(context.paths)
            contexts.append(context)
            return context.lowest_latency()

    gargalo.run(PAIR, set={SCHEDULER: "look", "record.interval": "1s"}, schedulers={"look": Look})
    last = contexts[-1]
    fast, slow = last.paths
    assert fast.min_rtt == pytest.approx(0.0212, abs=2e-3)
    assert slow.min_rtt == pytest.approx(0.083, abs=3e-3)
    assert fast.min_rtt <= fast.srtt == fast.latency
    assert slow.rto > slow.srtt > slow.rttvar
    rates = [c.paths[0].delivery_rate for c in contexts if c.paths[0].delivery_rate is not None]
    assert statistics.median(rates) == pytest.approx(9.5e6, rel=0.1), "what the link carries"
    assert slow.lost_packets < slow.sent_packets
    assert fast.mss < 1448, "MPTCP options take room"
    assert fast.space == fast.cwnd // fast.mss - fast.in_flight // fast.mss
    assert last.unsent > 0
    assert not any(p.backup or p.in_slow_start for p in last.paths if p.ssthresh is not None)


def test_links_have_their_names():
    looks = []

    class Only(gargalo.Scheduler):
        def __init__(self, init, link):
            self.link = link

        def select(self, context):
            near = [p for p in context.ready() if p.link == self.link]
            return near[0] if near else None

    class Named(Full):
        def missing(self, view):
            ours = {a.link: a.id for a in view.local}
            theirs = {a.link: a.id for a in view.remote}
            looks.append((view.is_client, [*ours], [*theirs]))
            if not view.is_client or len(theirs) < 2:
                return []
            wanted = ours["path1"], theirs["path0"]
            return [] if view.count(*wanted) else [wanted]

    run = gargalo.run(
        PAIR,
        set={SCHEDULER: {"only": {"link": "path1"}}, PATH_MANAGER: "named"},
        schedulers={"only": Only}, path_managers={"named": Named},
    )  # fmt: skip
    assert run.subflows.select("link", "peer_link").rows() == [
        ("path0", "path0"),
        ("path1", "path0"),
    ]
    first, second = run.subflows["delivered_bytes"]
    assert second > 50 * first, "the first carries but what opens the connection"
    assert (True, ["path0", "path1"], ["path0", "path1"]) in looks
    assert {names for _, ours, _ in looks for names in ours} == {"path0", "path1"}


def test_records_made_by_hand():
    path = gargalo.PathView
    paths = [path(0, srtt=0.04, in_flight=3000), path(1, srtt=0.02, can_send=False), path(2)]
    context = gargalo.Context(paths)
    assert Fastest(gargalo.ConnectionInit()).select(context) is paths[0]
    assert paths[2].latency == float("inf")
    assert paths[0].space == 10 - 2
    assert (paths[2].id, paths[2].in_slow_start) == (2, True)
    assert (paths[2].link, path(0, link="lte", peer_link="cable").peer_link) == (None, "cable")
    backup = path(1, srtt=0.01, backup=True)
    assert gargalo.Context([paths[0], backup]).candidates() == [paths[0]]
    alone = gargalo.Context([path(0, in_loss=True), backup])
    assert alone.candidates() == [backup] == [alone.lowest_latency()]
    assert gargalo.Context([]).lowest_latency() is None
    view = gargalo.View(
        is_client=True,
        local=[
            gargalo.LocalAddress(0, "10.0.0.1"),
            gargalo.LocalAddress(1, "2001:db8::1", backup=True),
        ],
        remote=[gargalo.RemoteAddress(0, ipaddress.ip_address("10.0.0.2"), 80)],
        subflows=[gargalo.SubflowView(0, 0)],
    )
    assert [(ours.id, theirs.id) for ours, theirs in view.pairs()] == [(0, 0)]
    assert view.local[1].address == ipaddress.ip_address("2001:db8::1")
    assert view.remote[0] == gargalo.RemoteAddress(0, "10.0.0.2", 80)
    assert (view.count(0, 0), view.count(1, 0)) == (1, 0)
    assert list(Full(gargalo.ConnectionInit()).missing(view)) == []
    assert {gargalo.Open(0, 0), gargalo.Open(0, 0)} == {gargalo.Open(0, 0, None)}


def returning(value):
    class Returning(gargalo.Scheduler):
        def select(self, context):
            return value(context) if callable(value) else value

    return Returning


class Stale(gargalo.Scheduler):
    """Chooses what was a path of another connection."""

    def select(self, context):
        return gargalo.PathView(0, id=77)


class Raises(gargalo.Scheduler):
    def __init__(self, init):
        self.asked = 0

    def select(self, context):
        self.asked += 1
        if self.asked == 20:
            raise ZeroDivisionError("twentieth segment")
        return context.lowest_latency()


class Nothing(gargalo.Scheduler):
    pass


class BadConstructor(Fastest):
    def __init__(self, init):
        raise OSError("no")


class NoScheduler:
    def __init__(self, init): ...

    def select(self, context): ...


@pytest.mark.parametrize(
    ("scheduler", "error", "text"),
    [
        (Raises, ZeroDivisionError, "twentieth"),
        (Nothing, TypeError, r"Nothing must define select\(\)"),
        (BadConstructor, OSError, "no"),
        (NoScheduler, TypeError, "NoScheduler is not a gargalo.Scheduler"),
        (
            returning(2),
            ValueError,
            r"Returning.select\(\) returned 2; paths have the indices 0 to [01]",
        ),
        (returning(-1), ValueError, r"select\(\) returned -1"),
        (
            returning(True),
            TypeError,
            r"Returning.select\(\) returned True; it must be a path of context.paths",
        ),
        (returning("fast"), TypeError, r"select\(\) returned 'fast'"),
        (returning(1.0), TypeError, r"select\(\) returned 1.0"),
        (returning(gargalo.SendAll(9)), ValueError, r"select\(\) returned SendAll\(9\)"),
        (Stale, ValueError, "subflow 77 is not among the paths"),
    ],
)
def test_what_is_wrong_with_a_scheduler_is_raised(scheduler, error, text):
    with pytest.raises(error, match=text):
        gargalo.run(PAIR, set={SCHEDULER: "x"}, schedulers={"x": scheduler})


def missing(value, told=True):
    class Missing(gargalo.PathManager):
        def missing(self, view):
            return value

        def announces(self):
            return told

    return Missing


@pytest.mark.parametrize(
    ("manager", "error", "text"),
    [
        (missing([(7, 0)]), ValueError, r"Missing.missing\(\) asks for our address 7; there is 0"),
        (missing([(0, 9)]), ValueError, r"asks for the peer's address 9; there is 0"),
        (missing([gargalo.Open(0, 0, "192.168.0.1")]), ValueError, "gateway 192.168.0.1"),
        (missing([3]), TypeError, r"missing\(\) returned \[3\]; it must be a list of gargalo.Open"),
        (missing(None), TypeError, r"missing\(\) returned None"),
        (missing([(0, 300)]), TypeError, r"missing\(\) returned \[\(0, 300\)\]"),
        (missing([], told="yes"), TypeError, r"Missing.announces\(\) returned 'yes'"),
        (gargalo.PathManager, TypeError, r"must define missing\(\)"),
        (Fastest, TypeError, "Fastest is not a gargalo.PathManager"),
    ],
)
def test_what_is_wrong_with_a_path_manager_is_raised(manager, error, text):
    with pytest.raises(error, match=text):
        gargalo.run(PAIR, set={PATH_MANAGER: "x"}, path_managers={"x": manager})


PLUGIN = """
import gargalo


@gargalo.scheduler("turns")
class Turns(gargalo.Scheduler):
    def __init__(self, init, first=0):
        self.next = int(first)

    def select(self, context):
        for path in sorted(context.ready(), key=lambda p: (p.index < self.next, p.index)):
            self.next = path.index + 1
            return path
        return None


@gargalo.path_manager("only-first")
class OnlyFirst(gargalo.PathManager):
    def missing(self, view):
        return []
"""


def test_by_name_in_the_command(gargalo, tmp_path):
    (tmp_path / "turns.py").write_text(PLUGIN)
    path = tmp_path / "s.toml"
    path.write_text(PAIR.replace('"lowest-latency"', '"turns"'))
    done = gargalo("run", path, "--json", "--plugin", "turns.py")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["subflows"]) == 2
    one = gargalo(
        "run", path, "--json", "--plugin", "turns.py", "--set", f"{PATH_MANAGER}=only-first"
    )
    assert len(json.loads(one.stdout)["subflows"]) == 1
    without = gargalo("run", path, "--json")
    assert without.returncode == 2
    assert 'scheduler has no value "turns"' in without.stderr
    (tmp_path / "turns.py").write_text(PLUGIN.replace("return path", "return path.id / 0"))
    broken = gargalo("run", path, "--plugin", "turns.py", "--output", "out")
    assert broken.returncode == 1
    assert "ZeroDivisionError" in broken.stderr
    assert not (tmp_path / "out").exists()


def test_in_sweeps(gargalo, tmp_path):
    (tmp_path / "turns.py").write_text(PLUGIN)
    (tmp_path / "s.toml").write_text(PAIR.replace("4s", "1s"))
    (tmp_path / "sweep.toml").write_text(
        'scenario = "s.toml"\n[axes]\n'
        f'"{SCHEDULER}" = ["lowest-latency", "turns", {{ turns = {{ first = 1 }} }}]\n'
    )
    args = ("sweep", "sweep.toml", "--json", "--workers", 1, "--plugin", "turns.py")
    done = gargalo(*args)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"]["done"] == 3
    (tmp_path / "turns.py").write_text(PLUGIN.replace("+ 1", "+ 2"))
    runs = json.loads(gargalo(*args).stdout)["runs"]
    assert (runs["done"], runs["reused"]) == (2, 1), "new source, new runs"


def test_of_this_process_in_sweeps(tmp_path):
    gargalo.scheduler("fastest")(Fastest)
    try:
        frame = gargalo.sweep(
            PAIR, {SCHEDULER: ["fastest", "lowest-latency"]}, store=tmp_path / "s", workers=1
        ).frame()
    finally:
        del gargalo.plugins.registry._registered["scheduler"]["fastest"]
    assert frame["goodput_bps"][0] == frame["goodput_bps"][1] > 5e6


def test_registration():
    with pytest.raises(
        TypeError, match=r"gargalo.Controller or gargalo.Scheduler or gargalo.PathM"
    ):
        gargalo.register("x", NoScheduler)
    with pytest.raises(ValueError, match="cannot be a name"):
        gargalo.path_manager("a b")(Full)


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ('"lowest-latency"', '"lowest-latancy"', ["did you mean `lowest-latency`?", "blest", "s.toml:15"]),
        ('"single-mesh"', '"fullmesh"', ["did you mean `full-mesh`?", "ndiffports"]),
        ('"lowest-latency"', "{ round-robin = { segmants = 2 } }", ["did you mean `segments`?"]),
        ('"lowest-latency"', "{ round-robin = { segments = 0 } }", ["segments"]),
        ("receive_buffer", 'backup = ["path7"], receive_buffer', ['no link "path7"', 'path0']),
        ("receive_buffer", 'links = ["path7"], receive_buffer', ['there is no link "path7"', "did you mean `path0`?"]),
        (
            "receive_buffer",
            'changes = [{ after = "1s", remove = "wifi" }], receive_buffer',
            ['there is no link "wifi"', "path0, path1"],
        ),
        ("receive_buffer", 'gateways = ["r"], receive_buffer', ['there is no router "r"']),
    ],
)  # fmt: skip
def test_wrong_names_in_the_command(inside, tmp_path, old, new, texts):
    (tmp_path / "s.toml").write_text(PAIR.replace(old, new))
    done = inside("run", "s.toml")
    assert done.returncode == 2
    for text in texts:
        assert text in done.stderr, done.stderr
    assert not (tmp_path / "runs").exists()


THREE = """\
duration = "1s"
[topology.graph]
nodes = ["phone", "wifi", "lte", "server"]
links = [
  { from = "phone", to = "wifi", rate = "10Mbit/s", delay = "5ms" },
  { from = "phone", to = "lte", rate = "10Mbit/s", delay = "5ms" },
  { from = "wifi", to = "server", rate = "10Mbit/s", delay = "5ms" },
  { from = "lte", to = "server", rate = "10Mbit/s", delay = "5ms" },
]
[[flows]]
from = "phone"
to   = "server"
transport.mptcp = { links = ["LINK"] }
"""


def test_links_that_lead_elsewhere_are_no_path(inside, tmp_path):
    (tmp_path / "s.toml").write_text(THREE.replace("LINK", "phone-wifi"))
    done = inside("run", "s.toml")
    assert done.returncode == 2
    assert 'no usable path: none of these links leads to "server"' in done.stderr
    assert "wifi-server, lte-server" in done.stderr
