package fence_test

import (
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
