package tracing

import (
	"runtime/debug"
	"strings"
)

// scopeVersion is the version of the instrumentation scope: that of this module in the program's
// build, without the v in front. It is "(devel)" in a build from a checkout.
var scopeVersion = versionIn(debug.ReadBuildInfo())

// versionIn returns the version of this module in a build.
func versionIn(info *debug.BuildInfo, ok bool) string {
	if ok {
		for _, m := range info.Deps {
			if m.Path == ScopeName && m.Replace == nil { // the package's path is that of its module
				return strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return "(devel)"
}
