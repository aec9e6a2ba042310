# Everything a newcomer runs. `make test` sets up what they need, in .venv.
PYTHON ?= python3
# Another interpreter, as in `make test PYTHON=python3.12`, gets an environment of its own.
VENV   ?= .venv$(if $(filter command,$(firstword $(origin PYTHON))),-$(notdir $(PYTHON)))
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed

.PHONY: help demo docs proto system test test-slow test-fleet test-surfaces fuzz fuzz-programs conformance coverage evidence bundle check format bench clean

help:
	@echo "make demo       define tools and run them on real files"
	@echo "make test       run all tests but the slow ones"
	@echo "make test-slow  run the slow tests, and every property with many more examples"
	@echo "make test-fleet run the tests of what happens to workers, many times"
	@echo "make test-surfaces  run the tests that need Node, Neovim or the frameworks of others"
	@echo "make fuzz MINUTES=10         look for inputs that fail, guided by coverage"
	@echo "make fuzz-programs COUNT=2000  try generated programs beside CPython and inside their manifests"
	@echo "make conformance    run the official conformance suite of MCP; needs Node"
	@echo "make coverage   run the tests with branch coverage; takes about twice as long"
	@echo "make evidence   write a report of the tests, attacks and limits to artifacts/"
	@echo "make check      run ruff, ruff format and mypy --strict"
	@echo "make docs       write the generated pages: primitives, checks, errors"
	@echo "make proto      write the Python modules of the wire protocol"
	@echo "make bundle     make the MCP bundle and the registry's server.json in dist/"
	@echo "make bench      run the benchmarks against peers (installs them)"
	@echo "PYTHON=python3.12 chooses the interpreter"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Albert Tools needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing into $(VENV) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,check]'
	@touch $@

demo: $(STAMP)
	@$(BIN)/python examples/demo.py

# Programs that the tests need: installed where that may be done, else named.
system: $(STAMP)
	@$(BIN)/python -m tests.helpers.system

# One more than there are cores: many tests wait for other processes.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# The compiled tests are kept, whatever the environment says: each worker imports all of them.
test: export PYTHONDONTWRITEBYTECODE =
test: system
	$(BIN)/python -m pytest -m "not slow and not surfaces and not fleet" -q -n $(WORKERS) --dist worksteal

coverage: system
	$(BIN)/python -m pytest -m "not slow and not surfaces and not fleet" -q -n auto --dist worksteal --cov --cov-report=term:skip-covered

test-slow: system
	$(BIN)/python -m pytest -m "(slow or hypothesis) and not surfaces and not fleet" --hypothesis-profile=long --timeout 3600 -n auto --dist worksteal

# What happens to the workers of a fleet, many times.
test-fleet: system
	$(BIN)/python -m pytest -m fleet --timeout 1800 -q

# Needs Node and Neovim, which `tests/helpers/system.py` names if they are missing; installs the frameworks.
test-surfaces: system
	@$(BIN)/python -m tests.helpers.system surfaces
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[frameworks]'
	$(BIN)/python -m pytest -m surfaces --timeout 1200 -q

MINUTES ?= 10
fuzz: $(STAMP)
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[fuzz]'
	$(BIN)/python -m tests.fuzz $(MINUTES)

COUNT ?= 2000
fuzz-programs: $(STAMP)
	$(BIN)/python -m tests.fuzz.many $(COUNT)

conformance: $(STAMP)
	@$(BIN)/python -m tests.helpers.system surfaces
	$(BIN)/python -m tests.surfaces.mcp.conformance

evidence: system
	$(BIN)/python -m tests.evidence

bench: $(STAMP)
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[benchmarks]'
	$(BIN)/python -m benchmarks

# The registry's first part of a name, which must be your own to publish.
NAMESPACE ?= io.github.albert-tools
bundle: $(STAMP)
	@$(BIN)/python bundle/mcp_bundle.py $(NAMESPACE)

docs: $(STAMP)
	$(BIN)/python docs/reference.py

proto: $(STAMP)
	$(BIN)/python proto/generate.py

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p albert_tools

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-* .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
