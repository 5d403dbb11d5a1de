"""What an evaluation measures of a run, on frames made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest
from gargalo.evaluation import measure
from gargalo.evaluation.criteria import tcpeval
from gargalo.scenarios.setup import Setup

LINK = {"rate": {"constant_bps": 12e6}, "delay": None, "outages": []}


def run(delivered, *, queue=None, sent=None, dropped=None, up=None, flows=None, end=None):
    """A run of flows whose data delivered (byte) is given every 0.5 s, over one link."""
    n = len(delivered[0])
    times = [0.5 * k for k in range(n)]
    rows = flows or [{} for _ in delivered]
    whole = {
        "label": "own", "start_s": 0.0, "end_s": times[-1], "sent_packets": 100, "lost_packets": 0,
        "retransmitted_packets": 0, "timeouts": 0, "throughput_bps": 0.0, "completion_s": None,
        "goodput_bps": 0.0, "rtt_min_s": 0.04, "rtt_p50_s": 0.05, "rtt_p95_s": 0.06,
        "delay_p95_s": None,
    }  # fmt: skip
    zero = [0] * n
    queue, sent, dropped = queue or [0.0] * n, sent or zero, dropped or zero
    link = {"name": "bottleneck", "up": up or LINK, "down": LINK}
    return SimpleNamespace(
        setup=Setup.read({
            "duration_s": end or times[-1],
            "links": [link],
            "flows": [
                {"id": i, "start_s": r.get("start_s", 0.0),
                    "workload": {"bulk": {k: r[k] for k in ("bytes",) if r.get(k)}}}
                for i, r in enumerate(rows)
            ],
        }),
        info={"virtual_s": times[-1]},
        flows=pl.DataFrame(
            [
                {"id": i} | whole | {"delivered_bytes": delivered[i][-1]} | {k: v for k, v in r.items() if k != "bytes"}
                for i, r in enumerate(rows)
            ],
            schema_overrides={"id": pl.UInt64, "completion_s": pl.Float64},
        ),
        flow_samples=pl.DataFrame(
            {
                "time_s": [t for _ in delivered for t in times],
                "flow": pl.Series([i for i in range(len(delivered)) for _ in times], dtype=pl.UInt64),
                "delivered_bytes": [float(d) for own in delivered for d in own],
            }
        ),
        link_samples=pl.DataFrame(
            {
                "time_s": times, "link": ["bottleneck"] * n, "direction": ["up"] * n,
                "queue_delay_s": queue, "sent_bytes": sent, "dropped_packets": dropped,
                "utilization": [0.5] * n,
            }
        ),
        links=[
            {
                "name": "bottleneck", "direction": "up", "utilization": 0.5, "capacity_bps": 12e6,
                "offered_packets": 200, "dropped_queue_full_packets": 10, "dropped_aqm_packets": 10,
                "queue_delay_mean_s": 0.002,
                "marked_packets": 4,
            }
        ],
    )  # fmt: skip


def curve(rates_bps):
    """Data delivered at rates that hold for 0.5 s each."""
    total, found = 0.0, [0.0]
    for rate in rates_bps:
        total += rate * 0.5 / 8
        found.append(total)
    return found


def test_measures_of_steady_flows():
    fast, slow = curve([9e6] * 40), curve([0.5e6] * 40)
    found = measure.measure(run([fast, slow], queue=[0.01] * 41))
    assert found["goodput_bps.own"] == pytest.approx(9.5e6)
    assert (found["least_bps.own"], found["most_bps.own"]) == pytest.approx((0.5e6, 9e6))
    # A tenth of the fair share of 6 Mbit/s is 0.6 Mbit/s: the slow one starves, and it counts.
    assert found["starved.own"] == 1.0
    assert found["jain.own"] == found["jain"] == pytest.approx(9.5**2 / (2 * (81 + 0.25)))
    assert (found["queue_p50_s"], found["standing_queue_s"]) == (0.01, 0.01)
    assert (found["drop_rate"], found["mark_rate"]) == (0.1, 0.02)
    assert found["per_rtt.own"] == pytest.approx(100 * 0.04 / 20)
    assert found["variation.own"] == pytest.approx(0, abs=1e-9)
    assert found["convergence_s"] == 20.0, "never"
    assert (found["wasted_bps"], found["queue_mean_s"]) == (0, 0.002)
    assert found["utilization"] == 0.5


def test_figures_leave_the_warm_up_out():
    found = measure.measure(run([curve([0.0] * 10 + [8e6] * 30)]))
    assert found["goodput_bps.own"] == pytest.approx(8e6)
    assert found["starved.own"] == 0.0


def test_unfinished_transfers_count_with_the_time_they_had():
    flows = [
        {"completion_s": 2.0, "bytes": 1000, "label": "short"},
        {"completion_s": None, "bytes": 1000, "label": "short", "start_s": 4.0},
    ]
    found = measure.measure(run([curve([1e3] * 20)] * 2, flows=flows))
    assert found["completed.short"] == 0.5
    assert found["completion_p50_s.short"] == pytest.approx(4.0)
    assert "starved.short" not in found
    assert "convergence_s" not in found


def test_what_is_dropped_behind_the_first_link_is_wasted():
    made = run([curve([1e6] * 20)])
    made.links.append(made.links[0] | {"name": "further"})
    made.links.append(made.links[0] | {"name": "wire", "capacity_bps": None, "utilization": None})
    assert measure.measure(made)["wasted_bps"] == pytest.approx(20 * 12_000 / 10)


def outage(rates, *, until=15.0, sent=None):
    return measure.outages(
        run([curve(rates)], up=LINK | {"outages": [(10.0, until)]}, sent=sent, dropped=sent and [0] * len(sent))
    )  # fmt: skip


def test_recovery_is_counted_from_the_end_of_the_outage_and_must_last():
    # Before 10 s 8 Mbit/s, nothing until 15 s; then a burst of what had waited, and later the rate.
    found = outage([8e6] * 20 + [0] * 10 + [20e6] + [0] * 5 + [8e6] * 10)
    assert found["recovery_s"] == pytest.approx(3.5)
    assert found["recovered"] == pytest.approx(1.0)
    never = outage([8e6] * 20 + [0] * 10 + [2e6] * 20)
    assert never["recovery_s"] == pytest.approx(10.0)
    assert never["recovered"] == pytest.approx(0.25)


def test_packets_sent_into_an_outage():
    sent = [3000 * min(k, 20) + 1500 * max(0, min(k, 30) - 20) for k in range(51)]
    found = outage([8e6] * 50, sent=sent)
    assert found["outage_packets"] == pytest.approx(10)
    assert found["outage_late_packets"] == pytest.approx(5)
    forever = outage([8e6] * 20 + [0] * 30, until=60.0, sent=sent)
    assert "recovery_s" not in forever
    assert forever["outage_packets"] == pytest.approx(10)
    assert forever["outage_late_packets"] == 0


def test_steps_of_the_rate():
    up = LINK | {"rate": {"steps": [(0.0, 4e6), (10.0, 40e6)]}}
    most = 40e6 * 1448 / 1500
    dropped = [0] * 20 + [0, 5, 7, 9, 9] + [9] * 36
    rates = [4e6 * 1448 / 1500] * 20 + [0.5 * most] * 10 + [most] * 30
    found = measure.changes(run([curve(rates)], up=up, dropped=dropped))
    assert found["before"] == pytest.approx(1)
    assert found["followed"] == pytest.approx(1)
    assert found["rising"] == pytest.approx(1)
    # Five seconds with half of it; means over 2 s look ahead, which takes one bin off.
    assert found["follow_s"] == pytest.approx(4.5, abs=0.6)
    assert found["step_drops"] == pytest.approx(9)


def test_a_flow_that_is_slow_still_rises():
    up = LINK | {"rate": {"steps": [(0.0, 4e6), (10.0, 40e6)]}}
    found = measure.changes(run([curve([4e6] * 20 + [4e6 + 1e5 * k for k in range(40)])], up=up))
    # From 10 s to 30 s; means of the second and the last quarter of it: 5.45 and 7.45 Mbit/s.
    assert found["rising"] == pytest.approx(7.45 / 5.45)
    assert found["followed"] == pytest.approx(7.45 * 1500 / 1448 / 40)


def test_a_flow_that_goes_wrong_slowly_has_not_followed():
    up = LINK | {"delay": {"steps": [(0.0, 0.01), (10.0, 0.06)]}}
    most = 12e6 * 1448 / 1500
    found = measure.changes(run([curve([most] * 26 + [0.1 * most] * 34)], up=up))
    assert found["followed"] == pytest.approx(0.1)
    assert found["rising"] == pytest.approx(1)
    assert found["follow_s"] > 15
    never = measure.changes(run([curve([most] * 60)]))
    assert never == {}


def test_ramp_up_is_timed_by_bytes():
    # 8 Mbit/s from 2 s on: a megabyte a second.
    made = run(
        [curve([8e6] * 20), curve([0] * 4 + [8e6] * 16)],
        flows=[{}, {"label": "new", "start_s": 2.0}],
    )
    found = measure.ramp(made)
    assert found["reach_2_s.new"] == pytest.approx(0.15)
    assert found["reach_3_s.new"] == pytest.approx(1.5)
    assert found["reach_4_s.new"] == pytest.approx(8.0), "never: the time there was"
    assert measure.ramp(run([curve([8e6] * 20)])) == {}


def test_windows_after_cross_traffic_has_gone():
    flows = [{}, {"label": "cross", "end_s": 5.0}]
    made = run([curve([6e6] * 40)] * 2, flows=flows)
    # 12 Mbit/s times 40 ms are 60 kB; the window grows by 6 kB every half second from 5 s on.
    made.flow_samples = made.flow_samples.with_columns(
        (12_000.0 * (pl.col("time_s") - 5).clip(0, None)).alias("congestion_window_bytes")
    )
    found = measure.transient(made)
    assert found["window_60_s"] == pytest.approx(3.0)
    assert found["window_80_s"] == pytest.approx(4.0)
    assert found["window_90_s"] == pytest.approx(4.5)
    assert found["window_leap_bytes"] == pytest.approx(12_000 * 0.04)
    assert measure.transient(run([curve([6e6] * 40)] * 2, flows=[{}, {"label": "cross"}])) == {}


def test_rates_of_files_by_their_size():
    sizes, rates = (1e3, 2e3, 4e3, 9e3), (1e5, 2e5, 4e5, 9e5)
    flows = [
        {
            "label": "A",
            "bytes": 1,
            "delivered_bytes": size,
            "goodput_bps": rate,
            "completion_s": 1.0,
        }
        for size, rate in zip(sizes, rates, strict=True)
    ]
    flows.append(flows[0] | {"completion_s": None, "goodput_bps": 0.0})
    found = measure.measure(run([curve([1e3] * 20)] * 5, flows=flows))
    assert found["flow_bps.A"] == pytest.approx(4e5)
    assert found["flow_bps_small.A"] == pytest.approx(1e5)
    assert found["flow_bps_large.A"] == pytest.approx(9e5)


def test_gain_and_loss_are_over_the_same_files_among_reno():
    rows = pl.DataFrame(
        {
            "rate_bps": [1e7, 1e7, 1e9, 1e9], "load": [0.5] * 4, "case": ["base", "mix"] * 2,
            "flow_bps.A": [10.0, 5.0, 10.0, 10.0],
        }
    )  # fmt: skip
    assert tcpeval.over_base("flow_bps.A")(rows) == pytest.approx(0.75)
    assert tcpeval.over_base("flow_bps.A")(rows.filter(pl.col("case") == "mix")) is None
    assert tcpeval.over_base("flow_bps.B")(rows) is None
