"""Compiled congestion controls.

The examples in C are the built-in ones, failures are contained, Linux's modules run.
"""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gargalo
import gargalo as package
import polars as pl
import pytest
from conftest import TINY, command, environment
from gargalo import _core
from gargalo.plugins import native
from gargalo.plugins.compiling import CompilerError, build_plugin
from gargalo.results import TABLES
from gargalo.sweeps.plugins import Plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = Path(gargalo.__file__).parent / "examples" / "plugins"
NAMES = ("reno", "cubic", "bbr")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples in C, compiled."""
    place = tmp_path_factory.mktemp("plugins")
    for name in (*NAMES, "linux"):
        build_plugin(EXAMPLES / f"{name}.c", place / f"{name}.so", options=["-Werror"])
    return place


def scenario(*controls: str, **more: Any) -> dict[str, Any]:
    """Flows of these congestion controls over a link with losses, marks and reordering."""
    return {
        "name": "plugins",
        "seed": 7,
        "duration": "8s",
        "topology": {
            "simple": {
                "link": {
                    "rate": "10Mbit/s",
                    "delay": "20ms",
                    "queue": {"droptail": "1BDP"},
                    "loss": {"independent": "0.2%"},
                }
            }
        },
        "flows": [
            {
                "from": "client",
                "to": "server",
                "label": f"flow {i}",
                "start": f"{i / 2}s",
                "transport": {"tcp": {"congestion": c}},
                "workload": {"bulk": {}},
            }
            for i, c in enumerate(controls)
        ],
        **more,
    }


def frames(run: gargalo.Run) -> dict[str, pl.DataFrame]:
    """All tables, with the names of congestion controls in C as those of the built-in ones."""
    frames = {}
    for name in TABLES:
        frame = run.table(name)
        text = [c for c, kind in frame.schema.items() if kind == pl.String]
        frames[name] = frame.with_columns(pl.col(c).str.replace(r"-c$", "") for c in text)
    return frames


def same(one: gargalo.Run, other: gargalo.Run) -> None:
    first, second = frames(one), frames(other)
    assert sum(f.height for f in first.values()) > 100
    for name, frame in first.items():
        assert frame.equals(second[name], null_equal=True), name


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_in_c_are_the_built_in_ones_to_the_byte(built: Path, name: str):
    gargalo.load_plugin(built / f"{name}.so")
    for more in (
        {},
        {
            "seed": 8,
            "topology.simple.link.queue": {"fq-codel": {}},
            "flows.0.transport.tcp.ecn": True,
        },
        {
            "topology.simple.link.rate": "1Mbit/s",
            "topology.simple.link.loss": {"independent": "5%"},
        },
        {"flows.0.workload": {"web": {"load": "50%"}}},
    ):
        own, compiled = (gargalo.run(scenario(c, "cubic"), set=more) for c in (name, f"{name}-c"))
        same(own, compiled)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_in_c_are_the_built_in_ones_over_quic_and_multipath_tcp(
    built: Path, name: str
):
    gargalo.load_plugin(built / f"{name}.so")
    for transport in ("quic", "mptcp"):
        runs = []
        for control in (name, f"{name}-c"):
            given = scenario(control)
            chosen: Any = control
            if transport == "quic" and control in ("reno-c", "cubic-c"):
                chosen = {control: {"reduce_from": "cwnd"}}  # what built-in ones do there
            given["flows"][0]["transport"] = {transport: {"congestion": chosen}}
            runs.append(gargalo.run(given))
        same(*runs)


def test_parameters_are_listed_and_checked(built: Path, gargalo: Any, tiny: Path):
    listed = gargalo("list", "congestion", "--parameters", "--json", "--plugin", built / "bbr.so")
    entry = next(e for e in json.loads(listed.stdout) if e["name"] == "bbr-c")
    assert entry["source"] == "draft-cardwell-iccrg-bbr-congestion-control-00"
    told = {p["name"]: (p["default"], p["valid"]) for p in entry["parameters"]}
    assert told["min_rtt_window"] == ('"10s"', "a duration from 100ms to 3600s")
    assert told["min_window"] == ("4", "a whole number from 1 to 1000")
    wrong = 'flows.0.transport.tcp.congestion={"bbr-c"={min_windov=4}}'
    run = gargalo("run", tiny, "--plugin", built / "bbr.so", "--set", wrong, "--json")
    assert run.returncode == 2
    assert 'bbr-c has no parameter "min_windov" (did you mean "min_window"?)' in run.stderr


def test_parameters_reach_the_plug_in(built: Path):
    gargalo.load_plugin(built / "cubic.so")
    given = {"beta": 0.5, "fast_convergence": False}
    own, compiled = (
        gargalo.run(scenario("reno"), set={"flows.0.transport.tcp.congestion": {name: given}})
        for name in ("cubic", "cubic-c")
    )
    same(own, compiled)


# --- failures ---

BROKEN = """
#include <math.h>
#include <stdlib.h>
#include "gargalo_congestion.h"
static void *create(const void *data, const gargalo_init *init, gargalo_state *state) {
    (void)data;
    state->cwnd_bytes = (double)init->initial_window_bytes;
    return calloc(1, sizeof(int));
}
static void *copy(const void *c, const gargalo_host *host) { (void)c; (void)host; return calloc(1, sizeof(int)); }
static void on_ack(void *c, const gargalo_acked *ack, const gargalo_path *path, gargalo_state *state) {
    (void)ack;
    (void)path;
    (void)state;
    if (++*(int *)c > 50) {
        DEED;
    }
}
static void on_congestion(void *c, const gargalo_congestion_event *e, const gargalo_path *p, gargalo_state *s) {
    (void)c;
    (void)e;
    (void)p;
    (void)s;
}
static const gargalo_algorithm ALL[] = {{.name = "broken", .summary = "", .source = "", .create = create,
    .destroy = free, .clone = copy, .on_ack = on_ack, .on_congestion = on_congestion}};
GARGALO_ALGORITHMS(ALL);
"""
LOOP = "for (volatile int i = 0; i >= 0; i = 1) {}"
CRASH = "*(volatile int *)8 = 1"
DEEP = "volatile char room[4096]; room[0] = 1; on_ack(c, ack, path, state); room[1] = 1"


def broken(place: Path, deed: str) -> Path:
    source = place / "broken.c"
    source.write_text(BROKEN.replace("DEED", deed))
    return build_plugin(source)


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        (
            "state->cwnd_bytes = 0",
            "broken: on_ack() set cwnd_bytes to 0; it must be a number from 1448",
        ),
        ("state->cwnd_bytes = NAN", "broken: on_ack() set cwnd_bytes to NaN"),
        ("state->pacing_rate_bps = -5", "broken: on_ack() set pacing_rate_bps to -5"),
        ('state->error = "lost count"', "broken: on_ack(): lost count"),
    ],
)
def test_a_failure_names_the_plug_in_and_ends_its_run_alone(tmp_path: Path, deed: str, told: str):
    library = broken(tmp_path, deed)
    gargalo.load_plugin(library)
    with pytest.raises(gargalo.RunError) as raised:
        gargalo.run(scenario("cubic", "broken"), output=tmp_path / "out")
    assert str(raised.value).startswith(f"{library}: {told}")
    assert not (tmp_path / "out").exists()
    assert gargalo.run(scenario("cubic")).flows.height == 1


IN_A_LOOP = """
import json
import sys
import gargalo
library, broken, sound = json.loads(sys.argv[1])
gargalo.load_plugin(library)
try:
    gargalo.run(broken)
except gargalo.RunError as error:
    print(error)
print(gargalo.run(sound).flows.height)
"""


def test_a_loop_ends_its_run_alone(tmp_path: Path):
    """In a process that ends: the thread of the loop computes until then."""
    library = broken(tmp_path, LOOP)
    given = json.dumps([str(library), scenario("cubic", "broken"), scenario("cubic")])
    done = subprocess.run(
        [sys.executable, "-c", IN_A_LOOP, given],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said, height = done.stdout.splitlines()
    assert said.startswith(
        f"{library}: broken: on_ack() has computed for 1 s and not returned: a loop"
    )
    assert height == "1"


def test_an_interrupted_run_with_a_plug_in_keeps_what_it_has(tmp_path: Path, built: Path):
    (tmp_path / "long.toml").write_text(
        TINY.replace("3s", "100000s").replace('"cubic"', '"cubic-c"')
    )
    words = command("run", "long.toml", "--plugin", built / "cubic.so", "--output", "out")
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        while len(list(tmp_path.iterdir())) < 2:  # Its directory is there as it begins.
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130, told
    assert "what was done is in out" in told
    assert (tmp_path / "out" / "flows.parquet").exists()


BESIDE = """
import gargalo
class Mine(gargalo.WindowBased):
    def segments_per_round(self, path):
        return 1.0
    def decrease(self, event, path):
        return 0.67 * self.flight_size(event)
gargalo.register("mine", Mine)
"""


def test_a_loop_beside_a_class_in_python_ends_the_process(tmp_path: Path, gargalo: Any):
    """The class holds the interpreter lock, so nothing else can go on."""
    library = broken(tmp_path, LOOP)
    (tmp_path / "mine.py").write_text(BESIDE)
    flows = TINY[TINY.index("[[flows]]") :]
    both = TINY.replace('"cubic"', '"mine"') + flows.replace('"cubic"', '"broken"')
    (tmp_path / "two.toml").write_text(both)
    done = gargalo("run", "two.toml", "--plugin", "mine.py", "--plugin", library)
    assert done.returncode == 1
    assert f"error: {library}: broken: on_ack() has computed for 1 s" in done.stderr


@pytest.mark.parametrize("deed", [CRASH, DEEP], ids=["crash", "overflow"])
def test_a_crash_names_the_plug_in(tmp_path: Path, gargalo: Any, tiny: Path, deed: str):
    library = broken(tmp_path, deed)
    with_it = "flows.0.transport.tcp.congestion=broken"
    done = gargalo("run", tiny, "--plugin", library, "--set", with_it, "--json")
    assert done.returncode < 0
    assert (
        f"error: {library}: broken: on_ack() crashed (SIGSEGV: an invalid memory access)"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("deed", "told"),
    [
        ("state->cwnd_bytes = NAN", "set cwnd_bytes to NaN"),
        (LOOP, "has computed for 1 s and not returned"),
        (CRASH, "on_ack() crashed (SIGSEGV"),
    ],
)
def test_other_runs_of_a_sweep_are_unharmed(
    tmp_path: Path, gargalo: Any, tiny: Path, deed: str, told: str
):
    library = broken(tmp_path, deed)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        f'scenario = "{tiny.name}"\n[axes]\n"flows.0.transport.tcp.congestion" = ["cubic", "broken", "reno"]\n'
    )
    done = gargalo("sweep", sweep, "--plugin", library, "--store", "store", "--workers", 2)
    assert done.returncode == 1, done.stderr
    assert "broken" in done.stderr
    assert told in done.stderr
    assert str(library) in done.stderr
    assert "2 runs done, 0 were there, 1 failed" in done.stderr


def test_the_file_s_bytes_are_part_of_a_run_s_identifier(tmp_path: Path, built: Path):
    first = Plugins.load([built / "reno.so"]).digests["congestion"]["reno-c"]
    other = build_plugin(EXAMPLES / "reno.c", tmp_path / "reno.so", options=["-O1"])
    assert Plugins.load([other]).digests["congestion"]["reno-c"] != first
    copy = tmp_path / "copy.so"
    shutil.copy(built / "reno.so", copy)
    assert Plugins.load([copy]).digests["congestion"]["reno-c"] == first


def test_what_is_rebuilt_is_loaded_anew(tmp_path: Path):
    def window(bytes_: int) -> int:
        gargalo.load_plugin(broken(tmp_path, f"state->cwnd_bytes = {bytes_}"))
        return gargalo.run(scenario("broken")).flow_samples["congestion_window_bytes"].max()

    assert [window(1 << 16), window(1 << 17)] == [1 << 16, 1 << 17]


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("mine.so", b"not a library", "mine.so: not a library that can be loaded here"),
        ("mine.so", None, "mine.so: no such file"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named(
    tmp_path: Path, gargalo: Any, tiny: Path, file: str, content: bytes | None, told: str
):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    for words in (
        ("run", tiny),
        ("list", "congestion"),
        ("iperf3", "-c", "127.0.0.1"),
    ):
        done = gargalo(*words, "--plugin", file)
        assert done.returncode == 2
        assert f"error: --plugin {told}" in done.stderr


@pytest.mark.parametrize(
    ("options", "damage", "told"),
    [
        ((), lambda data: data[: len(data) // 2], "the file is damaged: "),
        (["-DATSTART=*(volatile int *)8 = 1"], None, "loading it ended the process (SIGSEGV)"),
        (["-DATSTART=exit(3)"], None, "loading it ended the process with exit code 3"),
        (["-DPAST=64"], None, 'a first short run with "broken" ended the process (SIGABRT: '),
    ],
    ids=["cut", "constructor", "exit", "heap"],
)
def test_a_library_that_ends_processes_is_told_before_it_is_loaded(
    tmp_path: Path, gargalo: Any, tiny: Path, options: list[str], damage: Any, told: str
):
    source = tmp_path / "broken.c"
    text = BROKEN.replace("DEED", "(void)c").replace(
        "    return calloc(1, sizeof(int));\n}",
        """    char *made = calloc(1, sizeof(int));
#ifdef PAST
    memset(made, 'A', PAST);
#endif
    return made;
}
#ifdef ATSTART
__attribute__((constructor)) static void at_start(void) { ATSTART; }
#endif""",
        1,
    )
    source.write_text(f"#include <string.h>\n{text}")
    library = build_plugin(source, options=options)
    if damage is not None:
        library.write_bytes(damage(library.read_bytes()))
    for words in (("run", tiny), ("list", "congestion"), ("iperf3", "-c", "127.0.0.1")):
        done = gargalo(*words, "--plugin", library)
        assert done.returncode == 2, done.stderr
        assert f"error: --plugin {library}: {told}" in done.stderr
    with pytest.raises(package.PluginError, match=re.escape(f"{library}: {told}")):
        package.load_plugin(library)


LIST_EACH = """
import os
import sys
from gargalo.cli.app import app
for path in sys.argv[1:]:
    if (child := os.fork()) == 0:
        told = os.open(f"{path}.told", os.O_WRONLY | os.O_CREAT)
        os.dup2(told, 1)
        os.dup2(told, 2)
        sys.exit(app(["list", "congestion", "--plugin", path]))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, open(f"{path}.told").read().splitlines()[-1])
"""
"""Each in a process of its own, which imports nothing again."""


def listed(*libraries: Path) -> list[str]:
    """Return how `gargalo list congestion` ends with each library as a plug-in: exit code and last line."""
    words = [sys.executable, "-c", LIST_EACH, *map(str, libraries)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.splitlines()


def flipped(data: bytes, seed: int, bits: int) -> bytes:
    """Return the data with some wrong bits."""
    damaged = bytearray(data)
    for bit in random.Random(seed).sample(range(8 * len(data)), bits):
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_a_damaged_library_never_ends_a_command_without_a_sentence(tmp_path: Path, built: Path):
    """As compiled by us, with its digest, and as compilers write it."""
    ours = (built / "reno.so").read_bytes()
    plain = ours[: len(b"\x7fELF") - len(_core.seal_library(b"\x7fELF"))]
    assert _core.seal_library(plain) == ours
    cut = [plain[: len(plain) * k // 7] for k in range(1, 7)] + [plain[:-1], ours[:70]]
    found = {
        "digest": [flipped(ours, seed, 20) for seed in range(6)] + [flipped(ours, 6, 1)],
        "many": [flipped(plain, seed, 20) for seed in range(16)],
        "few": [flipped(plain, seed, 2) for seed in range(4)],
        "cut": cut,
    }
    files = []
    for kind, all_of_it in found.items():
        for n, data in enumerate(all_of_it):
            files.append(tmp_path / f"{kind}{n}.so")
            files[-1].write_bytes(data)
    sound = [built / "reno.so", tmp_path / "plain.so"]
    sound[1].write_bytes(plain)
    ended = dict(zip([*files, *sound], listed(*files, *sound), strict=True))
    for file, line in ended.items():
        refused = line.startswith(f"2 error: --plugin {file}: ")
        assert refused or line.startswith("0 "), line
        if file.name.startswith(("digest", "cut")):
            assert f"{file}: the file is damaged: " in line
        if file in sound:
            assert line.startswith("0 ")
    # What has wrong bits only in code that these runs do not reach may be loaded.
    assert sum(line.startswith("2 ") for line in ended.values()) >= len(files) - 10


def test_a_library_that_lacks_a_function_is_refused_as_it_is_loaded(tmp_path: Path):
    """Not by the system's loader in a run, where it ends the process with exit code 127."""
    source = tmp_path / "lacking.c"
    calls = BROKEN.replace("static void *create", "void nowhere(void);\nstatic void *create")
    source.write_text(calls.replace("DEED", "nowhere()"))
    library = build_plugin(source, options=["-Wl,--unresolved-symbols=ignore-all"])
    (line,) = listed(library)
    told = "not a library that can be loaded here: undefined symbol: nowhere"
    assert line == f"2 error: --plugin {library}: {told}"


def test_a_crash_in_a_function_hides_no_crash_at_the_end(tmp_path: Path):
    """The first is of a run, and told there; the second is of every command."""
    source = tmp_path / "both.c"
    text = BROKEN.replace("++*(int *)c > 50", "1").replace("DEED", CRASH)
    source.write_text(f"{text}\n__attribute__((destructor)) static void end(void) {{ {CRASH}; }}\n")
    library = build_plugin(source)
    (line,) = listed(library)
    assert line.startswith(f"2 error: --plugin {library}: unloading it ended the process (SIGSEGV)")


def test_a_good_library_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    library = broken(tmp_path, "(void)c")
    started = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: started.append(a) or run(*a, **k))
    for _ in range(3):
        native.load(library)
    assert len(started) == 1


def test_symbols_that_nothing_defines_are_told_when_it_is_linked(tmp_path: Path, gargalo: Any):
    text = BROKEN.replace("static const garg", "int elsewhere(void);\nstatic const garg", 1)
    (tmp_path / "lacking.c").write_text(text.replace("DEED", "elsewhere()"))
    done = gargalo("plugin", "build", "lacking.c")
    assert done.returncode == 1, done.stderr
    assert "it uses elsewhere, which nothing defines" in done.stderr
    assert not (tmp_path / "lacking.so").exists()


def test_a_built_in_name_is_refused(tmp_path: Path):
    library = build_plugin(EXAMPLES / "reno.c", tmp_path / "reno.so", options=['-DNAME="cubic"'])
    with pytest.raises(gargalo.PluginError, match='"cubic" is the name of a built-in'):
        gargalo.load_plugin(library)


# --- commands ---


def test_a_new_plug_in_has_its_name_and_runs(gargalo: Any, tiny: Path):
    for begun in ("reno", "linux"):
        new = gargalo("plugin", "new", f"own_{begun}.c", "--from", begun)
        assert new.returncode == 0, new.stderr
        made = gargalo("plugin", "build", f"own_{begun}.c", "--json")
        assert made.returncode == 0, made.stderr
        name = json.loads(made.stdout)["congestion"][0]["name"]
        assert name == f"own-{begun}"
        choice = f"flows.*.transport.tcp.congestion={name}"
        ran = gargalo("run", tiny, "--plugin", f"own_{begun}.so", "--set", choice, "--json")
        assert ran.returncode == 0, ran.stderr
    crate = gargalo("plugin", "new", "own", "--from", "rust")
    assert crate.returncode == 0, crate.stderr
    assert 'name = "own"' in (tiny.parent / "own" / "Cargo.toml").read_text()
    assert 'const NAME: &str = "own";' in (tiny.parent / "own" / "src" / "lib.rs").read_text()


def test_what_the_compiler_says_is_shown(tmp_path: Path, gargalo: Any):
    (tmp_path / "wrong.c").write_text('#include "gargalo_congestion.h"\nint x = y;\n')
    done = gargalo("plugin", "build", "wrong.c")
    assert done.returncode == 1
    assert "wrong.c:2:9: error" in done.stderr
    assert "error: wrong.c was not compiled" in done.stderr
    with pytest.raises(CompilerError, match="no version of Linux"):
        build_plugin(EXAMPLES / "linux.c", tmp_path / "linux.so", kernel="new")


# --- modules of Linux ---

MODULE = """
#include <linux/module.h>
#include <net/tcp.h>
%s
static int __init begin(void) { return tcp_register_congestion_control(&mine); }
static void __exit end(void) { tcp_unregister_congestion_control(&mine); }
module_init(begin);
module_exit(end);
MODULE_LICENSE("Dual MIT/GPL");
"""
RENO = """
static u32 thresh(struct sock *sk) { return max(tcp_snd_cwnd(tcp_sk(sk)) >> 1U, 2U); }
static u32 undo(struct sock *sk) { return max(tcp_snd_cwnd(tcp_sk(sk)), tcp_sk(sk)->prior_cwnd); }
static void avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tcp_snd_cwnd(tp), acked);
}
static struct tcp_congestion_ops mine __read_mostly = {
	.ssthresh = thresh, .cong_avoid = avoid, .undo_cwnd = undo, .owner = THIS_MODULE, .name = "mine",
};
"""
RATED = """
struct model { struct minmax bw; u32 rounds; u32 next_round; u32 max_state; u32 losses; };
static int gain = 125;
module_param(gain, int, 0644);
MODULE_PARM_DESC(gain, "pacing rate in parts of a hundred of the bandwidth");
static void begin_flow(struct sock *sk)
{
	struct model *m = inet_csk_ca(sk);

	BUILD_BUG_ON(sizeof(*m) > ICSK_CA_PRIV_SIZE);
	minmax_reset(&m->bw, 0, 0);
	m->next_round = tcp_sk(sk)->delivered;
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
static void control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
static void control(struct sock *sk, const struct rate_sample *rs)
#endif
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct model *m = inet_csk_ca(sk);
	u64 bw, rate;

	m->losses += rs->losses;
	if (rs->delivered <= 0 || rs->interval_us <= 0)
		return;
	if (!before(rs->prior_delivered, m->next_round)) {
		m->next_round = tp->delivered;
		m->rounds++;
	}
	bw = div_u64((u64)rs->delivered << 24, rs->interval_us);
	minmax_running_max(&m->bw, 10, m->rounds, bw);
	bw = minmax_get(&m->bw);
	rate = bw * tcp_mss_to_mtu(sk, tp->mss_cache) * USEC_PER_SEC >> 24;
	do_div(rate, 100);
	WRITE_ONCE(sk->sk_pacing_rate, rate * gain);
	tcp_snd_cwnd_set(tp, max_t(u32, 4, (bw * tcp_min_rtt(tp) * 2) >> 24));
}
static u32 thresh(struct sock *sk) { return tcp_sk(sk)->snd_ssthresh; }
static u32 undo(struct sock *sk) { return tcp_snd_cwnd(tcp_sk(sk)); }
static u32 segments(struct sock *sk) { return 2; }
static void entered(struct sock *sk, u8 state)
{
	struct model *m = inet_csk_ca(sk);

	m->max_state = max_t(u32, m->max_state, state);
}
static struct tcp_congestion_ops mine __read_mostly = {
	.flags = TCP_CONG_NON_RESTRICTED, .init = begin_flow, .cong_control = control, .ssthresh = thresh,
	.undo_cwnd = undo, .min_tso_segs = segments, .set_state = entered, .owner = THIS_MODULE, .name = "mine",
};
"""
DELAYED = """
struct delays { u32 base; u32 least; u32 count; u32 mark; u32 starts; };
static void begin_flow(struct sock *sk)
{
	struct delays *d = inet_csk_ca(sk);

	d->base = d->least = 0x7fffffff;
	d->mark = tcp_sk(sk)->snd_nxt;
}
static void sampled(struct sock *sk, const struct ack_sample *sample)
{
	struct delays *d = inet_csk_ca(sk);

	if (sample->rtt_us < 0)
		return;
	d->base = min_t(u32, d->base, sample->rtt_us + 1);
	d->least = min_t(u32, d->least, sample->rtt_us + 1);
	d->count++;
}
static void avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct delays *d = inet_csk_ca(sk);
	u32 queued;

	if (!after(ack, d->mark))
		return;
	d->mark = tp->snd_nxt;
	if (d->count > 2) {
		queued = (u64)tcp_snd_cwnd(tp) * (d->least - d->base) / d->base;
		if (queued > 4) {
			tp->snd_ssthresh = min(tp->snd_ssthresh, max(tcp_snd_cwnd(tp) - 1, 2U));
			tcp_snd_cwnd_set(tp, max(tcp_snd_cwnd(tp) - 1, 2U));
		} else if (tcp_in_slow_start(tp)) {
			tcp_slow_start(tp, tcp_snd_cwnd(tp));
		} else if (queued < 2) {
			tcp_snd_cwnd_set(tp, tcp_snd_cwnd(tp) + 1);
		}
	}
	d->least = 0x7fffffff;
	d->count = 0;
}
static void told(struct sock *sk, enum tcp_ca_event event)
{
	struct delays *d = inet_csk_ca(sk);

	d->starts += event == CA_EVENT_TX_START;
}
static struct tcp_congestion_ops mine __read_mostly = {
	.init = begin_flow, .pkts_acked = sampled, .cong_avoid = avoid, .cwnd_event = told,
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .owner = THIS_MODULE, .name = "mine",
};
"""
CLEAN = {"topology.simple.link.loss": {"independent": 0}}


def module(
    place: Path, code: str, kernel: str | None = None, options: Sequence[str] = ("-Werror",)
) -> Path:
    source = place / "tcp_mine.c"
    source.write_text(MODULE % code)
    return build_plugin(source, place / "mine.so", kernel=kernel, options=options)


def test_reno_as_a_module_of_linux_is_like_the_built_in_one(tmp_path: Path):
    gargalo.load_plugin(module(tmp_path, RENO))
    for change in ({}, {"topology.simple.link.loss": {"independent": "0.5%"}}, CLEAN):
        own, linux = (
            gargalo.run(scenario(c), set=change).flows.to_dicts()[0] for c in ("reno", "mine")
        )
        assert math.isclose(linux["goodput_bps"], own["goodput_bps"], rel_tol=0.03)
        assert abs(linux["retransmitted_packets"] - own["retransmitted_packets"]) <= 10
        assert math.isclose(linux["rtt_mean_s"], own["rtt_mean_s"], rel_tol=0.05)


@pytest.mark.parametrize("kernel", ["6.12", "5.15"])
def test_a_module_may_control_its_rate(tmp_path: Path, kernel: str):
    gargalo.load_plugin(module(tmp_path, RATED, kernel))

    def flow(gain: int) -> dict[str, Any]:
        choice = {"flows.0.transport.tcp.congestion": {"mine": {"gain": gain}}}
        run = gargalo.run(
            scenario("mine"), set={**choice, "topology.simple.link.queue": {"droptail": "4BDP"}}
        )
        rate = run.flow_samples["pacing_rate_bps"].drop_nulls()
        assert rate.len() > 10
        return run.flows.to_dicts()[0]

    probing, timid = flow(125), flow(50)
    assert probing["goodput_bps"] > 8.5e6
    # It has about two bandwidth-delay products in flight: a queue of one.
    assert 0.05 < probing["rtt_mean_s"] < 0.11
    assert timid["goodput_bps"] < 5e6
    assert timid["rtt_mean_s"] < 0.05


def test_a_module_may_watch_delays(tmp_path: Path):
    gargalo.load_plugin(module(tmp_path, DELAYED))
    flow = gargalo.run(scenario("mine"), set=CLEAN).flows.to_dicts()[0]
    assert flow["goodput_bps"] > 8e6
    assert flow["rtt_mean_s"] < 0.052
    assert flow["retransmitted_packets"] < 60


def test_a_module_that_loses_its_window_is_named(tmp_path: Path):
    code = RENO.replace(
        "acked = tcp_slow_start(tp, acked);", "{ tcp_snd_cwnd_set(tp, 0); return; }"
    )
    gargalo.load_plugin(module(tmp_path, code))
    with pytest.raises(gargalo.RunError, match=r"mine.so: mine: on_ack\(\) set cwnd_bytes to 0"):
        gargalo.run(scenario("mine"))


TOLD = """
struct told { u32 samples; u32 wrong; };
static int bound __read_mostly = 40;
module_param(bound, int, 0644);
static void begin_flow(struct sock *sk)
{
	struct told *t = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = tp->srtt_us >> 3;

	/* The handshake was measured before: 40 ms and the time for two small packets. */
	if (rtt < 40000 || rtt > 42000 || tcp_min_rtt(tp) != rtt)
		t->wrong |= 1;
	if (sk->sk_pacing_status != SK_PACING_NONE || !tcp_jiffies32 || !tp->tcp_mstamp)
		t->wrong |= 2;
	tp->snd_ssthresh = 2;
	tcp_snd_cwnd_set(tp, 20);
}
static void sampled(struct sock *sk, const struct ack_sample *sample)
{
	struct told *t = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (++t->samples < 40)
		return;
	/* A window of 20 packets in bytes, and 1.2 windows a round trip. */
	if (sample->in_flight < 18 * tp->mss_cache || sample->in_flight > bound * tp->mss_cache)
		t->wrong |= 4;
	if (sk->sk_pacing_rate < 20 * tp->mss_cache * 25 || sk->sk_pacing_rate > 20 * tp->mss_cache * 32)
		t->wrong |= 8;
	if (tcp_packets_in_flight(tp) > 20 || tp->snd_nxt - tp->snd_una > 20 * tp->mss_cache)
		t->wrong |= 16;
	if (tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr > 60)
		t->wrong |= 32;
	if (tp->data_segs_out < tp->delivered || tp->data_segs_out > tp->delivered + 20)
		t->wrong |= 64;
}
static void avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct told *t = inet_csk_ca(sk);

	if (t->wrong)
		tcp_snd_cwnd_set(tcp_sk(sk), 0);
}
static struct tcp_congestion_ops mine __read_mostly = {
	.init = begin_flow, .pkts_acked = sampled, .cong_avoid = avoid, .ssthresh = tcp_reno_ssthresh,
	.undo_cwnd = tcp_reno_undo_cwnd, .owner = THIS_MODULE, .name = "mine",
};
"""


def test_a_module_is_told_what_the_kernel_tells(tmp_path: Path):
    gargalo.load_plugin(module(tmp_path, TOLD))
    flow = gargalo.run(scenario("mine"), set=CLEAN).flows.to_dicts()[0]
    assert math.isclose(flow["goodput_bps"], 20 * 1448 * 8 / 0.0415, rel_tol=0.05)
    narrow = {"flows.0.transport.tcp.congestion": {"mine": {"bound": 15}}}
    with pytest.raises(gargalo.RunError, match="set cwnd_bytes to 0"):
        gargalo.run(scenario("mine"), set={**CLEAN, **narrow})


REDUCING = """
struct reducing { u16 *counts; u32 mark; u32 entered; u32 ended; };
static unsigned int every __read_mostly = 8;
static int set_every(const char *value, const struct kernel_param *kp)
{
	return param_set_uint_minmax(value, kp, 4, 100);
}
static const struct kernel_param_ops every_ops = { .set = set_every, .get = param_get_uint };
module_param_cb(every, &every_ops, &every, 0644);
static void begin_flow(struct sock *sk)
{
	struct reducing *r = inet_csk_ca(sk);

	r->counts = kcalloc(4, sizeof(*r->counts), GFP_KERNEL);
	tcp_sk(sk)->snd_ssthresh = 30;
}
static void end_flow(struct sock *sk)
{
	struct reducing *r = inet_csk_ca(sk);

	kfree(r->counts);
}
static void avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct reducing *r = inet_csk_ca(sk);

	tcp_reno_cong_avoid(sk, ack, acked);
	if (!after(ack, r->mark))
		return;
	r->mark = tp->snd_nxt;
	if (++r->counts[3] % every == 0) {
		tcp_enter_cwr(sk);
		WARN_ON(tcp_snd_cwnd(tp) < 4);
	}
}
static void told(struct sock *sk, enum tcp_ca_event event)
{
	struct reducing *r = inet_csk_ca(sk);

	r->ended += event == CA_EVENT_COMPLETE_CWR;
}
static struct tcp_congestion_ops mine __read_mostly = {
	.init = begin_flow, .release = end_flow, .cong_avoid = avoid, .cwnd_event = told,
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .owner = THIS_MODULE, .name = "mine",
};
"""


def test_a_module_may_reduce_its_window_by_itself(tmp_path: Path):
    gargalo.load_plugin(module(tmp_path, REDUCING))
    deep = {**CLEAN, "topology.simple.link.queue": {"droptail": "20BDP"}}

    def windows(every: int) -> pl.Series:
        choice = {"flows.0.transport.tcp.congestion": {"mine": {"every": every}}}
        run = gargalo.run(scenario("mine"), set={**deep, **choice})
        assert run.flows["lost_packets"].item() == 0
        return run.flow_samples["congestion_window_bytes"] / 1448

    often, seldom = windows(8), windows(100)
    # It grows by 8 segments, then half is given up over a round trip, not at once.
    assert often.max() < 45
    assert seldom.max() > 60
    falls = (often - often.shift()).drop_nulls()
    assert falls.min() > -often.max() * 0.45
    with pytest.raises(
        gargalo.RunError, match=r"the module refuses every = 3 \(Invalid argument\)"
    ):
        windows(3)


def test_a_module_with_the_name_of_a_built_in_one_gets_another(tmp_path: Path):
    library = module(tmp_path, RENO.replace('"mine"', '"cubic"'))
    assert [c.name for c in gargalo.load_plugin(library)[0]] == ["linux-cubic"]


def test_modules_that_call_each_other_become_one_library(tmp_path: Path):
    (tmp_path / "tcp_shared.h").write_text("u32 shared_ssthresh(struct sock *sk);\n")
    shared = RENO.replace("static u32 thresh", "u32 shared_ssthresh").replace(
        "= thresh", "= shared_ssthresh"
    )
    shared = '#include "tcp_shared.h"\n' + shared.replace('"mine"', '"shared"')
    (tmp_path / "tcp_shared.c").write_text(
        MODULE % (shared + "EXPORT_SYMBOL_GPL(shared_ssthresh);")
    )
    user = '#include "tcp_shared.h"\n' + RENO.replace("= thresh", "= shared_ssthresh").replace(
        '"mine"', '"My_own"'
    )
    library = module(tmp_path, user, options=())
    assert [c.name for c in gargalo.load_plugin(library)[0]] == ["my-own", "shared"]


def test_what_a_module_lacks_is_told_with_its_line(tmp_path: Path, gargalo: Any):
    code = RENO.replace(
        "u32 thresh(struct sock *sk) {",
        "u32 thresh(struct sock *sk) { return tcp_sk(sk)->snd_cwnd_stamps;",
        1,
    )
    code = code.replace("tcp_slow_start(tp, acked)", "tcp_slower_start(tp, TCP_UNKNOWN)").replace(
        ".owner", ".tell_all = avoid, .owner"
    )
    source = tmp_path / "tcp_mine.c"
    source.write_text(MODULE % code)
    line = {
        name: 1 + source.read_text().split(name)[0].count("\n")
        for name in ("snd_cwnd_stamps", "slower", "tell_all")
    }
    done = gargalo("plugin", "build", source)
    assert done.returncode == 1
    for told in (
        f"tcp_mine.c:{line['snd_cwnd_stamps']}: the shim has no field snd_cwnd_stamps in struct "
        "tcp_sock; it has snd_cwnd_stamp",
        f"tcp_mine.c:{line['slower']}: the shim has no function tcp_slower_start; it has tcp_slow_start",
        f"tcp_mine.c:{line['slower']}: the shim has no name TCP_UNKNOWN",
        f"tcp_mine.c:{line['tell_all']}: the shim has no field tell_all in struct "
        "tcp_congestion_ops; it has ssthresh, cong_avoid",
    ):
        assert told in done.stderr
    code = RENO.replace(
        "static u32 undo", "u32 elsewhere(struct sock *sk);\nstatic u32 undo"
    ).replace("= thresh", "= elsewhere")
    with pytest.raises(CompilerError, match="the shim has no function elsewhere") as raised:
        module(tmp_path, code, options=())
    assert [m.name for m in raised.value.missing] == ["elsewhere"]
    with pytest.raises(CompilerError, match=r'"own\.h" is not beside it'):
        module(tmp_path, '#include "own.h"\n' + RENO)


def test_the_kernel_of_a_module_matters(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    older = RENO.replace(".undo_cwnd = undo, ", "").replace("static u32 undo", "u32 undo")
    gargalo.load_plugin(module(tmp_path, older, "4.9"))
    with pytest.raises(gargalo.PluginError):
        gargalo.load_plugin(module(tmp_path, older))
    assert "mine lacks undo_cwnd, which Linux needs since 4.14" in capfd.readouterr().err
    with pytest.raises(CompilerError, match="say which version it is for"):
        module(tmp_path, RATED.replace(">= KERNEL_VERSION(6, 10, 0)", "< 0"))


def test_state_that_is_too_large_is_told(tmp_path: Path):
    large = DELAYED.replace("u32 starts;", "u32 starts; u32 more[30];").replace(
        "d->starts +=", "d->more[29] = 1; d->starts +="
    )
    gargalo.load_plugin(module(tmp_path, large))
    with pytest.raises(
        gargalo.RunError, match=r"larger than ICSK_CA_PRIV_SIZE.* -DICSK_CA_PRIV_SIZE=144"
    ):
        gargalo.run(scenario("mine"))
    gargalo.load_plugin(module(tmp_path, large, options=["-DICSK_CA_PRIV_SIZE=144"]))
    assert gargalo.run(scenario("mine")).flows.height == 1


def test_modules_are_compared_with_the_built_in_ones(tmp_path: Path, gargalo: Any):
    place = tmp_path / "modules"
    place.mkdir()
    for name, code in (
        ("reno", RENO.replace('"mine"', '"reno"')),
        (
            "lost",
            RENO.replace('"mine"', '"lost"').replace("tcp_slow_start(tp", "tcp_lost_start(tp"),
        ),
        (
            "fails",
            RENO.replace('"mine"', '"fails"').replace(
                "if (acked)", "tcp_snd_cwnd_set(tp, 0);\n\tif (!acked)"
            ),
        ),
    ):
        (place / f"tcp_{name}.c").write_text(MODULE % code)
    (place / "helper.c").write_text("int helper(void) { return 1; }\n")
    words = ("plugin", "compare", place, "--duration", "5s", "--seeds", 1)
    done = gargalo(*words)
    assert done.returncode == 1
    rows = [re.split(" {2,}", line) for line in done.stdout.splitlines()]
    assert len(rows) == 1 + 4 + 2
    assert rows[1][:3] == ["linux-reno", "reno", "drop-tail"]
    assert "set cwnd_bytes to 0" in rows[5][0]
    assert re.match(r"tcp_lost.c:\d+: the shim has no function tcp_lost_start", rows[6][0])
    told = json.loads(gargalo(*words, "--json").stdout)
    reno = next(c for c in told if c["name"] == "linux-reno")
    assert list(reno["module"]) == ["drop-tail", "random loss", "two flows", "marks"]
    for scenario, figures in reno["module"].items():
        total, own = (sum(f["goodput_bps"]) for f in (figures, reno["own"][scenario]))
        assert math.isclose(total, own, rel_tol=0.1), scenario
    nothing = gargalo("plugin", "compare", tmp_path)
    assert nothing.returncode == 2
    assert "has no module of Linux" in nothing.stderr
