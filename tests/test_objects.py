"""Objects of requests and TLS: the table, the columns, and what they show."""

from __future__ import annotations

import json
from typing import Any

import gargalo
import polars as pl
import pytest
from conftest import ROOT
from gargalo import sweeps

RTT = 0.040
"""Of the link below, in seconds."""


def page(
    loss: object = 0, tls: object = False, initial_window: str = "10 packets", **request: object
) -> dict[str, Any]:
    flow = {
        "from": "client",
        "to": "server",
        "transport": {"tcp": {"tls": tls, "initial_window": initial_window}},
        "workload": {"request": {"objects": 40, "size": "10kB", **request}},
    }
    link = {"rate": "20Mbit/s", "delay": "20ms", "loss": loss}
    topology = {"simple": {"link": link}}
    return {"name": "page", "duration": "30s", "topology": topology, "flows": [flow]}


def test_objects_are_a_table():
    run = gargalo.run(page(order="multiplexed"))
    objects = run.objects
    assert objects.columns == [
        "flow",
        "object",
        "size_bytes",
        "requested_s",
        "first_byte_s",
        "completed_s",
        "completion_s",
    ]
    assert objects["object"].to_list() == list(range(40))
    assert objects["size_bytes"].unique().to_list() == [10_000]
    assert (objects["first_byte_s"] <= objects["completion_s"]).all()
    late = objects["requested_s"] + objects["completion_s"] - objects["completed_s"]
    assert late.abs().max() < 1e-9
    flow = run.flows.row(0, named=True)
    assert flow["completed_objects"] == 40
    assert flow["object_completion_max_s"] == objects["completion_s"].max()
    median = objects["completion_s"].quantile(0.5, "linear")
    assert flow["object_completion_p50_s"] == pytest.approx(median, rel=1e-12)
    p95 = objects["completion_s"].quantile(0.95, "linear")
    assert run.summary["object_completion_p95_s"] == pytest.approx(p95, rel=1e-12)
    # All were asked for as soon as the connection was there, and the last ends the flow.
    assert objects["requested_s"].unique().to_list() == [flow["handshake_s"]]
    assert objects["completed_s"].max() == pytest.approx(flow["completion_s"], rel=1e-12)


def test_objects_are_written_and_read(tmp_path):
    run = gargalo.run(page(order="pipelined"), output=tmp_path / "out")
    assert gargalo.load(tmp_path / "out").objects.equals(run.objects)
    # In order: each ends when all before it have.
    ends = run.objects["completed_s"]
    assert ends.is_sorted()
    assert ends.n_unique() > 10
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary["completed_objects"] == 40


def test_other_workloads_have_none(tiny, tmp_path):
    run = gargalo.run(tiny, output=tmp_path / "out")
    assert run.objects.is_empty()
    assert not (tmp_path / "out" / "objects.parquet").exists()
    assert "completed_objects" not in run.summary
    assert run.flows["completed_objects"].null_count() == 2
    first, second = run.flows["handshake_s"]
    assert first == pytest.approx(0.02, abs=0.001)
    assert second > first, "it finds a queue"


@pytest.mark.parametrize(
    ("tls", "handshake", "begins"),
    [(False, 1, 2), (True, 2, 3), ("1.3", 2, 3), ({"early_data": True}, 1, 2)],
)
def test_tls_in_round_trips(tls, handshake, begins):
    flow = gargalo.run(page(tls=tls, objects=1, size="1kB")).flows.row(0, named=True)
    assert flow["handshake_s"] == pytest.approx(handshake * RTT, abs=0.002)
    assert flow["first_byte_s"] == pytest.approx(begins * RTT, abs=0.003)
    assert flow["delivered_bytes"] == 1000


def test_a_lost_packet_holds_up_objects_that_lost_nothing():
    """It has bytes of three objects at most, but many more wait until it was repeated."""

    def took(n: int) -> pl.Series:
        run = gargalo.run(
            page(
                loss={"periodic": n}, initial_window="100 packets", order="multiplexed", size="1kB"
            )
        )
        assert run.flows["retransmitted_packets"].to_list() == [int(n < 100)]
        return run.objects["completion_s"]

    later = took(20) - took(1000) > 0.9 * RTT
    assert later.sum() > 10
    assert later.is_sorted(), "those before it are as quick as without"


def test_sizes_are_drawn_alike_whatever_the_order():
    size = {"lognormal": {"mu": 9, "sigma": 1, "max": "1MB"}}
    runs = [gargalo.run(page(order=o, size=size), seed=5) for o in ("sequential", "multiplexed")]
    sizes = [r.objects["size_bytes"].to_list() for r in runs]
    assert sizes[0] == sizes[1]
    assert len(set(sizes[0])) > 35
    other = gargalo.run(page(size=size), seed=6).objects["size_bytes"].to_list()
    assert other != sizes[0]


def test_the_example_shows_what_it_says():
    run = gargalo.run(ROOT / "examples" / "page-load.toml")
    assert run.objects.height == 300
    labels = run.flows.select(pl.col("id").alias("flow"), "label")
    took = run.objects.join(labels, on="flow").group_by("label").agg(pl.len())
    assert dict(took.rows()) == {
        "six connections": 60,
        "in turns": 60,
        "in turns, TLS": 60,
        "in turns, TLS with early data": 60,
        "in turns, QUIC": 60,
    }
    by_label = {r["label"]: r for r in run.flows.to_dicts()}
    plain, tls = by_label["in turns"]["handshake_s"], by_label["in turns, TLS"]["handshake_s"]
    assert tls == pytest.approx(2 * plain, rel=0.05)
    early = by_label["in turns, TLS with early data"]["handshake_s"]
    assert early == pytest.approx(plain, rel=1e-3)
    assert run.warnings == []


def test_sweeps_have_figures_of_objects(tmp_path):
    """Also where only some of the runs have objects."""
    bulk = {"bulk": {"bytes": "100kB"}}
    request = {"request": {"objects": 10, "size": "10kB", "order": "multiplexed"}}
    done = sweeps.sweep(
        page(),
        {"flows.0.workload": [bulk, request]},
        store=tmp_path / "store",
        keep=["flows", "objects"],
    )
    assert not done.failures
    frame = done.frame().sort("completed_objects", nulls_last=True)
    assert frame["completed_objects"].to_list() == [10, None]
    assert frame["object_completion_p50_s"].null_count() == 1
    assert done.table("objects").collect().height == 10
