"""BBRv2 from end to end: what draft-cardwell-iccrg-bbr-congestion-control-02 promises, on whole paths."""

from __future__ import annotations

from typing import Any

import gargalo
import polars as pl
import pytest

RTT_S = 0.04
PAYLOAD = 1448 / 1500


def run(*controls: Any, rate: float = 10e6, queue: str = "1BDP", **more: Any) -> gargalo.Run:
    """Endless flows of these controls over a link of 40 ms."""
    link = {"rate": f"{rate:.0f}bit/s", "delay": "20ms", "queue": {"droptail": queue}}
    flows = [
        {"from": "client", "to": "server", "transport": t, "workload": {"bulk": {}}}
        for t in (c if isinstance(c, dict) else {"tcp": {"congestion": c}} for c in controls)
    ]
    return gargalo.run(
        {
            "name": "bbr2",
            "duration": more.pop("duration", "20s"),
            "seed": 1,
            "topology": {"simple": {"link": link | more.pop("link", {})}},
            "flows": flows,
            "record": {"gauges": True},
            **more,
        }
    )


def share(done: gargalo.Run, flow: int = 0, rate: float = 10e6) -> float:
    """Goodput of a flow, of the payload that the link can carry."""
    return float(done.flows["goodput_bps"][flow] / (rate * PAYLOAD))


def gauge(done: gargalo.Run, name: str) -> pl.DataFrame:
    return done.gauges.filter(pl.col("name") == name)


@pytest.mark.parametrize("transport", ["tcp", "quic", "mptcp"])
def test_alone_it_fills_a_link_with_a_small_queue(transport):
    done = run({transport: {"congestion": "bbr2"}}, queue="15 packets", measure={"from": "5s"})
    assert 0.9 <= share(done) <= 1.01


def test_beside_cubic_it_gets_neither_nothing_nor_all():
    done = run("bbr2", "cubic", duration="60s", measure={"from": "10s"})
    assert 0.1 <= share(done) <= 0.9
    assert 0.1 <= share(done, 1) <= 0.9


def test_losses_end_startup_in_a_shallow_buffer():
    # A plateau takes three rounds without growth (section 4.3.1.2); losses, one in recovery (section 4.3.1.3).
    done = run("bbr2", rate=50e6, queue="10 packets", duration="3s")
    phases = done.gauges.select("time_s", "phase").unique(maintain_order=True).sort("time_s")
    left = float(phases.filter(pl.col("phase") != "startup")["time_s"][0])
    rounds = gauge(done, "full_bandwidth_rounds").filter(pl.col("time_s") == left)["value"]
    reached = gauge(done, "full_bandwidth_reached").filter(pl.col("time_s") == left)["value"]
    assert left < 1.0
    assert rounds[0] < 3
    assert reached[0] == 1
    # They set no bound.
    bound = gauge(done, "inflight_longterm_bytes").filter(pl.col("time_s") == left)["value"]
    assert bound.is_nan().all()


@pytest.mark.parametrize(
    ("own", "rate", "delay"),
    [
        # The draft's packet conservation holds a probe back where most rounds have a loss (a page says how much).
        ({"packet_conservation": False}, 10e6, "20ms"),
        ({"packet_conservation": False}, 10e6, "100ms"),
        ({}, 2e6, "20ms"),
        ({}, 20e6, "5ms"),
    ],
)
def test_one_percent_lost_at_random_is_below_the_threshold(own, rate, delay):
    done = run(
        {"tcp": {"congestion": {"bbr2": own}}},
        rate=rate,
        link={"delay": delay, "loss": {"independent": "1%"}},
        duration="60s",
        measure={"from": "5s"},
    )
    assert share(done, rate=rate) >= 0.8


def test_probe_rtt_keeps_half_a_product():
    done = run("bbr2", duration="15s")
    inside = done.flow_samples.filter(pl.col("phase") == "probe-rtt")
    product = 10e6 * RTT_S / 8
    assert inside["time_s"].min() >= 5
    assert inside["congestion_window_bytes"].min() == pytest.approx(product / 2, rel=0.1)


def test_a_profile_without_pacing_paces_it():
    def control(name: str) -> str:
        done = gargalo.resolve(
            {
                "duration": "1s",
                "topology": {"simple": {"link": {"rate": "10Mbit/s", "delay": "20ms"}}},
                "flows": [
                    {
                        "from": "client",
                        "to": "server",
                        "transport": {"tcp": {"congestion": name, "profile": "ns3-3.27"}},
                        "workload": {"bulk": {}},
                    }
                ],
            }
        )
        return str(done["flows"][0]["transport"]["tcp"]["pacing"])

    assert control("bbr2") == control("bbr3") != control("cubic")
