package golangci

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"

	"github.com/zklock/go-zklock/contrib/zklockvet"
)

// TestPlugin gets the linter as golangci-lint does.
func TestPlugin(t *testing.T) {
	t.Parallel()
	make, err := register.GetPlugin("zklockvet")
	if err != nil {
		t.Fatal(err)
	}
	linter, err := make(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := linter.BuildAnalyzers(); err != nil || len(got) != len(zklockvet.Analyzers()) {
		t.Errorf("the linter has %d analyzers (%v), want %d", len(got), err, len(zklockvet.Analyzers()))
	}
	if got := linter.GetLoadMode(); got != register.LoadModeTypesInfo {
		t.Errorf("the linter asks for %q: the analyzers need types", got)
	}
	if _, err := make(map[string]any{"strict": true}); err == nil {
		t.Error("settings that do not exist are accepted")
	}
}
