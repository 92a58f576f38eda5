# `make` alone lists the targets. Needs Python 3.11 or later and the package index.

PYTHON ?= python3
IMAGE ?= streamduel
BENCH_ARGS ?=
CLICKS ?= 200000

# The virtual environment: .venv, unless there is one that this Makefile did not make.
VENV := $(if $(wildcard .venv/made.stamp),.venv,$(if $(wildcard .venv),build/venv,.venv))
BIN = $(VENV)/bin
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' streamduel/__init__.py)

# Tests by what they need: nothing, or programs such as a Kafka broker, Prometheus and Chromium.
# The longest files are the first, so that none is left over at the end.
UNIT_TESTS = streamduel connectors tests/contract/interleaving tests/contract/policies \
	tests/statistics tests/unit
PROGRAM_TESTS = tests/faults tests/operations tests/integration/spark_job \
	tests/integration/kafka_connector tests/integration tests/contract/connectors \
	tests/browser tests/prometheus tests/broker
PYTEST = $(BIN)/python -m pytest --durations=10 --durations-min=1
ON_ALL_CORES = -n auto --maxprocesses 8 --dist worksteal
# These tests wait for programs half of the time, so one more runs than there are cores.
BESIDE_PROGRAMS = -n $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count() + 1))') \
	--dist loadfile --no-loadscope-reorder

# Programs that the tests use, each with the Debian package that contains it. Docker or
# STREAMDUEL_TEST_KAFKA replace some of them: CONTRIBUTING.md.
BROKER_TOOLS = java:default-jre-headless mvn:maven
PROGRAM_TOOLS = curl:curl promtool:prometheus chromium:chromium \
	/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf:fonts-dejavu-core
IMAGE_TOOLS = buildah:buildah mmdebstrap:mmdebstrap runc:runc \
	$(shell docker compose version >/dev/null 2>&1 || echo docker-compose:docker-compose)
# Succeeds where packages can be installed.
CAN_INSTALL = test "$$(id -u)" = 0 && command -v apt-get >/dev/null
APT = DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300
UV_VERSION = 0.13.8
RUN_EXTRAS = analyze fast kafka sim spark testing

# The tests start hundreds of processes, which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-unit test-lowest test-programs test-image faults soak kafka lint bench docs \
	image compose audit lock dist version clean broker-tools program-tools image-tools
.DELETE_ON_ERROR:
.NOTPARALLEL:

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/run.stamp run/clicks.jsonl ## Find the best of six rankers in a click log; no server needed
	$(BIN)/streamduel run configs/local.yaml --until-end

ifdef PYTEST_ARGS
test: lint broker-tools program-tools
	$(PYTEST) $(PYTEST_ARGS)
else
test: lint test-unit test-programs $(if $(CI),audit) ## Check everything but the container image; PYTEST_ARGS='…' runs these tests only
endif

test-unit: $(VENV)/dev.stamp ## Run the tests that need no other program, on all cores; PYTEST_ARGS='…' runs these tests only
	$(PYTEST) $(if $(PYTEST_ARGS),$(PYTEST_ARGS),$(ON_ALL_CORES) $(UNIT_TESTS))

# Two checks are about the newest packages: older ones call what newer ones of others deprecate, and
# the schemas, which are compared as text, depend on the versions of pydantic and msgspec.
test-lowest build/lowest/dev.stamp: BIN = build/lowest/bin
test-lowest: build/lowest/dev.stamp ## Run those with the lowest versions that pyproject.toml allows; needs Python 3.11
	$(PYTEST) -W ignore::DeprecationWarning -k 'not schemas_are_up_to_date' \
		$(if $(PYTEST_ARGS),$(PYTEST_ARGS),$(ON_ALL_CORES) $(UNIT_TESTS))

test-programs: $(VENV)/dev.stamp broker-tools program-tools ## Run the tests with Apache Kafka, Prometheus and Chromium
	$(PYTEST) $(BESIDE_PROGRAMS) $(PROGRAM_TESTS)

test-image: $(VENV)/dev.stamp broker-tools image-tools ## Build the container image, start it, and test it
	STREAMDUEL_REQUIRE_IMAGE=1 $(PYTEST) tests/image

faults: $(VENV)/dev.stamp broker-tools ## Stage every fault on real brokers, in about half an hour; PYTEST_ARGS='…' stages these only
	STREAMDUEL_FAULTS=full STREAMDUEL_REQUIRE_KAFKA=1 $(PYTEST) --timeout 3600 -o faulthandler_timeout=3630 \
		-n 2 --dist load --maxschedchunk 1 \
		$(if $(PYTEST_ARGS),$(PYTEST_ARGS),tests/faults)

soak: $(VENV)/dev.stamp ## Fold 20 million records with arms that come and go, and measure the memory
	STREAMDUEL_FAULTS=full STREAMDUEL_SOAK_RECORDS=20000000 $(PYTEST) --timeout 0 tests/faults/test_soak.py

kafka: $(VENV)/run.stamp broker-tools ## Run a throw-away Apache Kafka on localhost:9092, until Ctrl-C
	@$(BIN)/python -m tests.broker 9092

lint: $(VENV)/dev.stamp ## Check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/dev.stamp broker-tools ## Measure throughput, latency and memory; other stream processors: python -m benchmarks.peers
	$(BIN)/python -m benchmarks.run $(BENCH_ARGS)

docs: $(VENV)/dev.stamp ## Build the documentation site; then open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --config-file configs/mkdocs.yml

image: ## Build the container image
	docker build --build-arg VERSION=$(VERSION) --tag $(IMAGE):$(VERSION) --tag $(IMAGE):latest .

compose: ## Run everything in Docker: Kafka, streamduel, simulated users, Prometheus and Grafana
	docker compose --file configs/compose.yaml up --build

audit: $(VENV)/dev.stamp ## Look up known vulnerabilities of the image's packages
	@$(BIN)/python -m tests.image.audit

lock: $(VENV)/dev.stamp ## Pin the packages of the container image
	$(BIN)/pip install --quiet uv==$(UV_VERSION)
	$(BIN)/uv pip compile pyproject.toml --extra fast --upgrade --generate-hashes \
		--universal --python-version 3.11 --custom-compile-command 'make lock' --quiet \
		--output-file requirements.lock

dist: $(VENV)/dev.stamp ## Build both distributions, streamduel and streamduel-client, into dist/
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --wheel --outdir dist client

version: ## Print the version
	@echo $(VERSION)

clean: ## Remove what this Makefile made: environments, caches, builds, and the output of `make run`
	rm -rf $(dir $(wildcard .venv/made.stamp)) build dist run .coverage .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A changed pyproject.toml makes a new environment: an upgraded one would keep dropped packages.
$(VENV)/made.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'streamduel needs Python 3.11 or later; name one with make PYTHON=...' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { $(CAN_INSTALL) \
		&& $(APT) update && $(APT) install --yes --no-install-recommends python3-venv; } || { \
		echo 'Python lacks its venv module; on Debian: apt-get install python3-venv' >&2; exit 1; }
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/run.stamp: $(VENV)/made.stamp
	$(BIN)/pip install --quiet --editable '.[fast]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/made.stamp
	$(BIN)/pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/run.stamp

# The lowest versions of what runs; the development tools are as new as these allow.
build/lowest/dev.stamp: pyproject.toml
	rm -rf build/lowest
	$(PYTHON) -m venv build/lowest
	$(BIN)/pip install --quiet uv==$(UV_VERSION)
	$(BIN)/uv pip compile pyproject.toml $(RUN_EXTRAS:%=--extra %) --resolution lowest-direct \
		--python $(BIN)/python --quiet --output-file build/lowest/constraints.txt
	$(BIN)/uv pip install --python $(BIN)/python --quiet --constraints build/lowest/constraints.txt \
		--editable '.[dev]'
	@touch $@

run/clicks.jsonl: | $(VENV)/run.stamp
	$(BIN)/python -m streamduel.simulation.click_log $@ --records $(CLICKS)

# Each installs the missing programs of its list, as root on Debian; elsewhere it names them, and
# the tests that need them fail or are named at the end of the run.
broker-tools: TOOLS = $(BROKER_TOOLS)
program-tools: TOOLS = $(PROGRAM_TOOLS)
image-tools: TOOLS = $(IMAGE_TOOLS)
broker-tools program-tools image-tools:
	@missing=; for tool in $(TOOLS); do \
		command -v $${tool%%:*} >/dev/null || test -e $${tool%%:*} || missing="$$missing $${tool#*:}"; \
	done; \
	test -z "$$missing" || { $(CAN_INSTALL) && $(APT) update \
		&& $(APT) install --yes --no-install-recommends $$missing; } \
		|| echo "Some tests cannot run; these Debian packages are missing:$$missing" >&2
