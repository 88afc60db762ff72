package kerberos

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
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
func parsePrincipal(text string, cfg *config.Config) (principal, error) {
	name, realm, _ := strings.Cut(text, "@")
	if realm == "" {
		realm = cfg.LibDefaults.DefaultRealm
	}
	if name == "" || realm == "" || slices.Contains(strings.Split(name, "/"), "") {
		return principal{}, fmt.Errorf("principal %q: want name@REALM, or a name if krb5.conf has a default_realm (%w)", text, driver.ErrAuthFailed)
	}
	return principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, name), realm}, nil
}

// service is the first part of the servers' principals.
const service = "zookeeper"

// principal returns the principal of the server on a host.
func (s *settings) principal(ctx context.Context, cfg *config.Config, host string) (principal, error) {
	if s.server != "" {
		return parsePrincipal(s.server, cfg)
	}
	if !s.asIs && cfg.LibDefaults.DNSCanonicalizeHostname && cfg.LibDefaults.RDNS {
		host = canonical(ctx, net.DefaultResolver, host)
	}
	host = strings.ToLower(host)
	name := service + "/" + host
	if realm := cfg.ResolveRealm(host); realm != "" {
		name += "@" + realm
	}
	return parsePrincipal(name, cfg)
}

// resolver looks up names and addresses. net.Resolver implements it.
type resolver interface {
	LookupHost(ctx context.Context, host string) ([]string, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// canonical returns the name of a host as Java's clients find it: the name of the host's first
// address, if that name has the address too; else the host as it is given.
func canonical(ctx context.Context, r resolver, host string) string {
	addrs, err := r.LookupHost(ctx, host)
	if err != nil || len(addrs) == 0 {
		return host // the dial will say why
	}
	names, err := r.LookupAddr(ctx, addrs[0])
	if err != nil || len(names) == 0 {
		return host
	}
	name := strings.TrimSuffix(names[0], ".")
	if back, err := r.LookupHost(ctx, name); err != nil || !slices.Contains(back, addrs[0]) {
		return host
	}
	return name
}
