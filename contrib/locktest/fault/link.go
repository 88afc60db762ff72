package fault

import (
	"cmp"
	"time"
)

// Link is the way of one client, or of one server, to all servers: a proxy for each. Its methods are safe for concurrent use.
type Link struct{ proxies []*proxy }

// NewLink starts the proxies for one client.
func NewLink(servers []string) (*Link, error) { return newLink(servers, 0) }

// peerPatience is how long a connection from one server to another is kept while that does not listen yet:
// servers that start together must not take that for a failure.
const peerPatience = 3 * time.Second

// NewPeerLink starts the proxies for one server, on its way to the others.
func NewPeerLink(servers []string) (*Link, error) { return newLink(servers, peerPatience) }

func newLink(servers []string, patience time.Duration) (*Link, error) {
	l := new(Link)
	for _, addr := range servers {
		p, err := newProxy(addr, patience)
		if err != nil {
			return nil, cmp.Or(err, l.Close())
		}
		l.proxies = append(l.proxies, p)
	}
	return l, nil
}

// Addrs are the addresses that the client uses.
func (l *Link) Addrs() []string {
	var addrs []string
	for _, p := range l.proxies {
		addrs = append(addrs, p.addr())
	}
	return addrs
}

// OnAnswer calls a function with the first bytes of a server's answer on each connection. It may be called from several
// goroutines at a time.
func (l *Link) OnAnswer(f func(first []byte)) {
	for _, p := range l.proxies {
		p.answered.Store(&f)
	}
}

// Break begins a fault of the client's network.
func (l *Link) Break(k Kind) {
	for _, p := range l.proxies {
		p.hold(k == CutClient || k == HalfUp, k == CutClient || k == HalfDown)
		p.refuse(k == ResetClient)
	}
}

// Slow makes all bytes take longer in either direction.
func (l *Link) Slow(by time.Duration) {
	for _, p := range l.proxies {
		p.slow(by)
	}
}

// Move puts the client at a distance: all bytes of its later connections take so much longer in either direction, and Heal does not end that.
func (l *Link) Move(by time.Duration) {
	for _, p := range l.proxies {
		p.distance.Store(int64(by))
	}
}

// Avoid makes the client use all servers but one.
func (l *Link) Avoid(server int) { l.proxies[server].refuse(true) }

// Confine makes the client use one server, and reports whether it is connected to that.
func (l *Link) Confine(server int) bool {
	for i, p := range l.proxies {
		p.refuse(i != server)
	}
	return l.proxies[server].connected()
}

// Heal ends all faults of the network.
func (l *Link) Heal() {
	for _, p := range l.proxies {
		p.slow(0)
		p.refuse(false)
		p.hold(false, false)
	}
}

// Cut holds back the bytes to and from one server, or passes them on.
func (l *Link) Cut(server int, cut bool) { l.proxies[server].hold(cut, cut) }

// Reset resets the client's connections to one server.
func (l *Link) Reset(server int) { l.proxies[server].reset() }

// Close ends the proxies. It returns the first error.
func (l *Link) Close() error {
	var err error
	for _, p := range l.proxies {
		err = cmp.Or(err, p.close())
	}
	return err
}
