package tracing

// Version is the version of the instrumentation scope.
var Version = scopeVersion

// The values of AttrReleaseReason and of AttrSessionState.
const (
	ReasonReleased = reasonReleased
	ReasonLost     = reasonLost
	StateConnected = stateConnected
	StateSuspended = stateSuspended
	StateEnded     = stateEnded
)
