# Every target does its own set-up: a virtual environment in .venv, filled with exactly what
# requirements.lock pins (all extras), needing nothing on the machine but Python 3.11 or newer and a
# package index. It is done once: the stamps in .venv are named by the hash of what was installed.

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11,\
	$(shell $(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.7
# More than cores: tests wait for other programs, too.
WORKERS ?= 3

hash_of = $(shell cat $(1) 2>/dev/null | cksum | cut -d ' ' -f 1)
PINNED := $(VENV)/.pinned-$(call hash_of,requirements.lock)
INSTALLED := $(VENV)/.installed-$(call hash_of,requirements.lock pyproject.toml)

# Outside conformance data: what the environment names, else what lies beside the repository.
export AXLOG_CONFORMANCE ?= $(abspath $(wildcard ../shared/conformance))

.PHONY: help install test system-test release-check stress demo screenshots check conformance docs format bench lock clean

help:
	@echo "make test    run the tests (WORKERS=3 processes)"
	@echo "make system-test  run the tests of whole programs: installations, clusters, browsers, attacks, documentation"
	@echo "make stress  run the laws on many more cases, and kill more processes (hours; TIMES=10)"
	@echo "make release-check  build wheel and sdist, install them clean, run the README"
	@echo "make demo    run the supply chain on Spark, in the terminal and on a page"
	@echo "make screenshots  make the pictures of docs/screenshots again (needs chromium)"
	@echo "make check   lint (ruff) and check the types (mypy --strict)"
	@echo "make conformance  run other people's test suites and report what is outside"
	@echo "make docs    build the site of docs/ into build/site"
	@echo "make format  put the sources in ruff's format"
	@echo "make bench   run the benchmarks"
	@echo "make lock    resolve pyproject.toml into requirements.lock again"
	@echo "make clean   remove .venv, caches and build results"

install: $(INSTALLED)

$(PINNED):
	@if [ -z "$(PYTHON)" ]; then \
		echo "axlog needs Python 3.11 or newer; none is on the path (or name one: make PYTHON=...)" >&2; \
		exit 2; fi
	@echo "== installing what requirements.lock pins into $(VENV) (once; a few minutes)"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || { \
		echo "$(PYTHON) cannot make a virtual environment; Debian keeps that part in python3-venv" >&2; \
		exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		--requirement requirements.lock
	@rm -f $(VENV)/.pinned-* && touch $@

$(INSTALLED): $(PINNED)
	@echo "== installing axlog itself into $(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--editable .
	@rm -f $(VENV)/.installed-* && touch $@

test: install
	@echo "== tests$(if $(AXLOG_CONFORMANCE), with conformance data from $(AXLOG_CONFORMANCE))"
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not system"

system-test: install
	@echo "== whole programs: installations, clusters, browsers, kills, attacks, documentation, conformance, benchmarks"
	$(BIN)/python -m pytest -n 2 --dist loadfile -m system

release-check: install
	@echo "== wheel and sdist, installed into clean environments"
	$(BIN)/python -m pytest -n 0 tests/test_wheel.py tests/test_first_minutes.py

stress: install
	@echo "== the laws in the tests, with $(or $(TIMES),10) times their cases"
	AXLOG_CASES=$(or $(TIMES),10) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile \
		-o faulthandler_timeout=0
	@echo "== the laws on random cases"
	$(BIN)/python -m lab fuzz --law all --cases $(or $(TIMES),10)000
	@echo "== crashes: faulty disks, killed processes, killed drivers and workers of Spark"
	$(BIN)/python -m lab torture --rounds $(or $(TIMES),10)0 --kills $(or $(TIMES),10) \
		--spark $(or $(TIMES),10)

demo: install
	@echo "== the supply chain on Spark (ENGINE=embedded: without Spark; SECONDS=: until Ctrl-C)"
	$(BIN)/axlog demo --engine $(or $(ENGINE),spark) $(if $(SECONDS),--seconds $(SECONDS))

screenshots: install
	@echo "== the live page and the terminal, into docs/screenshots"
	$(BIN)/python -m lab.cli.screenshots docs/screenshots

check: install
	@echo "== lint and format"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@echo "== types"
	$(BIN)/mypy

conformance: install
	@echo "== other people's cases, from $(AXLOG_CONFORMANCE)"
	$(BIN)/python -m lab.conformance

docs: install
	@echo "== the pages that are made from the code, into docs/"
	$(BIN)/python -m lab.cli.documentation docs
	@echo "== the site, into build/site"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

format: install
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: install
	@echo "== benchmarks"
	$(BIN)/python -m lab bench

lock:
	@echo "== resolving pyproject.toml into requirements.lock"
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras \
		--generate-hashes --no-header --no-emit-index-url --output-file requirements.lock \
		$(if $(UPGRADE),--upgrade) pyproject.toml

clean:
	rm -rf $(VENV) .venv-lock build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache \
		spark-warehouse metastore_db derby.log
