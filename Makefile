# `make` without a target lists the targets. Each target performs its own set-up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev
# --no-compile: Python compiles a module at its first import. Compiling all modules now would double the time of the installation.
PIP    := $(BIN)/python -m pip install --disable-pip-version-check --no-compile
SOURCES := ingestd connectors workspaced tests bench examples scripts
EXAMPLE := examples/instrument-status
WORDED  := $(SOURCES) docs config systemd README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md Makefile pyproject.toml

# Container images often set this variable. Without it, Python stores compiled modules, and tests start over a thousand processes.
unexport PYTHONDONTWRITEBYTECODE

# Tests wait half of the time, so pytest uses one process more than there are processors, but at most four.
PARALLEL := --numprocesses $(shell n=$$(($$(getconf _NPROCESSORS_ONLN) + 1)); echo $$((n < 4 ? n : 4))) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup dev demo test test-fast check format lint types contracts site coverage simulate kill-test campaign chaos race-test model-test changes-test bench soak hooks lock package package-test systemd-test newest-test release schema openapi clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(RUN) ## build .venv with this checkout and the locked packages that a run needs

dev: $(DEV) ## add the locked packages of all extras, the tests and the tools to .venv

# The lock files contain hashes, so pip refuses any other file.
$(RUN): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) scripts/require_python.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the packages that a run needs into $(VENV), once: about 250 MB"
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUN) requirements-dev.lock
	@echo "Installing what the tests and the tools need into $(VENV), once: about 750 MB more"
	@$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(RUN) ## drop engineering files, see their numbers arrive in a real workspace service
	@$(BIN)/ingestd demo

test: $(DEV) ## run every test
	@$(BIN)/python -m pytest -q $(PARALLEL)

test-fast: $(DEV) ## run the tests of single parts, which need no server: under two minutes
	@$(BIN)/python -m pytest -q $(PARALLEL) -m "not slow" tests/unit

check: $(DEV) lint types contracts test ## format, lint, types, import contracts, tests: what CI runs

format: $(DEV) ## rewrite the sources in the project's format
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

lint: $(DEV)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/codespell --config tests/language/codespell.cfg $(WORDED)

site: $(DEV) ## build the documentation site into build/docs/site; a dead link or anchor fails
	@$(BIN)/python -m scripts.docs_site

# Not part of CI, because it repeats tests, for two minutes of processor time. The floors are the measured percentages minus 1.
COVERED := tests/unit/ingestd tests/contract tests/property/test_mapping.py tests/integration/mirror tests/integration/delivery \
           tests/process/test_cli_check.py tests/process/test_cli_drift.py tests/packaging/test_delivery_page.py
FLOORS  := core=97 mirror=93 delivery=94

coverage: $(DEV) ## measure the tests of ingestd/core, mirror and delivery; fails below a floor
	@$(BIN)/python -m pytest -q $(PARALLEL) $(COVERED) \
	  --cov=ingestd.core --cov=ingestd.mirror --cov=ingestd.delivery --cov-report=
	@failed=0; for floor in $(FLOORS); do package=ingestd/$${floor%=*}; \
	  $(BIN)/coverage report --precision=1 --skip-covered --include="$$package/*" --fail-under=$${floor#*=} || failed=1; \
	  echo "$$package: at least $${floor#*=} %"; done; exit $$failed

types: $(DEV)
	@$(BIN)/mypy
	@MYPYPATH=$(EXAMPLE) $(BIN)/mypy --explicit-package-bases tests bench scripts $(EXAMPLE)

contracts: $(DEV)
	@$(BIN)/lint-imports

# SEED=n runs one simulation and prints its trace. SEEDS=n runs n simulations on all processors; FIRST is the first seed.
simulate: $(DEV) ## simulate the daemon under faults: SEED=n once, or SEEDS=n of them; HOSTS=yes: several hosts
	@PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation $(if $(HOSTS),--hosts) $(if $(SEED),--seed $(SEED),--first $(or $(FIRST),1) --seeds $(or $(SEEDS),1000))

kill-test: $(DEV) ## kill daemon and service ROUNDS times, under faults of the network, too
	@INGESTD_KILL_ROUNDS=$(or $(ROUNDS),200) INGESTD_MQTT_KILLS=$(or $(ROUNDS),200) INGESTD_OPCUA_RESTARTS=$(or $(ROUNDS),100) \
	  INGESTD_OPCUA_KILLS=$(or $(ROUNDS),100) $(BIN)/python -m pytest -q \
	  tests/process/test_kill_rounds.py tests/process/test_sigkill.py tests/process/test_database_interruptions.py tests/process/test_mqtt_source.py \
	  tests/process/test_opcua_source.py

race-test: $(DEV) ## exchange names in a drop folder from another account for SECONDS (60); needs root
	@INGESTD_RACE_SECONDS=$(or $(SECONDS),60) $(BIN)/python -m pytest -q -s tests/process/test_name_race.py

model-test: $(DEV) ## compare the mirror with its model for 50,000 random steps
	@INGESTD_MODEL_EXAMPLES=1000 $(BIN)/python -m pytest -q tests/model

# SEED=n STEPS=k repeats the first k steps of one campaign, to find the step where a difference begins.
campaign: $(DEV) ## run random steps on mixed pipelines, compare exactly: SEED=n once, or SEEDS=n of them
	@$(BIN)/python -m tests.campaign --first $(or $(SEED),$(FIRST),1) --seeds $(if $(SEED),1,$(or $(SEEDS),50)) --steps $(or $(STEPS),60)

chaos: $(DEV) ## kill, freeze and cut off parts of three machines for MINUTES (30), compare everything with a model: SEED=n; needs root
	@$(BIN)/python -m tests.campaign --first $(or $(SEED),1) --chaos-minutes $(or $(MINUTES),30)

changes-test: $(DEV) ## read tables that eight writers change, with SEEDS seeds for SECONDS each
	@INGESTD_CHANGES_SEEDS=$(or $(SEEDS),5) INGESTD_CHANGES_SECONDS=$(or $(SECONDS),10) \
	  $(BIN)/python -m pytest -q tests/integration/connectors/database/changes/test_changing_table.py

SMALL_BENCHMARKS := cold unchanged ten single adaptive service latency log mqtt files folder database peers pages start idle

# Two loads have their own number of rows: ten and sixteen million. They need an hour, and 20 GB below TMPDIR.
bench: $(DEV) ## measure against limits and peers, and print all goals beside the medians of three rounds
	@mkdir -p build/bench
	@$(BIN)/python -m bench $(SMALL_BENCHMARKS) --seconds 900 --json build/bench/small.json
	@$(BIN)/python -m bench memory --rows 10000000 --seconds 3600 --json build/bench/memory.json
	@$(BIN)/python -m bench growth --rows 16000000 --seconds 3600 --json build/bench/growth.json
	@$(BIN)/python -m bench goals build/bench/small.json build/bench/memory.json build/bench/growth.json

soak: $(DEV) ## load and faults for MINUTES (1): equal sinks, flat memory and descriptors
	@folder=$$(mktemp -d) && $(BIN)/python -m bench soak --minutes $(or $(MINUTES),1) --pipelines $(or $(PIPELINES),20) \
	  --files $(or $(FILES),1000) --folder $$folder && rm -rf $$folder

schema: $(DEV) ## write the JSON Schema of the configuration into config/
	@$(BIN)/ingestd schema > config/ingestd.schema.json

openapi: $(DEV) ## write the service's OpenAPI document into docs/
	@$(BIN)/workspaced openapi > docs/openapi.json

hooks: $(DEV) ## have git run all of `make check` but the tests before each commit
	@$(BIN)/pre-commit install

# The drivers of SQL Server and Oracle are not locked, because no test has such a server. The driver of SQL Server also needs a
# proprietary library and packages for cloud authentication.
# --no-strip-extras: without extras in the lock file, pip refuses a package that another package needs with an extra.
# Locked versions stay if the ranges permit them. UPGRADE=1 selects the newest versions.
LOCKED := --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-annotate --no-header --no-emit-index-url --no-emit-find-links --quiet \
          $(if $(UPGRADE),--upgrade)
EXTRAS := hdf5 mariadb mat mf4 mqtt objects opcua otel postgres previews sftp tdms workspaced

lock: $(DEV) ## resolve pyproject.toml into both lock files: UPGRADE=1 for newer versions
	@$(BIN)/uv pip compile pyproject.toml --extra workspaced --group build $(LOCKED) --output-file requirements.lock
	@$(BIN)/uv pip compile pyproject.toml $(EXTRAS:%=--extra %) --group dev --constraint requirements.lock $(LOCKED) --output-file requirements-dev.lock

# Tests the wheel on Python 3.11 to 3.14. Fails if one of these versions is missing, unless ALLOW_MISSING=1.
release: $(DEV) ## build, test and tag VERSION=x.y.z; DRY_RUN=1 leaves nothing behind
	@$(BIN)/python scripts/release.py "$(VERSION)" $(if $(DRY_RUN),--dry-run) $(if $(ALLOW_MISSING),--allow-missing)

package: $(DEV) ## build the wheels, the sdist and the Debian package into dist/
	@$(BIN)/python -m scripts.package

# Needs root, because it creates root folders and installs into them. Takes minutes.
package-test: package ## install the Debian package and the image into temporary roots
	@$(BIN)/python -m scripts.try_package dist
	@$(BIN)/python -m scripts.try_containerfile

# Needs root and Debian's packages debootstrap and systemd-container. Takes minutes.
systemd-test: package ## run the units under the systemd of another Debian release: RELEASE=trixie
	@$(BIN)/python -m scripts.try_systemd dist $(or $(RELEASE),trixie)

# Needs root and Debian's package debootstrap. Downloads a Debian release, so it takes an hour, and 6 GB below TMPDIR.
newest-test: ## run what CI runs with the Python of another Debian release, in a root folder: RELEASE=testing
	@$(PYTHON) -m scripts.try_newest $(or $(RELEASE),testing)

clean: ## remove .venv and what the tools cached
	@rm -rf $(VENV) .coverage* dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
