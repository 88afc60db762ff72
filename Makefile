SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := check

GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI := github.com/golangci/golangci-lint/v2@v2.15.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOTESTSUM := gotest.tools/gotestsum@v1.13.0
APIDIFF := golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e

# The benchmarks to run, and the flags of the comparison on real servers (-servers 3,
# -for 1s, -run regexp); the number of kills for each figure of bench-failover; the state of the core
# that bench-timeline records; the durations of fuzzing for each target, of chaos, of soak and of
# judge; the deliberate bugs to try; the number of repetitions.
BENCH ?= .
BENCHFLAGS ?=
KILLS ?= 50
CORE ?= after
FUZZTIME ?= 30s
COUNT ?= 50
CHAOS ?= 60s
SOAK ?= 30m
JUDGE ?= 60s
MUTANTS ?= .

# The release lines of ZooKeeper to test, and further flags of the matrix (-suites regexp,
# -rotate, -md file).
LINES ?= .
MATRIXFLAGS ?=

# The runs of each cell of make comparison.
RUNS_EACH ?= 10

# The library that make judge tests, and further flags of contrib/locktest/cmd/locktest.
LIBRARY ?= zklock
JUDGEFLAGS ?=

# The number of simulated runs.
RUNS ?= 10000

# How long make track-record goes round the suites, and its further flags (-suites regexp, -each 5m, -waiting 2).
RECORD ?= 10m
RECORDFLAGS ?=

# The version of make release and make release-check.
VERSION ?= v0.1.0

# The port of make server, and how many servers it starts.
PORT ?= 2181
SERVERS ?= 1

# Tests that need ZooKeeper or a database fail without one, also in the scripts that targets
# call.
export ZKLOCK_TEST_REQUIRED := 1

# The folder for databases that this machine lacks.
export ZKLOCK_TEST_DATABASES := $(CURDIR)/bin/databases

# The archive of the classes of the servers that tests start, which .ci/classes makes.
export ZKLOCK_TEST_CLASSES := $(CURDIR)/bin/classes.jsa

# The tests of documents, snippets, figures, layers, and of what mutants change: make check runs
# these, and no other target.
DOCUMENTS := ^Test(Documented|Imports|URLKeys|Design|ExamplesAre|CoreKeepsItsLayers|CoreHas|CirclesStaySmall|MutantsApply|ExpectedTests)

# Most tests wait most of the time. So make test runs more packages at a time than there are
# processors, and in each of them more tests. .ci/test names first the packages that take longest.
CPUS := $(shell getconf _NPROCESSORS_ONLN)
export SIDE_BY_SIDE := -p=$(shell echo $$(($(CPUS) + 2))) -parallel=$(shell echo $$((5 * $(CPUS) / 2)))

# The tests that make soak-sasl runs: they need minutes, or a machine that does nothing else.
SOAKED := ^Test(SASLConformance|SASLChaos|KerberosTicketsAreRenewed|LocksOutlastTheKDC)$$

# Up to Go 1.26, the race detector crashes now and then, when two goroutines of one synctest bubble
# fire timers at the same time: https://go.dev/issue/78156. Go itself fetches a later toolchain.
# The tag has the core's mutexes check that no goroutine holds two: see zklock/internal/mutex.
RACE_GO := go1.27.4
RACE := $(if $(filter go1.25% go1.26%,$(shell $(GO) env GOVERSION)),GOTOOLCHAIN=$(RACE_GO)) $(GO) test -race -tags=zklock_mutexes

# The tests with the race detector. These keep the processors busy, so there are as many at a time as
# processors. make check has vetted all. With ZKLOCK_LONG=1 the long ones run, too: see internal/testkit/long.
TEST := GOGC=200 GOMEMLIMIT=4GiB $(RACE) -vet=off -shuffle=on -timeout=45m -skip='$(DOCUMENTS)|$(SOAKED)'

# The folders of all modules, and of those whose tests need nothing but what they start themselves.
MODULES := . $(patsubst ./%/go.mod,%,$(shell find . -mindepth 2 -name go.mod))
ADAPTERS := $(filter-out . integration_test,$(MODULES))

# The packages that programs import, of all modules.
PUBLIC := ./zklock/... ./middleware ./middleware/ginlock ./interceptors/... ./tracing/...

# go install with a version refuses a module whose go.mod has replace lines. So that of the command has
# none, and a clone builds the command in the workspace. What leaves the workspace uses a copy with one.
COMMAND_MOD := -modfile=$(CURDIR)/bin/command.mod
define command-mod
mkdir -p bin && cp cmd/zklock/go.mod bin/command.mod && cp cmd/zklock/go.sum bin/command.sum && \
	$(GO) mod edit -replace=github.com/zklock/go-zklock=$(CURDIR) -replace=github.com/zklock/go-zklock/contrib/locktest=$(CURDIR)/contrib/locktest bin/command.mod
endef

comma := ,
heading = @printf '\n== %s\n' '$(1)'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Before a change is merged: .ci/run, less than 45 minutes. CONTRIBUTING.md has the minutes of each target."

.PHONY: check
check: api ## all checks without a server: format, vet, staticcheck, go.mod, imports, documentation
	$(call heading,gofmt)
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); [[ -z $$files ]] || { echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; }
	$(call heading,go vet)
	$(GO) vet work
	$(call heading,zklockvet)
	@$(GO) build -o bin/zklockvet ./contrib/zklockvet/cmd/zklockvet
	$(GO) vet -vettool=bin/zklockvet work
	$(call heading,staticcheck)
	@for m in $(MODULES); do (cd $$m && echo "$$m" && $(GO) run $(STATICCHECK) ./...); done
	$(call heading,go mod tidy)
	@$(command-mod)
	@for m in $(MODULES); do (cd $$m && echo "$$m" && $(GO) mod tidy -diff $$([[ $$m != cmd/zklock ]] || echo $(COMMAND_MOD))); done
	$(call heading,documents: exported names$(comma) URL keys$(comma) commands$(comma) snippets$(comma) words; imports$(comma) layers$(comma) mutants)
	$(GO) test -count=1 -run='$(DOCUMENTS)' ./integration_test ./integration_test/layers ./integration_test/mutants

.PHONY: lint
lint: ## golangci-lint on all modules, with the linter of contrib/zklockvet; its first build takes minutes
	@.ci/lint $(GOLANGCI) $(MODULES)

# It works in the workspace, so with the newest version of a library that any module requires.
.PHONY: vuln
vuln: ## known vulnerabilities that the code of a module reaches; it asks vuln.go.dev, or the database GOVULNDB
	@for m in $(MODULES); do (cd $$m && echo "$$m" && $(GO) run $(GOVULNCHECK) $${GOVULNDB:+-db=$$GOVULNDB} ./...); done

.PHONY: api
api: ## changes that would break callers of the last version tag
	$(call heading,API)
	@.ci/api $(APIDIFF)

.PHONY: release
release: ## make the commit, the tags and the binaries of a release: VERSION=v0.1.0
	@.ci/release $(VERSION)

.PHONY: release-check
release-check: ## pack VERSION of each module as the module proxy would, and use it as a program does
	$(GO) run ./integration_test/release -version $(VERSION)

# Only the root module, the command, and packages of others that differ by system and need no adapter. To vet all,
# Go would compile the adapters' dependencies once more, which takes longer than everything else here.
.PHONY: cross
cross: ## vet for the other systems, and for 32-bit ones, on which the code has to compile
	$(call heading,darwin)
	GOOS=darwin $(GO) vet ./... ./cmd/zklock/... ./examples/batch ./examples/quickstart ./integration_test/command ./integration_test/databases
	$(call heading,windows)
	GOOS=windows $(GO) vet ./zklock/... ./internal/testkit/...
	$(call heading,32 bits)
	GOARCH=386 $(GO) vet ./... ./cmd/zklock/... ./contrib/contention ./integration_test/command

# The toolchain is fetched by go itself. The workflow runs make test with the two newest releases.
# With Go 1.25, also the newest 1.25.14, a test in a synctest bubble can hang when a timer is reset while it
# fires: https://go.dev/issue/76052. So the tests that run here have no bubbles.
.PHONY: oldest
oldest: export GOTOOLCHAIN := go$(shell awk '$$1 == "go" { print $$2 }' go.mod)
oldest: export GOWORK := off
oldest: ## vet the root module and the command with the oldest Go that their go.mod allows, and run the tests that take no time
	$(GO) version
	$(GO) vet ./...
	@$(command-mod)
	cd cmd/zklock && $(GO) vet $(COMMAND_MOD) ./...
	$(GO) test ./zklock/internal/lease ./zklock/internal/queue ./zklock/fence

.PHONY: install
install: ## install the packages that the tests need and this machine lacks (apt-get)
	@.ci/install

.PHONY: test
test: ## all tests but the long ones, on real ZooKeepers, and without the race detector
	@.ci/test $(GOTESTSUM) '$(DOCUMENTS)'

# The packages that take longest come first.
.PHONY: test-all test-race test-core test-adapters test-servers
test-all: ## all tests, also the long ones, with the race detector
	@ZKLOCK_LONG=1 $(MAKE) --no-print-directory test-race
	@$(MAKE) --no-print-directory test-figures

test-race: install ## the tests of make test with the race detector
	@.ci/classes
	@.ci/databases $(ZKLOCK_TEST_DATABASES)
	$(TEST) ./integration_test ./zklock ./zklock/internal/simulation ./integration_test/command ./internal/testkit/ensemble work

test-core: install ## of these, the core and the drivers
	$(TEST) ./zklock/...

test-adapters: install ## of these, the adapters, the examples and the nested modules
	@.ci/databases $(ZKLOCK_TEST_DATABASES)
	$(TEST) $$($(GO) list ./internal/... ./middleware/... | grep -v /internal/testkit/) $(patsubst %,./%/...,$(ADAPTERS))

test-servers: install ## of these, the tests on real servers
	$(TEST) ./integration_test/... ./internal/testkit/...

.PHONY: test-figures
test-figures: ## of make test-all, memory, allocations and time, which the race detector changes, and thousands of sessions and locks
	ZKLOCK_LONG=1 $(GO) test -count=1 -run='(Allocations|Memory|LittleTime|NextToNothing|NoHeartbeats|NoWrites|NeededAreForgotten|BeforeTheNextGrant|BeforeCloseLetsOthersIn)$$' ./zklock ./zklock/internal/simulation ./integration_test ./middleware ./interceptors ./tracing

.PHONY: server
server: ## a ZooKeeper server at 127.0.0.1, or SERVERS=3, for trying things out, until it is interrupted; PORT=2181
	@.ci/install server
	@$(GO) build -o bin/server ./integration_test/server
	@exec bin/server -port $(PORT) -servers $(SERVERS)

.PHONY: man
man: ## the manual pages of the command zklock, in bin/man
	cd cmd/zklock/man && $(GO) run . $(CURDIR)/bin/man

.PHONY: integration
integration: install ## the tests that need a real ZooKeeper, one by one, also the long ones
	ZKLOCK_LONG=1 $(TEST) -p=1 -v ./integration_test/...

.PHONY: simulate
simulate: ## RUNS simulated runs and every small case with any two faults; a table of the faults
	$(call heading,with the race detector)
	ZKLOCK_RUNS=500 $(RACE) -count=1 -timeout=60m -run='^TestSimulation$$' ./zklock/internal/simulation
	$(call heading,simulation and small cases)
	@ZKLOCK_PAIRS=all $(GO) test -count=1 -timeout=60m -run='^TestEvery' ./zklock/internal/simulation & cases=$$!; \
	ZKLOCK_LONG=1 ZKLOCK_RUNS=$(RUNS) $(GO) test -count=1 -timeout=90m -run='^TestSimulation|^TestJudge$$' -skip='^TestSimulation(RepeatsItself|OfTheWire)$$' -v ./zklock/internal/simulation; \
	wait $$cases
	$(call heading,over the protocol of ZooKeeper: a twenty-fifth as many runs)
	ZKLOCK_RUNS=$$((($(RUNS) + 24) / 25)) $(GO) test -count=1 -timeout=60m -run='^TestSimulationOfTheWire$$' -v ./zklock/internal/simulation
	$(call heading,runs repeated: with nothing else that takes the processor from one of them)
	ZKLOCK_LONG=1 $(GO) test -count=1 -timeout=60m -run='^TestSimulationRepeatsItself$$' -v ./zklock/internal/simulation
	$(call heading,losses$(comma) and nested acquisitions: a tenth as many runs)
	ZKLOCK_RUNS=$$((($(RUNS) + 9) / 10)) $(GO) test -count=1 -timeout=60m -run='^TestSimulated' -v ./zklock/internal/simulation
	$(call heading,elections)
	ZKLOCK_RUNS=$$((($(RUNS) + 99) / 100)) $(GO) test -count=1 -timeout=60m -run='^TestSimulatedElections$$' -v ./zklock/election | grep -v -- '=== RUN\|--- PASS: .*/'

.PHONY: bench
bench: install ## Go benchmarks (BENCH=regexp), and zklock next to others on a real ZooKeeper
	$(GO) test -p=1 -timeout=30m -run='^$$' -bench='$(BENCH)' -benchmem $(PUBLIC)
	$(call heading,on real servers)
	$(GO) run ./integration_test/bench $(BENCHFLAGS)

define all-peers
	@.ci/install matrix
	cd integration_test/bench/peers && $(GO) build -o ../../../bin/bench-peers .
	peers=$$($(GO) run ./integration_test/matrix -peers); \
	env $$peers .ci/bench-peers bin/servers $(GO) run ./integration_test/bench -peers $(CURDIR)/bin/bench-peers \
		$(1) $(BENCHFLAGS)
endef

.PHONY: bench-peers
bench-peers: install ## the same on real servers, with the newest Curator and kazoo, etcd and redsync, for the docs
	$(call all-peers,-runs 3 -rounds 4 -md integration_test/bench/results.md)
	@$(MAKE) --no-print-directory bench-overload BENCHFLAGS=
	@$(MAKE) --no-print-directory bench-failover BENCHFLAGS=

.PHONY: bench-overload
bench-overload: install ## of bench-peers, what a lock gives while more callers want it than it carries, and after
	$(call all-peers,-overload -rounds 3 -md integration_test/bench/results-overload.md)

.PHONY: bench-failover
bench-failover: install ## of bench-peers, the time until the lock of a killed process has its next holder, with KILLS kills
	$(call all-peers,-kills $(KILLS) -warm 10s -md integration_test/bench/results-failover.md)

.PHONY: bench-three
bench-three: install ## some workloads on three servers, with zk.Lock, for the docs
	@.ci/install matrix
	peers=$$($(GO) run ./integration_test/matrix -peers); \
	env $$peers $(GO) run ./integration_test/bench -servers 3 -runs 3 -rounds 4 \
		-run '^(1 goroutine, known name|[0-9]+ processes x 1 goroutine, 1 name|64 goroutines, (64 names|1 name|1 name, without hand-over)|.* several sessions)$$' \
		-md integration_test/bench/results-three-servers.md $(BENCHFLAGS)

.PHONY: bench-growth
bench-growth: install ## draw cycles a second against the numbers of names and waiters, for the docs
	$(GO) run ./integration_test/bench -growth integration_test/bench/growth.svg $(BENCHFLAGS)

.PHONY: bench-timeline
bench-timeline: install ## record zklock's grants of each second under overload as CORE, before or after, and draw them, for the docs; with CORE= only draw
	$(GO) run ./integration_test/bench -timeline integration_test/bench/overload.svg -record '$(CORE)' $(BENCHFLAGS)

# FUZZTIME may be a number of inputs, 40000x. An input of FuzzReplies, FuzzSASL or FuzzStream is a
# connection, and takes as long as two hundred inputs of the others.
.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME
	@targets=$$(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort); \
	[[ -n $$targets ]] || { echo "no fuzz targets"; exit 1; }; \
	while IFS=: read -r file func; do \
		name=$${func#func }; \
		printf '\n== %s in %s\n' "$$name" "$$(dirname "$$file")"; \
		limit=$(FUZZTIME); if [[ $$name =~ ^Fuzz(Replies|SASL|Stream)$$ && $$limit == *x ]]; then limit=$$(($${limit%x} / 200))x; fi; \
		$(GO) test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$$limit -fuzzminimizetime=100x "$$(dirname "$$file")"; \
	done <<< "$$targets"

# Each repetition is a process: the race detector never returns memory.
.PHONY: stress
stress: ## the core's and drivers' tests COUNT times, with the race detector
	@for i in $$(seq $(COUNT)); do echo "$$i of $(COUNT)"; ZKLOCK_LONG=1 $(TEST) -count=1 -timeout=60m ./zklock/... || exit 1; done

.PHONY: chaos
chaos: install ## kill, stop and cut off real servers and clients for CHAOS; ZKLOCK_SEED repeats a schedule, ZKLOCK_FAULTS=regexp chooses faults
	ZKLOCK_CHAOS=$(CHAOS) $(GO) test -count=1 -timeout=0 -v -run='^TestChaos$$|^TestThroughputUnderCuts$$' ./integration_test

.PHONY: judge
judge: install ## judge LIBRARY, zklock, zk, curator, kazoo, etcd or redsync, under the faults of contrib/locktest for JUDGE; JUDGEFLAGS='-seed 8 -faults killed'
	$(GO) run ./contrib/locktest/cmd/locktest -library $(LIBRARY) -for $(JUDGE) $(JUDGEFLAGS)

.PHONY: comparison
comparison: install ## judge six libraries under each fault RUNS_EACH times, half an hour each time, and write docs/comparison.md; it can be stopped and started again; docs/comparison.ndjson has what is done
	@.ci/install comparison
	home=$${ZOOKEEPER_HOME:-$$($(GO) run ./integration_test/matrix -fetch -lines='^3\.9$$')}; \
	etcd=$$(.ci/etcd); \
	peers=$$($(GO) run ./integration_test/matrix -peers | sed 's/^ZKLOCK_TEST_/LOCKTEST_/'); \
	for work in "-for 10s" "-philosophers 60s" "-silent -ttl 10s"; do \
		env $$peers ZOOKEEPER_HOME=$$home PATH=$$etcd:$$PATH .ci/bench-peers bin/servers $(GO) run ./contrib/locktest/cmd/locktest -comparison docs/comparison.md \
			-results docs/comparison.ndjson -history bin/comparison -runs $(RUNS_EACH) -ttl 2s $$work $(JUDGEFLAGS) || exit; \
	done

.PHONY: matrix
matrix: ## tests on each release line of ZooKeeper, from Maven, as a table; LINES=regexp chooses lines
	@.ci/install matrix
	ZKLOCK_LONG=1 $(GO) run ./integration_test/matrix -lines='$(LINES)' -chaos=$(CHAOS) $(MATRIXFLAGS)

.PHONY: track-record
track-record: install ## go round the suites that look for bugs for RECORD, and add the runs to docs/track-record.ndjson and its page; it can be stopped and started again
	@.ci/install comparison
	@$(GO) build -o bin/record-suites ./integration_test/record
	@exec bin/record-suites -for=$(RECORD) -md docs/track-record.md $(RECORDFLAGS)

.PHONY: mutants
mutants: ## put deliberate bugs into the core, each of which a test has to find; MUTANTS=regexp
	$(GO) run ./integration_test/mutants -run='$(MUTANTS)'

.PHONY: soak
soak: RECORD = $(SOAK)
soak: track-record ## make track-record for SOAK

.PHONY: soak-command
soak-command: install ## COUNT runs of zklock run for each fault: was a command left when the next one started?
	ZKLOCK_COMMAND_RUNS=$(COUNT) $(GO) test -count=1 -timeout=0 -v -run='^Test(CommandIsDead|FrozenWrapper)' ./integration_test/command

.PHONY: soak-sasl
soak-sasl: install ## SASL: the contract of drivers, chaos, tickets that are renewed, and no KDC for a while
	ZKLOCK_LONG=1 $(GO) test -count=1 -timeout=60m -v -run='$(SOAKED)' ./integration_test

.PHONY: soak-fips
soak-fips: ## the tests that need no servers with GODEBUG=fips140=only; those of MD5, and of keys of SHA-1, skip themselves
	GODEBUG=fips140=only $(GO) test -count=1 $$($(GO) list ./zklock/... ./internal/... ./middleware/... ./interceptors/... ./tracing/... ./cmd/zklock/... ./contrib/kerberos/... ./contrib/connectlock/... ./contrib/migratelock/... | grep -v /internal/testkit/)

.PHONY: soak-election
soak-election: install ## COUNT leaders whose server is cut off: did each stop before the next one led?
	ZKLOCK_LONG=1 ZKLOCK_ELECTION_CUTS=$(COUNT) $(GO) test -count=1 -timeout=0 -v -run='^TestLeaderBehindACut' ./integration_test

.PHONY: cover
cover: install ## the coverage of the tests, by function: cover.out
	$(GO) test -p=1 -timeout=30m -coverpkg=github.com/zklock/go-zklock/... -coverprofile=cover.out ./... $(PUBLIC) ./cmd/zklock/... ./integration_test/...
	$(GO) tool cover -func=cover.out | tail -n 1

.PHONY: clean
clean: ## remove the files that the targets above write
	rm -rf cover.out bin
	find . -path ./.git -prune -o -type f \( -name '*.test' -o -name '*.prof' \) -exec rm -f {} +
