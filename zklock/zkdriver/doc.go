// Package zkdriver lets package zklock work with Apache ZooKeeper. Import it
// for its side effect:
//
//	import _ "github.com/zklock/go-zklock/zklock/zkdriver"
//
// It registers two URL schemes, zk for plain TCP and zks for TLS:
//
//	zk://[user:password@]host[:port][,host[:port]...][/root][?key=value&...]
//
// The port defaults to 2181. Host names are resolved again for every
// connection, and servers are tried in random order. A user authenticates each
// session with ZooKeeper's digest scheme.
//
// # URL keys
//
//   - password_file: a file with the user's password, read again for every
//     session. Without it, and without a password in the URL, the environment
//     variable ZKLOCK_PASSWORD is asked. Give it with its directory: an error
//     does not show a name without one, which may be the password itself.
//   - auth_plaintext: true allows sending a password unencrypted to a host
//     other than loopback, which is an error otherwise.
//   - tls_ca: a PEM file with the authorities that servers' certificates are
//     checked against, instead of the system's.
//   - tls_cert, tls_key: PEM files with a client certificate and its key, one
//     not without the other.
//   - tls_server_name: the name to expect in certificates, instead of the host
//     name that was dialled.
//   - tls_insecure_skip_verify: true accepts any certificate. For tests; it is
//     logged as a warning, to the logger of zklock.WithLogger, or to slog's
//     default without that.
//
// The tls keys go with zks only. Their files are read again for every
// connection, so that certificates can be replaced while the process runs. TLS
// is 1.2 or newer. If a certificate is not accepted, on either side, by all
// servers, connecting fails at once with driver.ErrTLS and the reason.
//
// # Servers that do not answer
//
// A connector pauses between rounds of attempts: from 20 ms up to a second, less for
// short session timeouts, with jitter. The pauses of sessions that are being opened
// go on from one to the next until one of them succeeds. The first reconnect of a
// session comes after a fortieth of its timeout at most.
//
// While a session is being opened, a server that takes a connection and does not
// answer on it is asked what it is, on connections of their own: by the command srvr
// in plain text, and with zk:// by the beginning of a TLS handshake. Nothing secret is
// sent. A wrong scheme and a web server are permanent errors. What is not permanent
// is asked again after 30 s.
//
// # What it stands on
//
// The protocol is spoken by github.com/go-zookeeper/zk. That client follows an
// expired session with a new one, takes no context, and trusts what it reads;
// all of that is put right from outside, by a net.Conn that reads the frames
// that pass through it. The client sees no reply before this package has. Watches are
// this package's own: the client would keep a channel for every read that sets one.
package zkdriver
