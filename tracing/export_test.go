package tracing

// Version is the version of the instrumentation scope.
var Version = scopeVersion

// VersionIn is the version of the instrumentation scope in a build.
var VersionIn = versionIn

// The values of AttrReleaseReason and of AttrSessionState.
const (
	ReasonReleased = reasonReleased
	ReasonLost     = reasonLost
	StateConnected = stateConnected
	StateSuspended = stateSuspended
	StateEnded     = stateEnded
)
