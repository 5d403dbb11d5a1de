"""The pictures of README and documentation show what the examples give."""

from __future__ import annotations

import os
import re
import struct

import demo_picture as tool
import pytest
from conftest import ROOT


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


def test_the_readme_shows_what_the_demo_gives():
    run = re.search(r'^demo:.*?gargalo" run (\S+)$', (ROOT / "Makefile").read_text(), re.M | re.S)
    assert run is not None
    assert run[1] == tool.PICTURES["cellular-race"][0]


@pytest.mark.parametrize("name", tool.PICTURES)
def test_a_picture_is_of_what_its_example_gives(name):
    again = f"docs/images/{name}.png is of another run: make pictures"
    committed = (tool.IMAGES / f"{name}.csv").read_text(encoding="utf-8")
    assert tool.figures(tool.chart(name)) == committed, again
    picture = tool.IMAGES / f"{name}.png"
    assert texts(picture.read_bytes())[tool.DIGEST] == tool.digest(name, committed), again
    page = tool.ROOT / tool.PICTURES[name][2]
    shown = os.path.relpath(picture, page.parent)
    assert f"]({shown})" in page.read_text(encoding="utf-8")
