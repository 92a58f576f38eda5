# `make` alone lists what there is. Needs Python 3.11 or later and the package index.

PYTHON ?= python3
IMAGE ?= streamduel
PYTEST_ARGS ?=
BENCH_ARGS ?=
CLICKS ?= 200000

BIN = .venv/bin
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' streamduel/__init__.py)
# Commands that succeed where the machine can be given packages, and where Docker answers.
CAN_INSTALL = test "$$(id -u)" = 0 && command -v apt-get >/dev/null
APT = DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
HAS_DOCKER = command -v docker >/dev/null && docker info >/dev/null 2>&1
UV_VERSION = 0.13.8

.DEFAULT_GOAL := help
.PHONY: help run test kafka lint bench image lock clean broker
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: .venv/run.stamp run/clicks.jsonl ## Find the best of six rankers in a click log; no server needed
	$(BIN)/streamduel run configs/local.yaml --until-end

test: lint broker ## Check everything: style, types, architecture, and all tests, on a real Kafka too
	$(BIN)/python -m pytest $(PYTEST_ARGS)

kafka: .venv/dev.stamp broker ## Run a throw-away Apache Kafka on localhost:9092, until Ctrl-C
	@$(BIN)/python -m tests.broker 9092

lint: .venv/dev.stamp ## Check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev.stamp ## Measure throughput, latency and memory on this machine
	$(BIN)/python benchmarks/run.py $(BENCH_ARGS)

image: ## Build the container image
	docker build --build-arg VERSION=$(VERSION) --tag $(IMAGE):$(VERSION) --tag $(IMAGE):latest .

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

# The tests on Kafka use STREAMDUEL_TEST_KAFKA, else Docker, else Java and Maven; some start and stop
# a broker of their own, which takes Java, and one types what a page says, which takes curl.
broker:
	@{ command -v java && command -v mvn && command -v curl; } >/dev/null \
		|| { $(CAN_INSTALL) && $(APT) update \
			&& { $(APT) install --yes --no-install-recommends openjdk-17-jre-headless maven curl \
				|| $(APT) install --yes --no-install-recommends default-jre-headless maven curl; }; } \
		|| test -n "$$STREAMDUEL_TEST_KAFKA" || { $(HAS_DOCKER); } \
		|| echo 'No Kafka for the tests: give STREAMDUEL_TEST_KAFKA, Docker, or Java and Maven.' >&2
