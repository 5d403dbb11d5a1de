"""`gargalo list` and `gargalo schema`."""

from __future__ import annotations

import json

import jsonschema
import pytest
from conftest import ROOT, TINY
from gargalo._toml import loads

KNOWN = {
    "congestion": {
        "balia",
        "bbr",
        "bbr2",
        "bbr3",
        "bic",
        "compound",
        "copa",
        "cubic",
        "dctcp",
        "fast",
        "hstcp",
        "htcp",
        "hybla",
        "illinois",
        "ledbat",
        "lia",
        "libra",
        "newreno",
        "olia",
        "prague",
        "reno",
        "scalable",
        "tahoe",
        "vegas",
        "veno",
        "westwood",
        "westwood+",
        "wvegas",
        "yeah",
    },
    "schedulers": {
        "adaptive",
        "blest",
        "ecf",
        "highest-sending-rate",
        "largest-window-space",
        "lowest-latency",
        "lowest-time-space",
        "redundant",
        "round-robin",
        "window-aware",
    },
    "path-managers": {"binder", "default", "full-mesh", "ndiffports", "single-mesh"},
    "queues": {"droptail", "red", "codel", "fq-codel", "pie", "step", "dualpi2"},
    "transports": {"tcp", "mptcp", "quic", "udp"},
    "rates": {"steps", "trace"},
    "losses": {"independent", "periodic", "gilbert-elliott"},
    "workloads": {"bulk", "request", "cbr", "onoff"},
    "topologies": {"simple", "dumbbell", "parking-lot", "multipath", "graph"},
    "profiles": {"modern", "ns3-3.27", "rfc5681", "rfc9000", "google-v41"},
    "tables": {
        "flows",
        "flow_samples",
        "link_samples",
        "events",
        "gauges",
        "objects",
        "pings",
        "subflows",
        "subflow_samples",
    },
    "capabilities": {"topology.simple", "flows.*.transport.tcp", "record.gauges", "commands"},
}


@pytest.mark.parametrize("what", KNOWN)
def test_list(inside, what):
    entries = json.loads(inside("list", what, "--json").stdout)
    assert KNOWN[what] <= {e["name"] for e in entries}
    assert all(e["summary"] for e in entries)
    text = inside("list", what)
    assert text.returncode == 0
    assert len(text.stdout.splitlines()) == len(entries)


@pytest.mark.parametrize(
    ("what", "kind", "key", "default", "valid", "doc"),
    [
        ("congestion", "cubic", "beta", "0.7", "a number from", "after a loss"),
        ("schedulers", "round-robin", "segments", "1", "a whole number from", "row"),
        ("path-managers", "ndiffports", "subflows", "2", "a whole number from", "ubflows"),
        ("queues", "codel", "interval", "100ms", 'like "50ms", 1ns or more', "round-trip"),
        ("queues", "red", "max_probability", "0.1", "", "robability"),
        ("transports", "quic", "time_threshold", "1.125", "a number from 1 to 100", "RFC 9002"),
        (
            "transports",
            "quic",
            "idle_timeout",
            "30s",
            'a duration like "50ms" from 10ms to',
            "idle",
        ),
        ("transports", "quic", "crypto", "tls", "tls or null", "same sizes"),
        ("losses", "gilbert-elliott", "p", "required", "a probability like", ""),
        ("losses", "independent", "independent", "required", "a probability like", ""),
        ("rates", "steps", "steps", "required", "a list", ""),
        ("workloads", "bulk", "bytes", "none", "a size like", ""),
        ("topologies", "dumbbell", "pairs", "1", "a whole number from 1 to 10000", "Hosts"),
    ],
)
def test_parameters_are_listed(inside, what, kind, key, default, valid, doc):
    entries = {e["name"]: e for e in json.loads(inside("list", what, "--json").stdout)}
    own = {p["name"]: p for p in entries[kind]["parameters"]}[key]
    assert own["default"].strip('"') == default
    assert valid in own["valid"]
    assert doc in own["doc"]
    lines = inside("list", what, "--parameters").stdout.splitlines()
    assert len(lines) == len(entries) + sum(len(e["parameters"]) for e in entries.values())
    shown = [line.split() for line in lines if line.startswith("    ")]
    assert any(words[0] == key and words[1].strip('"') == default for words in shown)


def test_sources_are_named(inside):
    for what in ["congestion", "schedulers", "path-managers", "queues", "profiles"]:
        assert all(e["source"] for e in json.loads(inside("list", what, "--json").stdout))


def test_schema_accepts_what_the_command_accepts(inside):
    schema = json.loads(inside("schema").stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    texts = [TINY, *(p.read_text() for p in sorted((ROOT / "examples").glob("*.toml")))]
    scenarios = [t for t in texts if "[axes]" not in t]  # a sweep is not a scenario
    assert len(scenarios) > 5
    for text in scenarios:
        assert [e.message for e in validator.iter_errors(loads(text))] == []
    wrong = loads(TINY.replace("duration", "durration"))
    assert list(validator.iter_errors(wrong))
