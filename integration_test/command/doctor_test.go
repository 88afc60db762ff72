//go:build linux

package command_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// examined runs doctor and returns its exit code, the lines of what it found, and what it ends
// with.
func examined(t *testing.T, url string) (code int, found, end string) {
	t.Helper()
	code, stdout, stderr := finish(t, url, nil, "doctor")
	if stderr != "" {
		t.Errorf("doctor printed %q", stderr)
	}
	t.Logf("doctor ended with %d:\n%s", code, stdout)
	found, end, _ = strings.Cut(stdout, "\n\n")
	return code, found, strings.TrimSpace(end)
}

// TestDoctorFindsAnEnsembleHealthy: every server is reached, warnings do not count, and the
// report ends with ok. It says the same as JSON.
func TestDoctorFindsAnEnsembleHealthy(t *testing.T) {
	e := servers(t)
	if _, _, err := run(t, e, "warm", "true"); err != nil {
		t.Fatal(err)
	}
	code, found, end := examined(t, urlOf(e.Hosts()))
	if code != 0 || end != "ok" || strings.Contains(found, "to do") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
	for _, s := range e.Servers() {
		if !strings.Contains(found, s.Addr()+": ZooKeeper 3.") {
			t.Errorf("nothing of %s:\n%s", s.Addr(), found)
		}
	}
	for _, text := range []string{"follower", "leader", "for a session, ", " connection", "has container znodes", "30s, as asked for", "500ms is not less", "maxClientCnxns", "a quorum of the servers answers: 3 of the 3 in the URL run; if these are all that vote, 1 can stop", "all that locks need on " + root, "sequence", "clock", "orphans", "foreign", "a leader that falls silent costs all locks, a follower none"} {
		if !strings.Contains(found, text) {
			t.Errorf("nothing of %q:\n%s", text, found)
		}
	}
	if affected := strings.Contains(found, "ZooKeeper 3.8.0"); affected && !strings.Contains(found, "warning  version") || strings.Contains(found, "ZOOKEEPER-4785") != affected {
		t.Errorf("the advisories for 3.8.0:\n%s", found)
	}
	code, stdout, _ := finish(t, urlOf(e.Hosts()), nil, "doctor", "-o", "json")
	var report struct {
		Findings []struct{ Level, What, Text, Advice string }
		NoQuorum bool
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 || len(report.Findings) < 10 || report.NoQuorum {
		t.Errorf("%d, %v: %s", code, err, stdout)
	}
}

// run runs a command under a lock.
func run(t *testing.T, e *ensemble.Ensemble, name string, command ...string) (code int, stdout string, err error) {
	t.Helper()
	code, stdout, stderr := finish(t, urlOf(e.Hosts()), nil, append([]string{"run", name, "--"}, command...)...)
	if code != 0 {
		t.Errorf("%v: %d, %s", command, code, stderr)
	}
	return code, stdout, nil
}

// TestDoctorFindsServersThatAreDown: if one of three servers is down, doctor says what to do.
// Without a quorum its exit code is 69.
func TestDoctorFindsServersThatAreDown(t *testing.T) {
	t.Parallel()
	e := ownServers(t)
	if _, _, err := run(t, e, "before", "true"); err != nil { // so that the root exists
		t.Fatal(err)
	}
	followers := e.Followers()
	followers[0].Kill()
	code, found, end := examined(t, urlOf(e.Hosts()))
	if code != 1 || !strings.Contains(end, "start the server "+followers[0].Addr()) || !strings.Contains(found, "it refuses connections") || strings.Contains(end, "2.") || !strings.Contains(found, "a quorum of the servers answers: 2 of the 3 in the URL run; if these are all that vote, none can stop") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
	followers[1].Kill()
	code, found, end = examined(t, urlOf(e.Hosts()))
	if code != 69 || !strings.Contains(end, "start enough servers for a quorum") || !strings.Contains(found, "it runs, and is in no quorum") || strings.Count(end, "start the server") != 2 {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
}

// TestDoctorFindsAServerThatHangs: a server that accepts connections and answers nothing runs, so the
// advice is not to start it.
func TestDoctorFindsAServerThatHangs(t *testing.T) {
	t.Parallel()
	e := ownServers(t)
	if _, _, err := run(t, e, "before", "true"); err != nil { // so that the root exists
		t.Fatal(err)
	}
	hangs := e.Followers()[0]
	if err := hangs.Freeze(); err != nil {
		t.Fatal(err)
	}
	code, found, end := examined(t, urlOf(e.Hosts()))
	if err := hangs.Thaw(); err != nil {
		t.Fatal(err)
	}
	if code != 1 || !strings.Contains(found, hangs.Addr()+" gives out no session: it accepts connections and answers nothing") || strings.Contains(end, "start") && !strings.Contains(end, "restart it") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
}

// TestDoctorSeesOneMoment: the leader is stopped, and doctor asks the followers before they notice, and the quorum after they
// have elected another leader. It asks the followers again: only the stopped server is to blame.
func TestDoctorSeesOneMoment(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	own := config
	own.SyncLimit = 14 // 7 s: longer than doctor waits for a session
	e := ensemble.Start(t, own)
	if _, _, err := run(t, e, "before", "true"); err != nil { // so that the root exists
		t.Fatal(err)
	}
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Freeze(); err != nil {
		t.Fatal(err)
	}
	code, found, end := examined(t, urlOf(e.Hosts()))
	if err := leader.Thaw(); err != nil {
		t.Fatal(err)
	}
	if code != 1 || strings.Count(found, "to do ") != 1 || !strings.Contains(found, leader.Addr()+" gives out no session: it accepts connections and answers nothing") || !strings.Contains(found, "2 of the 3 in the URL run") || strings.Contains(end, "2.") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
}

// TestDoctorTriesToCreateTheRoot: if this user cannot create the root, which run would exit with 77 for,
// there is something to do. The try creates nothing.
func TestDoctorTriesToCreateTheRoot(t *testing.T) {
	t.Parallel()
	e := servers(t)
	owner, err := zklock.Open("zk://owner:secret@" + e.Hosts() + "/above?tick_time=500ms&session_timeout=6s")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]struct {
		code int
		end  string
	}{
		"zk://" + e.Hosts() + "/above/a/b?":                   {1, "grant CREATE above it"},
		"zk://owner:secret@" + e.Hosts() + "/above/a/b?":      {0, "ok"},
		"zk://" + e.Hosts() + "/not/there?":                   {0, "ok"},
		"zk://" + e.Hosts() + "/not/there?create_root=false&": {1, "create /not/there, or remove create_root"},
		"zk://" + e.Hosts() + "/not/there?acl=creator&":       {1, "set the user in the URL"},
	} {
		code, found, end := examined(t, url+"tick_time=500ms&session_timeout=6s")
		if code != want.code || !strings.Contains(end, want.end) {
			t.Errorf("%s: %d, %q:\n%s", url, code, end, found)
		}
	}
	raw := dialRaw(t, e.Hosts())
	for _, path := range []string{"/above/a", "/not"} {
		if there, _, err := raw.Exists(path); there || err != nil {
			t.Errorf("doctor has created %s, %v", path, err)
		}
	}
}

// TestDoctorFindsMissingRights: the root belongs to another user.
func TestDoctorFindsMissingRights(t *testing.T) {
	t.Parallel()
	e := servers(t)
	owner, err := zklock.Open("zk://owner:secret@" + e.Hosts() + "/of-the-owner?tick_time=500ms&session_timeout=6s")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, found, end := examined(t, "zk://"+e.Hosts()+"/of-the-owner?tick_time=500ms&session_timeout=6s")
	if code != 1 || !strings.Contains(end, "grant this user the rights on /of-the-owner") || !strings.Contains(found, "no READ on /of-the-owner") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
	for _, what := range []string{"queues", "orphans", "late", "foreign", "sequence", "clock"} {
		if strings.Contains(found, "ok       "+what) {
			t.Errorf("doctor may not read the queues, and says ok about %s:\n%s", what, found)
		}
	}
	code, found, end = examined(t, "zk://owner:secret@"+e.Hosts()+"/of-the-owner?tick_time=500ms&session_timeout=6s")
	if code != 0 || end != "ok" {
		t.Errorf("the owner: %d, %q:\n%s", code, end, found)
	}
}

// TestDoctorComparesTheTicks: tick_time is less than the servers' tickTime. A server that does not
// show its configuration shows its ticks by the session timeouts that it grants.
func TestDoctorComparesTheTicks(t *testing.T) {
	e := servers(t)
	code, found, end := examined(t, "zk://"+e.Hosts()+root+"?tick_time=499ms&session_timeout=6s")
	if code != 1 || !strings.Contains(end, "set tick_time=500ms") || strings.Contains(end, "2.") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
	code, found, end = examined(t, "zk://"+e.Hosts()+root+"?tick_time=500ms&session_timeout=60s")
	if code != 0 || end != "ok" || !strings.Contains(found, "the servers grant 30s, and session_timeout=1m0s asks for more") {
		t.Errorf("a session timeout that is too long: %d, %q:\n%s", code, end, found)
	}
	code, found, end = examined(t, "zk://"+e.Hosts()+root+"?tick_time=11s&session_timeout=60s")
	if code != 1 || !strings.Contains(found, "locks need at least three times tick_time=11s") || strings.Contains(end, "2.") {
		t.Errorf("a tick_time that is too long: %d, %q:\n%s", code, end, found)
	}

	silent := ensemble.Start(t, ensemble.Config{Extra: []string{"4lw.commands.whitelist=srvr"}})
	url := "zk://" + silent.Hosts() + root + "?session_timeout=6s&tick_time="
	if code, found, end := examined(t, url+"400ms"); code != 1 || !strings.Contains(end, "set tick_time=500ms") || !strings.Contains(found, "allow the command conf") {
		t.Errorf("a server that does not answer conf: %d, %q:\n%s", code, end, found)
	}
	if code, found, end := examined(t, url+"500ms"); code != 0 || end != "ok, but for what is unknown" {
		t.Errorf("a server that does not answer conf: %d, %q:\n%s", code, end, found)
	}
	limited := ensemble.Start(t, ensemble.Config{MinSessionTimeout: 1500 * ms, Extra: []string{"4lw.commands.whitelist=srvr", "maxClientCnxns=9"}})
	url = "zk://" + limited.Hosts() + root + "?session_timeout=6s&tick_time=500ms"
	if code, found, end := examined(t, url); code != 0 || end != "ok, but for what is unknown" || !strings.Contains(found, "unless their minSessionTimeout is set") {
		t.Errorf("a server with a longer minSessionTimeout: %d, %q:\n%s", code, end, found)
	}
	few := ensemble.Start(t, ensemble.Config{Extra: []string{"maxClientCnxns=9"}})
	// Without its leader this one commits nothing for five seconds.
	three := ensemble.Start(t, ensemble.Config{Servers: 3, SyncLimit: 4})
	for timeout, says := range map[string]string{"6s": "set session_timeout=", "10s": "no server's silence costs a lock"} {
		code, found, end := examined(t, "zk://"+three.Hosts()+root+"?tick_time=500ms&session_timeout="+timeout)
		if code != 0 || end != "ok" || !strings.Contains(found, says) || strings.Contains(found, "falls silent costs all locks") != (timeout == "6s") {
			t.Errorf("session_timeout=%s: %d, %q, want %q:\n%s", timeout, code, end, says, found)
		}
	}
	if code, found, _ := examined(t, "zk://"+few.Hosts()+root+"?session_timeout=6s&tick_time=500ms"); code != 0 || !strings.Contains(found, "only 4 processes of one host") {
		t.Errorf("few connections: %d\n%s", code, found)
	}
}

// TestDoctorFindsOrphansAndForeigners: a contender that is not ephemeral blocks its name for ever;
// one of another library is a warning.
func TestDoctorFindsOrphansAndForeigners(t *testing.T) {
	t.Parallel()
	e := ensemble.Start(t, ensemble.Config{})
	if _, _, err := run(t, e, "x", "true"); err != nil {
		t.Fatal(err)
	}
	raw := dialRaw(t, e.Hosts())
	if _, err := raw.Create(root+"/x", []byte("zklock"), 0, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists {
		t.Fatal(err)
	}
	if _, err := raw.Create(root+"/x/_c_0123456789abcdef0123456789abcdef-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	code, found, end := examined(t, urlOf(e.Hosts()))
	if code != 0 || end != "ok" || !strings.Contains(found, "1 contender is that of another library") {
		t.Errorf("a foreign contender: %d, %q:\n%s", code, end, found)
	}
	orphan := root + "/x/_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__0000000099"
	if _, err := raw.Create(orphan, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	code, found, end = examined(t, urlOf(e.Hosts()))
	if code != 1 || !strings.Contains(end, "zklock release NAME NODE@ZXID") || !strings.Contains(found, "1 contender belongs to no session") {
		t.Fatalf("an orphan: %d, %q:\n%s", code, end, found)
	}
	_, id, _ := strings.Cut(found, `no session, so it never goes: "x" `)
	id, _, _ = strings.Cut(id, "\n")
	if code, _, stderr := finish(t, urlOf(e.Hosts()), nil, "release", "x", strings.TrimSpace(id)); code != 0 {
		t.Errorf("release of %q, as the report says: %d, %s", id, code, stderr)
	}
	if there, _, err := raw.Exists(orphan); there || err != nil {
		t.Errorf("the orphan is still there, %v", err)
	}
}

// TestDoctorFindsALowLimit: servers that read smaller requests than the URL says cut connections, and a session can
// have more queue nodes than they can delete. Clients find that out, and doctor says where they stop.
func TestDoctorFindsALowLimit(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{JavaOptions: []string{"-Djute.maxbuffer=65536"}})
	c, err := zklock.Open(urlOf(e.Hosts()) + "&pool_max_sessions=1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := 0; err == nil && i < 200; i++ {
		_, err = c.Mutex(fmt.Sprint(strings.Repeat("n", 480), i)).Acquire(t.Context())
	}
	if !errors.Is(err, zklock.ErrTooManyWaiters) {
		t.Errorf("200 long names: %v, want ErrTooManyWaiters", err)
	}
	code, found, end := examined(t, urlOf(e.Hosts()))
	if code != 1 || !strings.Contains(found, "; a client with this URL stops at 57344") || !strings.Contains(found, "reads no request of 128 KiB") || !strings.Contains(end, "set jute_maxbuffer in the URL of all clients") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
	code, found, end = examined(t, urlOf(e.Hosts())+"&jute_maxbuffer=65536")
	if code != 0 || end != "ok" || !strings.Contains(found, "reads requests of 64 KiB and none of 128 KiB") {
		t.Errorf("%d, %q:\n%s", code, end, found)
	}
}
