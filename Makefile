# Gargalo: `make setup` prepares everything and runs nothing; every other target depends on it.
# Needs Rust >= 1.93, a C compiler and any Python >= 3.10 (PYTHON=/path/to/python chooses one).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
WHEELS := $(TARGET)/wheels

# Sources of the wheel: a change in any of them rebuilds it. Tests and benches are not included.
RUST_SOURCES := $(shell find crates -name '*.rs' -path '*/src/*' -o -name Cargo.toml -path 'crates/*' -o -path 'crates/plugin/include/*.[ch]')
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' -o -name py.typed -o -name '*.mplstyle' -o -path '*/assets/*' -o -path '*/lessons/*' -o -path '*/examples/*')
SOURCES := $(RUST_SOURCES) $(PYTHON_SOURCES) Cargo.toml Cargo.lock pyproject.toml

# Bindings are checked against the interpreter they are installed for.
export PYO3_PYTHON := $(abspath $(BIN)/python)
# Images of containers often set it: each of the many processes that tests start would compile all its libraries again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dev develop demo profile dist try-wheel quick test test-plan test-rust test-python test-tools test-stacks mutants fuzz fuzz-corpus bench bench-budget crosscheck stacks stack-tools lint style clippy docs reference pictures comparison scorecards stack-scorecards fmt lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

# Cargo compiles while pip installs; Python compiles what it imports when it does.
setup: ## build and install everything; the command is then .venv/bin/gargalo
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.gargalo

# A missing prerequisite is reported in one line with its remedy.
define FIND_PYTHON
for p in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.10 python3.14 python; do \
	if "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then python="$$p"; break; fi; \
done; \
[ -n "$${python:-}" ] || { echo "setup: no Python >= 3.10 found; install one (apt install python3 python3-venv) or say PYTHON=/path/to/python" >&2; exit 1; }; \
"$$python" -c 'import ensurepip, venv' 2>/dev/null || { echo "setup: $$python has no venv module; install it (apt install python3-venv)" >&2; exit 1; }
endef
define CHECK_RUST
command -v cargo >/dev/null && command -v rustc >/dev/null || { echo "setup: Rust is missing; install version 1.93 or later with rustup (https://rustup.rs)" >&2; exit 1; }; \
rust="$$(rustc --version | sed -E 's/^rustc ([0-9]+)\.([0-9]+).*/\1 \2/')"; set -- $$rust; \
{ [ "$$1" -gt 1 ] || [ "$$2" -ge 93 ]; } || { echo "setup: Rust $$1.$$2 is too old, 1.93 is needed: rustup update stable" >&2; exit 1; }; \
command -v cc >/dev/null || { echo "setup: no C compiler (cc); install one (apt install gcc)" >&2; exit 1; }
endef

# What builds the wheel.
$(VENV)/.maturin: requirements-build.lock
	@$(FIND_PYTHON); $(CHECK_RUST); \
	if ! "$(BIN)/python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then \
		echo "setup: creating $(VENV) with $$("$$python" --version)"; \
		rm -rf $(VENV); "$$python" -m venv $(VENV); \
	fi; \
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.lock
	@touch $@

$(VENV)/.deps: requirements.lock $(VENV)/.maturin
	@echo "setup: installing the locked Python packages"; \
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-compile -r requirements.lock
	@touch $@

# What tests, lint and documentation need, and the command does not.
$(VENV)/.dev: requirements-dev.lock $(VENV)/.deps
	@echo "setup: installing what tests and documentation need"; \
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

dev: $(VENV)/.tested $(VENV)/.dev

# Wheels: one compiled for speed, and one in the profile of the tests, most of which is compiled for Rust's tests anyway.
define BUILD_WHEEL
@$(CHECK_RUST); \
echo "setup: building gargalo$(2) (the first time takes some minutes)"; \
rm -rf $(WHEELS); \
$(3) "$(BIN)/maturin" build $(1) --locked --quiet --interpreter "$(BIN)/python" --out $(WHEELS); \
touch $@
endef

# What typical runs execute, for the compiler to arrange the code by: a tenth faster. A build for speed uses it if it is there.
PGO := $(TARGET)/pgo
PROFILE := $(PGO)/typical.profdata
PROFILED := $(wildcard $(PROFILE))
HOST = $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
USE_PROFILE := RUSTFLAGS="$${RUSTFLAGS:-} -Cprofile-use=$(abspath $(PROFILE))"

profile: $(VENV)/.deps ## see what typical runs execute: what `make setup` builds then is a tenth faster, as wheels of `make dist` are
	@$(CHECK_RUST); \
	command -v rustup >/dev/null || { echo "profile: rustup is missing, of which llvm-tools is a component (https://rustup.rs)" >&2; exit 1; }
	rustup component add llvm-tools
	rm -rf $(PGO)/raw $(PGO)/wheels $(PGO)/package
	RUSTFLAGS="$${RUSTFLAGS:-} -Cprofile-generate=$(abspath $(PGO)/raw)" CARGO_TARGET_DIR=$(PGO)/build \
		"$(BIN)/maturin" build --release --locked --quiet --target $(HOST) --interpreter "$(BIN)/python" --out $(PGO)/wheels
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target $(PGO)/package $(PGO)/wheels/gargalo-*.whl
	PYTHONPATH=$(PGO)/package "$(BIN)/python" tools/fingerprint.py --workers 0 >/dev/null
	"$$(rustc --print sysroot)/lib/rustlib/$(HOST)/bin/llvm-profdata" merge -o $(PROFILE) $(PGO)/raw

$(WHEELS)/.speed: $(VENV)/.maturin $(SOURCES) $(PROFILED)
	$(call BUILD_WHEEL,--release$(if $(PROFILED), --target $(HOST)),,$(if $(PROFILED),$(USE_PROFILE)))

$(WHEELS)/.tests: $(VENV)/.maturin $(SOURCES)
	$(call BUILD_WHEEL,, in the profile of the tests)

# Of three marks, one says what is installed: .gargalo, the wheel for speed; .tested, that of the tests, which take either;
# .develop, the working tree.
define INSTALL_WHEEL
@rm -f $(VENV)/.gargalo $(VENV)/.tested $(VENV)/.develop; \
"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall $(WHEELS)/gargalo-*.whl
endef

$(VENV)/.gargalo: $(VENV)/.deps $(WHEELS)/.speed
	$(INSTALL_WHEEL)
	@echo "setup: done; the command is $(BIN)/gargalo ($$("$(BIN)/gargalo" --version))"
	@touch $(WHEELS)/.tests $(VENV)/.tested $@

$(VENV)/.tested: $(VENV)/.deps $(WHEELS)/.tests
	$(INSTALL_WHEEL)
	@touch $@

MATURIN_DEVELOP := PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 VIRTUAL_ENV="$(abspath $(VENV))" "$(abspath $(BIN))/maturin" develop --locked --quiet
develop: $(VENV)/.develop ## .venv/bin/gargalo runs python/ and crates/ as they are now; `make setup` or `make test` end that
	$(MATURIN_DEVELOP) --skip-install

$(VENV)/.develop: $(VENV)/.deps pyproject.toml
	@$(CHECK_RUST); \
	echo "develop: building gargalo (the first time takes some minutes, later ones seconds)"; \
	rm -f $(VENV)/.gargalo $(VENV)/.tested; \
	$(MATURIN_DEVELOP); \
	touch $@

demo: setup ## three congestion controls race over a cellular link
	"$(BIN)/gargalo" run examples/cellular-race.toml

test: test-plan ## everything that can fail; LONG=1 checks all of what is otherwise checked for some of many
	@$(MAKE) --no-print-directory --jobs 2 dev test-tools
	@$(MAKE) --no-print-directory --jobs 2 test-rust test-stacks
	@$(MAKE) --no-print-directory test-python TEST_TOOLS=

test-plan:
	@echo "test: 1. Python packages in $(VENV), and of the system as root if missing: $(foreach t,$(TEST_TOOLS),$(lastword $(subst :, ,$(t))))"; \
	echo "test: 2. a wheel and all of Rust's tests are compiled, and run; 3. pytest. On two cores 20 min in all; make quick is what changed"

test-rust: dev
	cargo test --workspace --locked --quiet

# After `make develop` the working tree is tested as it is.
quick: $(if $(wildcard $(VENV)/.develop),develop,$(VENV)/.tested) $(VENV)/.dev ## the tests of what has changed since the last commit (SINCE=)
	"$(BIN)/python" tools/quick.py --since $(SINCE)

# On two processors: one of three workers has the tests in real time, and mostly waits.
test-python: dev test-tools
	"$(BIN)/python" -m pytest --quiet --numprocesses 3 --dist loadgroup

# Programs that tests use if they are there or can be installed, each with its package: captures are read back, reports
# are opened in a browser, real programs run in the lab. Tests without theirs are skipped with the reason.
BROWSER := chromium:chromium chromedriver:chromium-driver
TEST_TOOLS := tshark:tshark $(BROWSER) firefox-esr:firefox-esr iperf3:iperf3 curl:curl nginx:nginx-light ip:iproute2 tcpdump:tcpdump
test-tools:
	@missing=""; for t in $(TEST_TOOLS); do command -v "$${t%:*}" >/dev/null || missing="$$missing $${t#*:}"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "setup: installing$$missing"; \
		apt-get update -qq >/dev/null 2>&1; \
		for p in $$missing; do \
			DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$$p" >/dev/null 2>&1 || \
				echo "setup: $$p could not be installed; tests that need it will skip" >&2; \
		done; \
	fi

# Those QUIC stacks of others that take seconds; the rest is made by `make stacks` and tested every night.
test-stacks: $(VENV)/.stacks
$(VENV)/.stacks: $(VENV)/.dev $(wildcard stacks/aioquic/* stacks/ngtcp2/*.[ch]) crates/plugin/include/gargalo_stack.h
	@done=1; \
	{ $(AIOQUIC_STACK); } || { done=; echo "setup: aioquic could not be installed; its tests will skip" >&2; }; \
	if $(MAKE) --no-print-directory stack-tools STACKS=ngtcp2 && $(MAKE) --no-print-directory -C stacks/ngtcp2 libraries; \
		then { $(NGTCP2_STACK); } || exit 1; \
		else done=; echo "setup: ngtcp2 could not be installed; its tests will skip" >&2; fi; \
	if [ -n "$$done" ]; then touch $@; fi

# Needs seconds to minutes for each mutant's tests: SINCE=commit for what has changed, or PARTS="link metrics" SAMPLE=40,
# with another SEED for another sample.
SINCE ?= HEAD
SAMPLE ?= 40
SEED ?= 1
MUTANTS := $(abspath $(TARGET))/mutants
mutants: dev ## changes the code in small ways and names the changes that no test notices (SINCE=, or PARTS=, SAMPLE= and SEED=)
	@[ -x $(MUTANTS)/bin/cargo-mutants ] || cargo install --quiet --locked --root $(MUTANTS) cargo-mutants@27.1.0
	@[ -x $(MUTANTS)/venv/bin/python ] || "$(BIN)/python" -m venv $(MUTANTS)/venv
	@$(MUTANTS)/venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-mutants.lock
	PATH="$(MUTANTS)/bin:$$PATH" $(MUTANTS)/venv/bin/python tools/mutants.py --since $(SINCE) --sample $(SAMPLE) --seed $(SEED) $(PARTS)

# `make test` runs every target on the corpus and on mutations of it. This is coverage-guided, for MINUTES each, all
# targets or FUZZ=name; failing inputs go to fuzz/failures, new ones to $(FUZZ_NEW).
MINUTES := 60
FUZZ_BUILD := $(abspath $(TARGET))/fuzz
FUZZ_NEW := $(FUZZ_BUILD)/corpus
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions=yes
define FUZZ_EACH
command -v c++ >/dev/null || { echo "fuzz: libFuzzer needs a C++ compiler (c++); install one (apt install g++), or do without: cargo run --release -p gargalo-fuzz -- --inputs 1000000" >&2; exit 1; }; \
host="$$(rustc -vV | sed -n 's/^host: //p')"; \
RUSTFLAGS="$(FUZZ_FLAGS)" CARGO_PROFILE_RELEASE_DEBUG=line-tables-only cargo build --release --locked -p gargalo-fuzz --features libfuzzer --bin libfuzzer --target "$$host" --target-dir $(FUZZ_BUILD); \
mkdir -p fuzz/failures; \
for t in $(or $(FUZZ),$(notdir $(wildcard fuzz/corpus/*))); do \
	mkdir -p $(FUZZ_NEW)/$$t; echo "fuzz: $$t"; export FUZZ_TARGET=$$t; fuzzer="$(FUZZ_BUILD)/$$host/release/libfuzzer"
endef

fuzz: ## coverage-guided fuzzing for hours (needs a C++ compiler)
	@$(FUZZ_EACH); \
		"$$fuzzer" -max_total_time=$$(($(MINUTES) * 60)) -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
			-artifact_prefix=fuzz/failures/$$t- $(FUZZ_NEW)/$$t fuzz/corpus/$$t; \
	done

fuzz-corpus: ## keeps what `make fuzz` found that covers more
	@$(FUZZ_EACH); \
		"$$fuzzer" -merge=1 fuzz/corpus/$$t $(FUZZ_NEW)/$$t; \
	done

# QUIC implementations of others, outside the default build and Cargo's workspace; a library is found by its file's name.
# STACKS="quinn ngtcp2" builds those. RUSTFLAGS of the caller would replace those of a folder's .cargo/config.toml.
# QUINN=DIR (QUICHE=, NGTCP2=) builds that of a checkout as `stack = "quinn@BUILD"`, beside the other; BUILD= names it.
# PICOQUIC=DIR builds picoquic, of which there is no package; PICOTLS= if that is not beside it. NEQO=DIR builds neqo,
# with NSS (and NSPR beside it) and nss-rs of the folders beside it, or of NSS= and NSS_RS=.
FROM := $(if $(QUINN),quinn) $(if $(QUICHE),quiche) $(if $(NGTCP2),ngtcp2) $(if $(PICOQUIC),picoquic) $(if $(NEQO),neqo)
STACKS ?= $(or $(strip $(FROM)),quinn quiche ngtcp2 aioquic)
FROM_DIR = "$(BIN)/python" tools/stack_from.py $(1) "$(2)" $(if $(BUILD),--build "$(BUILD)") --into "$(STACKS_FOUND)" --target "$(STACKS_BUILT)"
STACKS_BUILT := $(abspath $(TARGET))/stacks
STACKS_FOUND := $(abspath $(VENV))/share/gargalo/stacks
stacks: setup stack-tools $(addprefix stack-,$(STACKS)) ## QUIC stacks of others, for `stack = "NAME"`: quinn, quiche, ngtcp2, aioquic (STACKS="quinn ngtcp2"), picoquic of PICOQUIC=DIR, neqo of NEQO=DIR

define CARGO_STACK
@echo "stacks: building $(1)"; \
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS; cd stacks/$(1); \
cargo build --release --locked --quiet --target-dir "$(STACKS_BUILT)/$(1)"; \
mkdir -p "$(STACKS_FOUND)"; cp "$(STACKS_BUILT)/$(1)/release/$(2)" "$(STACKS_FOUND)/$(1).so"
endef

.PHONY: stack-quinn stack-quiche stack-ngtcp2 stack-aioquic stack-picoquic stack-neqo
stack-quinn: setup
	$(if $(QUINN),$(call FROM_DIR,quinn,$(QUINN)),$(call CARGO_STACK,quinn,libquinn.so))

# BoringSSL is compiled, which takes some minutes.
stack-quiche: setup stack-tools
	$(if $(QUICHE),$(call FROM_DIR,quiche,$(QUICHE)),$(call CARGO_STACK,quiche,libquiche_stack.so))

NGTCP2_STACK = $(MAKE) --no-print-directory -C stacks/ngtcp2 && mkdir -p "$(STACKS_FOUND)" && cp stacks/ngtcp2/ngtcp2.so "$(STACKS_FOUND)/"
stack-ngtcp2: setup stack-tools
	@echo "stacks: building ngtcp2"; $(if $(NGTCP2),$(call FROM_DIR,ngtcp2,$(NGTCP2)),$(NGTCP2_STACK))

stack-picoquic: setup stack-tools
	@[ -n "$(PICOQUIC)" ] || { echo "stacks: picoquic is built from its sources: PICOQUIC=DIR names their folder" >&2; exit 1; }
	@echo "stacks: building picoquic"; $(call FROM_DIR,picoquic,$(PICOQUIC)) $(if $(PICOTLS),--also "$(PICOTLS)")

# gyp and ninja build NSS. They are in an environment of their own, as they need packages that this one has too.
NEQO_TOOLS := $(STACKS_BUILT)/neqo.tools
stack-neqo: setup stack-tools
	@[ -n "$(NEQO)" ] || { echo "stacks: neqo is built from its sources: NEQO=DIR names their folder" >&2; exit 1; }
	@[ -x "$(NEQO_TOOLS)/bin/python" ] || "$(BIN)/python" -m venv "$(NEQO_TOOLS)"
	@"$(NEQO_TOOLS)/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r stacks/neqo/requirements.lock
	@echo "stacks: building neqo, and NSS (the first time takes some minutes)"; \
	export PATH="$(NEQO_TOOLS)/bin:$$PATH"; $(call FROM_DIR,neqo,$(NEQO)) $(if $(NSS),--also "$(NSS)") $(if $(NSS_RS),--nss-rs "$(NSS_RS)")

AIOQUIC_STACK = $(MAKE) --no-print-directory -C stacks/aioquic install PYTHON="$(abspath $(BIN)/python)"
stack-aioquic: setup
	@echo "stacks: installing aioquic"; $(AIOQUIC_STACK)

# What compiles BoringSSL and ngtcp2 is installed if it can be; otherwise it is named.
stack-tools:
	@wanted=""; \
	case " $(STACKS) " in *" quiche "*) \
		command -v cmake >/dev/null || wanted="$$wanted cmake";; esac; \
	case " $(STACKS) " in *" quiche "*|*" neqo "*) \
		command -v g++ >/dev/null || wanted="$$wanted g++"; \
		[ -n "$${LIBCLANG_PATH:-}" ] || compgen -G "/usr/lib*/llvm*/lib/libclang.so*" >/dev/null || compgen -G "/usr/lib*/*/libclang[.-][s0-9]*" >/dev/null \
			|| wanted="$$wanted libclang-dev";; esac; \
	case " $(STACKS) " in *" ngtcp2 "*) \
		pkg-config --exists libngtcp2 libngtcp2_crypto_gnutls gnutls 2>/dev/null \
			|| wanted="$$wanted pkg-config libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev";; esac; \
	case " $(STACKS) " in *" picoquic "*) \
		[ -f /usr/include/openssl/rand.h ] && compgen -G "/usr/lib*/*/libcrypto.a" >/dev/null || wanted="$$wanted libssl-dev";; esac; \
	if [ -n "$$wanted" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$wanted; } \
			>/dev/null 2>&1 && wanted=""; \
	fi; \
	[ -z "$$wanted" ] || { echo "stacks: missing:$$wanted; install them (apt install$$wanted), or leave out what needs them: make stacks STACKS=quinn" >&2; exit 1; }

# A wheel for machines older than this one: zig has the symbols of old C libraries. `make setup` builds one for this machine alone.
WHEEL_TARGET ?= $(HOST)
WHEEL_COMPATIBILITY ?= manylinux_2_17
DIST := $(TARGET)/dist
dist: profile ## a wheel that other machines can install, and the source archive, in target/dist (WHEEL_TARGET=, WHEEL_COMPATIBILITY=)
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-release.lock
	rustup target add $(WHEEL_TARGET)
	$(USE_PROFILE) PATH="$(abspath $(BIN)):$$PATH" maturin build --release --locked --zig --target $(WHEEL_TARGET) --compatibility $(WHEEL_COMPATIBILITY) --interpreter "$(BIN)/python" --out $(DIST)
	"$(BIN)/maturin" sdist --out $(DIST)

try-wheel: ## install the wheel of `make dist` as a stranger would, and use every command
	"$(BIN)/python" tools/try_wheel.py $(DIST)

# HTSIM=DIR names a checkout of htsim's sources; without it, and without ns-3, their absence is reported.
bench: setup ## how fast: criterion, and the same scenarios in htsim (HTSIM=DIR) and ns-3 where they are
	cargo bench --workspace --locked
	"$(BIN)/python" benches/compare.py $(if $(HTSIM),--htsim "$(HTSIM)")

bench-budget: setup ## instructions a packet, part by part, against the table of docs/benchmarks.md; needs valgrind
	"$(BIN)/python" benches/budget.py --check docs/benchmarks.md

crosscheck: setup ## the same congestion controls in ns-3 and here; rewrites docs/crosscheck.md, and of docs/studies/fidelity.md what ns-3 has in it
	"$(BIN)/python" benches/crosscheck.py
	[ ! -d runs/studies/fidelity/quick/store ] || "$(BIN)/python" benches/crosscheck.py --fidelity runs/studies/fidelity/quick

lint: style clippy ## formatting, ruff, mypy, clippy

# Seconds, and nothing is compiled.
style: $(VENV)/.dev
	cargo fmt --all --check
	for s in stacks/common stacks/quinn stacks/quiche stacks/neqo experiments/virtual-time; do cargo fmt --manifest-path $$s/Cargo.toml --check; done
	"$(BIN)/ruff" check .
	"$(BIN)/ruff" format --check .
	"$(BIN)/mypy"

clippy: $(VENV)/.deps
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

docs: dev reference ## the documentation as a site in site/
	NO_MKDOCS_2_WARNING=1 "$(BIN)/mkdocs" build --strict --quiet

reference: $(VENV)/.tested ## regenerates what is derived from the scenario model, results tables, commands and docstrings
	"$(BIN)/python" -m gargalo._generate

# ONLY=name redraws one algorithm.
pictures: setup ## redraws the pictures of every congestion control's page, and those of runs, terminals and pages in README and docs
	"$(BIN)/python" tools/congestion_pictures.py $(if $(ONLY),--only $(ONLY))
	$(if $(ONLY),,"$(BIN)/python" tools/demo_picture.py)
	$(if $(ONLY),,$(MAKE) test-tools TEST_TOOLS="$(BROWSER)" && "$(BIN)/python" tools/screenshots.py)

comparison: setup ## measures every congestion control on six networks for the documentation
	"$(BIN)/python" tools/congestion_comparison.py $(if $(ONLY),--only $(ONLY))

scorecards: setup ## evaluates every congestion control by the criteria of RFC 9743 for the documentation
	"$(BIN)/python" -m gargalo.evaluation.published docs

# Not aioquic's, which take an hour: `--stacks aioquic` adds them to the table.
stack-scorecards: setup ## evaluates the congestion controls of the installed QUIC stacks in the same way
	"$(BIN)/python" -m gargalo.evaluation.published docs --stacks neqo ngtcp2 picoquic quiche quinn

fmt: dev ## format the code
	cargo fmt --all
	for s in stacks/common stacks/quinn stacks/quiche stacks/neqo experiments/virtual-time; do cargo fmt --manifest-path $$s/Cargo.toml; done
	"$(BIN)/ruff" check --fix --quiet .
	"$(BIN)/ruff" format .

COMPILE := uv pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header --quiet
lock: ## renew the locks of Python packages (needs uv)
	$(COMPILE) pyproject.toml --extra all --upgrade -o requirements.lock
	echo "maturin>=1.9.4,<2" | $(COMPILE) - --constraints requirements.lock --upgrade -o requirements-build.lock
	@# Without what the other lock installs; what that has for Windows alone, this one may need everywhere.
	$(COMPILE) pyproject.toml --extra dev --constraints requirements.lock -o requirements-dev.lock \
		$$(sed -nE '/== '(win32|nt)'/!s/^([a-z0-9-]+)==.*/--no-emit-package \1/p' requirements.lock requirements-build.lock)
	sed -i '/^$$/,$$d' requirements-dev.lock # A list of what was left out.
	echo ziglang | $(COMPILE) - --upgrade -o requirements-release.lock
	printf 'gyp-next\nninja\n' | $(COMPILE) - --upgrade -o stacks/neqo/requirements.lock
	echo cosmic-ray | $(COMPILE) - --upgrade -o requirements-mutants.lock

clean: ## remove what was built; results in runs/ stay
	cargo clean --quiet
	$(MAKE) --no-print-directory -C stacks/ngtcp2 clean
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache
