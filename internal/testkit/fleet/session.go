package fleet

import "net/url"

// ShortSession returns settings of a URL. They end a session soon after its process was killed
// or cut off. The processes' servers have ticks of 500 ms.
func ShortSession() url.Values {
	return url.Values{"session_timeout": {"5s"}, "tick_time": {"500ms"}, "pool_max_sessions": {"1"}}
}
