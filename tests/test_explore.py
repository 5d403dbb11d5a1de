"""The explorer's server: texts that are changed, answers that stream, and whom it does not answer."""

from __future__ import annotations

import html
import http.client
import json
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import gargalo
import pytest
from explore_server import served
from gargalo.cli.explore import scenario
from gargalo.explaining import explain
from gargalo.exploring import glimpses
from gargalo.exploring.difference import difference
from gargalo.exploring.papers import FORMATS, file_of
from gargalo.exploring.server import Asked, Preset, Site, answer, apart
from gargalo.exploring.text import Edit, edited, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gargalo.running import Progress

TEXT = """\
# Two flows, one link.
name = "two"      # kept
duration = "2s"
topology.simple.link = { rate = "5Mbit/s", delay = "10ms" }
[[flows]]
label = "one"     # the first
from = "client"
to = "server"
transport.tcp = { congestion = "cubic" }
[[flows]]
from = "client"
to = "server"
transport.tcp.congestion = "reno"
"""


# --- the text


def test_a_change_leaves_the_rest_as_it_was_written():
    link = ("topology", "simple", "link")
    changed = edited(TEXT, [Edit((*link, "rate"), "9Mbit/s"), Edit(("flows", 0, "start"), "1s")])
    expected = TEXT.replace("5Mbit", "9Mbit")
    assert [line for line in changed.splitlines() if line not in expected.splitlines()] == [
        'start = "1s"'
    ]
    assert plain(changed)["flows"][0]["start"] == "1s"


def test_tables_lists_and_kinds_come_and_go():
    queue = ("topology", "simple", "link", "queue")
    flow = plain(TEXT)["flows"][0]
    changed = edited(
        TEXT,
        [
            Edit(queue, {"droptail": "20 packets"}),
            Edit(("flows", 2), flow),
            Edit(("flows", 1), remove=True),
            Edit(("record", "gauges"), True),
            Edit(("flows", 0, "transport", "tcp", "congestion"), {"bbr": {"cwnd_gain": 3}}),
        ],
    )
    found = plain(changed)
    assert found["topology"]["simple"]["link"]["queue"] == {"droptail": "20 packets"}
    assert [f.get("label") for f in found["flows"]] == ["one", "one"]
    assert found["record"] == {"gauges": True}
    assert found["flows"][0]["transport"]["tcp"]["congestion"]["bbr"]["cwnd_gain"] == 3
    assert gargalo.run(changed).flows["congestion"].to_list() == ["bbr", "cubic"]


@pytest.mark.parametrize(
    ("place", "value"), [(("flows", 7, "start"), "1s"), (("name", "x"), 1), (("flows", "x"), 1)]
)
def test_a_place_that_does_not_exist_is_named(place, value):
    with pytest.raises(ValueError, match=r"there is no "):
        edited(TEXT, [Edit(place, value)])


@pytest.mark.parametrize(
    "given", [None, {}, {"place": []}, {"place": [1.5]}, {"place": ["a"], "value": None}]
)
def test_what_is_no_edit_is_refused(given):
    with pytest.raises(ValueError, match=r"an edit needs a place|is null"):
        Edit.read(given)


# --- two runs


def test_the_first_difference_is_where_two_runs_part():
    record = {"record.events": True}
    a = gargalo.run(TEXT, set=record)
    b = gargalo.run(TEXT, set={**record, "flows.1.start": "500ms"})
    found = difference(a, b)
    assert found is not None
    assert found.time_s <= 0.1, "at once: the second flow does not start"
    # A change in the middle: what came before it is the same.
    found = difference(a, gargalo.run(TEXT, set={**record, "flows.1.stop": "1s"}))
    assert found is not None
    assert 1.0 <= found.time_s <= 1.2
    assert difference(a, gargalo.run(TEXT, set=record)) is None


# --- the command and the server


def test_a_file_that_is_not_there_is_one_sentence(gargalo, tmp_path):
    done = gargalo("explore", tmp_path / "none.toml", "--no-open")
    assert done.returncode == 2
    assert "none.toml: cannot be read: No such file" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def link() -> Iterator[str]:
    with served() as found:
        yield found


class Client:
    """What a browser sends, or somebody who is none."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self.host = parts.netloc
        self.token = parse_qs(parts.query)["token"][0]
        self.own = {
            "Origin": f"http://{self.host}",
            "Cookie": f"gargalo_{parts.port}={self.token}",
            "Content-Type": "application/json",
        }

    def ask(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], str]:
        status, found, content = self.fetch(path, body, headers)
        return status, found, content.decode()

    def fetch(
        self, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        with closing(http.client.HTTPConnection(self.host, timeout=60)) as connection:
            sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
            method = "GET" if body is None else "POST"
            connection.request(method, path, sent, dict(self.own if headers is None else headers))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def run(self, text: str, **more: Any) -> list[dict[str, Any]]:
        status, _, told = self.ask("/api/run", {"text": text, **more})
        assert status == 200, told
        return [json.loads(line) for line in told.splitlines()]


@pytest.fixture
def client(link: str) -> Client:
    return Client(link)


def test_an_answer_is_the_run_of_the_changed_text(client):
    edits = [{"place": ["topology", "simple", "link", "rate"], "value": "2Mbit/s"}]
    found = client.run(TEXT, edits=edits)
    kinds = [p["part"] for p in found if p["part"] != "progress"]
    assert kinds[:4] == ["scenario", "about", "panel", "network"]
    assert kinds[-2:] == ["story", "done"]
    panels = [p["metric"] for p in found if p["part"] == "panel"]
    assert panels[:3] == ["goodput", "rtt", "queue"]
    about = next(p for p in found if p["part"] == "about")
    record = {f"record.{name}": True for name in ("flows", "links", "events", "gauges")}
    direct = gargalo.run(TEXT, set={**record, "topology.simple.link.rate": "2Mbit/s"})
    assert about["results_hash"] == direct.info["results_hash"]
    assert 'rate = "2Mbit/s"' in found[0]["text"]
    asked = client.run(TEXT, panels=["cwnd", "gauge:no-such", "in-flight"])
    assert [p["metric"] for p in asked if p["part"] == "panel"] == ["cwnd", "in-flight"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (TEXT.replace('"10ms"', '"10 parsecs"'), 4, "parsecs"),
        (TEXT.replace("[[flows]]", "[[flows", 1), 5, ""),
        (TEXT.replace('"cubic"', '"cubik"'), 9, "cubik"),
    ],
)
def test_a_mistake_has_its_place(client, text, line, says):
    found = client.run(text)
    assert found[-1]["part"] == "error"
    first = found[-1]["diagnostics"][0]
    assert first["line"] == line
    assert says in first["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": ""},
        {"Cookie": "gargalo_1=x"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "evil.example:80", "Origin": "http://evil.example:80"},
    ],
)
@pytest.mark.parametrize(
    "path", ["/api/run", "/api/difference", "/api/packets", "/api/frozen", "/api/picture"]
)
def test_nobody_else_is_answered(client, headers, path):
    status, _, told = client.ask(path, {"text": TEXT}, {**client.own, **headers})
    assert status == 403, told


def test_a_request_without_an_origin_or_a_token_is_refused(client):
    without = {k: v for k, v in client.own.items() if k != "Origin"}
    assert client.ask("/api/run", {"text": TEXT}, without)[0] == 403
    assert client.ask("/", None, {})[0] == 403
    assert client.ask("/api/start", None, {})[0] == 403
    assert client.ask("/?token=x", None, {})[0] == 403
    status, headers, _ = client.ask(f"/?token={client.token}", None, {})
    assert status == 303
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=strict" in headers["set-cookie"]
    status, headers, _ = client.ask("/")
    assert status == 200
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"text": 1}',
        b'{"text": "", "edits": [1]}',
        b'{"text": "", "panels": [1]}',
    ],
)
def test_what_the_page_does_not_write_is_refused(client, body):
    status, _, told = client.ask("/api/run", body)
    assert status == 400
    assert json.loads(told)["diagnostics"][0]["message"]


def test_packets_of_a_window_are_answered_for_a_flow(client):
    asked = {"text": TEXT, "flow": 1, "from_s": 0.5, "to_s": 0.8}
    status, _, told = client.ask("/api/packets", asked)
    assert status == 200
    found = json.loads(told)
    assert (found["flow"], found["name"], found["unit"]) == (1, "reno", "byte")
    sent = found["paths"][0]["segments"]["sent_s"]
    assert len(sent) > 10
    assert all(0.5 <= t <= 0.8 for t in sent)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"flow": 9}, "no flow 9"),
        ({"flow": "one"}, "number of a flow"),
        ({"flow": True}, "number of a flow"),
        ({"flow": None}, "number of a flow"),
        ({"to_s": 0.2}, "later end"),
        ({"from_s": -1}, "later end"),
        ({"from_s": "0"}, "in seconds"),
        ({"text": "duration = 3"}, "topology"),
    ],
)
def test_packets_that_cannot_be_shown_are_refused_in_a_sentence(client, change, says):
    asked = {"text": TEXT, "flow": 0, "from_s": 0.5, "to_s": 0.8, **change}
    status, _, told = client.ask("/api/packets", asked)
    assert status == 400
    assert says in json.loads(told)["diagnostics"][0]["message"]


def test_the_first_difference_has_its_packet(client):
    b = TEXT.replace('"reno"', '"reno"\nstop = "1s"')
    status, _, told = client.ask("/api/difference", {"a": {"text": TEXT}, "b": {"text": b}})
    assert status == 200
    found = json.loads(told)
    assert found["packet"]["flow"] == 1
    assert found["time_s"] <= found["packet"]["time_s"] < 1.2
    same = client.ask("/api/difference", {"a": {"text": TEXT}, "b": {"text": TEXT}})
    assert (same[0], json.loads(same[2])) == (200, None)


def test_a_file_of_the_page_is_one_of_those_it_has(client):
    assert client.ask("/assets/viewer.js")[0] == 200
    assert client.ask("/assets/uPlot.iife.js")[0] == 200
    for path in ("/assets/frozen.html", "/assets/..%2fserver.py", "/assets/nothing"):
        assert client.ask(path)[0] == 404


def test_a_notebook_shows_the_page_in_a_frame():
    run = gargalo.run(TEXT)
    page = run.explore(panels=["rtt"])
    shown = page._repr_html_()
    assert 'sandbox="allow-scripts"' in shown
    assert page.startswith("<!doctype html>")
    inside = shown.split('srcdoc="')[1].split('"')[0]
    assert html.unescape(inside) == page
    data = page.split('id="data">')[1].split("</script>")[0]
    parts = json.loads(data)
    assert [p["metric"] for p in parts if p["part"] == "panel"] == ["rtt"]
    assert str(run.explain()) == str(explain(run))


def test_a_text_in_a_page_cannot_end_its_element():
    name = "</script><script>alert(1)</script>"
    page = gargalo.run(TEXT.replace('"one"', json.dumps(name))).explore()
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    ("format_", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF-"), ("png", b"\x89PNG")]
)
def test_a_panel_is_a_picture_for_a_paper(client, format_, begins):
    asked = {"text": TEXT, "metric": "rtt", "format": format_, "width": "one-column"}
    status, headers, made = client.fetch("/api/picture", asked)
    assert status == 200
    assert made.startswith(begins)
    assert headers["content-type"].startswith(FORMATS[format_])
    assert client.fetch("/api/picture", asked)[2] == made, "equal runs give equal files"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"metric": "no-such"}, "no-such"),
        ({"format": "gif"}, "gif"),
        ({"width": "9in"}, "9in"),
        ({"span": [1]}, "two instants"),
        ({"span": [50, 60]}, "nothing to draw"),
        ({"text": TEXT.replace('"cubic"', '"cubik"')}, "cubik"),
    ],
)
def test_a_picture_that_cannot_be_made_is_refused(client, change, says):
    asked = {"text": TEXT, "metric": "rtt", "format": "svg", "width": "one-column", **change}
    status, _, told = client.ask("/api/picture", asked)
    assert status == 400
    assert says in json.loads(told)["diagnostics"][0]["message"]


def test_a_picture_of_a_part_of_the_run_is_of_that_part():
    run = gargalo.run(TEXT)
    whole, part = (file_of(run, "rtt", "svg", span=s) for s in (None, (0.5, 1.0)))
    assert whole != part
    assert b"0.5" in part


def test_results_of_the_lab_are_shown_until_the_scenario_is_another(tmp_path):
    other = gargalo.run(TEXT, seed=7, output=tmp_path / "lab")
    preset = Preset("yours", "", TEXT, tmp_path / "scenario.toml", tmp_path / "lab")
    site = Site([preset], "yours")
    asked = Asked.read(site, {"text": TEXT, "beside": "yours"})
    assert asked.run().info["results_hash"] == other.info["results_hash"]
    changed = Asked.read(site, {"text": TEXT.replace("5Mbit", "4Mbit"), "beside": "yours"})
    assert changed.run().setup.links[0].up.rate.constant_bps == 4e6
    told: list[dict[str, Any]] = []
    edit = [{"place": ["topology", "simple", "link", "rate"], "value": "3Mbit/s"}]
    answer(
        Asked.read(site, {"text": TEXT, "beside": "yours", "edits": edit}),
        threading.Event(),
        told.append,
    )
    about = next(p for p in told if p["part"] == "about")
    assert about["results_hash"] != other.info["results_hash"]
    with pytest.raises(ValueError, match="the lab's run cannot be done again"):
        _ = asked.scenario
    found = apart(asked, changed, lambda: False)
    assert found is not None
    assert found["packet"] is None


def test_a_run_of_the_lab_is_opened_with_its_results(tmp_path):
    made = gargalo.run(TEXT, output=tmp_path / "run")
    assert scenario(tmp_path / "run").results is None
    facts = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert made.directory
    (tmp_path / "run" / "manifest.json").unlink()
    (tmp_path / "run" / "run.json").write_text(json.dumps({**facts, "world": "lab"}))
    assert scenario(tmp_path / "run").results == tmp_path / "run"


def test_datagrams_are_recorded_for_their_panel_only():
    text = (
        TEXT
        + """
[[flows]]
from = "client"
to = "server"
transport.udp = {}
workload.cbr = { rate = "1Mbit/s" }
"""
    )
    assert Asked(text).run().datagrams.is_empty()
    told: list[dict[str, Any]] = []
    answer(Asked(text, panels=("goodput", "one-way-delay")), threading.Event(), told.append)
    panels = [p for p in told if p["part"] == "panel"]
    assert [p["metric"] for p in panels] == ["goodput", "one-way-delay"]
    (line,) = panels[1]["lines"]
    assert line["name"] == "udp"


LONG_RUN = TEXT.replace("2s", "60s").replace("5Mbit/s", "200Mbit/s")


def test_what_a_long_run_has_done_is_drawn_while_it_goes_on(monkeypatch):
    monkeypatch.setattr(glimpses, "LONG_S", 0.0)
    monkeypatch.setattr(glimpses, "FIRST_S", 0.01)
    monkeypatch.setattr(glimpses, "WORTH", 0.0)
    told: list[dict[str, Any]] = []
    seen = threading.Event()

    def tell(part: dict[str, Any]) -> None:
        told.append(part)
        if part.get("partial"):
            seen.set()
        # The run waits for the glimpse that its first progress began, however fast this machine is.
        begun = [p for p in told if p["part"] == "progress" and p["phase"] == "running"]
        if len(begun) > 1 and part is begun[-1]:
            assert seen.wait(60)

    answer(Asked(LONG_RUN), threading.Event(), tell)
    first, *_, last = (p for p in told if p["part"] == "about")
    assert first["partial"]
    assert "partial" not in last
    assert first["duration_s"] == pytest.approx(last["duration_s"]) == 60
    direct = Asked(LONG_RUN).run()
    assert last["results_hash"] == direct.info["results_hash"]
    # Nothing of a glimpse comes after the run itself.
    kinds = [p["part"] for p in told[told.index(last) :]]
    assert kinds.count("about") == kinds.count("story") == kinds.count("done") == 1
    assert kinds[-1] == "done"


def test_a_glimpse_is_the_beginning_of_the_run():
    def until(now: Progress) -> bool:
        return now.now_s < 1

    seen, whole = Asked(LONG_RUN).run(until), Asked(LONG_RUN).run()
    assert seen.interrupted
    both = seen.flow_samples.join(whole.flow_samples, on=["flow", "time_s"], how="inner")
    assert both.height == seen.flow_samples.height > 0
    assert (both["delivered_bytes"] == both["delivered_bytes_right"]).all()
