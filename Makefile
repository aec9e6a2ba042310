# Everything a newcomer runs. `make test` sets up what they need, in .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.installed

.PHONY: help demo system test test-slow evidence check format bench clean

help:
	@echo "make demo    the whole way of a tool, on real files"
	@echo "make test    all tests but the long ones, with branch coverage"
	@echo "make evidence  what was tested and what came of it, in artifacts/"
	@echo "make check   ruff and mypy --strict"
	@echo "make bench   the benchmarks, against peers (installs them)"

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

test: system
	$(BIN)/python -m pytest -m "not slow" -q -n auto --dist worksteal --cov --cov-report=term:skip-covered

test-slow: system
	$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile=long --timeout 3600

evidence: system
	$(BIN)/python -m tests.evidence

bench: $(STAMP)
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[benchmarks]'
	$(BIN)/python -m benchmarks

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p albert_tools

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist *.egg-info
