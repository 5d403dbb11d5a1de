"""What the work measured: means in Mbit/s and shares of the link."""

from __future__ import annotations

BBR, RENO, CUBIC = "bbr", "reno", "cubic"
MEANS: dict[str, dict[str, float]] = {
    "loss": {BBR: 6.39, RENO: 4.66, CUBIC: 4.61},
    "rate": {BBR: 7.35, RENO: 5.26, CUBIC: 4.95},
    "traces": {BBR: 5.3, RENO: 3.71, CUBIC: 4.66},
}
"""Over the cells of A, B and C."""
FACTOR_AT_1_PERCENT = 2.44
UTILIZATION: dict[float, dict[str, float]] = {
    6.0: {BBR: 0.73, CUBIC: 0.81},
    24.0: {BBR: 0.50, RENO: 0.24, CUBIC: 0.24},
}
"""By rate in Mbit/s."""
VARIATION = {BBR: 0.47, RENO: 0.12, CUBIC: 0.13}
"""Coefficients of variation; from them the work concludes that BBR varies less."""
TITLES = {RENO: "NewReno", CUBIC: "CUBIC", BBR: "BBR"}
