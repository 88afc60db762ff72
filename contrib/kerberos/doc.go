// Package kerberos authenticates the connections of package zkdriver by Kerberos: SASL's
// mechanism GSSAPI (RFC 4752), with mutual authentication and without a security layer, as
// ZooKeeper's servers use it.
//
//	client, err := zklock.Open("zk://zk1,zk2,zk3/shop/locks",
//		zkdriver.WithSASL(kerberos.Keytab("svc/host@EXAMPLE.COM", "/etc/svc.keytab")))
//
// Programs whose operators choose the mechanism import the package for its side effect. It
// registers the value kerberos of the URL's key sasl:
//
//	zk://svc@zk1,zk2,zk3/shop/locks?sasl=kerberos
//
// The identity then comes from the environment, as for other programs that use Kerberos:
// KRB5_CLIENT_KTNAME names a keytab, which has the keys of the URL's user, or of its first
// principal if the URL has no user. Without it, KRB5CCNAME names a credential cache, by
// default /tmp/krb5cc_UID. KRB5_CONFIG names the configuration, by default /etc/krb5.conf.
//
// # Tickets
//
// A Mechanism keeps a ticket for each server, and renews it when four fifths of its life are
// over. A keytab gives new tickets for ever. Of a credential cache, the file is read again when
// its ticket is to be renewed, for a program such as k5start may have done it; if not, the KDC
// is asked to renew it. While no KDC answers, the tickets that there are serve until they expire. A
// ticket that a server may have refused is replaced for the next connection. A connection that is
// authenticated outlasts its ticket.
//
// A Mechanism has one identity: it takes no ticket of a principal that has replaced its own in the file.
package kerberos
