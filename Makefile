# Two commands matter: `make demo` and `make test`. Both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin
# uv installs in a fifth of pip's time; where it is missing, or does not reach an index that only pip is told of, pip does.
UV := $(shell command -v uv)
UV_INSTALL := uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps
.DEFAULT_GOAL := help
.PHONY: help setup demo test quick lint types stages bench soak mutants pins clean

help: ## this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

.venv/.runtime: requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ade-drop needs Python 3.11 or newer; run: make PYTHON=python3.11 $(MAKECMDGOALS)")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing what ade-drop needs into .venv ..."
	@# The pins are complete, so there is nothing to resolve.
	@$(if $(UV),$(UV_INSTALL) --compile-bytecode -r $< || )$(PIP_INSTALL) -r $<
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@# Boxes never write bytecode, so it has to be there before them.
	@$(BIN)/python -m compileall -q ade_drop core infra handlers runner console
	@touch $@

.venv/.dev: .venv/.runtime requirements/dev.txt
	@echo "installing what the tests need into .venv ..."
	@$(if $(UV),$(UV_INSTALL) -r requirements/dev.txt || )$(PIP_INSTALL) --no-compile -r requirements/dev.txt
	@touch $@

setup: .venv/.runtime ## make .venv with the command .venv/bin/ade

demo: setup ## three messy spreadsheets, start to finish, embedded
	@$(BIN)/ade demo

test: lint ## lint, types and every test, stage by stage; names the slowest
	@$(MAKE) --no-print-directory --jobs=2 types stages

stages: .venv/.dev
	@$(BIN)/python -m tests.stages

quick: lint types ## lint, types, unit and spine tests that are not slow
	@$(BIN)/python -m tests.stages --quick

lint: .venv/.dev ## ruff and the import directions
	@echo "── lint ──"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache

types: .venv/.dev ## mypy, strict
	@echo "── types ──"
	@$(BIN)/mypy

bench: .venv/.dev ## speed against named peers into docs/bench (ARGS=engine for one of them; ARGS=--quick in seconds)
	@$(BIN)/python -m tests.bench $(ARGS)

soak: .venv/.dev ## the fleet under fresh seeds for as long as you like; prints the seed of what it finds
	@$(BIN)/python -m tests.sim --fresh --seeds $(or $(SEEDS),20000)

mutants: .venv/.dev ## which changes of the spine no test notices (an hour; ARGS="--sample 20" for less)
	@$(BIN)/python -m tests.mutation $(ARGS)

pins: ## pin again, with hashes (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra console --extra postgres --output-file requirements/runtime.txt pyproject.toml requirements/build.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra console --extra postgres --extra dev --constraint requirements/runtime.txt --output-file requirements/dev.txt pyproject.toml requirements/build.in
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --no-header --constraint requirements/runtime.txt --output-file infra/deploy/handler.txt infra/deploy/handler.in
	@uv pip compile --quiet --no-deps --generate-hashes --no-annotate --no-emit-index-url --no-header --output-file requirements/uv.txt requirements/uv.in

clean: ## remove what the other targets made
	@rm -rf .venv .venv-cloud demo data build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .mutation bench-results
