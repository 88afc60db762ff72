package main

import (
	"fmt"
	"time"
)

// suite is a set of tests that finds more the longer it runs.
type suite struct {
	name string
	what string // what it does

	titles map[column]string // what its figures are, where the general titles are less precise

	// share is the part of the time that it gets, in percent; 0: it has a length of its own.
	share int

	// command returns what to run for about that long: assignments to environment variables,
	// and then the command. total is the time that all suites have.
	command func(length, total time.Duration) []string

	figures []figure
}

// If all suites together have this time or more, the suites without a share of it run at their full
// length.
const long = 30 * time.Minute

// test returns a command that runs the tests of a package that match a pattern.
func test(pkg, pattern string, env ...string) []string {
	return append(env, "go", "test", "-count=1", "-timeout=0", "-v", "-run="+pattern, pkg)
}

// variable returns an assignment to an environment variable.
func variable(name string, value any) string { return fmt.Sprintf("%s=%v", name, value) }

// per returns how many runs fit into a time if each takes that long, and at least fewest.
func per(length, each time.Duration, fewest int) int { return max(int(length/each), fewest) }

// suites are the suites, in the order of the page.
var suites = []suite{
	{
		name: "simulation", share: 30,
		what:   "clients, servers and a network in virtual time, with random faults",
		titles: map[column]string{runs: "schedules"},
		command: func(length, _ time.Duration) []string {
			return test("./zklock/internal/simulation", "^TestSimulation$", variable("ZKLOCK_FOR", length))
		},
		figures: []figure{
			{runs, `(\d+) runs from seed`}, {held, `(\d+) locks acquired`},
			{faults, `(?m)^ +all +(\d+) +\d+ +\d+ `}, {lost, `(?m)^ +all +\d+ +(\d+) +\d+ `},
		},
	},
	{
		name:   "small cases",
		what:   "each request, and each pair, of short scenarios meets a fault",
		titles: map[column]string{runs: "scenarios"},
		command: func(_, total time.Duration) []string {
			which := "neighbours"
			if total >= long {
				which = "all"
			}
			return test("./zklock/internal/simulation", "^TestEvery", variable("ZKLOCK_PAIRS", which))
		},
		figures: []figure{{runs, `cases_test\.go:\d+: (\d+) runs`}},
	},
	{
		name: "mass losses", share: 5,
		what:   "sessions with thousands of locks and waiters end",
		titles: map[column]string{runs: "ends"},
		command: func(length, _ time.Duration) []string {
			return test("./zklock/internal/simulation", "^TestSimulated", variable("ZKLOCK_RUNS", per(length, 150*time.Millisecond, 100)))
		},
		figures: []figure{{runs, `(\d+) runs, \d+ locks lost`}, {lost, `\d+ runs, (\d+) locks lost`}},
	},
	{
		name: "elections, simulated", share: 5,
		what:   "the same with candidates and observers",
		titles: map[column]string{runs: "schedules", held: "terms", lost: "terms lost"},
		command: func(length, _ time.Duration) []string {
			return test("./zklock/election", "^TestSimulatedElections$", variable("ZKLOCK_RUNS", per(length, 250*time.Millisecond, 40)))
		},
		figures: []figure{
			{runs, `(\d+) runs: \{`}, {faults, `runs: \{Faults:(\d+)`}, {held, `runs: \{.* Terms:(\d+)`}, {lost, `runs: \{.* Lost:(\d+)`},
		},
	},
	{
		name: "model of the lease", share: 5,
		what: "every state of a [small model](../zklock/internal/model/README.md) of the lease, also without each part of its rule",
		command: func(length, _ time.Duration) []string {
			return test("./zklock/internal/model", ".", variable("ZKLOCK_MODEL", length))
		},
		figures: []figure{{states, `: (\d+) states, \d+ steps`}, {bugs, `(a counter-example of) \d+ steps`}},
	},
	{
		name: "deliberate bugs",
		what: "mistakes put into the code, one at a time; a test must find each",
		command: func(_, total time.Duration) []string {
			which := "^[l-n]"
			if total >= long {
				which = "."
			}
			return []string{"go", "run", "./integration_test/mutants", "-run=" + which}
		},
		figures: []figure{{bugs, `\d+ mutants in .*: (\d+) caught`}, {violations, `caught.*; (\d+) survive`}},
	},
	{
		name: "fuzzing", share: 7,
		what:   "random inputs for parsers and rules, and a hostile server",
		titles: map[column]string{runs: "inputs"},
		command: func(length, _ time.Duration) []string {
			// So many inputs for each target take about that long.
			return []string{"make", "--no-print-directory", fmt.Sprintf("FUZZTIME=%dx", max(int(length.Seconds())*300, 1000)), "fuzz"}
		},
		figures: []figure{{runs, `execs: (\d+) .*\n(?:PASS|FAIL|ok|---)`}},
	},
	{
		name: "chaos", share: 18,
		what: "three real servers, and processes with all kinds of locks, are killed, stopped, cut off and slowed down; a client that trusts its connection must then overlap with another",
		command: func(length, _ time.Duration) []string {
			return test("./integration_test", "^TestChaos$", variable("ZKLOCK_CHAOS", length))
		},
		figures: []figure{
			{faults, `(?m)^ +all +(\d+) +\d+ +\d+ `}, {lost, `(?m)^ +all +\d+ +(\d+) +\d+ `}, {held, `(\d+) turns; \d+ requests refused`},
		},
	},
	{
		name: "releases of ZooKeeper", share: 18,
		what:   "the tests on real servers, release after release",
		titles: map[column]string{runs: "tests"},
		command: func(length, _ time.Duration) []string {
			return []string{"go", "run", "./integration_test/matrix", "-for=" + length.String(), "-chaos=" + min(length/4, time.Minute).String()}
		},
		figures: []figure{{runs, `(\d+) tests passed and`}, {violations, `tests passed and (\d+) failed`}, {servers, `(?m)^\| (3\.\d+\.\d+) +\|.*\d s +\|`}},
	},
	{
		name: "the command", share: 5,
		what: "a fault strikes `zklock run`, whose command must die before the next one starts",
		command: func(length, _ time.Duration) []string {
			return test("./integration_test/command", "^Test(CommandIsDead|FrozenWrapper)", variable("ZKLOCK_COMMAND_RUNS", per(length, 24*time.Second, 1)))
		},
		figures: []figure{{runs, `\.go:\d+: (\d+) runs, overlaps`}, {faults, `\.go:\d+: (\d+) runs, overlaps`}},
	},
	{
		name: "elections on servers", share: 3,
		what:   "a leader's server is cut off, and the leader must stop before the next one leads",
		titles: map[column]string{runs: "leaders"},
		command: func(length, _ time.Duration) []string {
			return test("./integration_test", "^TestLeaderBehindACut", variable("ZKLOCK_ELECTION_CUTS", per(length, 3*time.Second, 10)))
		},
		figures: []figure{{runs, `(\d+) of \d+ leaders stopped before the next one led, in \d+ cuts\n.*---`}, {faults, `leaders stopped before the next one led, in (\d+) cuts\n.*---`}},
	},
	{
		name:   "slots of a job",
		what:   "processes with wrong clocks run a job once for each slot, and are killed",
		titles: map[column]string{runs: "jobs"},
		command: func(_, total time.Duration) []string {
			if total < long {
				return test("./integration_test", "^TestSlotsRunOnce")
			}
			return test("./integration_test", "^TestSlotsRunOnce", variable("ZKLOCK_SLOTS", 500))
		},
		figures: []figure{{runs, `(\d+) runs of \d+ slots`}, {faults, `(\d+) ended by kills from outside`}},
	},
	{
		name: "mixed locks", share: 2,
		what: "three processes mix locks on a real server",
		command: func(length, _ time.Duration) []string {
			return test("./integration_test", "^TestProcessesMix", variable("ZKLOCK_MIX", length))
		},
		figures: []figure{{held, `(\d+) grants to \d+ goroutines`}},
	},
	{
		name: "names used once", share: 2,
		what:   "nothing of a name stays on a real server",
		titles: map[column]string{runs: "names"},
		command: func(length, _ time.Duration) []string {
			return test("./integration_test", "^TestNamesUsedOnce", variable("ZKLOCK_NAMES", per(length, time.Millisecond, 1000)))
		},
		figures: []figure{{runs, `after (\d+) names`}, {held, `after (\d+) names`}},
	},
}
