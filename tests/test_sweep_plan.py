"""Plans of sweeps without a run: axes, keys, files, labels, seeds."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl
import pytest
from gargalo import sweeps
from gargalo.sweeps import axes as module
from gargalo.sweeps.axes import Axis, Point, axis, parse
from gargalo.sweeps.job import Identifier, _names, derive_seed, derive_seeds, label_of
from gargalo.sweeps.keys import flat, named_flows
from gargalo.sweeps.model import SweepFile, label_names
from gargalo.sweeps.running import _check, _labels, default_name, plan_frame, repeats
from gargalo.sweeps.sides import Variant, plan_sides
from sweep_helpers import MINI, sweep_file

# --- axes


def points(node, name="x", base=None):
    (found,) = parse({name: node}, base)
    return [(dict(p.labels), dict(p.changes)) for p in found.points]


def values(**node):
    """Return the values of a range, and that they are those of its labels."""
    found = points({"key": "k", **node})
    assert all(labels == {"x": changes["k"]} for labels, changes in found)
    return [changes["k"] for _, changes in found]


def refused(axes, told):
    with pytest.raises(sweeps.SweepError) as error:
        parse(axes)
    assert str(error.value) == told


@pytest.mark.parametrize(
    ("first", "last", "more", "expected"),
    [
        (0, 10, {"steps": 3}, [0, 5, 10]),
        (0, 1, {"steps": 3}, [0, 0.5, 1]),
        (0.0, 10, {"steps": 2}, [0.0, 10.0]),
        (1, 4.0, {"steps": 4}, [1.0, 2.0, 3.0, 4.0]),
        (0.1, 0.7, {"steps": 3}, [0.1, 0.4, 0.7]),
        (5, -5, {"steps": 3, "scale": "linear"}, [5, 0, -5]),
        (1, 1000, {"steps": 4, "scale": "log"}, [1, 10, 100, 1000]),
        (0.1, 0.001, {"steps": 3, "scale": "log"}, [0.1, 0.01, 0.001]),
        (2, 32, {"steps": 5, "scale": "log"}, [2, 4, 8, 16, 32]),
        (1, 10, {"steps": 3, "scale": "log", "integer": True}, [1, 3, 10]),
        (0.6, 9.4, {"steps": 2, "integer": True}, [1, 9]),
        (0.6, 9.4, {"steps": 2, "integer": False}, [0.6, 9.4]),
        (1, 2, {"steps": 3, "unit": "ms"}, ["1ms", "1.5ms", "2ms"]),
        (1, 2, {"steps": 2, "unit": ""}, ["1", "2"]),
    ],
)
def test_a_range_has_both_ends_and_as_many_values_as_steps(first, last, more, expected):
    found = values(**{"from": first, "to": last, **more})
    assert found == expected
    assert [type(v) for v in found] == [type(v) for v in expected]


STEPS = "a range needs steps = 2 or more: how many values, both ends included"
NUMBERS = "a range needs numbers: { from = 1, to = 100, steps = 3 }"
ABOVE = "a logarithmic range needs from and to above 0"


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ({"from": 1, "to": 2, "steps": 1}, STEPS),
        ({"from": 1, "to": 2, "steps": True}, STEPS),
        ({"from": 1, "to": 2, "steps": 3.0}, STEPS),
        ({"from": 1, "to": 2}, STEPS),
        ({"from": 1, "steps": 2}, NUMBERS),
        ({"from": True, "to": 2, "steps": 2}, NUMBERS),
        ({"from": 1, "to": math.inf, "steps": 2}, NUMBERS),
        ({"from": "1", "to": 2, "steps": 2}, NUMBERS),
        ({"from": 1, "to": 2, "steps": 2, "scale": "ln"}, 'scale = \'ln\' is unknown: "linear" or "log"'),
        ({"from": 0, "to": 2, "steps": 2, "scale": "log"}, ABOVE),
        ({"from": 1, "to": 0, "steps": 2, "scale": "log"}, ABOVE),
        ({"from": -1, "to": -2, "steps": 2, "scale": "log"}, ABOVE),
        ({"values": 3}, "values must be a list or a range, not 3"),
        ({"values": [1], "from": 1}, "has both values and a range: give one"),
        ({"keys": ["a"], "values": [1]}, "has both key and keys: give one"),
        ({"key": 7, "values": [1]}, "key must be a dotted key as text, keys a list of them"),
        ({"values": []}, "has no values"),
        ({"values": [1, 2, 1]}, 'has "1" twice'),
        ({"from": 0, "to": 1, "steps": 4, "integer": True}, 'has "0" twice'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_values_of_a_key_is_told(node, told):
    refused({"x": {"key": "k", **node}}, f'axis "x": {told}')


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        ({"x": {"keys": [], "values": [1]}}, 'axis "x": key must be a dotted key as text, keys a list of them'),
        ({"x": {"keys": ["a", 1], "values": [1]}}, 'axis "x": key must be a dotted key as text, keys a list of them'),
        ({"x": []}, 'axis "x": has no values'),
        ({"x": {}}, 'axis "x": has the single value {}: write a list, or put it into [set]'),
        ({"x": {"y": {"z": 5}}}, 'axis "x.y.z": has the single value 5: write a list, or put it into [set]'),
        ({"x": [{"name": "a", "set": {"k": 1}}, {"set": {}}]}, 'axis "x": entry 2 has no name: write name = "…"'),
        ({"x": [{"name": True, "set": {"k": 1}}]}, 'axis "x": entry 1 has no name: write name = "…"'),
        ({"x": [{"name": "a", "set": 5}]}, 'axis "x": entry 1: set must be a table of settings'),
        ({"x": [{"nam": "a", "set": {}}]}, 'axis "x": has an unknown key "nam"; did you mean "name"?'),
        ({"x": [{"qq": "a", "set": {}}]}, 'axis "x": has an unknown key "qq"; known here: name, set'),
        ({"x": {"zip": {}}}, 'axis "x": zip has no keys'),
        ({"x": {"zip": {"k": [1]}, "name": []}}, 'axis "x": has an unknown key "name"; did you mean "names"?'),
        ({"x": {"zip": {"k": [1, 2]}, "names": ["a"]}}, 'axis "x": names must be a list of 2, one for each point'),
        ({"x": {"zip": {"k": [1, 2]}, "names": "ab"}}, 'axis "x": names must be a list of 2, one for each point'),
        ({"x": {"zip": {"k": [1], "l": [1, 2]}}},
         'axis "x": the lists of a zip must be equally long, but k has 1, l has 2'),
        ({"run": {"key": "k", "values": [1]}}, 'axis "run": the label "run" is taken: choose another name'),
        ({"seed": {"key": "k", "values": [1]}},
         'axis "seed": the label "seed" is taken: repeats have their own key: repeat = 5'),
        ({"repeat": {"key": "k", "values": [1]}},
         'axis "repeat": the label "repeat" is taken: repeats have their own key: repeat = 5'),
        ({"x": {"keys": ["k", "seed"], "values": [1]}},
         'axis "x": changes the seed: use repeat, or seed, of the sweep'),
        ({"x": {"key": "k", "values": [1]}, "y": {"keys": ["l", "k"], "values": [1]}},
         'axis "y": the key k is changed by the axis x too'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_axis_is_told(axes, told):
    refused(axes, told)


def test_two_axes_have_different_labels():
    one, two = axis("x", "a", [1]), Axis("y", (Point({"x": 1}, {"b": 1}),))
    assert parse([one, axis("y", "b", [1])]) == [one, axis("y", "b", [1])]
    with pytest.raises(sweeps.SweepError, match='axis "y": another axis has the label "x" too'):
        parse([one, two])
    with pytest.raises(sweeps.SweepError, match='axis "z": has no values'):
        parse([Axis("z", ())])


def test_points_change_what_they_name():
    assert points({"keys": ["a", "b"], "values": [1, {"c": 2}]}) == [
        ({"x": 1}, {"a": 1, "b": 1}),
        ({"x": "c 2"}, {"a": {"c": 2}, "b": {"c": 2}}),
    ]
    both = {"a": [1, 2], "b": {"c": {"from": 1, "to": 3, "steps": 2}}}
    assert points({"zip": both, "names": ["p", "q"]}) == [
        ({"x": "p"}, {"a": 1, "b.c": 1}),
        ({"x": "q"}, {"a": 2, "b.c": 3}),
    ]
    assert points({"zip": both}) == [
        ({"x": "1 1"}, {"a": 1, "b.c": 1}),
        ({"x": "2 3"}, {"a": 2, "b.c": 3}),
    ]
    rows = [{"name": n, "set": {"a": {"b": i}}} for i, n in enumerate(["p", 7, 0.5])]
    assert points(rows) == [({"x": n["name"]}, {"a.b": i}) for i, n in enumerate(rows)]
    # Tables without a `set` are values.
    assert points([{"name": "p"}, {"set": {}}])[0] == ({"x": "name p"}, {"x": {"name": "p"}})
    assert Axis("x", tuple(Point({"x": i}, {"a": i, "b": i}) for i in (1, 2))).keys == ["a", "b"]


def test_the_ends_of_a_range_may_be_keys():
    found = parse({"x": {"from": ["1s"], "to": ["2s"]}})
    assert [(a.name, a.keys) for a in found] == [("from", ["x.from"]), ("to", ["x.to"])]


def test_axes_are_in_the_order_of_the_file_whatever_their_form():
    axes = {
        "d": {"key": "d.e", "values": [1]},
        "a": {"b": [1], "c": {"from": 1, "to": 2, "steps": 2}},
        "z": [{"name": "n", "set": {"y": 1}}],
        "f.g": [1],
        "b": {"zip": {"u": [1]}},
    }
    names = [a.name for a in parse(axes)]
    assert names[0] == "d"
    assert set(names[1:3]) == {"a.b", "c"}, "b is taken"
    assert names[3:] == ["z", "g", "b"]


@pytest.mark.parametrize(
    ("keys", "taken", "expected"),
    [
        (["a.rate", "a.delay"], set(), ["rate", "delay"]),
        (["a.up.rate", "a.down.rate"], set(), ["up.rate", "down.rate"]),
        (["a.rate", "rate"], set(), ["a.rate", "rate"]),
        (["a.rate", "b.erate"], set(), ["rate", "erate"]),
        (["a.rate"], {"rate"}, ["a.rate"]),
        (["a.0"], set(), ["a.0"]),
    ],
)
def test_a_label_is_the_shortest_ending_that_no_other_has(keys, taken, expected):
    assert list(module._short(keys, taken).values()) == expected


# --- keys

LINK = {"topology": {"simple": {"link": {"delay": "1ms", "queue": {"droptail": "5 packets"}}}}}


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ({"codel": {}}, {"queue": {"codel": {}}}),
        ({"codel": {"target": "5ms"}}, {"queue": {"codel": {"target": "5ms"}}}),
        ({"droptail": "9 packets"}, {"queue.droptail": "9 packets"}),
        ({}, {"queue": {}}),
    ],
)
def test_another_alternative_replaces_and_the_same_is_changed(queue, expected):
    path = "topology.simple.link"
    found = flat({"topology": {"simple": {"link": {"queue": queue, "delay": "2ms"}}}}, LINK)
    assert found == {**{f"{path}.{k}": v for k, v in expected.items()}, f"{path}.delay": "2ms"}


def test_keys_with_dots_are_taken_whole_and_others_are_flattened():
    assert flat({"a.b": {"c": 1}, "duration": "1s"}, {}) == {"a.b": {"c": 1}, "duration": "1s"}
    assert flat({"record": {"interval": "1ms", "qlog": True}}, {"record": 5}) == {
        "record.interval": "1ms",
        "record.qlog": True,
    }
    other = {"topology": {"dumbbell": {"pairs": 3}}}
    assert flat(other, LINK) == other, "another topology"
    assert flat(other, {}) == other
    same = {"topology": {"simple": {"link": {"mtu": 9000}}}}
    assert flat(same, LINK) == {"topology.simple.link.mtu": 9000}
    cubic = {"transport": {"tcp": {"congestion": {"cubic": {"beta": 0.6}}}}}
    assert flat(cubic, {}) == {"transport": cubic["transport"]}
    tcp = {"transport": {"tcp": {"congestion": "reno"}}}
    assert flat(cubic, tcp) == {"transport.tcp.congestion": {"cubic": {"beta": 0.6}}}


FLOWS = {"flows": [{"label": "a"}, {"label": "b"}, {"label": "a"}, {}]}


def test_labels_of_flows_become_their_numbers():
    settings = {
        "flows.a.start": 1,
        "flows.b": 2,
        "flows.*.stop": 3,
        "flows.3.x": 4,
        "flows": 5,
        "x.a": 6,
    }
    assert named_flows(settings, FLOWS) == {
        "flows.0.start": 1,
        "flows.2.start": 1,
        "flows.1": 2,
        "flows.*.stop": 3,
        "flows.3.x": 4,
        "flows": 5,
        "x.a": 6,
    }
    for base, told in [(FLOWS, "labels: a, b"), ({}, "labels: none")]:
        with pytest.raises(sweeps.SweepError, match=f'no flow has the label "zzz"; {told}; flows'):
            named_flows({"flows.zzz.start": 1}, base)


# --- files


def parsed(text, scenario='scenario = "s.toml"\n'):
    return SweepFile.parse(scenario + text, Path("folder/name of it.toml"))


def test_a_sweep_file_has_defaults():
    found = parsed('name = "x"')
    assert found == SweepFile("x", Path("folder/s.toml"), {})
    assert (found.repeat, found.seed, found.keep, found.description) == (1, None, ("flows",), "")
    assert SweepFile.parse('scenario = "s.toml"', Path("race.toml")).name == "race"
    full = parsed(
        'name = "a.b+c-d_1"\nrepeat = 1\nseed = 0\nkeep = []\nmeasure = "m:f"\ndescription = "d"\nstart_jitter = "0s"\n'
        "[set]\nduration = 1\n[axes]\na = [1]\n[[expect]]\nb = 2\n"
    )
    assert (full.name, full.repeat, full.seed, full.keep, full.measure) == (
        "a.b+c-d_1",
        1,
        0,
        (),
        "m:f",
    )
    assert (full.description, full.start_jitter, full.changes) == ("d", "0s", {"duration": 1})
    assert (full.axes, full.expect) == ({"a": [1]}, ({"b": 2},))
    inline = parsed('[scenario]\nname = "n"\n', 'name = "x"\n').scenario
    assert (inline.path.name, 'name = "n"' in inline.text) == ("name of it.toml", True)


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("repeat = 0", "2:1", "repeat = 0: write how many runs each cell has, 1 or more"),
        ("\n\t repeat = true", "3:3", "repeat = True: write how many runs each cell has, 1 or more"),
        ("repeat = 1.5", "2:1", "repeat = 1.5: write how many runs each cell has, 1 or more"),
        ("seed = -1", "2:1", "seed = -1: write an integer, 0 or more"),
        ('keep = "flows"', "2:1", "keep = 'flows': write a list of tables, like [\"flows\"]"),
        ("set = 3", "2:1", "set must be a table: [set]"),
        ("[[axes]]", "2:3", "axes must be a table: [axes]"),
        ("expect = [1]", "2:1", "expect must be tables: [[expect]]"),
        ("[expect]", "2:2", "expect must be tables: [[expect]]"),
        ("measure = 1", "2:1", 'measure = 1: write "module:function"'),
        ("start_jitter = 0", "2:1",
         'start_jitter = 0: write a time or round trips, like "20ms", "1RTT", "0s"'),
        ('name = "a b"', "2:1", "name = 'a b': use letters, digits, - and _, 128 bytes at most"),
        ("name = 5", "2:1", "name = 5: use letters, digits, - and _, 128 bytes at most"),
        (f'name = "{"a" * 129}"', "2:1",
         f"name = '{'a' * 129}': use letters, digits, - and _, 128 bytes at most"),
        ("# repeats = 3\nrepeats = 3", "3:1", 'unknown key "repeats"; did you mean "repeat"?'),
    ],
)  # fmt: skip
def test_a_mistake_in_a_sweep_file_is_shown_at_its_place(text, place, told):
    name = "" if "name" in text else '\nname = "x"\n'
    with pytest.raises(sweeps.SweepError) as error:
        SweepFile.parse(f'scenario = "s"\n{text}\n{name}', Path("f.toml"))
    line, column = map(int, place.split(":"))
    shown = text.split("\n")[line - 2]
    below = shown[: column - 1].replace("[", " ")
    assert str(error.value) == f"f.toml:{place}: {told}\n{line} | {shown}\n  | {below}^"
    (found,) = error.value.diagnostics
    assert (found.line, found.column, found.path) == (line, column, error.value.key)


def test_a_mistake_without_a_place_is_of_the_file():
    for text, told in [
        (
            'name = "x"',
            'f.toml: no scenario: write scenario = "FILE.toml", beside this file, or a table [scenario]',
        ),
        ('scenario = "a"', "f.toml: name = 'f g': use letters, digits, - and _, 128 bytes at most"),
    ]:
        with pytest.raises(sweeps.SweepError) as error:
            SweepFile.parse(text, Path("f.toml" if "no scenario" in told else "f g.toml"))
        assert str(error.value) == told.replace("f.toml: name", "f g.toml: name")
        assert error.value.diagnostics == ()
    with pytest.raises(sweeps.SweepError, match="this is a scenario, not a sweep"):
        SweepFile.parse("[topology]\n", Path("f.toml"))
    with pytest.raises(sweeps.SweepError, match=r"f\.toml is not TOML\n(?s:.*)f\.toml:1:5"):
        SweepFile.parse("a = \n", Path("f.toml"))


def test_a_sweep_file_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    with pytest.raises(sweeps.SweepError, match=r"none\.toml: cannot be read: .*[Nn]o such file"):
        SweepFile.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"abc\xff")
    with pytest.raises(sweeps.SweepError, match=r"not UTF-8 text \(byte 3\)"):
        SweepFile.load(tmp_path / "latin.toml")


def test_arguments_go_before_what_the_file_says(tmp_path):
    text = "repeat = 3\nseed = 4\n[set]\nduration = \"2s\"\n[axes]\nflows.0.start = ['0s', '1s']\n"
    file = SweepFile.load(sweep_file(tmp_path, text))
    own, given = file.plan(), file.plan(repeat=1, seed=5, set={"duration": "4s"}, world="lab")
    assert [(j.labels["start"], j.repeat) for j in own] == [
        (s, r) for s in ("0s", "1s") for r in range(3)
    ]
    assert [j.seed for j in own[:3]] == derive_seeds(4, 3)
    assert {j.changes["duration"] for j in own} == {"2s"}
    assert {j.world for j in own} == {"sim"}
    assert [(j.seed, j.changes["duration"], j.world) for j in given] == [
        (derive_seed(5, 0), "4s", "lab")
    ] * 2
    assert {j.changes.get("start_jitter") for j in own} == {"1RTT"}
    assert {j.changes.get("start_jitter") for j in given} == {None}
    with pytest.raises(sweeps.SweepError, match="repeat = 0: at least 1"):
        file.plan(repeat=0)
    with pytest.raises(sweeps.SweepError, match="repeat = -1: at least 1"):
        sweeps.plan(MINI, repeat=-1)
    assert len(sweeps.plan(MINI)) == 1


def test_what_cells_have_to_show_is_added_to_their_scenario(tmp_path):
    text = '[[expect]]\nmetric = "summary.goodput_bps"\nat_least = "1kbit/s"\n'
    (job,) = SweepFile.load(sweep_file(tmp_path, text)).plan()
    assert job.scenario.text.startswith(MINI.rstrip())
    assert "[[expect]]" in job.scenario.text.removeprefix(MINI.rstrip())


# --- jobs


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("reno", "reno"),
        (0.5, 0.5),
        (True, True),
        ({"cubic": {"beta": 0.6, "c": 1}}, "cubic beta=0.6 c=1"),
        ({"cubic": {}}, "cubic"),
        ({"a": 1, "b": [1, 2]}, "a 1 b 1, 2"),
        (["a", {"b": 2}], "a, b 2"),
        (None, "None"),
    ],
)
def test_a_label_says_what_its_value_is(value, label):
    found = label_of(value)
    assert (found, type(found)) == (label, type(label))


def test_seeds_are_always_the_same():
    """As in every store that there is: another seed would be another run."""
    assert derive_seeds(1, 3) == [6318593993377171, 8259307950708342, 7723609072362838]
    assert len({derive_seed(s, r) for s in range(20) for r in range(20)}) == 400
    assert 2**52 < max(derive_seed(s, 0) for s in range(100)) < 2**53


def test_runs_in_the_lab_are_others():
    jobs = [sweeps.Job({}, MINI, 1, world=w) for w in ("sim", "lab")]
    sim, lab = (Identifier().task(j) for j in jobs)
    assert sim.run != lab.run
    assert (len(sim.run), sim.seed, sim.path, lab.world) == (32, 1, None, "lab")


def test_names_of_classes_are_found_wherever_they_are():
    tree = {
        "flows": [
            {"transport": {"congestion": "a", "stack": {"from": "x", "to": "y"}}},
            {"transport": {"congestion": {"b": {"beta": 1}}, "stack": "z"}},
        ],
        "scheduler": 5,
    }
    found = {kind: _names(tree, kind) for kind in ("congestion", "stack", "scheduler")}
    assert found == {"congestion": {"a", "b"}, "stack": {"x", "y", "z"}, "scheduler": set()}


def job(repeat=None, **labels):
    return sweeps.Job(labels, MINI, 1, repeat)


def test_repeats_are_counted_among_runs_of_the_same_labels():
    jobs = [job(a=1), job(a=2), job(a=1), job(7, a=1), job(a=1), job(a=1, repeat=9), job(b=1)]
    assert repeats(jobs[:5], ["a"]) == [0, 0, 1, 7, 3]
    assert label_names([job(a=1), sweeps.Job({"repeat": 4, "b": 1}, MINI, 1)]) == ["a", "b"]
    assert repeats([sweeps.Job({"repeat": 4}, MINI, 1), job()], []) == [4, 1]


def test_a_column_of_labels_has_the_type_of_all():
    cases = [
        ([True, None], pl.Boolean, [True, None]),
        ([1, None, 2], pl.Int64, [1, None, 2]),
        ([1, 2.5, None], pl.Float64, [1, 2.5, None]),
        ([1, "a", None], pl.String, ["1", "a", None]),
        ([True, 2], pl.String, ["True", "2"]),
    ]
    for given, kind, expected in cases:
        found = _labels("x", given)
        assert (found.name, found.dtype, found.to_list()) == ("x", kind, expected)


def test_the_plan_has_a_row_for_each_run_and_says_how_to_repeat_it():
    jobs = [sweeps.Job({"a": a}, MINI, 3, changes={"duration": f"{a}s"}) for a in (1, 2)]
    tasks = [Identifier().task(j) for j in jobs]
    frame = plan_frame(jobs, tasks, None)
    assert frame.columns == [
        "run",
        "a",
        "repeat",
        "seed",
        "_changes",
        "_scenario",
        "_path",
        "_measure",
    ]
    assert frame["run"].to_list() == [t.run for t in tasks]
    assert frame["_changes"].to_list() == ['{"duration": "1s"}', '{"duration": "2s"}']
    assert frame.select("a", "repeat", "seed").rows() == [(1, 0, 3), (2, 0, 3)]
    assert frame["_measure"].null_count() == 2


def test_a_sweep_is_called_by_its_labels():
    assert default_name([job()]) == "sweep"
    assert default_name([job(a=1), job(b=2)]) == "sweep-by-a-b"
    assert default_name([job(**{"a/b\\c\n": 1})]) == "sweep-by-a-b-c-"
    long = default_name([job(**{"a" * 200: 1})])
    assert (long[:6], len(long)) == ("sweep-", 22)
    assert long != default_name([job(**{"a" * 201: 1})])


def test_what_cannot_be_done_is_refused():
    lab = sweeps.Job({}, MINI, 1, world="lab")
    cases = [
        (([], None, 1, None), "a sweep needs at least one run"),
        (([job()], 0, 1, None), "workers = 0: at least 1"),
        (([job()], -1, 1, None), "workers = -1: at least 1"),
        (([job()], None, 0, None), "at_once = 0: at least 1"),
        (([job()], None, -1, None), "at_once = -1: at least 1"),
        (
            ([lab], None, 1, "c"),
            "runs in real time are done on this machine: leave the cluster out",
        ),
        (([job()], 2, 1, "c"), "give either workers or a cluster"),
    ]
    for arguments, told in cases:
        with pytest.raises(sweeps.SweepError) as error:
            _check(*arguments)
        assert str(error.value) == told
    for fine in [([job()], 1, 1, None), ([job(), lab], None, 1, "c"), ([lab], 1, 1, None)]:
        _check(*fine)


# --- sides


def test_sides_are_the_same_runs_with_settings_of_their_own(tmp_path):
    file = SweepFile.load(
        sweep_file(tmp_path, "repeat = 2\n[axes]\nflows.0.start = ['0s', '200ms']\n")
    )
    a, b = Variant("lab", {}, "lab"), Variant("short", {"duration": "500ms"})
    jobs = plan_sides(file, a, b, set={"duration": "2s"}, seed=7)
    assert [list(j.labels.items()) for j in jobs[::2]] == [
        [("side", side), ("start", start)] for side in ("lab", "short") for start in ("0s", "200ms")
    ]
    assert [(j.world, j.changes["duration"]) for j in jobs] == [("lab", "2s")] * 4 + [
        ("sim", "500ms")
    ] * 4
    assert [j.seed for j in jobs] == derive_seeds(7, 2) * 4, "pairs"
    assert len(plan_sides(file, a, b, repeat=1)) == 4
    for one, other, told in [
        (a, Variant("lab", {"duration": "1s"}), "both sides are lab: give them different settings"),
        (
            Variant("x", {}),
            Variant("y", {}),
            "x and y are the same runs: give one of them a setting that differs",
        ),
        (
            Variant("x", {"duration": "1s"}),
            Variant("y", {"duration": "1s"}),
            "x and y are the same runs",
        ),
    ]:
        with pytest.raises(sweeps.SweepError, match=f"^{told}"):
            plan_sides(file, one, other)
    taken = SweepFile("s", MINI, {"side": {"key": "duration", "values": ["1s"]}})
    with pytest.raises(sweeps.SweepError, match='an axis is called "side"'):
        plan_sides(taken, a, Variant("sim", {}))
