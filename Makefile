# Two commands do all the set-up: `make demo` runs the main job, `make test` the tests. See CONTRIBUTING.md.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

SPARK_TESTS := tests/commands tests/pipeline tests/pages/test_collect.py tests/traced
# Real processes and sockets, which mostly wait. None of them needs the tests' own Spark session.
PROCESS_TESTS := tests/sockets tests/netlab \
	$(patsubst %,tests/commands/test_%.py,bench help interrupts other_package run run_intergroup simulate)
# The checkers and the bugs that they must find.
JUDGE_TESTS := tests/properties tests/planted
# Whole runs in virtual time.
RUN_TESTS := tests/simulation tests/machines tests/campaign tests/scripts tests/papers

# Tests start hundreds of processes. Without this, each would compile all modules again where the user's environment
# forbids Python to keep what it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint types imports unit unit-spark unit-processes unit-judges unit-runs unit-rest same campaign campaigns bench pin clean

demo: $(INSTALLED)
	$(BIN)/antiphon demo --out demo-run

# Five lanes for two cores: tests with Spark and tests with processes wait most of their time. They come first, so that
# the lanes that only compute share both cores at the end.
test: $(INSTALLED)
	$(MAKE) --jobs 5 unit-spark unit-processes unit-runs unit-judges unit-rest lint types imports

lint: $(INSTALLED)
	$(BIN)/ruff format --check
	$(BIN)/ruff check

types: $(INSTALLED)
	$(BIN)/mypy

imports: $(INSTALLED)
	$(BIN)/lint-imports --no-cache --no-logo

unit: unit-spark unit-processes unit-runs unit-rest unit-judges

unit-spark: $(INSTALLED)
	$(BIN)/pytest $(SPARK_TESTS) $(PROCESS_TESTS:%=--ignore=%)

unit-processes: $(INSTALLED)
	$(BIN)/pytest $(PROCESS_TESTS)

unit-judges: $(INSTALLED)
	nice -n 10 $(BIN)/pytest $(JUDGE_TESTS)

unit-runs: $(INSTALLED)
	nice -n 10 $(BIN)/pytest $(RUN_TESTS)

unit-rest: $(INSTALLED)
	nice -n 10 $(BIN)/pytest $(patsubst %,--ignore=%,$(SPARK_TESTS) $(PROCESS_TESTS) $(JUDGE_TESTS) $(RUN_TESTS))

# Do this tree and BASE leave the same traces? Every scenario of the repository, and 200 seeds of each campaign family.
same: $(INSTALLED)
	$(BIN)/python tools/same.py $(or $(BASE),HEAD)

campaign: $(INSTALLED)
	$(BIN)/antiphon campaign newtop --runs 10000 --out campaign-run

campaigns: campaign
	$(BIN)/antiphon campaign membership --runs 50000 --out campaign-membership
	$(BIN)/antiphon campaign halted --runs 5000 --out campaign-halted
	$(BIN)/antiphon campaign safe --runs 2000 --out campaign-safe
	$(BIN)/antiphon campaign changes --runs 30000 --out campaign-changes
	$(BIN)/antiphon campaign causal-changes --runs 10000 --out campaign-causal-changes
	$(BIN)/antiphon campaign sequencer --runs 10000 --out campaign-sequencer
	$(BIN)/antiphon campaign classic --runs 5000 --out campaign-classic
	$(BIN)/antiphon campaign two-phase --runs 20000 --out campaign-two-phase
	$(BIN)/antiphon campaign combined --runs 10000 --out campaign-combined
	$(BIN)/antiphon campaign synchronous --runs 5000 --out campaign-synchronous
	$(BIN)/antiphon campaign acks --runs 2000 --out campaign-acks
	$(BIN)/antiphon campaign intergroup --runs 10000 --out campaign-intergroup

bench: $(INSTALLED)
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python -m benchmarks.acks_bytes
	$(BIN)/python -m benchmarks.acks_latency
	$(BIN)/python -m benchmarks.merging
	$(BIN)/python -m benchmarks.failover
	$(BIN)/antiphon bench
	$(BIN)/python -m benchmarks.real_runs
	$(BIN)/python -m benchmarks.stalled
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.watching
	$(BIN)/python -m benchmarks.sweeping
	$(BIN)/python -m benchmarks.judging

$(INSTALLED): pyproject.toml requirements/constraints.txt
	@echo "installing pinned packages into $(VENV), once; this takes a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint requirements/constraints.txt --editable ".[dev]"
	-@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib src  # pip would do it on one core
	touch $@

# Writes the versions of what is installed now; run it after changing a dependency in pyproject.toml.
pin: $(INSTALLED)
	$(BIN)/python -m pip freeze --exclude-editable > requirements/constraints.txt

clean:
	rm -rf $(VENV) demo-run campaign-* out
