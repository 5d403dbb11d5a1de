"""`gargalo trace`."""

from __future__ import annotations

import json


def test_generate_info_check(inside, tmp_path):
    first = inside("trace", "generate", "a.down", "--duration", "20s", "--seed", 7)
    assert first.returncode == 0, first.stderr
    assert inside("trace", "generate", "b.down", "--duration", "20s", "--seed", 7).returncode == 0
    assert (tmp_path / "a.down").read_text() == (tmp_path / "b.down").read_text()
    refused = inside("trace", "generate", "a.down")
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr
    info = json.loads(inside("trace", "info", "a.down", "--json").stdout)
    assert info["opportunities"] == len((tmp_path / "a.down").read_text().splitlines())
    assert 0 < info["rate_mean_bps"] <= 14e6
    assert "Mbit/s" in inside("trace", "info", "a.down").stdout
    assert inside("trace", "check", "a.down", "b.down").returncode == 0


def test_check_names_the_line(inside, tmp_path):
    (tmp_path / "bad.down").write_text("1\n5\n3\n")
    done = inside("trace", "check", "bad.down")
    assert done.returncode == 2
    assert "line 3" in done.stderr


def test_convert(inside, tmp_path):
    (tmp_path / "rates").write_text("1.0 12.0\n2.0 6.0\n")
    assert inside("trace", "convert", "rates", "out.down").returncode == 0
    info = json.loads(inside("trace", "info", "out.down", "--json").stdout)
    assert abs(info["rate_mean_bps"] - 9e6) < 1e5
    (tmp_path / "bad").write_text("1.0 12.0\n2.0\n")
    done = inside("trace", "convert", "bad", "x.down")
    assert done.returncode == 2
    assert "bad:2" in done.stderr
    assert not (tmp_path / "x.down").exists()


def test_bad_parameters(inside, tmp_path):
    done = inside("trace", "generate", "x.down", "--rate", "5")
    assert done.returncode == 2
    assert "5" in done.stderr
    assert not (tmp_path / "x.down").exists()
