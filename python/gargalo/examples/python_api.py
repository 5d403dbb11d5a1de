# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Gargalo from Python
#
# A scenario is a TOML file, a dictionary, or built here. A run is data frames and figures.

# %%
from pathlib import Path

import gargalo
import polars as pl

link = {"rate": "10Mbit/s", "delay": "20ms", "queue": {"droptail": "1BDP"}}
race = (
    gargalo.Scenario("race", duration="10s", seed=1)
    .simple(**link)
    .flow(congestion="cubic", label="CUBIC")
    .flow(congestion="bbr", label="BBR", start="2s")
)
run = gargalo.run(race)
print(run.flows.select("label", "goodput_bps", "rtt_p95_s", "retransmitted_packets"))

# %% [markdown]
# ## Tables
#
# Everything is in SI: bits per second, seconds, bytes.

# %%
late = run.flow_samples.filter(pl.col("time_s") > 5)
print(late.group_by("flow").agg(pl.col("congestion_window_bytes").mean()).sort("flow"))

# %% [markdown]
# ## Pictures

# %%
figure = run.plot.congestion_window()
run.plot.queue()


# %% [markdown]
# ## A congestion control of your own
#
# A class with the methods of `gargalo.Controller`, known to scenarios by its name.


# %%
@gargalo.congestion("timid")
class Timid(gargalo.Controller):
    """Additive increase, and a window that never exceeds `most` segments."""

    def __init__(self, init: gargalo.Init, most: float = 20) -> None:
        self.most = most
        self.window = float(init.initial_window)

    def on_ack(self, ack: gargalo.Acked, path: gargalo.Path) -> None:
        if not ack.in_recovery:
            self.window += path.mss * ack.acknowledged / self.window
            self.window = min(self.window, self.most * path.mss)

    def on_congestion(self, event: gargalo.Congestion, path: gargalo.Path) -> None:
        self.window = max(self.window / 2, path.mss)

    def cwnd(self) -> float:
        return self.window


polite = (
    gargalo.Scenario("polite", duration="10s")
    .simple(**link)
    .flow(congestion={"timid": {"most": 12}}, label="timid")
    .flow(congestion="cubic", label="CUBIC")
)
for seed in (1, 2, 3):
    run = gargalo.run(polite, seed=seed)
    shares = dict(run.flows.select("label", "goodput_bps").iter_rows())
    print(seed, {label: f"{bps / 1e6:.2f} Mbit/s" for label, bps in shares.items()})

# %% [markdown]
# ## Results on disk

# %%
if __name__ == "__main__":
    saved = gargalo.run(race, output="runs/race", existing="replace")
    assert saved.directory == Path("runs/race")
    print(gargalo.load("runs/race").summary)
