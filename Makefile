# Everything for people who work on opencode-mcp, from a bare machine on.
# Needed beforehand: Python 3.11 or newer with venv, npm, make. All else goes into .cache and .venv.
#
#   make demo [MODEL=provider/model]   the main job for real: start, reply, list, end
#   make test [PYTEST_ARGS=…]          the whole suite, on a real OpenCode; a skipped test is a failure
#   make setup                         only what both of these need
#   make check                         format, lint, types, import floors
#   make fmt                           format and mend what can be mended
#   make wheel-test                    build the wheel, install it into an empty environment, start it
#   make test-image                    build the container images and try them (root, Debian)
#   make test-clients                  real MCP clients, each with a scripted model (Linux x64)
#   make bench                         our calls against the same by hand, as ratios
#   make clean                         remove all that this file made

.DEFAULT_GOAL := test
.DELETE_ON_ERROR:
.PHONY: demo test test-real test-rest setup check fmt wheel-test test-image test-clients bench clean env opencode clients

PYTHON ?= python3
UV_VERSION := 0.13.9
UV := .cache/uv/bin/uv
BIN := .venv/bin
OPENCODE := .cache/opencode/node_modules/.bin/opencode
CHECKED := opencode_mcp tests tests_image tests_clients container scripts $(wildcard bench)

# Another project's environment, active in the caller's shell, must not be ours.
unexport VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONHOME UV_PYTHON UV_PROJECT
# Or every process of the tests compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
OPENCODE_PATH = $(CURDIR)/$(OPENCODE)
PYTEST = OPENCODE_MCP_TEST_OPENCODE="$(OPENCODE_PATH)" $(BIN)/python -m pytest --dist worksteal --no-skips

setup: env opencode

env: .venv/.stamp

opencode: .cache/opencode/.stamp

$(UV):
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; choose one: make PYTHON=python3.12 …" >&2; exit 1; }
	rm -rf .cache/uv
	"$(PYTHON)" -m venv .cache/uv
	.cache/uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# __init__.py: it holds the version, which the installed package repeats.
.venv/.stamp: $(UV) pyproject.toml uv.lock opencode_mcp/__init__.py
	$(UV) sync --frozen --quiet --python "$(PYTHON)"
	@touch $@

.cache/opencode/.stamp: tools/opencode/package.json tools/opencode/package-lock.json scripts/install_opencode.sh
	rm -rf .cache/opencode
	scripts/install_opencode.sh .cache/opencode
	@touch $@

clients: .cache/clients/.stamp

.cache/clients/.stamp: tools/clients/package.json tools/clients/package-lock.json scripts/install_clients.sh
	rm -rf .cache/clients
	scripts/install_clients.sh "$(CURDIR)/.cache/clients"
	@touch $@

demo: env opencode
	OPENCODE_MCP_OPENCODE_BIN="$(OPENCODE_PATH)" $(BIN)/opencode-mcp demo $(if $(MODEL),--model "$(MODEL)")

# Two at once: what needs a real OpenCode (two workers, each with an OpenCode of its own, which is
# what this costs) and all the rest, which mostly waits. With PYTEST_ARGS: just that.
ifdef PYTEST_ARGS
test: env opencode
	$(PYTEST) -n 3 $(PYTEST_ARGS)
else
test: env opencode
	+$(MAKE) --no-print-directory --jobs=2 --output-sync=line test-real test-rest
endif

test-real:
	$(PYTEST) -n 2 tests/real tests/scenarios

test-rest:
	$(PYTEST) -n 4 tests --ignore=tests/real --ignore=tests/scenarios

# Random calls, faults and restarts against the twin, for as long as you like: make soak STEPS=10000
soak: env
	SOAK_STEPS=$(or $(STEPS),2000) $(BIN)/python -m pytest -p no:xdist --timeout 0 tests/ends/test_machine.py

check: env
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports --no-logo

fmt: env
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/python scripts/configuration.py
	$(BIN)/python scripts/tool_texts.py

# The locked versions go in, so that this judges our wheel and not what was published today.
wheel-test: env
	rm -rf .cache/wheel
	$(UV) build --quiet --wheel --out-dir .cache/wheel --python "$(PYTHON)"
	$(UV) export --frozen --quiet --no-dev --no-emit-project --no-hashes --output-file .cache/wheel/constraints.txt
	$(UV) venv --quiet --python "$(PYTHON)" .cache/wheel/venv
	$(UV) pip install --quiet --python .cache/wheel/venv --constraint .cache/wheel/constraints.txt .cache/wheel/*.whl
	$(BIN)/python scripts/wheel_check.py .cache/wheel/venv

# BASE_IMAGE and NODE_IMAGE: what to build upon; see the script.
test-image: env
	UV="$(UV)" BASE_IMAGE="$(BASE_IMAGE)" NODE_IMAGE="$(NODE_IMAGE)" LOCAL_BASE="$(LOCAL_BASE)" \
		PYTEST_ARGS="$(PYTEST_ARGS)" scripts/test_image.sh

test-clients: env opencode clients
	OPENCODE_MCP_TEST_OPENCODE="$(OPENCODE_PATH)" PYTEST_ARGS="$(PYTEST_ARGS)" scripts/test_clients.sh

bench: env opencode
	OPENCODE_MCP_OPENCODE_BIN="$(OPENCODE_PATH)" $(BIN)/python bench/run.py $(BENCH_ARGS)

clean:
	rm -rf .cache .venv dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find opencode_mcp tests tests_image tests_clients container scripts -name __pycache__ -type d -prune -exec rm -rf {} +
