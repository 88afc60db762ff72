SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := check

GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
APIDIFF := golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e

# What to benchmark and the flags of the comparison on real servers (-servers 3,
# -for 1s, -run regexp), how long to fuzz each target, to make faults and to soak,
# which deliberate bugs to try, how often to repeat.
BENCH ?= .
BENCHFLAGS ?=
FUZZTIME ?= 30s
COUNT ?= 50
CHAOS ?= 60s
SOAK ?= 30m
MUTANTS ?= .

# How many runs to simulate.
RUNS ?= 10000

# Where make server listens.
PORT ?= 2181

# The tests that need ZooKeeper fail without one, here and in what is called.
export ZKLOCK_TEST_REQUIRED := 1

TEST := $(GO) test -race -shuffle=on
MODULE = $(shell $(GO) list -m)

# Modules of their own below this one, such as examples with more dependencies.
NESTED := $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name go.mod))

comma := ,
heading = @printf '\n== %s\n' '$(1)'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: api ## all that needs no server: format, vet, staticcheck, go.mod, who imports whom, documentation
	$(call heading,gofmt)
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); [[ -z $$files ]] || { echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; }
	$(call heading,go vet)
	$(GO) vet ./...
	@for m in $(NESTED); do (cd $$m && echo "$$m" && $(GO) vet ./...); done
	$(call heading,staticcheck)
	$(GO) run $(STATICCHECK) ./...
	$(call heading,go mod tidy)
	$(GO) mod tidy -diff
	@for m in $(NESTED); do (cd $$m && echo "$$m" && $(GO) mod tidy -diff); done
	$(call heading,imports)
	$(GO) test -count=1 -run='^TestImports' ./integration_test
	$(call heading,documentation: exported names$(comma) URL keys$(comma) commands$(comma) what DESIGN.md names)
	$(GO) test -count=1 -run='^Test(Documented|URLKeys|Commands|Design|ExamplesAre)' ./integration_test

.PHONY: api
api: ## what would break callers of the last version tag; nothing while there is none
	$(call heading,API)
	@.ci/api $(APIDIFF)

# Windows: where code differs by system. All of it would have what the adapters import
# compiled once more, which takes longer than everything else here.
.PHONY: cross
cross: ## vet for the other systems that the code has to compile on
	$(call heading,darwin)
	GOOS=darwin $(GO) vet ./...
	$(call heading,windows)
	GOOS=windows $(GO) vet ./zklock/... ./integration_test/ensemble

.PHONY: install
install: ## install what the tests need and this machine lacks (apt-get)
	@.ci/install

.PHONY: test
test: install ## all tests, with the race detector, on a real ZooKeeper
	$(call heading,core and drivers)
	$(TEST) ./zklock/...
	$(call heading,adapters and examples)
	$(TEST) $$($(GO) list ./... | grep -vE '^$(MODULE)/(zklock|integration_test)(/|$$)')
	@for m in $(NESTED); do (cd $$m && echo "$$m" && $(TEST) ./...); done
	$(call heading,allocations$(comma) memory and time (the race detector takes all of them))
	$(GO) test -count=1 -run='(Allocations|Memory|LittleTime|NextToNothing)$$' ./zklock ./middleware ./interceptors ./tracing
	$(call heading,real servers)
	$(TEST) -p=1 -timeout=30m ./integration_test/...

.PHONY: server
server: ## a ZooKeeper server at 127.0.0.1 for trying things out, until it is interrupted; PORT, 2181 if not given
	@.ci/install server
	@$(GO) build -o bin/server ./integration_test/server
	@exec bin/server -port $(PORT)

.PHONY: integration
integration: install ## the tests that need a real ZooKeeper, one by one
	$(TEST) -p=1 -timeout=30m -v ./integration_test/...

.PHONY: simulate
simulate: ## RUNS simulated runs and every small case with any two faults; a table of the faults
	$(call heading,the race detector looks on)
	ZKLOCK_RUNS=500 $(GO) test -race -count=1 -timeout=20m -run='^TestSimulation$$' ./zklock
	$(call heading,simulation and small cases)
	@ZKLOCK_PAIRS=all $(GO) test -count=1 -timeout=20m -run='^TestEvery' ./zklock & cases=$$!; \
	ZKLOCK_RUNS=$(RUNS) $(GO) test -count=1 -timeout=60m -run='^TestSimulation|^TestJudge$$' -v ./zklock; \
	wait $$cases
	$(call heading,losses)
	ZKLOCK_RUNS=$$((($(RUNS) + 9) / 10)) $(GO) test -count=1 -timeout=20m -run='^TestSimulated' -v ./zklock

.PHONY: bench
bench: install ## Go benchmarks (BENCH=regexp), and zklock next to others on a real ZooKeeper
	$(GO) test -p=1 -timeout=30m -run='^$$' -bench='$(BENCH)' -benchmem ./...
	$(call heading,on real servers)
	$(GO) run ./integration_test/bench $(BENCHFLAGS)

.PHONY: bench-peers
bench-peers: install ## the same on real servers, with Curator, etcd and redsync, into the docs
	cd integration_test/bench/peers && $(GO) build -o ../../../bin/bench-peers .
	.ci/bench-peers bin/servers $(GO) run ./integration_test/bench -peers $(CURDIR)/bin/bench-peers \
		-md integration_test/bench/results.md $(BENCHFLAGS)

.PHONY: bench-growth
bench-growth: install ## cycles a second with ever more names and waiters, drawn, into the docs
	$(GO) run ./integration_test/bench -growth integration_test/bench/growth.svg -md integration_test/bench/growth.md $(BENCHFLAGS)

# FUZZTIME may be a number of inputs, 40000x. Those of FuzzReplies and FuzzStream are connections, and
# take as long as two hundred of the others.
.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME
	@targets=$$(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort); \
	[[ -n $$targets ]] || { echo "no fuzz targets"; exit 1; }; \
	while IFS=: read -r file func; do \
		name=$${func#func }; \
		printf '\n== %s in %s\n' "$$name" "$$(dirname "$$file")"; \
		limit=$(FUZZTIME); if [[ $$name =~ ^Fuzz(Replies|Stream)$$ && $$limit == *x ]]; then limit=$$(($${limit%x} / 200))x; fi; \
		$(GO) test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$$limit -fuzzminimizetime=100x "$$(dirname "$$file")"; \
	done <<< "$$targets"

# A process each time: the race detector never gives memory back.
.PHONY: stress
stress: ## the core's and drivers' tests COUNT times, with the race detector
	@for i in $$(seq $(COUNT)); do echo "$$i of $(COUNT)"; $(TEST) -count=1 -timeout=60m ./zklock/... || exit 1; done

.PHONY: chaos
chaos: install ## real servers and clients are killed, stopped and cut off for CHAOS; ZKLOCK_SEED repeats a schedule, ZKLOCK_FAULTS=regexp takes some kinds
	ZKLOCK_CHAOS=$(CHAOS) $(GO) test -count=1 -timeout=0 -v -run='^TestChaos$$|^TestThroughputUnderCuts$$' ./integration_test

.PHONY: mutants
mutants: ## deliberate bugs in the core, each of which the tests have to find; MUTANTS=regexp
	$(GO) run ./integration_test/mutants -run='$(MUTANTS)'

.PHONY: soak
soak: install ## simulation, chaos, a mix of locks and many names, for SOAK in all
	@.ci/soak $(SOAK)

.PHONY: cover
cover: install ## what the tests cover, by function: cover.out
	$(GO) test -p=1 -timeout=30m -coverpkg=./... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: clean
clean: ## remove what the targets above have written
	rm -rf cover.out bin
	find . -path ./.git -prune -o -type f \( -name '*.test' -o -name '*.prof' \) -exec rm -f {} +
