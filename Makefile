# What a person types. Each target says what it is for in `make help`.
#
# `make dev` and `make test` use the debug build: it is ready in minutes from nothing and in seconds after an edit, and the dependencies
# that do the work are optimised in it too (Cargo.toml, profile.dev.package). `make build` makes the release binary.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
.PHONY: help dev build debug test lint unit e2e browser kubernetes apiserver chart bench fmt install dashboard

# Where rustup puts cargo, also when scripts/install.sh has just installed it.
export PATH := $(HOME)/.cargo/bin:$(PATH)

EXAMPLE ?= examples/quickstart
TARGET := $(or $(CARGO_TARGET_DIR),target)

help: ## This list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

install: ## Install what is missing to build and run (Debian, Ubuntu)
	@scripts/install.sh

dashboard: install
	@scripts/build-dashboard.sh

debug: dashboard
	@scripts/step "the fencepost binary (debug)" cargo build -p fencepost

dev: debug ## Build, and run the quickstart: dashboard, demo server, private Postgres
	@exec $(TARGET)/debug/fencepost dev $(EXAMPLE)

build: dashboard ## The release binary, dashboard inside, at target/release/fencepost
	@scripts/step "the fencepost binary (release)" cargo build --release -p fencepost

fmt: ## Format the code
	cargo fmt --all

lint: install ## Formatting and clippy
	@scripts/group "lint: formatting" cargo fmt --all --check
	scripts/group "lint: clippy" cargo clippy --workspace --all-targets -- -D warnings
	scripts/group "lint: clippy of the browser's half" cargo clippy -p fencepost-dashboard --lib \
	  --target wasm32-unknown-unknown --no-default-features --features hydrate \
	  --target-dir $(TARGET)/wasm -- -D warnings

# Everything but the tests through the binary; the store's tests get a private Postgres.
unit: install
	@scripts/group "unit and store tests" scripts/with-postgres.sh cargo test --workspace --exclude fencepost-tests

# Through the binary, without a cluster.
e2e: debug
	@FENCEPOST_BIN="$(abspath $(TARGET))/debug/fencepost" \
	  scripts/group "end to end" scripts/with-postgres.sh cargo test -p fencepost-tests --test e2e --test servers

browser: debug
	@FENCEPOST_BIN="$(abspath $(TARGET))/debug/fencepost" \
	  scripts/group "browser" scripts/with-postgres.sh cargo test -p fencepost-tests --test browser

# kube-apiserver, etcd, kube-controller-manager, kubectl and helm from their Go modules: about ten minutes once.
apiserver:
	@scripts/build-apiserver.sh

chart: apiserver
	@scripts/group "chart" scripts/check-chart.sh

# The harness against itself, then the released binary on a real API server.
kubernetes: apiserver build
	@export FENCEPOST_BIN="$(abspath $(TARGET))/release/fencepost" FENCEPOST_TEST_REPORT="$(abspath $(TARGET))/real.txt"
	rm -f "$$FENCEPOST_TEST_REPORT"
	scripts/group "kubernetes" scripts/with-postgres.sh cargo test -p fencepost-tests --lib --test kubernetes
	printf '\n== what was real, by test\n'
	sort -u "$$FENCEPOST_TEST_REPORT" | awk -F': ' '{ real = substr($$0, length($$1) + 3) } $$1 != test { if (test) print line; test = $$1; line = test ": " real; next } { line = line "; " real } END { print line }'

test: ## Everything: lint, unit and store tests, end to end, browser, chart, Kubernetes
	@scripts/install.sh test
	mkdir -p $(TARGET)
	echo "== the API server is built beside the rest; its output: $(TARGET)/apiserver.log"
	nice -n 19 scripts/build-apiserver.sh >$(TARGET)/apiserver.log 2>&1 &
	apiserver=$$!
	trap 'kill "$$apiserver" 2>/dev/null || true' EXIT
	for group in lint unit e2e browser; do $(MAKE) --no-print-directory "$$group"; done
	wait "$$apiserver" || { cat $(TARGET)/apiserver.log; exit 1; }
	trap - EXIT
	for group in chart kubernetes; do $(MAKE) --no-print-directory "$$group"; done

bench: install ## Measure throughput as ratios, and memory per resource
	@scripts/step "the fencepost binary (release)" cargo build --release -p fencepost
	# The binary is the released one; the server, the client and the statements beside it are optimised as well.
	FENCEPOST_BIN="$(abspath $(TARGET))/release/fencepost" cargo test -p fencepost-tests --bench throughput \
	  --config 'profile.dev.package.fencepost-tests.opt-level=3' --config 'profile.dev.package.fencepost-store.opt-level=3' \
	  --config 'profile.dev.package.fencepost-ledger.opt-level=3' 
