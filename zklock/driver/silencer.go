package driver

import "time"

// Silencer is implemented by a [Session] that says why it has lost its connection.
type Silencer interface {
	// Silent is about the connection that was lost last. It returns for how long the server had not answered
	// when the driver gave the connection up because of that. It returns 0 if there was another reason, or
	// no loss yet. If forgotten is true, the server answers on other connections: the network, or a proxy, has
	// forgotten this one.
	Silent() (quiet time.Duration, forgotten bool)
}
