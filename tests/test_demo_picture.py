"""The picture of the README shows what `make demo` gives."""

from __future__ import annotations

import importlib.util
import re
import struct

import gargalo
from conftest import ROOT

spec = importlib.util.spec_from_file_location("demo_picture", ROOT / "tools" / "demo_picture.py")
assert spec is not None
assert spec.loader is not None
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def texts(png: bytes) -> dict[str, str]:
    """Return the texts in a picture (PNG's tEXt chunks)."""
    found, at = {}, 8
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        if kind == b"tEXt":
            key, _, value = png[at + 8 : at + 8 + length].partition(b"\0")
            found[key.decode()] = value.decode("latin-1")
        at += 12 + length
    return found


def test_the_picture_is_of_what_the_demo_gives():
    again = "the picture of the README is of another run: make pictures"
    run = re.search(r'^demo:.*?gargalo" run (\S+)$', (ROOT / "Makefile").read_text(), re.M | re.S)
    assert run is not None
    assert run[1] == tool.SCENARIO
    committed = tool.FIGURES.read_text(encoding="utf-8")
    assert tool.figures(gargalo.run(ROOT / run[1])) == committed, again
    assert texts(tool.PICTURE.read_bytes())[tool.DIGEST] == tool.digest(committed), again
    assert f"]({tool.PICTURE.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
