package zklock_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Every goroutine has an owner that waits for its end. So when all clients and ensembles
// of the tests are closed, none is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
