# Set-up, tests and tools. Needs Python 3.11 or newer and make; everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_BROWSER := $(VENV)/.installed-browser
FRAMEWORKS := .venv-frameworks
TRACKERS := .venv-trackers
# A test that hangs fails by its own timeout; one that cannot be interrupted ends its process, and the others go on.
NEVER_FOR_EVER := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
SOURCES := goodput_cli loggen tests benchmarks .ci

.DEFAULT_GOAL := help
INSTALLED_DOCS := $(VENV)/.installed-docs
.PHONY: help install demo test pytest ruff types test-browser test-fleet test-prometheus test-frameworks test-trackers test-truth truth-tables screenshots docs dist lint format fuzz upstream-words bench bench-full clean

help: ## Show what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

install: $(INSTALLED) ## Set up .venv; the command is then .venv/bin/goodput

demo: $(INSTALLED) ## Set up and analyze a sample log
	$(BIN)/goodput analyze sample_logs/llm-pretrain.jsonl

test: ruff ## Set up, run the linters and the tests
	$(MAKE) --no-print-directory -j 2 types pytest

pytest: $(INSTALLED_DEV)
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 20 $(NEVER_FOR_EVER) $(PYTEST_ARGUMENTS)

test-browser: $(INSTALLED_BROWSER) ## Run the tests that need a browser (Debian: apt-get install chromium)
	$(BIN)/python -m pytest $(NEVER_FOR_EVER) tests/browser

test-prometheus: $(INSTALLED_DEV) ## Run the tests that need Prometheus (Debian: apt-get install prometheus)
	$(BIN)/python -m pytest $(NEVER_FOR_EVER) tests/prometheus

test-fleet: $(INSTALLED_DEV) ## Run the tests of fleets on several processes and a dask cluster (3 minutes)
	$(BIN)/python -m pytest $(NEVER_FOR_EVER) tests/cluster

test-frameworks: $(FRAMEWORKS)/.installed ## Run the recorder's callbacks in Lightning and Transformers (5 GB, in a venv of its own)
	$(FRAMEWORKS)/bin/python -m pytest tests/frameworks

test-trackers: $(TRACKERS)/.installed ## Run Weights & Biases and MLflow, with kills, and read what they left (in a venv of its own)
	$(TRACKERS)/bin/python -m pytest tests/trackers

test-truth: $(INSTALLED_DEV) ## How often what is said is right, over stories of known truth: make test-truth FIRST=31 LAST=60
	$(BIN)/python -m tests.truth $(or $(FIRST),6) $(or $(LAST),30)

truth-tables: $(INSTALLED_DEV) ## Print anew how sure slow levels, ranges, accused hosts and advice are: when a constant changes
	$(BIN)/python -m benchmarks.noise
	$(BIN)/python -m benchmarks.hosts
	$(BIN)/python -m benchmarks.advice

screenshots: $(INSTALLED_BROWSER) ## Make the pictures of the documents anew, with the same browser
	$(BIN)/python -m tests.browser.screenshots

docs: $(INSTALLED_DOCS) ## Build the documents as a site, build/docs: links are checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: ## Build both packages, check them, and run the demo from each on the oldest and the newest Python
	.ci/dist

lint: ruff types ## Run the linters

ruff: $(INSTALLED_DEV)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(INSTALLED_DEV)
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 --follow-imports skip -p goodput_cli.record -p goodput_cli.compat.drop_in
	$(BIN)/lint-imports --no-logo --no-cache

format: $(INSTALLED_DEV) ## Format the code
	$(BIN)/ruff check --fix-only --quiet $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

upstream-words: $(INSTALLED_DEV) ## Compare words of shipped formats with the sources of programs (network)
	$(BIN)/python -m tests.text.upstream_words

fuzz: $(INSTALLED_DEV) ## Feed mutated inputs to every reader: make fuzz SECONDS=600 SEED=7
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0)

bench: $(INSTALLED_DEV) ## Run the benchmarks (about 5 minutes; the peers go into a venv of their own)
	$(BIN)/python -m benchmarks

bench-full: $(INSTALLED_DEV) ## Run all benchmarks (about half an hour, 12 GB of logs)
	$(BIN)/python -m benchmarks --full

clean: ## Remove what was built, .venv too
	rm -rf $(VENV) .venv-* build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend is installed first, pinned like everything else: --no-build-isolation then uses that one.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "goodput needs Python 3.11 or newer, and '$(PYTHON)' is not; name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || \
	  { echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu it is in the package python3-venv" >&2; exit 1; }
	$(PIP) install --quiet -c constraints.txt setuptools
	$(PIP) install --quiet -c constraints.txt --no-build-isolation -e .
	@touch $@

$(INSTALLED_BROWSER): $(INSTALLED_DEV)
	$(PIP) install --quiet -c constraints.txt --no-build-isolation -e '.[browser,dev]'
	@touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(PIP) install --quiet -c constraints.txt --no-build-isolation -e '.[docs]'
	@touch $@

$(FRAMEWORKS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet -c constraints.txt -e '.[dev,frameworks]'
	@touch $@

$(TRACKERS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TRACKERS)
	$(TRACKERS)/bin/python -m pip install --quiet -e '.[dev,trackers]'
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(PIP) install --quiet -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@
