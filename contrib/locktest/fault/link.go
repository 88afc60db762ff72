package fault

import "errors"

// Link is the way of one client to all servers: a proxy for each. Its methods are safe for concurrent use.
type Link struct{ proxies []*Proxy }

// NewLink starts the proxies for one client.
func NewLink(servers []string) (*Link, error) {
	l := new(Link)
	for _, addr := range servers {
		p, err := NewProxy(addr)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.proxies = append(l.proxies, p)
	}
	return l, nil
}

// Addrs are the addresses that the client uses.
func (l *Link) Addrs() []string {
	var addrs []string
	for _, p := range l.proxies {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// Break begins a fault of the client's network.
func (l *Link) Break(k Kind) {
	for _, p := range l.proxies {
		p.Hold(k == CutClient || k == HalfUp, k == CutClient || k == HalfDown)
		p.Refuse(k == ResetClient)
	}
}

// Heal ends all faults of the network.
func (l *Link) Heal() {
	for _, p := range l.proxies {
		p.Refuse(false)
		p.Hold(false, false)
	}
}

// Reset resets the client's connections to one server.
func (l *Link) Reset(server int) { l.proxies[server].Reset() }

// Close ends the proxies.
func (l *Link) Close() error {
	var errs []error
	for _, p := range l.proxies {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
