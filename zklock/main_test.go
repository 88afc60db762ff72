package zklock_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/leaks"
)

// Every goroutine has an owner that waits for its end. So when all clients and ensembles
// of the tests are closed, none is left.
//
// The tests lose thousands of locks. Their log would hide what matters.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if census.AsShipped() {
		var settings census.Census
		settings.Add(census.Settings{Tick: 2 * time.Second, Session: corekit.SessionTimeout, Servers: 1, Clients: 1, Name: 1})
		settings.Add(census.Settings{Tick: 2 * time.Second, Session: corekit.SessionTimeout, Servers: 3, Distance: 500 * time.Millisecond, Clients: 100, Name: 512})
		fmt.Println(&settings)
	}
	leaks.Main(m)
}
