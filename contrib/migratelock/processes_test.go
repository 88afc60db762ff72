package migratelock_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// rivals are two processes that migrate the same database.
type rivals struct {
	file          string // the database
	first, second *fleet.Process
	link          *proxy.Proxy // between the first process and ZooKeeper
}

// startRivals starts two processes in a role of TestMain. The first is in a migration, and the
// second waits for the lock, and has done nothing.
func startRivals(t *testing.T, e *ensemble.Ensemble, role string) rivals {
	t.Helper()
	root := "/" + strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	address := e.URL(root, fleet.ShortSession())
	link, err := proxy.New(e.Hosts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	r := rivals{file: databaseFile(t), link: link}
	r.first = fleet.Start(t, role, ensemble.URL(link.Addr(), root, fleet.ShortSession()), r.file)
	r.first.Expect("began")
	r.second = fleet.Start(t, role, address, r.file)
	r.second.Expect("ready")
	fleet.AwaitContenders(t, address, migrations, 2)
	r.second.Silent("began", "dirty", "migrated", "lost")
	return r
}

// wantTables checks which tables the migrations have made.
func (r rivals) wantTables(t *testing.T, want ...string) {
	t.Helper()
	if got := tables(t, r.file); !slices.Equal(got, want) {
		t.Errorf("the database has the tables %q, want %q", got, want)
	}
}

// finish lets the second process, which uses goose, apply the two migrations that are left.
func (r rivals) finish(t *testing.T) {
	t.Helper()
	r.second.Expect("began")
	r.second.Send("go on")
	if n := r.second.Expect("migrated"); n != "2" {
		t.Errorf("the second process applied %s migrations, want the 2 that were left", n)
	}
	r.wantTables(t, "goods", "orders", "persons", "stores")
}

// Two processes migrate with goose, on a real ZooKeeper.
func TestGooseProcesses(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	t.Run("one after the other", func(t *testing.T) {
		t.Parallel()
		r := startRivals(t, e, "goose")
		r.first.Send("go on")
		if n := r.first.Expect("migrated"); n != "4" {
			t.Errorf("the first process applied %s migrations, want 4", n)
		}
		if n := r.second.ExpectWithout("migrated", "began"); n != "0" {
			t.Errorf("the second process applied %s migrations, want 0", n)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		r := startRivals(t, e, "goose")
		r.first.Kill()
		r.finish(t)
	})
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		r := startRivals(t, e, "goose")
		r.link.Stall(proxy.Both)
		if why := r.first.Expect("cancelled"); !strings.Contains(why, "lost") {
			t.Errorf("the migration was cancelled with %q, want the loss", why)
		}
		r.first.Expect("lost") // Up returns it
		r.finish(t)
	})
}

// Two processes migrate with golang-migrate, on a real ZooKeeper.
func TestMigrateProcesses(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	t.Run("one after the other", func(t *testing.T) {
		t.Parallel()
		r := startRivals(t, e, "migrate")
		r.first.Send("go on")
		if got := r.first.Expect("migrated"); got != "3 false <nil>" {
			t.Errorf("the first process has migrated to %s, want 3, not dirty", got)
		}
		if got := r.second.ExpectWithout("migrated", "began"); got != "3 false no change" {
			t.Errorf("the second process: %s, want no change", got)
		}
	})

	// A migration that was begun leaves the database dirty. golang-migrate refuses to go on.
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		r := startRivals(t, e, "migrate")
		r.first.Kill()
		r.second.ExpectWithout("dirty", "began")
		r.wantTables(t, "orders")
	})

	// The statement that runs ends, and nothing else is written: not even that it has ended.
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		r := startRivals(t, e, "migrate")
		r.link.Stall(proxy.Both)
		r.second.ExpectWithout("dirty", "began") // it had the lock, and looked at the version
		r.first.Send("go on")
		if got := r.first.Expect("lost"); !strings.HasPrefix(got, "2 true ") {
			t.Errorf("the first process left the database at %s, want version 2, dirty", got)
		}
		r.wantTables(t, "orders", "persons")
	})
}
