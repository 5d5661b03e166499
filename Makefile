# The only front door: what CI runs, people run. `make help` lists the targets.

EXAMPLE ?= dots
PORT ?= 7350
PYTEST_ARGS ?=

BIN := .venv/bin
WEB := clients/web
PEERS := benchmarks/peers
PYTHON_READY := .venv/ready.stamp
WEB_READY := $(if $(wildcard $(WEB)/package-lock.json),$(WEB)/node_modules/ready.stamp)
NATIVE := sdk/playhall/engine/native
SOCKETS := sdk/playhall/sockets
NATIVE_READY := $(if $(PLAYHALL_PURE),,.venv/native.stamp)
READY := $(PYTHON_READY) $(NATIVE_READY) $(WEB_READY)

# Images like to forbid bytecode. All processes of a start would then compile all they import: twice the CPU.
unexport PYTHONDONTWRITEBYTECODE

TEST_DIRS := $(wildcard tests/unit tests/protocol tests/services tests/browser tests/e2e)
SLOW_TEST_DIRS := $(wildcard tests/chaos tests/charts)
EXAMPLES := $(patsubst examples/%/playhall.toml,examples/%,$(wildcard examples/*/playhall.toml))
PACKAGES := sdk/playhall $(wildcard services/*/playhall_*)

.DEFAULT_GOAL := help
.PHONY: play test test-all test-sanitized test-pure check fmt gen ledger bench bench-peers clean help ready chromium native

play: ready ## Start Playhall with an example game (EXAMPLE=dots PORT=7350)
	@exec $(BIN)/playhall dev examples/$(EXAMPLE) --port $(PORT)

test: ready native chromium ## Run every test but chaos and charts; installs what it needs
	$(BIN)/pytest $(TEST_DIRS) $(PYTEST_ARGS)
	@set -e; for example in $(EXAMPLES); do echo "pytest $$example"; \
	  (cd $$example && ../../$(BIN)/python -m pytest . $(PYTEST_ARGS)); done
	$(if $(WEB_READY),$(BIN)/python -m tools.run_vitest)
	node --test $(PEERS)/lib/*.test.mjs

test-all: test-sanitized test-pure ## What a change needs beyond `make test`: sanitizers, the pure engine (chaos and charts, once there)
	$(if $(SLOW_TEST_DIRS),$(BIN)/pytest $(SLOW_TEST_DIRS) $(PYTEST_ARGS))

test-sanitized: ready native ## Run what uses native code, and the fuzz corpora, under AddressSanitizer and UBSan
	$(BIN)/python -m tools.run_sanitized $(PYTEST_ARGS)

# What compares the engines was run by `make test`.
test-pure: ready ## Run unit and protocol tests, and one story, on the pure engine
	PLAYHALL_PURE=1 $(BIN)/pytest tests/unit tests/protocol tests/e2e/test_hibernation.py --ignore-glob="tests/unit/engine/test_twins*" $(PYTEST_ARGS)

check: ready ## Check style, types, the dependency law, the contract and the ledger
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(PACKAGES) tools tests conftest.py
	@set -e; for example in $(EXAMPLES); do echo "mypy $$example"; \
	  (cd examples && ../$(BIN)/mypy --config-file ../pyproject.toml -p $$(basename $$example)); done
	cd benchmarks && MYPYPATH=.:peers ../$(BIN)/mypy --config-file ../pyproject.toml .
	$(if $(wildcard tests/typing),$(BIN)/pyright tests/typing)
	$(if $(wildcard tests/typing),$(BIN)/mypy $(wildcard tests/typing/*.py))
	$(BIN)/lint-imports
	$(BIN)/python -m tools.check_protos
	$(BIN)/python -m tools.ledger
	$(if $(WEB_READY),cd $(WEB) && npm run --silent check)

fmt: ready ## Format, and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

gen: ready ## Write every generated file again (each tools/gen_*.py)
	@set -e; for generator in $(sort $(basename $(notdir $(wildcard tools/gen_*.py)))); do \
	  echo $$generator; $(BIN)/python -m tools.$$generator; done
	$(BIN)/python -m tools.check_protos --update

ledger: ready ## Print how much of docs/ledger.md has tests
	@$(BIN)/python -m tools.ledger

bench: ready ## Run every benchmark; JSON lines on stdout, and 1 at the end where a budget is missed
	@missed=0; for bench in $(sort $(wildcard benchmarks/*.py)); do $(BIN)/python $$bench || missed=1; done; exit $$missed

bench-peers: ready $(PEERS)/node_modules/ready.stamp ## Measure Playhall beside Colyseus (RUNS=5 SECS=6); JSON lines on stdout
	@node $(PEERS)/report.mjs

clean: ## Remove what make installed and cached (game state in .playhall stays)
	rm -rf .venv .tools $(WEB)/node_modules $(PEERS)/node_modules $(PEERS)/node22/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

# What every target needs. Stamps keep the second run free; both are older than the locks they stand for when
# a lock changes.
ready: $(READY)

$(PYTHON_READY): uv.lock pyproject.toml sdk/pyproject.toml $(wildcard services/*/pyproject.toml) tools/bootstrap.sh
	@sh tools/bootstrap.sh
	@touch $@

# Without a compiler everything works, slower: the engine is the pure one then.
.venv/native.stamp: $(PYTHON_READY) sdk/build_native.py $(wildcard $(NATIVE)/*.pyx $(NATIVE)/*.pxd $(NATIVE)/*.h $(SOCKETS)/*.pyx)
	@if command -v $${CC:-cc} >/dev/null; then $(BIN)/python sdk/build_native.py >.venv/native.log 2>&1 || \
	  { tail -n 30 .venv/native.log >&2; echo "make: the native engine could not be built (see above, and .venv/native.log)." >&2; exit 1; }; \
	else echo "make: no C compiler, so the engine is the slower pure one. On Debian and Ubuntu: apt-get install gcc" >&2; fi
	@touch $@

$(WEB)/node_modules/ready.stamp: $(WEB)/package-lock.json
	@command -v npm >/dev/null || { echo "make: npm is missing. Install Node.js 20 or newer." >&2; exit 1; }
	cd $(WEB) && npm ci --no-audit --no-fund
	@touch $@

native: .venv/native.stamp ## Build the native engine after a change of it

$(PEERS)/node_modules/ready.stamp: $(PEERS)/package-lock.json $(PEERS)/node22/package-lock.json
	cd $(PEERS) && npm ci --no-audit --no-fund && cd node22 && npm ci --no-audit --no-fund
	@touch $@

chromium: $(PYTHON_READY)
	@$(BIN)/python -m tools.find_chromium --install >/dev/null
