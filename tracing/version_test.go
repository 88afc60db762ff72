package tracing_test

import (
	"runtime/debug"
	"testing"

	"github.com/zklock/go-zklock/tracing"
)

// The scope has the version of this module in the build, and says so if that is not a release.
func TestVersionOfTheScope(t *testing.T) {
	const module = "github.com/zklock/go-zklock/tracing"
	other := &debug.Module{Path: "github.com/zklock/go-zklock", Version: "v0.9.9"}
	for what, c := range map[string]struct {
		deps []*debug.Module
		want string
	}{
		"a release":     {[]*debug.Module{other, {Path: module, Version: "v0.1.0"}}, "0.1.0"},
		"a commit":      {[]*debug.Module{{Path: module, Version: "v0.1.1-0.20261124101118-78568b0aaaaa"}}, "0.1.1-0.20261124101118-78568b0aaaaa"},
		"a checkout":    {[]*debug.Module{other}, "(devel)"},
		"a replacement": {[]*debug.Module{{Path: module, Version: "v0.1.0", Replace: &debug.Module{Path: "../tracing"}}}, "(devel)"},
	} {
		if got := tracing.VersionIn(&debug.BuildInfo{Deps: c.deps}, true); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	if got := tracing.VersionIn(nil, false); got != "(devel)" {
		t.Errorf("without build information: %q", got)
	}
}
