# Steerboard: `make demo` and `make test` do all of their own set-up. `make help` lists the rest.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Set TORCH_INDEX to the wheel index that PyTorch's install page names for another build (CPU, CUDA, ROCm).
TORCH_INDEX ?=
TORCH_FLAGS := $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX),)
PIP := $(BIN)/python -m pip --disable-pip-version-check
RUN_STAMP := $(VENV)/.run-installed
DEV_STAMP := $(VENV)/.dev-installed
# Two test processes of one thread each; a file stays in one process, so that its fixtures are made once.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile
EXIT ?=
REPORT ?=
export STEERBOARD_HOME ?= $(CURDIR)/.steerboard
export PYTHONUNBUFFERED := 1

.PHONY: help
help: ## What each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Steerboard needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# torch first and pinned, so that no other package can choose a build of it.
$(RUN_STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing Steerboard (about a minute the first time) ..."
	$(PIP) install -q $(TORCH_FLAGS) torch==2.13.0 2> >(grep -v 'WARNING: Location' >&2)
	$(PIP) install -q -c constraints.txt -e '.[workers]' 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	$(PIP) install -q -c constraints.txt -e '.[workers,dev]' 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

.PHONY: setup
setup: $(RUN_STAMP) ## Virtual environment with pinned dependencies

.PHONY: setup-dev
setup-dev: $(DEV_STAMP) ## The same with the tools of tests and lint

.PHONY: demo
demo: $(RUN_STAMP) ## Synthetic demo from nothing to an aligned model (EXIT=1 stops after the table, REPORT=path.json)
	@$(BIN)/steerboard demo $(if $(EXIT),--exit,) $(if $(REPORT),--report '$(REPORT)',)

.PHONY: test
test: $(DEV_STAMP) lint ## Lint and the test suite
	$(PYTEST) -m 'not long' $(PYTEST_ARGS)

.PHONY: test-all
test-all: $(DEV_STAMP) lint ## Everything, with the long fault, scale and oracle runs
	$(PYTEST) $(PYTEST_ARGS)

.PHONY: lint
lint: $(DEV_STAMP) ## ruff, mypy --strict, import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/mypy
	@$(BIN)/lint-imports > $(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }

.PHONY: bench-training
bench-training: $(DEV_STAMP) ## Training speed against TRL, side by side, as JSON
	@$(BIN)/python benchmarks/training.py $(BENCH_ARGS)

.PHONY: bench-data
bench-data: $(DEV_STAMP) ## Import, label-write and export of 100,000 and 1,000,000 rows, as JSON
	@$(BIN)/python benchmarks/data.py $(BENCH_ARGS)

.PHONY: constraints
constraints: $(DEV_STAMP) ## Renew constraints.txt from the virtual environment
	@{ head -1 constraints.txt; $(PIP) freeze --exclude-editable | grep -v ' @ \|^#' \
	  | sed 's/^torch==.*/torch==2.13.0/'; } > constraints.new && mv constraints.new constraints.txt

.PHONY: clean
clean: ## Remove what make installed (never your data in .steerboard)
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
