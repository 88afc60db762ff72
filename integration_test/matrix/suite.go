package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// suite is a set of tests that belong together. They are tests of the package
// integration_test.
type suite struct {
	name    string
	tests   []string
	limit   time.Duration // far more than the tests need
	quick   bool          // it is part of a rotation
	peers   bool          // it uses the newest releases of other lock libraries, not those of the distribution
	upgrade bool          // it upgrades the servers to the next line
	once    bool          // a rotation has it on the steady line only
}

// libraries are the tests with other lock libraries.
var libraries = []string{"TestDialects", "TestElections", "TestWriterOfCuratorBecomesAReader"}

// suites are the suites, in the order of the table.
var suites = []suite{
	{name: "conformance", quick: true, limit: 10 * time.Minute, tests: []string{"TestConformance"}},
	{name: "kinds of locks", quick: true, limit: 10 * time.Minute, tests: []string{
		"TestKindsOfLocks", "TestKeptNamesOnThreeServers", "TestWatchFollowsAQueue", "TestLocksOfManyNames",
	}},
	{name: "dialects", limit: 10 * time.Minute, tests: libraries},
	{name: "newest peers", quick: true, once: true, peers: true, limit: 10 * time.Minute, tests: libraries},
	{name: "cut follower", quick: true, limit: 5 * time.Minute, tests: []string{
		"TestHolderBehindACutFollowerKnowsBeforeTheNextGetsIn", "TestHolderBehindACutObserverKnowsBeforeTheNextGetsIn",
	}},
	{name: "settings", limit: 10 * time.Minute, tests: []string{
		"TestServerSettings", "TestLocalSessions", "TestLocalSessionsWithoutUpgrade", "TestQuotaIsNamed", "TestReadOnlyServerGrantsNothing",
		"TestServerThatRequiresSASL", "TestServerThatRequiresAPassword", "TestServerThatRequiresACertificate", "TestServerThatRequiresX509",
		"TestLimitOnConnectionsIsNamed", "TestSmallRequestsOnly", "TestListOfAQueueThatDoesNotFit",
	}},
	{name: "deposed leader", quick: true, limit: 5 * time.Minute, tests: []string{"TestHolderThatReconnectsToADeposedLeaderKnowsBeforeTheNextGetsIn"}},
	{name: "TLS", limit: 10 * time.Minute, tests: []string{"TestServerIsVerified", "TestSecureIdentities", "TestCertificatesRotate"}},
	{name: "rights", limit: 10 * time.Minute, tests: []string{
		"TestCredentialsComeFirstOnEveryConnection", "TestPingSaysWhichRightIsMissingOnRealServers", "TestWrongPasswordIsReportedByLocksOnRealServers",
	}},
	{name: "SASL", limit: 15 * time.Minute, tests: []string{
		"TestSASL", "TestSASLConformance", "TestSASLOnAnotherServer", "TestServersThatKnowNoSASL", "TestSASLRollingRestart",
	}},
	{name: "SASL chaos", limit: 20 * time.Minute, tests: []string{"TestSASLChaos"}},
	{name: "round trips", quick: true, limit: 10 * time.Minute, tests: []string{
		"TestUncontendedAcquireAndReleaseAreOneRequestEach", "TestFreshNamesAreOneTransactionEach", "TestFreshNamesOfTwoClientsOnThreeServers",
		"TestReleaseWakesOneOfFiftyClients",
	}},
	{name: "maintenance", limit: 10 * time.Minute, tests: []string{"TestRollingRestart", "TestReconfiguration"}},
	{name: "session's end", limit: 10 * time.Minute, tests: []string{"TestBytesOfPathsThatStopAServer", "TestRescueOfStoppedServers"}},
	{name: "upgrade", quick: true, upgrade: true, limit: 10 * time.Minute, tests: []string{"TestRollingUpgrade"}},
	{name: "chaos", limit: 20 * time.Minute, tests: []string{"TestChaos"}},
}

// pattern is the regular expression that matches the suite's tests only.
func (s suite) pattern() string { return "^(" + strings.Join(s.tests, "|") + ")$" }

// bench runs suites on servers.
type bench struct {
	binary string // the test binary of the package integration_test
	folder string // the package's folder
	chaos  time.Duration
	peers  []string // environment variables that name the newest releases of other lock libraries
}

// pkg is the package of the suites' tests.
const pkg = "./integration_test"

// build builds the test binary once for all servers.
func build(ctx context.Context, folder string) (*bench, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/zklock/go-zklock").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	root := strings.TrimSpace(string(out))
	b := &bench{binary: filepath.Join(folder, "matrix.test"), folder: filepath.Join(root, pkg)}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.binary, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the tests: %w\n%s", err, out)
	}
	return b, nil
}

// run runs a suite with the servers of one version, and of the next one if it upgrades them.
func (b *bench) run(ctx context.Context, s suite, z release, next release) cell {
	// At its own limit, -test.timeout, the binary prints where it hangs. The limit here is
	// for a binary that does not even do that.
	ctx, cancel := context.WithTimeout(ctx, s.limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.binary, "-test.v", "-test.run="+s.pattern(), "-test.timeout="+s.limit.String())
	cmd.Dir = b.folder
	cmd.Env = append(os.Environ(), "ZOOKEEPER_HOME="+z.folder, "ZKLOCK_TEST_SERVERS=", "ZKLOCK_TEST_REQUIRED=1", "ZKLOCK_CHAOS="+b.chaos.String())
	if s.upgrade {
		cmd.Env = append(cmd.Env, "ZKLOCK_TEST_UPGRADE="+next.folder)
	}
	if s.peers {
		cmd.Env = append(cmd.Env, b.peers...)
	}
	// The tests start processes, which may keep the output open if the binary is killed.
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	out, err := cmd.CombinedOutput()
	c := judge(string(out), s.tests)
	c.took, c.output = time.Since(began), string(out)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && len(c.failed) == 0:
		c.failed = append(c.failed, note{s.name, fmt.Sprintf("the tests ended with %v", err)})
	case err != nil && !errors.As(err, &exit):
		c.failed = append(c.failed, note{s.name, err.Error()})
	}
	return c
}
