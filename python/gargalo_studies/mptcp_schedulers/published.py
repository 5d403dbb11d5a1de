"""What the work says in numbers."""

from __future__ import annotations

LWS_GAIN, LTS_GAIN = 0.07, 0.04
"""Over the kernel's scheduler, in E1 with losses of 4% and more."""
E2_GAIN = 0.02
"""Of HSR and LTS over the kernel's scheduler, on average over E2."""
ALIKE = 0.02
"""Distance of mean goodputs that counts as the same; the work says 1% of BALIA, whose own noise is near that."""
LOSSY_FROM = 0.04
DOUBLE = 2.0
"""Goodput of single mesh over full mesh in Exp3 and Exp4 under OLIA and BALIA."""
CLEARLY = 1.05
"""What "clearly" is taken for."""
