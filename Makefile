# Factstream. `make` alone lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

MODULES  := jetstream fixtures shared services/researcher services/distiller services/judge services/briefer services/gateway cluster bench examples/go
PACKAGES := $(addsuffix /...,$(addprefix ./,$(MODULES)))
TAGS     := -tags sqlite_fts5
OPTIONAL := threeservers,outage,ollama
BIN      := $(CURDIR)/bin
TOOLS    := $(CURDIR)/.tools

# A slow machine is no failure: what hangs is ended by the tests themselves.
TIMEOUT := 40m

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Nothing that is tested may reach a provider, whatever the environment holds.
OFFLINE_ENV := env -u TABSTACK_API_KEY -u BRAVE_API_KEY -u TABSTACK_BASE_URL -u BRAVE_BASE_URL -u NATS_URL OFFLINE=1

.DEFAULT_GOAL := help
.PHONY: help up up-cluster build test-servers test-outage bench test race test-ollama chaos chaos-short lint standalone fuzz clean need-go need-gcc

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: build ## build and start everything, print one URL (Ctrl-C stops)
	@exec $(BIN)/factstream up

up-cluster: build ## the same on three NATS servers, two of every service
	@exec $(BIN)/factstream up-cluster

build: need-go need-gcc ## build the services and the supervisor into bin/
	@mkdir -p $(BIN)
	@CGO_ENABLED=1 go build $(TAGS) -o $(BIN)/ ./services/researcher ./services/distiller ./services/judge ./services/briefer ./services/gateway ./cluster/cmd/factstream ./fixtures/cmd/standin

test: need-go need-gcc ## all tests (needs Go and gcc only)
	@$(OFFLINE_ENV) CGO_ENABLED=1 go test -timeout $(TIMEOUT) $(TAGS) $(PACKAGES)

test-servers: need-go need-gcc ## what must hold on three NATS servers (many minutes)
	@$(OFFLINE_ENV) CGO_ENABLED=1 go test $(TAGS),threeservers -count=1 -p 1 -timeout 20m ./jetstream/batch ./jetstream/lease ./jetstream/projector ./jetstream/readers ./jetstream/topology ./shared/artifact ./shared/notebook
	@$(OFFLINE_ENV) CGO_ENABLED=1 go test $(TAGS),threeservers -count=1 -timeout 60m -v -run 'ThreeServers|WhoeverIsKilled|OneGatewayDead|FiftyThreads' ./cluster/e2e

AWAY ?= 8s
test-outage: need-go need-gcc ## the bus away for AWAY (8s), and a full disk (as root)
	@$(OFFLINE_ENV) CGO_ENABLED=1 go test $(TAGS),outage -count=1 -run 'BusIsAway|FullDisk' ./cluster/e2e -bus-away $(AWAY)

race: need-go need-gcc ## the race detector over the parts that run side by side
	@$(OFFLINE_ENV) CGO_ENABLED=1 go test -race -timeout $(TIMEOUT) $(TAGS) ./jetstream/... ./shared/... ./services/researcher/... ./services/briefer/...

SEED     ?= $(shell date +%s)
DURATION ?= 60s
chaos: build ## break a notebook by SEED for DURATION (60s; CLUSTER=1)
	@CGO_ENABLED=1 go build $(TAGS) -o $(BIN)/ ./cluster/cmd/chaos
	@$(OFFLINE_ENV) $(BIN)/chaos -seed $(SEED) -duration $(DURATION) $(if $(CLUSTER),-cluster)

chaos-short: ## the same for 40 s with seed 1
	@$(MAKE) --no-print-directory chaos SEED=1 DURATION=40s

lint: need-go need-gcc $(TOOLS)/staticcheck ## gofmt, go mod tidy, go vet, staticcheck
	@for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy -diff) || { echo "$$m: run 'GOWORK=off go mod tidy' there."; exit 1; }; done
	@unformatted=$$(gofmt -l $(MODULES)); \
	 if [[ -n "$$unformatted" ]]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	@go vet $(TAGS),$(OPTIONAL) $(PACKAGES)
	@$(TOOLS)/staticcheck $(TAGS),$(OPTIONAL) $(PACKAGES)

$(TOOLS)/staticcheck:
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS) GOFLAGS= go install $(STATICCHECK)

BENCH ?=
bench: build ## measure this machine beside what is expected (minutes)
	@CGO_ENABLED=1 go build $(TAGS) -o $(BIN)/ ./bench/cmd/bench
	@$(OFFLINE_ENV) $(BIN)/bench -out bench/results $(BENCH)

test-ollama: need-go need-gcc ## the real Ollama, built from source once (minutes)
	@program=$$(scripts/ollama-up --build); go vet $(TAGS),ollama ./shared/model/ollama/realtest/...; \
	 $(OFFLINE_ENV) OLLAMA_REAL=$$program CGO_ENABLED=1 go test -count=1 $(TAGS),ollama ./shared/model/ollama/realtest/...

standalone: need-go need-gcc ## build every module by itself, without the workspace
	@for m in $(MODULES); do (cd $$m && GOWORK=off CGO_ENABLED=1 go build $(TAGS) ./... && GOWORK=off go vet $(TAGS) ./...) || exit 1; done

FUZZTIME ?= 30s
fuzz: need-go need-gcc ## every fuzz target for FUZZTIME (30s) each
	@for m in $(MODULES); do \
	  for p in $$(cd $$m && go list $(TAGS) ./...); do \
	    for f in $$(go test $(TAGS) -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	      echo "$$p $$f"; (cd $$m && $(OFFLINE_ENV) go test $(TAGS) -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p); \
	    done; done; done

clean: ## remove what was built (not the data)
	@rm -rf $(BIN) $(TOOLS)

# What is missing is told by $(error): after a recipe that fails, make would add a line of its own.
GO_VERSION = $(patsubst go%,%,$(firstword $(shell go env GOVERSION)))
need-go:
	@$(if $(shell command -v go),,$(error Go is missing: install Go 1.26 or newer, then run make again))
	@$(if $(filter 1.26,$(shell printf '%s\n' 1.26 "$(GO_VERSION)" | sort -V | head -n 1)),,$(error Go $(GO_VERSION) is too old: 1.26 or newer is needed))

need-gcc:
	@$(if $(shell command -v $${CC:-gcc}),,$(error A C compiler is missing (SQLite is built from C): install gcc, then run make again))
