# Two commands on a fresh machine: `make demo` and `make test`. Both set up a local environment with pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILT := pyproject.toml setup.py regarde/native/library.py $(wildcard regarde/native/source/* regarde/native/source/engine/*)

SUITE := --numprocesses 2 --dist worksteal -m "not slow"

.PHONY: demo test test-plain test-browser test-interop test-cluster slow lint studio browser wheels clean

demo: $(VENV)/demo
	$(BIN)/regarde demo

test: $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest $(SUITE)

# One case of each test as on a machine without a C++ compiler: in a copy of the project without its native library.
PLAIN := build/plain
test-plain: $(VENV)/test
	rm -rf $(PLAIN) && mkdir -p $(PLAIN)
	tar -c --exclude='*.so' --exclude=./build --exclude=./.venv --exclude=./.git --exclude=node_modules . | tar -x -C $(PLAIN)
	cd $(PLAIN) && CC=false PYTHONPATH=. ../../$(BIN)/python -m pytest $(SUITE) --most 1 --ignore=tests/browser

# The tests that see more where there are a browser and fonts for all scripts.
test-browser: browser
	$(BIN)/pytest $(SUITE) tests/browser tests/visualize

# What leaves for other runtimes and comes from them, beside these runtimes.
test-interop: $(VENV)/interop
	$(BIN)/pytest $(SUITE) tests/interop

# Translation on Ray and Spark, which it installs; Spark needs Java.
test-cluster: $(VENV)/cluster
	$(BIN)/pytest -m "not slow" tests/streaming

slow: $(VENV)/slow
	$(BIN)/pytest -m slow

lint: $(VENV)/test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

# What the browser tests need: Debian's chromium with fonts for all scripts, and what drives it. Without, they are skipped.
ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
browser: $(VENV)/browser
	@command -v chromium > /dev/null || { $(ROOT) apt-get -qq update && $(ROOT) apt-get -qq install -y \
	  --no-install-recommends chromium fonts-noto-core fonts-noto-cjk; } > /dev/null || echo "no chromium could be installed"

# What is released: the sources, and wheels for Linux and macOS, in dist/.
wheels: $(VENV)/wheels
	$(VENV)/wheels/bin/python tools/wheels.py dist

$(VENV)/wheels:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check build wheel lief ziglang || (rm -rf $@; false)

studio: studio/node_modules
	cd studio && npm run --silent build

studio/node_modules: studio/package-lock.json
	cd studio && npm ci --silent
	@touch $@

$(VENV)/demo: $(BUILT) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[train,serve,plot]'
	@touch $@

$(VENV)/test: $(BUILT) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/demo

$(VENV)/browser: $(BUILT) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,browser]'
	@touch $@ $(VENV)/test $(VENV)/demo

$(VENV)/interop: $(BUILT) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,interop]'
	@touch $@ $(VENV)/test $(VENV)/demo

$(VENV)/cluster: $(BUILT) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,ray,spark]'
	@touch $@ $(VENV)/test $(VENV)/demo

$(VENV)/slow: $(BUILT) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[slow]'
	@touch $@ $(VENV)/test $(VENV)/demo

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
