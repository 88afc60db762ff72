package kerberos_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/kerberos"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/zklock/driver"
)

// Codes of replies of a DNS server. With silent, it sends none.
const (
	found   = 0
	failed  = 2
	missing = 3
	silent  = 0xff
)

// dnsServer returns a resolver whose server calls asked for each question, and gives it a reply with that code.
// If the code is found, the reply's record of type SRV names localhost and a port.
func dnsServer(code byte, port int, asked func()) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		client, server := net.Pipe()
		// The resolver itself looks at ctx's deadline only.
		context.AfterFunc(ctx, func() { _ = client.SetDeadline(time.Unix(1, 0)) })
		go func() { // ends when the resolver closes its side
			defer server.Close()
			var prefix [2]byte // messages on a stream have their length in front
			for {
				if _, err := io.ReadFull(server, prefix[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(prefix[:]))
				if _, err := io.ReadFull(server, query); err != nil {
					return
				}
				asked()
				if code == silent {
					continue
				}
				reply := dnsReply(query, code, port)
				if _, err := server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

// dnsReply makes the reply to a query (RFC 1035, 4.1, and RFC 2782).
func dnsReply(query []byte, code byte, port int) []byte {
	const header = 12
	end := header + bytes.IndexByte(query[header:], 0) + 1 + 4 // of the question: name, type, class
	reply := append([]byte{query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, 0, 0, 0, 0, 0}, query[header:end]...)
	if code == found {
		reply[7] = 1                                                        // one record
		reply = append(reply, 0xc0, header, 0, 33, 0, 1, 0, 0, 0, 1)        // the question's name, SRV, IN, for a second
		reply = append(reply, 0, 17, 0, 0, 0, 0, byte(port>>8), byte(port)) // length, priority, weight, port
		reply = append(append(append(reply, 9), "localhost"...), 0)         // target
	}
	return reply
}

// TestKDCsInDNS: krb5.conf leaves the search for KDCs to DNS. Only if DNS says that there is none,
// another attempt is in vain. With the caller's context, the questions end.
func TestKDCsInDNS(t *testing.T) {
	k := start(t, kdc.Config{})
	file := filepath.Join(t.TempDir(), "krb5.conf")
	text := "[libdefaults]\ndefault_realm = " + kdc.Realm + "\ndns_lookup_kdc = true\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, err := net.ResolveTCPAddr("tcp", k.Addr())
	if err != nil {
		t.Fatal(err)
	}
	usual := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = usual })
	m := kerberos.Keytab("svc", k.Keytab("svc"), kerberos.WithConfigFile(file), kerberos.WithHostAsGiven())

	var questions atomic.Int32
	ctx, end := context.WithCancel(within(t, patience))
	net.DefaultResolver = dnsServer(silent, 0, func() {
		questions.Add(1)
		end()
	})
	if _, err := m.Start(ctx, "localhost"); err == nil || errors.Is(err, driver.ErrAuthFailed) || !strings.Contains(err.Error(), "DNS has not answered") {
		t.Errorf("DNS is silent: %v, want an error that says so, and no ErrAuthFailed", err)
	}
	if n := questions.Load(); n != 1 {
		t.Errorf("DNS is silent: it was asked %d times, want 1", n)
	}
	net.DefaultResolver = dnsServer(failed, 0, func() {})
	if _, err := m.Start(within(t, patience), "localhost"); err == nil || errors.Is(err, driver.ErrAuthFailed) || !strings.Contains(err.Error(), "server misbehaving") {
		t.Errorf("DNS fails: %v, want the error of DNS, and no ErrAuthFailed", err)
	}
	net.DefaultResolver = dnsServer(missing, 0, func() {})
	refuses(t, m, "nor DNS has a KDC of realm")
	net.DefaultResolver = dnsServer(found, addr.Port, func() {})
	begins(t, m)
}

// TestKDCAddresses: an address of IPv6 may have no port.
func TestKDCAddresses(t *testing.T) {
	t.Parallel()
	k := start(t, kdc.Config{})
	keytab := k.Keytab("svc")
	for _, addr := range []string{"[::1]", "::1", "[::1]:88"} {
		file := filepath.Join(t.TempDir(), "krb5.conf")
		text := "[libdefaults]\ndefault_realm = " + kdc.Realm + "\n[realms]\n" + kdc.Realm + " = {\nkdc = " + addr + "\n}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m := kerberos.Keytab("svc", keytab, kerberos.WithConfigFile(file))
		if _, err := m.Start(within(t, patience), "localhost"); err == nil || !strings.Contains(err.Error(), "dial tcp [::1]:88: ") {
			t.Errorf("%s: %v, want an error of the dial of [::1]:88", addr, err)
		}
	}
}
