# `make` prints this help. Every target sets up what it needs and is quick the second time.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
STAMP := $(VENV)/.installed
IMAGE ?= evenkeel:dev
LABELS = $(if $(REVISION),--label org.opencontainers.image.revision=$(REVISION))
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
PYTEST := $(BIN)/python -m pytest
# Three for two cores, as many tests wait; tests of one file may have a server and an operator in common. Hypothesis
# draws by the seed, if there is one.
BESIDE := -n 3 --dist loadfile
SEEDED = $(if $(SEED),--hypothesis-seed=$(SEED))
# Kernels write without looking; these tests drive all of them over odd clusters.
BOUNDS := $(addprefix tests/unit/test_,kernels_place.py keel_twin.py run_twin.py learning.py never_over_allocated.py cold.py masks.py mig.py mig_corners.py links.py vendor_choosers.py claims_allocator.py)
# These let Python run the kernels, which takes a hundred times as long: they try fewer examples then.
UNCOMPILED := $(addprefix tests/unit/test_,kernels_place.py kernels_claims.py kernels_gpus.py kernels_scores.py kernels_scores_in_a_cycle.py kernels_lambda_g_examples.py board_keys.py twin_corners.py)
COVERAGE := $(BIN)/python -m coverage

.PHONY: help browser demo test soak coverage mutants programs cluster-test soak-cluster differential conformance check bench bench-lambda-g pictures lock image wheel chart kind-trial clean

help:  ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What the scheduler itself needs: the demo waits for nothing else.
$(RUNTIME): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Evenkeel needs Python 3.11 or newer; set PYTHON=") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing dependencies into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@echo "compiling kernels"
	@$(BIN)/evenkeel warm
	@touch $@

$(STAMP): requirements-dev.lock $(RUNTIME)
	@echo "installing what tests, checks and benchmarks need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

# Pages are measured in a browser, which only root may install from Debian's packages. Without one its tests fail.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		{ echo "installing chromium, in which pages are measured"; test "$$(id -u)" = 0 && apt-get update -qq && \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || \
		echo "it could not be installed (as root on Debian: apt-get install chromium): tests that need it will fail"

demo: $(RUNTIME)  ## Four patterns on an embedded cluster, and keel beside least-allocated, drawn (KEEP=1 leaves it running)
	@$(BIN)/evenkeel demo $(if $(KEEP),--keep)

test: $(STAMP) browser  ## Unit, oracle, scenario and embedded-cluster tests; of very many examples a fixed slice
	@$(PYTEST) tests --ignore tests/cluster $(BESIDE) $(SEEDED) $(ARGS)
	@echo "again with kernels that check bounds"
	@NUMBA_BOUNDSCHECK=1 $(BIN)/evenkeel warm
	@NUMBA_BOUNDSCHECK=1 $(PYTEST) -q $(BOUNDS) $(BESIDE) $(SEEDED)
	@echo "again with kernels that are not compiled"
	@NUMBA_DISABLE_JIT=1 $(PYTEST) -q $(UNCOMPILED) $(BESIDE) $(SEEDED)

soak:  ## The same with all examples, drawn by a seed that is printed (SEED=N: by this one)
	@seed=$(or $(SEED),$$(date +%s)); echo "all examples, by the seed $$seed"; \
		EVENKEEL_SOAK=1 $(MAKE) --no-print-directory test SEED=$$seed

# With what coverage sees, tests take four times as long; of kernels it sees what Python runs.
coverage: $(STAMP) browser  ## What of the scheduler the tests reach
	@$(COVERAGE) erase
	@$(COVERAGE) run -m pytest -q tests --ignore tests/cluster $(BESIDE)
	@NUMBA_DISABLE_JIT=1 $(COVERAGE) run -m pytest -q $(UNCOMPILED) $(BESIDE)
	@$(COVERAGE) combine --quiet
	@echo "coverage: $$($(COVERAGE) report --format=total) % of the scheduler, $$($(COVERAGE) report --format=total --include='scheduler/kernels/*') % of its kernels (by file: $(COVERAGE) report --show-missing)"

mutants: $(STAMP)  ## Small mistakes put into the scheduler at random: which do the tests find? (ARGS="--seed 7 --count 40")
	@$(BIN)/python -m tests.mutants $(ARGS)

# It needs nothing but Python and Go, so it may go on while all else is set up and tested.
programs:
	@$(PYTHON) -m tests.controlplane.build >/dev/null

# Two files at a time, for both cores; tests of one file have an API server in common.
cluster-test: $(STAMP) programs  ## Tests against a real etcd and kube-apiserver (builds them once: Go >= 1.26, or set KUBEBUILDER_ASSETS)
	@$(PYTEST) tests/cluster -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

# An agent on each of some eighty nodes, two replicas that are killed; what is wrong is printed, and the figures as JSON.
soak-cluster: $(STAMP) programs  ## Random things on a real control plane with every kind of device (MINUTES=30 SEED=N)
	@$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) $(ARGS)

differential: $(STAMP)  ## 10,000 random cases asked of the real kube-scheduler too (ARGS="--cases 200 --seed 7"; "kueue --cases 50": the real Kueue; "selectors": Kubernetes' judge of devices)
	@$(BIN)/python -m tests.differential $(ARGS)

conformance: $(STAMP)  ## Kubernetes' own scheduling suite with kube-scheduler and with Evenkeel in its place, side by side (builds it once)
	@$(BIN)/python -m tests.conformance $(ARGS)

check: $(STAMP)  ## Format, lint, types, import laws
	@$(BIN)/ruff format --check --quiet . && echo "format: ok"
	@$(BIN)/ruff check --quiet . && echo "lint: ok"
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: $(STAMP) programs  ## Kernels, end to end against kube-scheduler and an upper bound, all modes everywhere (JSON)
	@$(BIN)/python -m bench $(ARGS)

bench-lambda-g: $(STAMP)  ## The five scenarios of Lambda-G's author: his strategies and every mode, on his seed and 300 others (JSON)
	@$(BIN)/python -m bench.lambda_g $(ARGS)

pictures: $(RUNTIME)  ## Draw the pictures of the docs anew
	@$(BIN)/python -m docs.pictures.draw

lock:  ## Write the lock files anew from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --quiet -o requirements.lock
	@$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | uv pip compile - --universal --python-version 3.11 --generate-hashes --no-header --quiet -o requirements-build.lock
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-header --quiet -c requirements.lock -o requirements-dev.lock

image:  ## Build the container image (needs docker; PLATFORMS=linux/amd64,linux/arm64 IMAGE=… builds for both and pushes)
	$(if $(PLATFORMS),docker buildx build --platform $(PLATFORMS) --push,docker build) $(LABELS) --tag $(IMAGE) .

wheel:  ## Build the wheel into dist/
	@$(PYTHON) -m venv $(VENV)/.build
	@$(VENV)/.build/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.lock
	$(VENV)/.build/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

chart: $(STAMP)  ## Package the Helm chart into dist/ (builds helm with Go)
	@helm=$$($(BIN)/python -m tests.controlplane.build helm | cut -f 2) && "$$helm" lint --strict manifests/chart && "$$helm" package manifests/chart --destination dist

kind-trial: $(STAMP)  ## A kind cluster on your own machine with Evenkeel in it (needs docker and Go)
	@$(BIN)/python -m tests.controlplane.build kind kubectl
	@PYTHON=$(BIN)/python manifests/kind/trial.sh

clean:  ## Remove the virtual environment and caches of this tree
	rm -rf $(VENV) .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
