// Package proxy is a TCP proxy for tests: it stands between two ends of a
// connection and does to them what networks do.
//
//	p, err := proxy.New(server.Addr())
//	...connect to p.Addr() instead...
//	p.Blackhole(proxy.Both)   // both ends see silence, nobody is told
//	p.Heal()
//
// The client is whoever dials the proxy, the server is the target the proxy
// dials; bytes go Up from the client to the server and Down back.
//
// A connection that was made while bytes vanish, or that lost some, cannot be
// carried on: its stream has a hole. Heal resets such connections, so both
// ends start over, as they would after a partition longer than their own
// timeouts. [Proxy.Stall] is the other kind of partition, the one that TCP's
// retransmissions survive: everything arrives, late.
//
// A refused connection is accepted and reset at once, because giving up the
// listening port could lose it to another process. A client thus sees either
// its connect or its first read fail.
package proxy
