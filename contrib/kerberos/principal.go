package kerberos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/zklock/go-zklock/zklock/driver"
)

// principal is a name in a realm.
type principal struct {
	name  types.PrincipalName
	realm string
}

// String returns the principal in its usual form.
func (p principal) String() string { return p.name.PrincipalNameString() + "@" + p.realm }

// parsePrincipal parses a name with or without a realm.
func parsePrincipal(text string, cfg *configuration) (principal, error) {
	name, realm, _ := strings.Cut(text, "@")
	if realm == "" {
		realm = cfg.LibDefaults.DefaultRealm
	}
	if name == "" || realm == "" || slices.Contains(strings.Split(name, "/"), "") {
		return principal{}, fmt.Errorf("principal %q: want name@REALM, or a name if %s has a default_realm (%w)", text, cfg.file, driver.ErrAuthFailed)
	}
	return principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, name), realm}, nil
}

// service is the first part of the servers' principals.
const service = "zookeeper"

// principal returns the principal of the server on a host. known is false if it may be another one,
// since DNS has not answered.
func (m *Mechanism) principal(ctx context.Context, cfg *configuration, host string) (p principal, known bool, err error) {
	s := &m.settings
	if s.server != "" {
		p, err = parsePrincipal(s.server, cfg)
		return p, true, err
	}
	known = true
	if !s.asIs && cfg.LibDefaults.DNSCanonicalizeHostname && cfg.LibDefaults.RDNS {
		host, known = m.names.canonical(ctx, net.DefaultResolver, host)
	}
	host = strings.ToLower(host)
	realm := cmp.Or(cfg.ResolveRealm(host), cfg.LibDefaults.DefaultRealm)
	if realm == "" { // the same text for each server
		return principal{}, known, fmt.Errorf("%s has no default_realm, and no realm of the servers in domain_realm (%w)", cfg.file, driver.ErrAuthFailed)
	}
	p, err = parsePrincipal(service+"/"+host+"@"+realm, cfg)
	return p, known, err
}

// resolver looks up names and addresses. net.Resolver implements it.
type resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// names remembers the canonical names of hosts, so that a reconnect does not wait for a DNS server
// that is down.
type names struct {
	mu sync.Mutex
	of map[string]found // guarded by mu; by host
}

// found is what DNS has said about a host.
type found struct {
	name  string    // the canonical name; "": DNS has not answered
	until time.Time // then DNS is asked again
}

const (
	// nameLife is how long a name is used without another look.
	nameLife = time.Minute

	// firstLook and laterLook bound a look for a name that is not known, and for one that is. They leave
	// time for the KDC.
	firstLook = 2 * time.Second
	laterLook = time.Second
)

// canonical returns the name of a host as Java's clients find it: the name of the host's first
// address, if that name has the address too; else the host as it is given. known is false if DNS has
// not answered: another name may be the canonical one.
func (n *names) canonical(ctx context.Context, r resolver, host string) (name string, known bool) {
	n.mu.Lock()
	f := n.of[host]
	n.mu.Unlock()
	if !time.Now().Before(f.until) {
		f = f.renewed(ctx, r, host)
		n.mu.Lock()
		if n.of == nil {
			n.of = make(map[string]found)
		}
		n.of[host] = f
		n.mu.Unlock()
	}
	if f.name == "" {
		return host, false
	}
	return f.name, true
}

// renewed looks for the name of a host again. Without an answer it keeps the name that there is.
func (f found) renewed(ctx context.Context, r resolver, host string) found {
	limit := firstLook
	if f.name != "" {
		limit = laterLook
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name, answered := look(bounded, r, host)
	switch {
	case answered:
		return found{name, time.Now().Add(nameLife)}
	case ctx.Err() == nil: // the caller has not given up
		f.until = time.Now().Add(pauseAfterFailure)
	}
	return f
}

// look looks up the canonical name of a host. answered is false if DNS did not answer.
func look(ctx context.Context, r resolver, host string) (name string, answered bool) {
	addrs, err := r.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return host, false // the dial will say why
	}
	all, err := r.LookupAddr(ctx, addrs[0])
	if err != nil || len(all) == 0 {
		return host, err == nil || missing(err)
	}
	name = strings.TrimSuffix(all[0], ".")
	back, err := r.LookupHost(ctx, name)
	if err != nil || !slices.Contains(back, addrs[0]) {
		return host, err == nil || missing(err)
	}
	return name, true
}

// missing reports whether DNS has answered that there is no such name.
func missing(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound
}
