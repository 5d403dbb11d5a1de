"""A toy stack in C, as the page `your-stack` has it, and stacks that break the rules of the interface."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import gargalo
import pytest
from conftest import ROOT, command, environment
from gargalo.plugins import discovery, native
from gargalo.plugins.compiling import build_plugin
from toy_stack import Toy

if TYPE_CHECKING:
    from pathlib import Path

TOY = ROOT / "python/gargalo/examples/plugins/stack.c"

pytestmark = pytest.mark.xdist_group("your_stack")


def scenario(flows: str, link: str = 'rate = "20Mbit/s", delay = "20ms"') -> str:
    return f"""
        name = "toy"
        duration = "30s"
        record = {{ events = true }}
        [topology.simple]
        link = {{ {link} }}
        {flows}
        """


def flow(workload: str, stack: str = '"toy"', more: str = "", congestion: str = "fixed") -> str:
    return f"""
        [[flows]]
        from = "client"
        to = "server"
        {more}
        transport.quic = {{ stack = {stack}, congestion = "{congestion}" }}
        workload.{workload}
        """


def built(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """Compile the toy after these changes of its source, under another name."""
    text = TOY.read_text(encoding="utf-8").replace('"toy-stack"', f'"{name}"')
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    source = folder / f"{name}.c"
    source.write_text(text, encoding="utf-8")
    library = build_plugin(source, None)
    native.load_plugin(library)
    return library


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("toy"), "toy")


def test_a_library_is_told_that_a_datagram_was_too_big(tmp_path: Path) -> None:
    note = """
static void too_big(void *stack, uint64_t now, const struct gargalo_path *path, uint64_t mtu) {
    struct toy *t = stack;
    char text[64];
    snprintf(text, sizeof text, "%u %u %u", (unsigned)mtu, path->remote.port, path->local.ip[0]);
    t->host->notice(t->host->context, "mtu", text);
}

const struct gargalo_stack *gargalo_stack_v1(void) {"""
    built(
        tmp_path,
        "told",
        ("PAYLOAD = 1000", "PAYLOAD = 1400"),
        ("\nconst struct gargalo_stack *gargalo_stack_v1(void) {", note),
        (".migrate = NULL,", ".migrate = NULL, .packet_too_big = too_big,"),
    )
    link = 'rate = "20Mbit/s", delay = "20ms", mtu = "1300B"'
    run = gargalo.run(scenario(flow('bulk = { bytes = "20kB" }', '"told"'), link))
    told = run.events.rows_by_key("kind", named=True)["mtu"]
    assert {row["detail"] for row in told} == {"1300 443 10"}
    assert run.flows["delivered_bytes"].to_list() == [0]


BEGUN = """
[[flows]]
from = "client"
to = "server"
transport.quic = {{ stack = "{name}", congestion = "fixed" }}
workload.bulk = {{ bytes = "500kB" }}
[record]
verify = true
"""


@pytest.mark.parametrize("language", ["py", "rs"])
def test_the_toy_in_other_languages_carries_data_and_is_the_same_twice(
    tmp_path: Path, language: str
) -> None:
    new = [
        "plugin",
        "new",
        "own.py" if language == "py" else "own",
        "--from",
        f"stack.{language}",
    ]
    subprocess.run(command(*new), cwd=tmp_path, check=True, env=environment(), capture_output=True)
    plugin, name = tmp_path / "own.py", "own"
    if language == "rs":
        # `cargo test` builds it, since it is an example of the crate that loads plug-ins.
        (built,) = [*(ROOT / "target").glob("*/examples/libtoy_stack.so")][:1] or [None]
        if built is None:
            pytest.skip("the example toy_stack of crates/native is not built: cargo test does that")
        plugin, name = built, "toy-stack"
    link = 'rate = "10Mbit/s", delay = "10ms", loss = { independent = "0.5%" }'
    text = scenario("", link).replace("record = { events = true }", "") + BEGUN.format(name=name)
    (tmp_path / "own.toml").write_text(text)
    tables = []
    for output in ("one", "two"):
        run = ["run", "own.toml", "--plugin", plugin, "--no-plots", "--quiet", "--output", output]
        done = subprocess.run(
            command(*run),
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        tables.append((tmp_path / output / "flows.parquet").read_bytes())
    assert tables[0] == tables[1]
    row = gargalo.load(tmp_path / "one").flows.row(0, named=True)
    assert row["verified"]
    assert row["delivered_bytes"] == 500_000
    assert row["completion_s"] is not None


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("loss", [0, 0.01])
def test_transfers_requests_and_pages_complete(loss: float) -> None:
    """Every byte arrives, in order, at either end, with losses and without."""
    link = f'rate = "20Mbit/s", delay = "20ms", loss = {{ independent = {loss} }}'
    flows = (
        flow('bulk = { bytes = "1MB" }')
        + flow(
            'request = { objects = 20, size = "30kB", order = "multiplexed" }', more='start = "8s"'
        )
        + flow('request = { objects = 3, size = "100kB" }', more='start = "16s"')
    )
    run = gargalo.run(scenario(flows, link))
    assert run.flows["completion_s"].null_count() == 0
    assert run.flows["delivered_bytes"].to_list() == [1_000_000, 600_000, 300_000]
    assert run.flows["failure"].null_count() == 3
    # The toy's handshake is one round trip.
    if not loss:
        assert run.flows["handshake_s"].to_list() == pytest.approx([0.04] * 3, abs=1e-3)
        assert set(run.flows["retransmitted_packets"]) == {0}
    # What it does not tell is missing.
    assert run.flows["lost_packets"].null_count() == 3
    assert run.flows["timeouts"].null_count() == 0


@pytest.mark.usefixtures("toy")
def test_the_same_seed_gives_the_same_tables() -> None:
    link = 'rate = "20Mbit/s", delay = "20ms", loss = { independent = 0.01 }'
    runs = [gargalo.run(scenario(flow('bulk = { bytes = "1MB" }'), link)) for _ in range(2)]
    assert runs[0].flows.equals(runs[1].flows)
    assert runs[0].events.equals(runs[1].events)


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ('handshake = "0-rtt"', "0-rtt"),
        ("retry = true", "retry"),
        ('migration = { after = "1s" }', "migration"),
        ("ecn = true", "ecn"),
        ("pacing = false", "pacing"),
        ('initial_window = "30kB"', "ten packets"),
        ('crypto = "null"', "crypto"),
        ("multipath = true", "multipath"),
        ("packet_threshold = 10", "packet_threshold"),
    ],
)
def test_what_a_stack_cannot_do_is_an_error_before_the_run(options: str, said: str) -> None:
    flows = flow("bulk = {}").replace('"fixed" }', f'"fixed", {options} }}')
    if "0-rtt" in options:
        flows = flow('bulk = { bytes = "1kB" }') + flows.replace("from =", 'start = "2s"\nfrom =')
    with pytest.raises(gargalo.ScenarioError, match=f"(?s)toy.*{said}"):
        gargalo.run(scenario(flows))


@pytest.mark.usefixtures("toy")
def test_congestion_controls_are_the_stacks_own() -> None:
    with pytest.raises(gargalo.ScenarioError, match=r'(?s)congestion = "cubic".*fixed'):
        gargalo.run(scenario(flow("bulk = {}", congestion="cubic")))


def test_a_stack_that_is_not_loaded_is_the_one_thing_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed-one.py").write_text("raise RuntimeError")
    monkeypatch.setenv(discovery.VARIABLE, str(tmp_path))
    for stack in ('"installed-on"', '{ client = "installed-on", server = "noq" }'):
        with pytest.raises(gargalo.ScenarioError) as e:
            gargalo.run(scenario(flow("bulk = {}", stack, congestion="its-own")))
        (found,) = e.value.diagnostics
        assert found.message == 'there is no QUIC stack "installed-on"'
        assert found.help.startswith("did you mean `installed-one`? here are ")
        assert "noq" in found.help
        assert "`make stacks` in a clone of the repository installs others" in found.help
    with pytest.raises(gargalo.ScenarioError, match="installed-one"):
        gargalo.resolve(scenario(flow("bulk = {}", '"installed-on"')))


class Left(Toy):
    congestion = ("fixed", "left")


class Right(Toy):
    congestion = ("right", "fixed")


@pytest.mark.parametrize(
    ("ends", "congestion", "said"),
    [
        (("a", "b"), "left", "the server's b does not have it; both have fixed"),
        (("a", "b"), "right", "the client's a does not have it; both have fixed"),
        (("a", "b"), "reno", "the client's a and the server's b do not have it; both have fixed"),
        (("a", "noq"), "left", "the server's noq does not have it; they have none in common"),
        (("noq", "b"), "cubic", "the server's b does not have it; they have none in common"),
    ],
)
def test_the_end_that_lacks_a_congestion_control_is_named(
    ends: tuple[str, str], congestion: str, said: str
) -> None:
    stack = f'{{ client = "{ends[0]}", server = "{ends[1]}" }}'
    text = scenario(flow("bulk = {}", stack, congestion=congestion))
    with pytest.raises(gargalo.ScenarioError) as e:
        gargalo.run(text, stacks={"a": Left, "b": Right})
    assert f'congestion = "{congestion}": {said}' in str(e.value)


def test_a_stack_that_changes_data_is_named(tmp_path: Path) -> None:
    """With `record.verify`, as in the example of the page."""
    page = (ROOT / "docs/your-stack.md").read_text(encoding="utf-8")
    text = page.split("# toy.toml\n")[1].split("```")[0].replace('"toy"', '"corrupting"')
    change = (
        "        if (n > 0) memcpy(p->data, data + taken, n);\n",
        "        if (n > 0) memcpy(p->data, data + taken, n), p->data[0] ^= 1;\n",
    )
    built(tmp_path, "corrupting", change)
    run = gargalo.run(text)
    assert run.flows["verified"].to_list() == [False]
    assert any("(stack corrupting): delivered content differs" in w for w in run.warnings)


@pytest.mark.usefixtures("toy")
def test_a_stack_is_no_plug_in_for_tcp(toy: Path) -> None:
    done = subprocess.run(
        command("iperf3", "-c", "127.0.0.1", "--plugin", toy),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert done.returncode == 2
    assert "has a QUIC stack and no congestion control; this command runs over TCP" in done.stderr


@pytest.mark.usefixtures("toy")
def test_stacks_that_do_not_understand_each_other_fail_and_others_go_on() -> None:
    flows = flow("bulk = {}", '{ client = "noq", server = "toy" }', congestion="noq-cubic")
    with pytest.raises(gargalo.ScenarioError, match="noq-cubic"):
        gargalo.run(scenario(flows))


FAULTS = {
    "long": (
        ("        t->next++;\n", "        t->next++;\n        return room + 1;\n"),
        r"stack long: datagram_out returned 65508 bytes",
    ),
    "endless": (
        (
            "    } else {\n        return 0;\n    }\n    return length;",
            "    } else {\n        out[0] = ACK;\n    }\n    return length;",
        ),
        r"stack endless: datagram_out always",
    ),
    "late": (
        (
            "return t->is_over ? GARGALO_NONE : t->deadline;",
            "return t->is_over ? GARGALO_NONE : 0;",
        ),
        r"stack late: next_timer is never later",
    ),
    "greedy": (
        ("    return taken;\n", "    return length + 1;\n"),
        r"stack greedy: write took \d+ bytes of",
    ),
    "nowhere": (
        ("    path->remote = t->remote;\n", "    path->remote.ip_length = 7;\n"),
        r"stack nowhere: datagram_out left no remote address",
    ),
}


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("name", FAULTS)
def test_a_stack_that_breaks_the_rules_fails_alone(name: str, tmp_path: Path) -> None:
    """The failure names the stack and the function, and another flow of the same run is as without it."""
    change, said = FAULTS[name]
    built(tmp_path, name, change)
    other = flow('bulk = { bytes = "100kB" }', more='start = "10s"')
    run = gargalo.run(scenario(flow('bulk = { bytes = "100kB" }', f'"{name}"') + other))
    failed = run.events.filter(run.events["kind"] == "failed")
    assert any(re.search(said, detail) for detail in failed["detail"]), failed
    assert run.flows["completion_s"].is_null().to_list() == [True, False]
    assert re.search(said, run.flows["failure"][0]), run.flows["failure"]


def test_a_stack_that_takes_everything_fails(tmp_path: Path) -> None:
    begin = "    size_t taken = 0;\n    (void)now;\n"
    built(tmp_path, "hungry", (begin, f"{begin}    if (!fin) return length;\n"))
    run = gargalo.run(scenario(flow("bulk = {}", '"hungry"')))
    said = "stack hungry: write takes more than 4 times send_window at once"
    assert run.flows["failure"][0].startswith(said)


TIMER = "return t->is_over ? GARGALO_NONE : t->deadline;"


def test_a_stack_that_does_not_return_is_named(tmp_path: Path, gargalo: Any) -> None:
    library = built(tmp_path, "looping", (TIMER, "for (volatile int i = 0; i >= 0; i = 1) {}"))
    text = scenario(flow('bulk = { bytes = "100kB" }', '"looping"'))
    (tmp_path / "loop.toml").write_text(text, encoding="utf-8")
    # In a process that ends: the thread of the loop computes until then.
    done = gargalo("run", "loop.toml", "--plugin", library)
    assert done.returncode == 1
    said = f"error: {library}: looping: next_timer() has computed for 1 s and not returned: a loop"
    assert said in done.stderr


def test_a_crash_names_the_stack(tmp_path: Path, gargalo: Any) -> None:
    library = built(tmp_path, "crashing", (TIMER, "return *(volatile uint64_t *)8;"))
    text = scenario(flow('bulk = { bytes = "100kB" }', '"crashing"'))
    (tmp_path / "crash.toml").write_text(text, encoding="utf-8")
    done = gargalo("run", "crash.toml", "--plugin", library, "--json")
    assert done.returncode < 0
    said = f"error: {library}: crashing: next_timer() crashed (SIGSEGV: an invalid memory access)"
    assert said in done.stderr


def test_a_library_with_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(native.PluginError, match="version 7"):
        built(tmp_path, "old", (".abi = GARGALO_STACK_ABI", ".abi = 7"))
    with pytest.raises(native.PluginError, match="lacks a function"):
        built(tmp_path, "poor", (".stats = stats", ".stats = 0"))
    with pytest.raises(native.PluginError, match="name"):
        built(tmp_path, "noq")


def test_the_host_is_not_called_from_other_threads(tmp_path: Path) -> None:
    """The flow fails with the function's name, and nothing is reported from there."""
    include = ('#include "gargalo_stack.h"\n', '#include "gargalo_stack.h"\n#include <pthread.h>\n')
    elsewhere = (
        "static void opened(struct toy *t) {\n    if (t->is_open) return;\n",
        """static void *elsewhere(void *at) {
    struct toy *t = at;
    t->host->rtt_sample(t->host->context, 1);
    return NULL;
}

static void opened(struct toy *t) {
    pthread_t other;
    if (t->is_open) return;
    if (pthread_create(&other, NULL, elsewhere, t) == 0) pthread_join(other, NULL);
""",
    )
    built(tmp_path, "threading-toy", include, elsewhere)
    run = gargalo.run(scenario(flow('bulk = { bytes = "10kB" }', '"threading-toy"')))
    (failure,) = run.flows["failure"]
    assert "called the host's function rtt_sample from a thread of its own" in failure
    assert "threading-toy" in failure or failure.startswith("called")


def test_options_are_handed_over_as_they_are(tmp_path: Path) -> None:
    """To a library that says that it takes some; to others they are an error before the run."""
    declared = (".features = 0,", ".features = GARGALO_STACK_OPTIONS,")
    told = (
        "    t->host = host;\n",
        '    t->host = host;\n    host->notice(host->context, "options", config->options);\n',
    )
    built(tmp_path, "optional-toy", declared, told)
    text = scenario(
        flow('bulk = { bytes = "10kB" }', '"optional-toy", options = { rate = 1.5, name = "x" }')
    )
    events = gargalo.run(text).events
    seen = events.filter(events["kind"] == "options")["detail"].to_list()
    assert seen == ['{"name":"x","rate":1.5}'] * 2
    text = scenario(
        flow('bulk = { bytes = "10kB" }', '"optional-toy", options = { server = { a = [1] } }')
    )
    events = gargalo.run(text).events
    seen = events.filter(events["kind"] == "options")["detail"].to_list()
    assert sorted(seen) == ['{"a":[1]}', "{}"]


@pytest.mark.usefixtures("toy")
def test_a_stack_without_options_of_its_own_gets_none() -> None:
    for stack, told in (('"toy"', "cannot do options"), ('"noq"', "noq has no options of its own")):
        congestion = "fixed" if "toy" in stack else "cubic"
        text = scenario(
            flow(
                'bulk = { bytes = "10kB" }',
                f"{stack}, options = {{ a = 1 }}",
                congestion=congestion,
            )
        )
        with pytest.raises((gargalo.RunError, gargalo.ScenarioError), match=told):
            gargalo.run(text)


def test_the_toy_in_python_has_an_option() -> None:
    gargalo.quic_stack("choosy-toy")(Toy)
    took = []
    for window in (4, 32):
        options = f'"choosy-toy", options = {{ client = {{ window = {window} }} }}'
        run = gargalo.run(scenario(flow('bulk = { bytes = "200kB" }', options)))
        took.append(run.flows["completion_s"][0])
    assert took[0] > 3 * took[1]
    wrong = scenario(flow('bulk = { bytes = "1kB" }', '"choosy-toy", options = { windows = 1 }'))
    with pytest.raises(ValueError, match="there is no option windows"):
        gargalo.run(wrong)


def test_a_library_that_begins_no_thread_is_not_said_to(tmp_path: Path) -> None:
    """The thread that watches calls of libraries is the host's."""
    library = built(tmp_path, "quiet-toy")
    words = [
        "stacks",
        "quiet-toy",
        "--matrix",
        "--twice",
        "--case",
        "handshake",
        "--plugin",
        library,
        "--json",
    ]
    done = subprocess.run(
        command(*words),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    (cell,) = json.loads(done.stdout)["cells"]
    assert (cell["same"], cell["differs"]) == (True, None), done.stdout
