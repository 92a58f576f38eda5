# `make` alone lists what there is. Needs Python 3.11 or later and the package index.

PYTHON ?= python3
IMAGE ?= streamduel
BENCH_ARGS ?=
CLICKS ?= 200000

BIN = .venv/bin
# Tests that share the machine. The others start brokers, browsers and containers, kill processes
# and stage faults: each wants all of it.
ON_ALL_CORES = streamduel connectors tests/contract/interleaving tests/contract/policies \
	tests/statistics tests/unit
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' streamduel/__init__.py)
# What the tests use that is not Python's, each as what must be there and the Debian package that
# has it. Docker or STREAMDUEL_TEST_KAFKA stand in for some: CONTRIBUTING.md.
TOOLS = java:default-jre-headless mvn:maven curl:curl promtool:prometheus chromium:chromium \
	/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf:fonts-dejavu-core \
	docker-compose:docker-compose buildah:buildah mmdebstrap:mmdebstrap runc:runc
# A command that succeeds where the machine can be given packages.
CAN_INSTALL = test "$$(id -u)" = 0 && command -v apt-get >/dev/null
APT = DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
UV_VERSION = 0.13.8

.DEFAULT_GOAL := help
.PHONY: help run test test-image kafka lint bench docs image compose audit lock clean tools
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

run: .venv/run.stamp run/clicks.jsonl ## Find the best of six rankers in a click log; no server needed
	$(BIN)/streamduel run configs/local.yaml --until-end

test: lint tools $(if $(CI),audit) ## Check everything: style, types, architecture, and all tests, on a real Kafka too
ifdef PYTEST_ARGS
	$(BIN)/python -m pytest $(PYTEST_ARGS)
else
	$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ON_ALL_CORES)
	$(BIN)/python -m pytest tests $(ON_ALL_CORES:%=--ignore=%)
endif

test-image: .venv/dev.stamp tools ## Build the container image, start it, and test it
	STREAMDUEL_REQUIRE_IMAGE=1 $(BIN)/python -m pytest tests/image $(PYTEST_ARGS)

kafka: .venv/dev.stamp tools ## Run a throw-away Apache Kafka on localhost:9092, until Ctrl-C
	@$(BIN)/python -m tests.broker 9092

lint: .venv/dev.stamp ## Check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp ## Measure throughput, latency and memory on this machine
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

docs: .venv/dev.stamp ## Build the documentation site; then open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file configs/mkdocs.yml

image: ## Build the container image
	docker build --build-arg VERSION=$(VERSION) --tag $(IMAGE):$(VERSION) --tag $(IMAGE):latest .

compose: ## Run it all in Docker: Kafka, streamduel, simulated users, Prometheus and Grafana
	docker compose --file configs/compose.yaml up --build

audit: .venv/dev.stamp ## Look up whether what goes into the image has known vulnerabilities
	@$(BIN)/python -m tests.image.audit

lock: .venv/dev.stamp ## Pin anew what goes into the container image
	$(BIN)/pip install --quiet uv==$(UV_VERSION)
	$(BIN)/uv pip compile pyproject.toml --extra kafka --upgrade --generate-hashes \
		--universal --python-version 3.11 --custom-compile-command 'make lock' --quiet \
		--output-file requirements.lock

clean: ## Remove the virtual environment, caches, builds and what `make run` left
	rm -rf .venv build dist run .coverage .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A changed pyproject.toml makes a fresh environment: an upgraded one would keep what was dropped.
.venv/made.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'streamduel needs Python 3.11 or later; name one with make PYTHON=...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { $(CAN_INSTALL) \
		&& $(APT) update && $(APT) install --yes --no-install-recommends python3-venv; } || { \
		echo 'Python lacks its venv module; on Debian: apt-get install python3-venv' >&2; exit 1; }
	rm -rf .venv
	$(PYTHON) -m venv .venv
	@touch $@

.venv/run.stamp: .venv/made.stamp
	$(BIN)/pip install --quiet --editable '.[kafka]'
	@touch $@

.venv/dev.stamp: .venv/made.stamp
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@ .venv/run.stamp

run/clicks.jsonl: | .venv/run.stamp
	$(BIN)/python -m streamduel.simulation.click_log $@ --records $(CLICKS)

# Installs what is missing of the tools, as root on Debian; elsewhere says what it is, and leaves it
# to the tests to say which of them need it.
tools:
	@missing=; for tool in $(TOOLS); do \
		command -v $${tool%%:*} >/dev/null || test -e $${tool%%:*} || missing="$$missing $${tool#*:}"; \
	done; \
	test -z "$$missing" || { $(CAN_INSTALL) && $(APT) update \
		&& $(APT) install --yes --no-install-recommends $$missing; } \
		|| echo "Some tests may not run for want of (as Debian calls them):$$missing" >&2
