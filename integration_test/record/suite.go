package main

import (
	"fmt"
	"slices"
	"time"
)

// suite is a set of tests that finds more the longer it runs.
type suite struct {
	name string
	what string // what it does

	titles map[column]string // what its figures are, where the general titles are less precise

	share  int  // its part of the time
	waits  bool // it mostly waits, so it may run at the same time as another one
	seeded bool // the seed decides what a run does
	peers  bool // other libraries run along, whose lost updates end the command with an error
	once   bool // it does the same each time, so once a commit is enough
	varied bool // it has no settings, or its tests have many

	// command returns what to run for about that long, if the suite has no length of its own: assignments to
	// environment variables, and then the command.
	command func(length time.Duration, seed int64) []string

	figures []figure
}

// test returns a command that runs the tests of a package that match a pattern.
func test(pkg, pattern string, env ...string) []string {
	return append(env, "go", "test", "-count=1", "-timeout=0", "-v", "-run="+pattern, pkg)
}

// variable returns an assignment to an environment variable.
func variable(name string, value any) string { return fmt.Sprintf("%s=%v", name, value) }

// random assigns a seed.
func random(seed int64) string { return variable("ZKLOCK_SEED", seed) }

// per returns how many runs fit into a time if each takes that long, and at least fewest.
func per(length, each time.Duration, fewest int) int { return max(int(length/each), fewest) }

// distances are how far clients are from servers in suites that have them at a distance.
var distances = [...]time.Duration{0, 20 * time.Millisecond, 80 * time.Millisecond}

// suites are the suites, in the order of the page.
var suites = slices.Concat(tested, judged)

// simulated are the figures of the two simulations.
var simulated = []figure{
	{cases, `(\d+) runs from seed`}, {held, `(\d+) locks acquired`},
	{faults, `(?m)^ +all +(\d+) +\d+ +\d+ `}, {lost, `(?m)^ +all +\d+ +(\d+) +\d+ `},
}

// core are the packages of the suite "core as shipped".
var core = []string{"./zklock", "./zklock/once", "./zklock/election", "./zklock/fence", "./middleware", "./interceptors"}

// tested are the suites that are tests of this repository.
var tested = []suite{
	{
		name: "simulation", share: 30, seeded: true,
		what:   "clients, servers and a network in virtual time, with random faults",
		titles: map[column]string{cases: "schedules"},
		command: func(length time.Duration, seed int64) []string {
			return test("./zklock/internal/simulation", "^TestSimulation$", variable("ZKLOCK_FOR", length), random(seed))
		},
		figures: simulated,
	},
	{
		name: "simulation as shipped", share: 15, seeded: true,
		what:   "the same with the default settings, on servers with ticks of 2 s, at distances of 0 to 250 ms one way",
		titles: map[column]string{cases: "schedules"},
		command: func(length time.Duration, seed int64) []string {
			return test("./zklock/internal/simulation", "^TestSimulation$", variable("ZKLOCK_SHIPPED", 1), variable("ZKLOCK_FOR", length), random(seed))
		},
		figures: simulated,
	},
	{
		name: "simulation of the wire", share: 10, seeded: true,
		what:   "the same with clients that speak ZooKeeper's protocol, over connections with faults of their own; a judge compares each answer with the servers' log",
		titles: map[column]string{cases: "schedules"},
		command: func(length time.Duration, seed int64) []string {
			return test("./zklock/internal/simulation", "^TestSimulationOfTheWire$", variable("ZKLOCK_FOR", length), random(seed))
		},
		figures: simulated,
	},
	{
		name: "core as shipped", share: 3, once: true,
		what:   "the tests of the core and of its adapters in memory, with the default session_timeout, on servers with ticks of 2 s; only tests of other settings have those",
		titles: map[column]string{cases: "tests"},
		command: func(time.Duration, int64) []string {
			// What a lock takes in memory has tests of its own, which no setting changes.
			return append(test("-skip=^Test.*Memory$", ".", variable("ZKLOCK_SHIPPED", 1)), core...)
		},
		figures: []figure{{cases, `(?m)^--- (PASS): `}},
	},
	{
		name: "nested simulation", share: 10, seeded: true,
		what:   "the same with clients that take one lock after the other and run into deadlocks; a judge of its own says which there were",
		titles: map[column]string{cases: "schedules", held: "nested acquisitions"},
		command: func(length time.Duration, seed int64) []string {
			return test("./zklock/internal/simulation", "^TestSimulatedDeadlocks$", variable("ZKLOCK_RUNS", per(length, 250*time.Millisecond, 40)), random(seed))
		},
		figures: []figure{
			{cases, `(\d+) runs from seed \d+ in .* nested`}, {held, `(\d+) nested acquisitions`}, {deadlocks, `nested acquisitions, (\d+) victims`},
		},
	},
	{
		name: "small cases", share: 1, once: true,
		what:   "each request, and each pair, of short scenarios meets a fault",
		titles: map[column]string{cases: "scenarios"},
		command: func(time.Duration, int64) []string {
			return test("./zklock/internal/simulation", "^TestEvery", variable("ZKLOCK_PAIRS", "all"))
		},
		figures: []figure{{cases, `cases_test\.go:\d+: (\d+) runs`}},
	},
	{
		name: "mass losses", share: 5, seeded: true,
		what:   "sessions with thousands of locks and waiters end",
		titles: map[column]string{cases: "ends"},
		command: func(length time.Duration, seed int64) []string {
			return test("./zklock/internal/simulation", "^TestSimulated(Mass)?Losses", variable("ZKLOCK_RUNS", per(length, 150*time.Millisecond, 100)), random(seed))
		},
		figures: []figure{{cases, `(\d+) runs, \d+ locks lost`}, {lost, `\d+ runs, (\d+) locks lost`}},
	},
	{
		name: "elections, simulated", share: 5, seeded: true,
		what:   "the same with candidates and observers",
		titles: map[column]string{cases: "schedules", held: "terms", lost: "terms lost"},
		command: func(length time.Duration, seed int64) []string {
			return test("./zklock/election", "^TestSimulatedElections$", variable("ZKLOCK_RUNS", per(length, 250*time.Millisecond, 40)), random(seed))
		},
		figures: []figure{
			{cases, `(\d+) runs: \{`}, {faults, `runs: \{Faults:(\d+)`}, {held, `runs: \{.* Terms:(\d+)`}, {lost, `runs: \{.* Lost:(\d+)`},
		},
	},
	{
		name: "model of the lease", share: 2, once: true, varied: true,
		what: "every state of a [small model](../zklock/internal/model/README.md) of the lease, also without each part of its rule",
		command: func(length time.Duration, _ int64) []string {
			return test("./zklock/internal/model", ".", variable("ZKLOCK_MODEL", length))
		},
		figures: []figure{{states, `: (\d+) states, \d+ steps`}, {bugs, `(a counter-example of) \d+ steps`}},
	},
	{
		name: "deliberate bugs", share: 4, once: true, varied: true,
		what: "mistakes put into the code, one at a time; a test must find each",
		command: func(time.Duration, int64) []string {
			return []string{"go", "run", "./integration_test/mutants", "-run=."}
		},
		figures: []figure{{bugs, `\d+ mutants in .*: (\d+) caught`}, {violations, `caught.*; (\d+) survive`}},
	},
	{
		name: "fuzzing", share: 7, varied: true,
		what:   "random inputs for parsers and rules, and a hostile server",
		titles: map[column]string{cases: "inputs"},
		command: func(length time.Duration, _ int64) []string {
			// So many inputs for each target take about that long.
			return []string{"make", "--no-print-directory", fmt.Sprintf("FUZZTIME=%dx", max(int(length.Seconds())*300, 1000)), "fuzz"}
		},
		figures: []figure{{cases, `execs: (\d+) .*\n(?:PASS|FAIL|ok|---)`}},
	},
	{
		name: "chaos", share: 18, waits: true, seeded: true,
		what: "three real servers, and processes with all kinds of locks, are killed, stopped, cut off and slowed down; a client that trusts its connection must then overlap with another",
		command: func(length time.Duration, seed int64) []string {
			return test("./integration_test", "^TestChaos$", variable("ZKLOCK_CHAOS", length), random(seed))
		},
		figures: []figure{
			{faults, `(?m)^ +all +(\d+) +\d+ +\d+ `}, {lost, `(?m)^ +all +\d+ +(\d+) +\d+ `}, {held, `(\d+) turns; \d+ requests refused`},
		},
	},
	{
		name: "chaos as shipped", share: 5, waits: true, seeded: true,
		what: "the same with the default settings, on servers with ticks of 2 s, at a distance in two of three runs: each kind of fault once, for longer than a session of 30 s",
		command: func(_ time.Duration, seed int64) []string {
			return test("./integration_test", "^TestChaosAsShipped$", variable("ZKLOCK_SHIPPED", 1), variable("ZKLOCK_DISTANCE", distances[seed%3]), random(seed))
		},
		figures: []figure{
			{faults, `(?m)^ +all +(\d+) +\d+ +\d+ `}, {lost, `(?m)^ +all +\d+ +(\d+) +\d+ `}, {held, `(\d+) turns; \d+ requests refused`},
		},
	},
	{
		name: "releases of ZooKeeper", share: 10, varied: true,
		what:   "the tests on real servers, release after release",
		titles: map[column]string{cases: "tests"},
		command: func(length time.Duration, _ int64) []string {
			return []string{"go", "run", "./integration_test/matrix", "-for=" + length.String(), "-chaos=" + min(length/4, time.Minute).String()}
		},
		figures: []figure{{cases, `(\d+) tests passed and`}, {violations, `tests passed and (\d+) failed`}, {servers, `(?m)^\| (3\.\d+\.\d+) +\|.*\d s +\|`}},
	},
	{
		name: "the command", share: 5, waits: true,
		what: "a fault strikes `zklock run`, whose command must die before the next one starts",
		command: func(length time.Duration, _ int64) []string {
			return test("./integration_test/command", "^Test(CommandIsDead|FrozenWrapper)", variable("ZKLOCK_COMMAND_RUNS", per(length, 24*time.Second, 1)))
		},
		figures: []figure{{cases, `\.go:\d+: (\d+) runs, overlaps`}, {faults, `\.go:\d+: (\d+) runs, overlaps`}},
	},
	{
		name: "the command as shipped", share: 3, waits: true,
		what: "the same with the default session_timeout, on servers with ticks of 2 s",
		command: func(length time.Duration, _ int64) []string {
			return test("./integration_test/command", "^TestCommandIsDead", variable("ZKLOCK_SHIPPED", 1), variable("ZKLOCK_COMMAND_RUNS", per(length, time.Minute, 1)))
		},
		figures: []figure{{cases, `\.go:\d+: (\d+) runs, overlaps`}, {faults, `\.go:\d+: (\d+) runs, overlaps`}},
	},
	{
		name: "elections on servers", share: 3, waits: true,
		what:   "a leader's server is cut off, and the leader must stop before the next one leads",
		titles: map[column]string{cases: "leaders"},
		command: func(length time.Duration, _ int64) []string {
			return test("./integration_test", "^TestLeaderBehindACut", variable("ZKLOCK_ELECTION_CUTS", per(length, 3*time.Second, 10)))
		},
		figures: []figure{{cases, `(\d+) of \d+ leaders stopped before the next one led, in \d+ cuts\n.*---`}, {faults, `leaders stopped before the next one led, in (\d+) cuts\n.*---`}},
	},
	{
		name: "slots of a job", share: 3, waits: true,
		what:   "processes with wrong clocks run a job once for each slot, and are killed",
		titles: map[column]string{cases: "jobs"},
		command: func(time.Duration, int64) []string {
			return test("./integration_test", "^TestSlotsRunOnce", variable("ZKLOCK_SLOTS", 500))
		},
		figures: []figure{{cases, `(\d+) runs of \d+ slots`}, {faults, `(\d+) ended by kills from outside`}},
	},
	{
		name: "slots of gocron", share: 1, waits: true,
		what:   "five processes of gocron have a job each second, which runs once for each slot",
		titles: map[column]string{cases: "jobs"},
		command: func(time.Duration, int64) []string {
			return []string{"go", "-C", "contrib/gocronlock", "test", "-count=1", "-timeout=0", "-v", "-run=ShortJob", "-slots=60"}
		},
		figures: []figure{{cases, `with slots: (\d+) runs in`}},
	},
	{
		name: "philosophers", share: 5, waits: true,
		what:   "five processes take two of five locks in any order, while servers are cut off; each deadlock must end with one error, and no other wait may fail so",
		titles: map[column]string{cases: "meals"},
		command: func(length time.Duration, _ int64) []string {
			return test("./integration_test", "^TestPhilosophers$", variable("ZKLOCK_PHILOSOPHERS", length))
		},
		figures: []figure{{cases, `(\d+) meals,`}, {deadlocks, `circles, (\d+) of them ended`}, {faults, `with two victims, (\d+) cuts`}},
	},
	{
		name: "mixed locks", share: 2,
		what: "three processes mix locks on a real server",
		command: func(length time.Duration, _ int64) []string {
			return test("./integration_test", "^TestProcessesMix", variable("ZKLOCK_MIX", length))
		},
		figures: []figure{{held, `(\d+) grants to \d+ goroutines`}},
	},
	{
		name: "names used once", share: 2,
		what:   "nothing of a name stays on a real server",
		titles: map[column]string{cases: "names"},
		command: func(length time.Duration, _ int64) []string {
			return test("./integration_test", "^TestNamesUsedOnce", variable("ZKLOCK_NAMES", per(length, time.Millisecond, 1000)))
		},
		figures: []figure{{cases, `after (\d+) names`}, {held, `after (\d+) names`}},
	},
}
