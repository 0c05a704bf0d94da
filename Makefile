# The same targets for users, developers and CI. The first call of a target creates .venv if the target needs it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCES := src tests benchmarks
BENCH := benchmarks/.venv
# The Python that runs the benchmarks. If you set it to another Python, install the packages that jumok depends on and
# benchmarks/requirements.txt there.
BENCH_PYTHON ?= $(BENCH)/bin/python
# Arguments for the program that a target runs: make test ARGS="-k alignment", make demo ARGS="--minutes 1".
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo check test test-web test-all format reference docs docs-live bench web screenshots browser clean

help: ## list the targets
	@echo "jumok: train a translator on your own sentence pairs and see what it pays attention to."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## train on the built-in corpus, translate, score and draw, in a few minutes
	$(BIN)/jumok demo --out runs/demo $(ARGS)

check: $(READY) ## format, lint, types and the fast tests: before every commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 --dist worksteal -m "not medium and not slow" $(ARGS)

test: $(READY) ## fast and medium tests, with coverage; some open a web page, if Chromium is found
	$(BIN)/pytest -q -n 2 --dist worksteal -m "not slow" --cov --cov-report=term:skip-covered --cov-fail-under=90 $(ARGS)

# With --dist loadfile, one worker of pytest-xdist runs all tests of a file, so the models that the tests of the file share
# are trained once.
test-web: $(READY) ## every test of the pages: their TypeScript, and in Chromium
	@if command -v npm > /dev/null; then cd web && npm ci --silent && npm run --silent test; \
	  else echo "Node is not installed: the unit tests of web/ are skipped."; fi
	$(BIN)/pytest -q -n 2 --dist loadfile -m web $(ARGS)

test-all: $(READY) ## every test, the slow ones too
	$(BIN)/pytest -q -n 2 --dist worksteal $(ARGS)

format: $(READY) ## format the sources and sort their imports
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: $(READY) ## write docs/python.md from the docstrings
	$(BIN)/python docs/make_python_reference.py

docs: $(READY) ## build the site of docs/ in English and Korean into site/
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d site/.cache/en docs site
	$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d site/.cache/ko -D language=ko docs site/ko
	@echo "open site/index.html or site/ko/index.ko.html"

docs-live: docs ## build the site and serve it on this machine; after a change of docs/, run make docs elsewhere
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site $(ARGS)

bench: $(if $(filter $(BENCH)/%,$(BENCH_PYTHON)),$(BENCH)/.ready) ## compare the speed of jumok and other toolkits: topics and options go into ARGS
	PYTHONPATH=src $(BENCH_PYTHON) -m benchmarks $(ARGS)

web: ## build web/: pages and engine into src/jumok/plots/ and server/, figures into docs/site/; needs Node
	cd web && npm ci --silent && npm run --silent check && npm run --silent build

screenshots: $(READY) ## pictures of every panel into runs/screenshots; needs a browser
	PYTHONPATH=tests $(BIN)/python tests/web/take_screenshots.py $(ARGS)

browser: ## install Chromium, Firefox and a Hangul font for the tests, with apt, as root
	@command -v chromium > /dev/null && fc-list :lang=ko | grep -q . || { \
	  command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ] \
	    && apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium fontconfig fonts-noto-cjk; \
	} || echo "Chromium or a Hangul font is missing and could not be installed. Without Chromium, tests of the pages are skipped."
	@command -v firefox-esr > /dev/null || { command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ] \
	    && apt-get -qq install -y --no-install-recommends firefox-esr; \
	} || echo "Firefox is missing and could not be installed: its one test is skipped."

clean: ## remove caches and builds; runs/ and .venv/ stay
	rm -rf build dist site htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .schemathesis
	find $(SOURCES) -type d -name __pycache__ -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "jumok needs Python 3.11 or newer. $(PYTHON) is: $$($(PYTHON) --version 2>&1)"; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "preparing $(VENV) (once; a few minutes)"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "$(PYTHON) could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

$(BENCH)/.ready: pyproject.toml constraints.txt benchmarks/requirements.txt benchmarks/requirements-eole.txt
	@echo "preparing $(BENCH) (once; a few minutes)"
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/pip install --quiet --quiet --disable-pip-version-check -c constraints.txt \
	  -r benchmarks/requirements.txt -e .
	@$(BENCH)/bin/pip install --quiet --quiet --disable-pip-version-check -c constraints.txt \
	  -r benchmarks/requirements-eole.txt || echo "eole could not be installed here: it is left out"
	@touch $@
