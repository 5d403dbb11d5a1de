"""The toy in Python, as `gargalo plugin new --from stack.py` writes it, without a name of its own."""

from __future__ import annotations

from pathlib import Path

FILE = (
    Path(__file__).resolve().parents[1] / "python" / "gargalo" / "examples" / "plugins" / "stack.py"
)
SOURCE = FILE.read_text(encoding="utf-8").replace('@gargalo.quic_stack("toy-stack")\n', "")

exec(compile(SOURCE, __file__, "exec"))
