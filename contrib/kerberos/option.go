package kerberos

// Option is a setting of a [Mechanism].
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// settings are how a mechanism finds the KDC and names the servers.
type settings struct {
	file   string // of the configuration; "": that of the environment
	server string // the servers' principal; "": it is made from their hosts
	asIs   bool   // the host in the servers' principals is the one in the URL
}

// WithConfigFile sets the file that is read in place of KRB5_CONFIG or /etc/krb5.conf.
func WithConfigFile(file string) Option {
	return option(func(s *settings) { s.file = file })
}

// WithServerPrincipal sets the full name of the servers' principal, such as
// zookeeper/cluster@EXAMPLE.COM, for ensembles whose servers share one. By default each server
// has the principal zookeeper/HOST, in the realm that krb5.conf has for the host.
func WithServerPrincipal(name string) Option {
	return option(func(s *settings) { s.server = name })
}

// WithHostAsGiven makes the servers' principals from the hosts as the URL has them. By default
// HOST is the canonical name, as Java's clients form it: the name that the host's address has
// in DNS, if that name has the address too. In krb5.conf, dns_canonicalize_hostname=false or
// fallback, or rdns=false, has the same effect.
func WithHostAsGiven() Option {
	return option(func(s *settings) { s.asIs = true })
}
