# Every target works in a fresh clone: the environment is made in .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help reproduce docs test pytest physics lint bench clean

help:            ## this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/: .*##/:/'

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "manypass needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo 'an environment in $(VENV): some minutes, once'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

reproduce: $(READY) ## the paper's figures, into figures/
	$(BIN)/manypass reproduce --out figures

$(VENV)/.docs: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs ## the site, into build/docs/html; every page's code is run
	$(BIN)/sphinx-build -W --keep-going -j 2 -d build/docs/doctrees docs build/docs/html

lint: $(READY)   ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: $(READY)   ## lint, types and tests, at the same time
	$(MAKE) --no-print-directory --jobs 2 lint pytest

pytest: $(READY) # three runners for two cores: some wait for browsers, servers and workers
	$(BIN)/pytest -n 3 --dist worksteal -m 'not physics and not endurance'

physics: $(READY) ## statistics against fresh simulations and programs that are killed, some 15 minutes
	$(BIN)/pytest -n 2 --dist worksteal -m 'physics or endurance'

bench: $(READY)  ## how long things take, as ratios in one run
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/gpu.py
	$(BIN)/python benchmarks/orders.py
	$(BIN)/python benchmarks/sampling.py
	$(BIN)/python benchmarks/dmft.py
	$(BIN)/python benchmarks/committee.py
	$(BIN)/python benchmarks/steady.py
	$(BIN)/python benchmarks/data.py
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/others.py

clean:           ## remove everything that make made
	rm -rf $(VENV) figures build *.egg-info src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
