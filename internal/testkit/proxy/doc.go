// Package proxy is a TCP proxy for tests. It forwards connections between a client and a
// server, and causes the faults of real networks on them.
//
//	p, err := proxy.New(server.Addr())
//	...connect to p.Addr() instead...
//	p.Blackhole(proxy.Both)   // both ends receive nothing more, and get no error
//	p.Heal()
//
// The client is the process that dials the proxy. The server is the target that the proxy
// dials. Bytes go Up from the client to the server and Down back.
//
// A connection that lost bytes, or that was made while bytes were dropped, cannot
// continue: its stream has a hole. Heal resets such connections, so that both ends start
// over, as they would after a partition longer than their own timeouts. [Proxy.Stall] is
// the other kind of partition, the one that TCP's retransmissions survive: all bytes
// arrive, late.
//
// To refuse a connection, the proxy accepts it and resets it at once. If it closed its
// listening port instead, another process could get that port. So either the client's
// connect fails, or its first read.
package proxy
