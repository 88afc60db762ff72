package tracing

import (
	"runtime/debug"
	"strings"
)

// scopeVersion is the version of the instrumentation scope: that of this module in the
// program's build, without the v in front. It is "(devel)" in a build from a checkout.
var scopeVersion = version()

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	for _, m := range info.Deps {
		if m.Path == ScopeName && m.Replace == nil { // the package's path is that of its module
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "(devel)"
}
