"""Texts that nobody would write, through the command: it ends with 0 or 2, and never in a traceback."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from gargalo.cli.app import app

KEPT = sorted((Path(__file__).parent.parent / "fuzz/corpus/scenario_text").iterdir())
WORDS = [b'"', b"{", b"[", b"=", b"\x00", b"\xff", b"1e999", b"-1", b'"0s"', b"[[flows]]\n", b"\n"]
CHANGED = 50


def changed(texts: list[bytes], rng: random.Random) -> bytes:
    """A text with pieces taken out, put in, moved and taken from another."""
    text = bytearray(rng.choice(texts))
    for _ in range(rng.randint(1, 6)):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.randint(0, 12))
        other = rng.choice(texts)
        start = rng.randint(0, len(other))
        piece = [b"", rng.choice(WORDS), other[start : start + 30]][rng.randint(0, 2)]
        text[at:end] = piece
    return bytes(text)


@pytest.mark.parametrize("seed", range(2))
def test_exit_codes(tmp_path: Path, seed: int) -> None:
    texts = [p.read_bytes() for p in KEPT]
    rng = random.Random(seed)
    texts = texts[seed::2] + [changed(texts, rng) for _ in range(CHANGED)]
    short = ["--json", "--quiet", "--set", "duration=5ms"]
    codes = {0: 0, 2: 0}
    for n, text in enumerate(texts):
        path = tmp_path / f"{n}.toml"
        path.write_bytes(text)
        done = CliRunner().invoke(app, ["run", str(path), *short])
        assert done.exit_code in codes, f"{done.exit_code} {done.exception!r}\n{text!r}"
        codes[done.exit_code] += 1
    assert min(codes.values()) > 3, codes
