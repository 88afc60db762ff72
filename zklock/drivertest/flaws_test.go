package drivertest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/drivertest"
)

// flaw is a fault that a driver can have.
type flaw struct {
	name string

	// wrap returns s with the flaw; s was opened by c with timeout.
	wrap func(s driver.Session, c driver.Connector, timeout time.Duration) driver.Session

	// caught are the subtests that must fail; others may fail, too. If it is empty, the whole
	// suite must pass.
	caught []string
}

// flawEnv is the environment variable with the name of the flaw, for the child process that
// runs the suite with it.
const flawEnv = "ZKLOCK_DRIVERTEST_FLAW"

// TestSuiteCatches runs the suite with each of the flaws, and checks that the right subtests
// fail. Each flaw has a process of its own: a subtest that has failed makes the whole test
// fail.
func TestSuiteCatches(t *testing.T) {
	if name := os.Getenv(flawEnv); name != "" {
		for _, f := range flaws() {
			if f.name == name {
				drivertest.RunSynctest(t, newHarness(f))
			}
		}
		return
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flaws() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(executable, "-test.run="+f.pattern(), "-test.count=1", "-test.timeout=60s")
			cmd.Env = append(os.Environ(), flawEnv+"="+f.name)
			output, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			failed := make(map[string]bool)
			for _, line := range regexp.MustCompile(`--- FAIL: TestSuiteCatches/(.*) \(`).FindAllStringSubmatch(string(output), -1) {
				failed[strings.ReplaceAll(line[1], "_", " ")] = true
			}
			if err == nil != (len(failed) == 0) {
				t.Errorf("the suite's process ended with %v, but %d subtests failed", err, len(failed))
			}
			if len(f.caught) == 0 && err != nil {
				t.Errorf("the suite failed without a flaw")
			}
			for _, name := range f.caught {
				if !failed[name] {
					t.Errorf("the subtest %q passed in spite of the flaw", name)
				}
			}
			if t.Failed() {
				t.Logf("%s", output)
			}
		})
	}
}

// pattern returns a -test.run pattern for the subtests that must fail: it matches the nouns in
// their names, which have the form noun/sentence.
func (f flaw) pattern() string {
	var nouns []string
	for _, name := range f.caught {
		noun, _, _ := strings.Cut(name, "/")
		nouns = append(nouns, noun)
	}
	if nouns == nil {
		return "^TestSuiteCatches$"
	}
	return "^TestSuiteCatches$/^(" + strings.Join(nouns, "|") + ")$"
}

func flaws() []flaw {
	return append(append(containerFlaws(), credentialsFlaws()...), []flaw{
		{name: "none"},
		{"a set does not count the node created with it", with(func(s *faulty) {
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				results, err := s.Session.Multi(ctx, ops)
				for i := range results {
					if ops[i].Kind == driver.OpSet && results[i].Err == nil {
						results[i].Stat.NumChildren--
					}
				}
				return results, err
			}
		}), []string{"multi/set after create counts the new node and has its zxid"}},
		{"a multi executes its operations one by one", with(func(s *faulty) {
			s.multi = oneByOne(s.Session)
		}), []string{
			"multi/failing at its last operation applies nothing",
			"multi/failing in the middle applies nothing",
			"multi/has one zxid for all its operations",
			"multi/check of another version is ErrBadVersion",
		}},
		{"a result has the zxid of the session's newest reply", with(func(s *faulty) {
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				results, err := s.Session.Multi(ctx, ops)
				for i := range results {
					if results[i].Zxid != 0 {
						results[i].Zxid++ // as after another session's transaction
					}
				}
				return results, err
			}
		}), []string{"multi/results carry the transaction's zxid while other sessions write"}},
		{"a single operation has no result if it fails", with(func(s *faulty) {
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				results, err := s.Session.Multi(ctx, ops)
				if len(ops) == 1 && err != nil {
					return nil, err
				}
				return results, err
			}
		}), []string{"multi/a single operation fails as its own request does"}},
		{"an event comes after the reply to a later transaction", with(func(s *faulty) {
			var mu sync.Mutex
			replied := make(chan struct{})
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				results, err := s.Session.Multi(ctx, ops)
				mu.Lock()
				defer mu.Unlock()
				close(replied)
				replied = make(chan struct{})
				return results, err
			}
			s.event = func(to chan<- driver.Event, ev driver.Event) {
				mu.Lock()
				reply := replied
				mu.Unlock()
				if _, changed := s.Session.State(); ev.Err == nil {
					select {
					case <-reply:
					case <-changed: // the session ends with the test
					case <-time.After(time.Second):
					}
				}
				to <- ev
			}
		}), []string{"watch/delivers an event before the result of a later transaction"}},
		{"a multi writes into its operations", with(func(s *faulty) {
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				for i := range ops {
					for j := range ops[i].ACL {
						ops[i].ACL[j].Perms |= driver.PermAdmin
						ops[i].ACL[j].ID += " "
					}
				}
				return s.Session.Multi(ctx, ops)
			}
		}), []string{"multi/does not change its arguments"}},
		{"a failed multi has no results", with(func(s *faulty) {
			s.multi = func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
				results, err := s.Session.Multi(ctx, ops)
				if err != nil {
					return nil, err
				}
				return results, nil
			}
		}), []string{"multi/failing at its first operation applies nothing"}},
		{"a watch is armed after its read", with(func(s *faulty) {
			s.watch = func(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
				node, err := s.Session.Get(ctx, path)
				if err != nil {
					return node, nil, err
				}
				_, events, err := s.Session.Watch(ctx, path)
				return node, events, err
			}
		}), []string{"watch/is armed at the moment of its read"}},
		{"a watch of a missing node waits for it", with(func(s *faulty) {
			s.watch = func(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
				node, events, err := s.Session.Watch(ctx, path)
				if errors.Is(err, driver.ErrNoNode) {
					err = nil
				}
				return node, events, err
			}
		}), []string{"watch/of a missing node is ErrNoNode and arms nothing"}},
		{"a watch fires twice", with(func(s *faulty) {
			s.event = func(out chan<- driver.Event, event driver.Event) {
				out <- event
				out <- event
			}
		}), []string{"watch/fires once when another session deletes the node", "watch/ends with ErrClosed when its session closes"}},
		{"a watch does not report a set", with(func(s *faulty) {
			s.event = func(out chan<- driver.Event, event driver.Event) {
				if event.Type != driver.EventChanged {
					out <- event
				}
			}
		}), []string{"watch/fires once when another session sets the data", "watch/fires after a cut for data set meanwhile"}},
		{"a watch is lost with its connection", with(func(s *faulty) {
			s.event = func(out chan<- driver.Event, event driver.Event) {
				if generation, _ := s.Conn(); generation == 1 {
					out <- event
				}
			}
		}), []string{"watch/survives a lost connection", "watch/fires after a cut for a node deleted meanwhile"}},
		{"a watch does not report the end of its session", with(func(s *faulty) {
			s.event = func(out chan<- driver.Event, event driver.Event) {
				if event.Err == nil {
					out <- event
				}
			}
		}), []string{"watch/ends with ErrSessionExpired when its session expires", "watch/ends with ErrClosed when its session closes"}},
		{"a watch on children is armed after its list", with(func(s *faulty) {
			s.children = func(ctx context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
				names, stat, err := s.Session.Children(ctx, path)
				if err != nil {
					return nil, stat, nil, err
				}
				_, _, events, err := s.Session.WatchChildren(ctx, path)
				return names, stat, events, err
			}
		}), []string{"watchchildren/is armed at the moment of its list"}},
		{"a watch on children is one on data", with(func(s *faulty) {
			s.children = func(ctx context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
				names, stat, err := s.Session.Children(ctx, path)
				if err != nil {
					return nil, stat, nil, err
				}
				_, events, err := s.Session.Watch(ctx, path)
				return names, stat, events, err
			}
		}), []string{
			"watchchildren/fires once when another session creates a child",
			"watchchildren/does not fire for data, grandchildren or failed changes",
			"watchchildren/and a watch on the same node fire independently",
		}},
		{"a watch on children does not report a deletion", with(func(s *faulty) {
			s.event = func(out chan<- driver.Event, event driver.Event) {
				if event.Type != driver.EventDeleted {
					out <- event
				}
			}
		}), []string{"watchchildren/fires as deleted when the node itself is deleted", "watchexists/of a node that is there fires when it is set or deleted"}},
		{"the event of one node overtakes that of another", with(func(s *faulty) {
			overtaken := make(chan struct{}, 1)
			s.event = func(out chan<- driver.Event, event driver.Event) {
				if strings.HasSuffix(event.Path, "-first") {
					<-overtaken
					<-time.After(time.Millisecond)
				}
				out <- event
				if strings.HasSuffix(event.Path, "-second") {
					overtaken <- struct{}{}
				}
			}
		}), []string{"watch/delivers events in the order of the transactions"}},
		{"an older state is shown after a reconnect", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return &returning{Session: s}
		}, []string{"session/shows no older state after a reconnect"}},
		{"a watch on children is not set again", with(func(s *faulty) {
			s.event = func(out chan<- driver.Event, event driver.Event) {
				if generation, _ := s.Conn(); generation == 1 {
					out <- event
				}
			}
		}), []string{"watchchildren/survives a lost connection", "watchexists/survives a lost connection"}},
		{"a creation is reported as a change", with(func(s *faulty) {
			s.event = func(out chan<- driver.Event, event driver.Event) {
				if event.Type == driver.EventCreated {
					event.Type = driver.EventChanged
				}
				out <- event
			}
		}), []string{"watchexists/of a missing node fires once when it is created", "watchexists/fires after a cut for a change meanwhile"}},
		{"a missing node is an error of exists", with(func(s *faulty) {
			s.exists = func(ctx context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
				stat, found, events, err := s.Session.WatchExists(ctx, path)
				if err == nil && !found {
					return stat, false, nil, driver.ErrNoNode
				}
				return stat, found, events, err
			}
		}), []string{"watchexists/of a missing node fires once when it is created"}},
		{"a watch of a missing node is armed after the question", with(func(s *faulty) {
			s.exists = func(ctx context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
				node, err := s.Session.Get(ctx, path)
				if err != nil && !errors.Is(err, driver.ErrNoNode) {
					return driver.Stat{}, false, nil, err
				}
				found := err == nil
				_, _, events, err := s.Session.WatchExists(ctx, path)
				return node.Stat, found, events, err
			}
		}), []string{"watchexists/is armed at the moment of its answer"}},
		{"a node that may not be read is taken for a missing one", with(func(s *faulty) {
			s.exists = func(ctx context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
				_, err := s.Session.Get(ctx, path)
				stat, found, events, failed := s.Session.WatchExists(ctx, path)
				return stat, found && !errors.Is(err, driver.ErrNoAuth), events, failed
			}
		}), []string{"watchexists/without the permission to read answers, or is ErrNoAuth"}},
		{"an expired session is followed by a new one", resurrecting, []string{
			"session/that has expired fails every request, for ever",
			"conn/request that waits for a connection ends with the session",
		}},
		{"a lost reply is reported as not sent", translating(driver.ErrConnLoss, driver.ErrNotSent), []string{
			"conn/request in flight when the connection is lost is ErrConnLoss", "ctx/that ends after the send is ErrConnLoss",
		}},
		{"a lost reply is reported as the end of the session", translating(driver.ErrConnLoss, driver.ErrSessionExpired), []string{
			"conn/request in flight when the connection is lost is ErrConnLoss", "close/reports a request in flight as ErrConnLoss",
		}},
		{"a closed session is reported as expired", translating(driver.ErrClosed, driver.ErrSessionExpired), []string{"close/makes every method fail with ErrClosed"}},
		{"a bad version is reported as a missing node", translating(driver.ErrBadVersion, driver.ErrNoNode), []string{
			"delete/with another version is ErrBadVersion and removes nothing", "set/with another version is ErrBadVersion and changes nothing",
		}},
		{"a request that is too large is refused as malformed", translating(driver.ErrTooLarge, driver.ErrBadArguments), []string{"errors/for data above the limit are ErrTooLarge and cost no connection"}},
		{"an error has two meanings", translating(driver.ErrNoAuth, errors.Join(driver.ErrNoAuth, driver.ErrConnLoss)), []string{"acl/that only allows reading is ErrNoAuth for writes"}},
		{"a request is repeated after a lost connection", with(func(s *faulty) {
			s.fail = nil
			s.retry = true
		}), []string{"conn/request in flight when the connection is lost is ErrConnLoss"}},
		{"a context is ignored", with(func(s *faulty) { s.ctx = context.WithoutCancel }), []string{
			"ctx/that has ended before the call is ErrNotSent, and nothing is sent", "ctx/that ends after the send is ErrConnLoss",
		}},
		{"the end of a context hides what it means", with(func(s *faulty) {
			s.fail = func(ctx context.Context, err error) error {
				if err != nil && ctx.Err() != nil {
					return ctx.Err()
				}
				return err
			}
		}), []string{"ctx/that ends while the session is suspended is ErrNotSent, and nothing is sent later", "ctx/that ends after the send is ErrConnLoss"}},
		{"a request on a suspended session fails at once", with(func(s *faulty) {
			s.ctx = func(ctx context.Context) context.Context {
				ctx, cancel := context.WithCancel(ctx)
				if state, _ := s.State(); state == driver.Suspended {
					cancel()
				}
				context.AfterFunc(ctx, cancel)
				return ctx
			}
		}), []string{"conn/request made while suspended waits and succeeds when healed"}},
		{"a sync does nothing", with(func(s *faulty) { s.lazy = true }), []string{"get/sees what another session has written after a sync"}},
		{"the timeout is what was asked for", func(s driver.Session, _ driver.Connector, timeout time.Duration) driver.Session {
			return optimist{s, timeout}
		}, []string{"session/timeout beyond the limits is clamped"}},
		{"reconnects are not counted", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return unmoved{s}
		}, []string{"conn/generation grows by one with each reconnect, and the handshake is a later one"}},
		{"reconnects are counted late", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return &tardy{Session: s}
		}, []string{"conn/generation grows before an event of the new connection", "conn/request made while suspended waits and succeeds when healed"}},
		{"a handshake is dated when Conn is called", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return dated{s}
		}, []string{"conn/does not change while the connection stays"}},
		{"the state channel never closes", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return deaf{s}
		}, []string{"conn/state channel closes when the connection is lost and when it is back", "close/closes the state channel"}},
		{"close leaves the session to expire", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return &lingering{Session: s}
		}, []string{"ephemeral/nodes, and no others, are gone when Close has returned", "close/makes every method fail with ErrClosed"}},
		{"a later close does not wait for the first one", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return &impatient{Session: s}
		}, []string{"close/called later waits for the first call, whatever its own context is"}},
		{"close never returns an error", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return glad{s}
		}, []string{"close/of a session that is cut off does not outlast its context", "close/reports a request in flight as ErrConnLoss"}},
	}...)
}
