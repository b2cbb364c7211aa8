# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PTERA := build/ptera
CORE := setup.py $(wildcard src/simstate/engine/core/*.c src/simstate/engine/core/*.h)
STAMP := $(shell date +%Y%m%d-%H%M%S)

.PHONY: demo train-demo test test-ptera check bench bench-peers docs format clean

demo: $(READY)
	$(BIN)/simstate run

# A cart-pole in 2 minutes, then a robot that walks in 20, on two cores; then how well.
train-demo: $(READY)
	$(BIN)/simstate train Cartpole-Balance --run-dir runs/demo/cartpole-$(STAMP)
	$(BIN)/simstate play Cartpole-Balance runs/demo/cartpole-$(STAMP)
	$(BIN)/simstate train Quadruped-Velocity --iterations 340 --run-dir runs/demo/quadruped-$(STAMP)
	$(BIN)/simstate play Quadruped-Velocity runs/demo/quadruped-$(STAMP) --output runs/demo/quadruped-$(STAMP)/walk.gif

test: $(READY)
	$(BIN)/pytest -q

# Ptera Software 5.1 on its own MuJoCo class and on ours, in an environment of its own.
test-ptera: $(PTERA)/.ready
	$(PTERA)/bin/python tests/interop/ptera_glider.py

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/pytest -q tests/docs tests/test_readme.py

# One table of all ratios; docs/performance.md takes it from last.json, with `make docs`.
bench: $(READY)
	$(BIN)/python benchmarks/run.py --json benchmarks/last.json

# mjlab (with BENCH_LARGE=1), Basilisk and Ptera Software, in environments that are thrown away.
bench-peers: $(READY)
	$(BIN)/python benchmarks/peers.py

# Generated pages and figures, then the site in site/; nothing is fetched.
docs: $(READY)
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/charts.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(PTERA)

# The one rule that sets everything up; it runs again when one of its inputs changes.
$(READY): pyproject.toml constraints.txt $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(PTERA)/.ready: pyproject.toml constraints.txt $(CORE)
	test -x $(PTERA)/bin/python || $(PYTHON) -m venv $(PTERA)
	$(PTERA)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . pterasoftware==5.1.0
	touch $@
