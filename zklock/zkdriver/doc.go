// Package zkdriver connects package zklock to Apache ZooKeeper. Import it for its
// side effect:
//
//	import _ "github.com/zklock/go-zklock/zklock/zkdriver"
//
// It registers two URL schemes, zk for plain TCP and zks for TLS:
//
//	zk://[user:password@]host[:port][,host[:port]...][/root][?key=value&...]
//
// The default port is 2181. Host names are resolved again for every connection, and each
// address of a name is a server. While a lookup fails, the addresses of the last one are used. The zone of
// an IPv6 address stands behind %25. Servers are tried in random order. Each session begins with another server than the
// session before it, so a server that fails does not take all sessions of a client. If the
// URL has a user and no key sasl, each session authenticates with ZooKeeper's digest scheme.
//
// # URL keys
//
//   - sasl: each connection authenticates by SASL, before any request. With digest-md5
//     the identity is the URL's user, and its password, which is not sent. The other values are
//     those of [RegisterSASL]: package contrib/kerberos registers kerberos. Servers that do
//     not accept the identity are an error that matches driver.ErrAuthFailed.
//   - password_file: a file with the user's password, read again for every session; for
//     sasl=digest-md5, for every connection.
//     Without it, and without a password in the URL, the password is read from the
//     environment variable ZKLOCK_PASSWORD. Give the file with its directory: an
//     error does not show a name without a directory, since that may be the password
//     itself.
//   - auth_plaintext: true allows sending a password unencrypted to a host other than
//     loopback, which is an error otherwise.
//   - allow_keeper: true uses sessions of ClickHouse Keeper, which are an error that matches
//     driver.ErrProtocol otherwise: leases mean nothing there. The handshake shows them.
//   - tls_ca: a PEM file with the authorities that sign the servers' certificates; it
//     replaces the system's authorities.
//   - tls_cert, tls_key: PEM files with a client certificate and its key. Set both or
//     neither.
//   - tls_server_name: the name that servers' certificates must have; by default it
//     is the host name of the URL.
//   - tls_insecure_skip_verify: true accepts any certificate. It is for tests only,
//     and is logged as a warning, to the logger of zklock.WithLogger or else to
//     slog's default logger.
//
// The tls keys need scheme zks. Their files are read again for every connection, so
// certificates can be replaced while the process runs. The minimum version is TLS
// 1.2. If every server's handshake fails because one side refuses the other's certificate,
// connecting fails at once with driver.ErrTLS and the reason.
//
// # Servers that do not answer
//
// A connector pauses between rounds of attempts: from 20 ms to 1 s, less for short
// session timeouts, with jitter. If a session cannot be opened, the next one goes on
// with the longer pauses; the first success resets them. The first reconnect of a
// session starts after at most a fortieth of its timeout.
//
// While a session is being opened, a server may accept a connection and not answer on
// it. Then the driver probes the server on separate connections: it sends the command
// srvr in plain text, and with zk:// also begins a TLS handshake. It sends nothing
// secret. A wrong scheme and a web server are permanent errors. If the probe shows no
// permanent error, the server is probed again after 30 s, or after 1 s if it did not
// answer the probe in time.
//
// # Servers that fall silent
//
// A connection stays open when the host of its server has lost its power or its route, or when the server's process is
// stopped. If a request of a session has no answer for an eighth of the session timeout, between 0.5 s and 1.25 s, the driver asks
// the server and the others for their status, as above. It leaves the server if that says nothing, and another one
// serves: the session goes on there. See driver.Silencer.
//
// # Refused by SASL
//
// A server prolongs a session when a client attaches to it, also if it then refuses the client's
// identity. So a session whose newest attach was not authenticated is given up when it has had no
// connection for its timeout; while it is being closed, also when every server has refused. The
// driver logs that as a warning.
//
// # Implementation
//
// The protocol is implemented by github.com/go-zookeeper/zk, which the comments in
// this package call the client. It replaces an expired session by a new one, does not
// take a context, and trusts what it reads. This package corrects all that from
// outside, with a net.Conn that reads each frame before the client does. Watches are
// implemented by this package, since the client would keep a channel for every read
// that sets one.
package zkdriver
