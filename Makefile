# The two commands: `make run` opens Octavo, `make test` tests it. Both set up what is missing first.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
SETUP := $(or $(PYTHON),$(error Octavo needs Python 3.11 or newer; none was found on PATH)) packaging/setup.py

export OCTAVO_STARTER_MODEL := $(CURDIR)/.models/SmolLM2-135M-Instruct.Q4_1.gguf
test soak bench screenshots: export QT_QPA_PLATFORM ?= offscreen

.PHONY: run setup setup-tests test lint bench soak memory-table screenshots clean

run: setup
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ] || [ "$$OS" = Windows_NT ]; then \
		exec $(BIN)/octavo-desktop; \
	fi; \
	echo "There is no display here, so the chat opens in this terminal instead of a window."; \
	exec $(BIN)/octavo chat

# BACKEND=cpu|cuda|vulkan|metal; without it, the one this environment was built for, else the platform's default.
setup:
	@$(SETUP) $(if $(BACKEND),--backend $(BACKEND))

setup-tests:
	@$(SETUP) $(if $(BACKEND),--backend $(BACKEND)) --tests

test: setup-tests
	$(BIN)/python -m pytest --durations=10 $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p octavo.core -p octavo.server -p octavo.desktop
	$(BIN)/lint-imports

bench: setup-tests
	$(BIN)/python -m tests.benchmarks.run $(ARGS)
	$(BIN)/python -m tests.benchmarks.header
	$(BIN)/python -m tests.benchmarks.residency
	$(BIN)/python -m tests.benchmarks.sampling
	$(BIN)/python -m tests.benchmarks.library
	$(BIN)/python -m tests.benchmarks.downloads

soak: setup-tests
	$(BIN)/python -m pytest tests/soak --durations=10 $(ARGS)

# Every model of the tests' zoo in every configuration: closed form against llama.cpp's own allocator (7 minutes).
memory-table: setup-tests
	$(BIN)/python -m tests.memory_table $(ARGS)

screenshots: setup-tests
	$(BIN)/python tests/screenshots.py $(ARGS)

# Models stay in .models: they are slow to fetch and never stale.
clean:
	rm -rf .venv .dev build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find core server desktop resources tests packaging -name __pycache__ -type d -prune -exec rm -rf {} +
