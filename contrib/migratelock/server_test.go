package migratelock_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/integration_test/fleet"
	"github.com/zklock/go-zklock/integration_test/proxy"
)

// quick are settings with which a session ends soon after its client.
func quick() url.Values {
	return url.Values{"session_timeout": {"2s"}, "tick_time": {"500ms"}, "pool_max_sessions": {"1"}}
}

// direct returns the URL of a server.
func direct(e *ensemble.Ensemble, root string) string { return e.URL(root, quick()) }

// through returns the URL of a server behind a proxy.
func through(t *testing.T, e *ensemble.Ensemble, root string) (string, *proxy.Proxy) {
	t.Helper()
	p, err := proxy.New(e.Hosts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return ensemble.URL(p.Addr(), root, quick()), p
}

// awaitWaiter waits until one process holds the lock of the migrations, and the other waits.
func awaitWaiter(t *testing.T, e *ensemble.Ensemble, root string) {
	t.Helper()
	fleet.AwaitContenders(t, direct(e, root), migrations, 2)
}

// Two processes migrate with goose, on a real ZooKeeper.
func TestGooseProcesses(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	all := []string{"goods", "orders", "persons", "stores"}

	t.Run("one after the other", func(t *testing.T) {
		file := databaseFile(t)
		first := fleet.Start(t, "goose", direct(e, "/turns"), file)
		first.Expect("began")
		second := fleet.Start(t, "goose", direct(e, "/turns"), file)
		second.Expect("ready")
		awaitWaiter(t, e, "/turns")
		second.Silent("began")
		first.Send("go on")
		if n := first.Expect("migrated"); n != "4" {
			t.Errorf("the first process applied %s migrations, want 4", n)
		}
		if n := second.Expect("migrated"); n != "0" {
			t.Errorf("the second process applied %s migrations, want 0", n)
		}
	})

	t.Run("killed", func(t *testing.T) {
		file := databaseFile(t)
		first := fleet.Start(t, "goose", direct(e, "/killed"), file)
		first.Expect("began")
		second := fleet.Start(t, "goose", direct(e, "/killed"), file)
		second.Expect("ready")
		awaitWaiter(t, e, "/killed")
		second.Silent("began")
		first.Kill()
		second.Expect("began")
		second.Send("go on")
		if n := second.Expect("migrated"); n != "2" {
			t.Errorf("the second process applied %s migrations, want the 2 that were left", n)
		}
		if got := tables(t, file); !slices.Equal(got, all) {
			t.Errorf("the database has the tables %q, want %q", got, all)
		}
	})

	t.Run("lost", func(t *testing.T) {
		file := databaseFile(t)
		address, p := through(t, e, "/lost")
		first := fleet.Start(t, "goose", address, file)
		first.Expect("began")
		second := fleet.Start(t, "goose", direct(e, "/lost"), file)
		second.Expect("ready")
		awaitWaiter(t, e, "/lost")
		second.Silent("began")
		p.Stall(proxy.Both)
		if why := first.Expect("cancelled"); !strings.Contains(why, "lost") {
			t.Errorf("the migration was cancelled with %q, want the loss", why)
		}
		first.Expect("lost") // Up returns it
		second.Expect("began")
		second.Send("go on")
		if n := second.Expect("migrated"); n != "2" {
			t.Errorf("the second process applied %s migrations, want the 2 that were left", n)
		}
		if got := tables(t, file); !slices.Equal(got, all) {
			t.Errorf("the database has the tables %q, want %q", got, all)
		}
	})
}

// Two processes migrate with golang-migrate, on a real ZooKeeper.
func TestMigrateProcesses(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})

	t.Run("one after the other", func(t *testing.T) {
		file := databaseFile(t)
		first := fleet.Start(t, "migrate", direct(e, "/turns"), file)
		first.Expect("began")
		second := fleet.Start(t, "migrate", direct(e, "/turns"), file)
		second.Expect("ready")
		awaitWaiter(t, e, "/turns")
		second.Silent("dirty")
		first.Send("go on")
		if got := first.Expect("migrated"); got != "3 false <nil>" {
			t.Errorf("the first process has migrated to %s, want 3, not dirty", got)
		}
		if got := second.Expect("migrated"); got != "3 false no change" {
			t.Errorf("the second process: %s, want no change", got)
		}
	})

	// A migration that was begun leaves the database dirty. golang-migrate refuses to go on.
	t.Run("killed", func(t *testing.T) {
		file := databaseFile(t)
		first := fleet.Start(t, "migrate", direct(e, "/killed"), file)
		first.Expect("began")
		second := fleet.Start(t, "migrate", direct(e, "/killed"), file)
		second.Expect("ready")
		awaitWaiter(t, e, "/killed")
		second.Silent("dirty")
		first.Kill()
		second.Expect("dirty")
		if got, want := tables(t, file), []string{"orders"}; !slices.Equal(got, want) {
			t.Errorf("the database has the tables %q, want %q", got, want)
		}
	})

	// The statement that runs ends, and nothing else is written: not even that it has ended.
	t.Run("lost", func(t *testing.T) {
		file := databaseFile(t)
		address, p := through(t, e, "/lost")
		first := fleet.Start(t, "migrate", address, file)
		first.Expect("began")
		second := fleet.Start(t, "migrate", direct(e, "/lost"), file)
		second.Expect("ready")
		awaitWaiter(t, e, "/lost")
		second.Silent("dirty")
		p.Stall(proxy.Both)
		second.Expect("dirty") // it had the lock, and looked at the version
		first.Send("go on")
		if got := first.Expect("lost"); !strings.HasPrefix(got, "2 true ") {
			t.Errorf("the first process left the database at %s, want version 2, dirty", got)
		}
		if got, want := tables(t, file), []string{"orders", "persons"}; !slices.Equal(got, want) {
			t.Errorf("the database has the tables %q, want %q", got, want)
		}
	})
}
