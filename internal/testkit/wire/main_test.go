package wire_test

import (
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
