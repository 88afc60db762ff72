package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zklock/go-zklock/internal/testkit/ports"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// atOnce is the longest time for an error that is reported at once. A busy machine stops a test for
// seconds. So it is only far below the connect_timeout of these tests, which is patience.
const atOnce = patience / 4

func TestMalformedURLIsRefusedByOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, url string
		says      []string // texts in the error
	}{
		{"no scheme", "127.0.0.1:2181/locks", []string{"scheme"}},
		{"unknown scheme", "zookeeper://127.0.0.1:2181/locks", []string{`"zookeeper"`, "zk", "zks"}},
		{"unknown key", "zk://127.0.0.1:2181/locks?session_timout=10s", []string{`"session_timout"`, "session_timeout", "password_file"}},
		{"repeated key", "zk://127.0.0.1:2181/locks?session_timeout=10s&session_timeout=20s", []string{`"session_timeout"`, "2 times"}},
		{"repeated driver's key", "zk://127.0.0.1:2181/locks?auth_plaintext=true&auth_plaintext=true", []string{`"auth_plaintext"`, "2 times"}},
		{"bad value", "zk://127.0.0.1:2181/locks?session_timeout=soon", []string{`"session_timeout"`, "duration"}},
		{"driver's bad value", "zk://127.0.0.1:2181/locks?auth_plaintext=maybe", []string{`"auth_plaintext"`, "true or false"}},
		{"session too short", "zk://127.0.0.1:2181/locks?session_timeout=2s", []string{`"session_timeout"`, "tick_time"}},
		{"no host", "zk:///locks", []string{"no host"}},
		{"empty host", "zk://127.0.0.1:2181,/locks", []string{"empty host"}},
		{"port without host", "zk://:2181/locks", []string{"host"}},
		{"port 0", "zk://127.0.0.1:0/locks", []string{"127.0.0.1", "port"}},
		{"port 70000", "zk://127.0.0.1:70000/locks", []string{"127.0.0.1", "port"}},
		{"port a word", "zk://127.0.0.1:zookeeper/locks", []string{"127.0.0.1", "port"}},
		{"IPv6 without brackets", "zk://::1:2181/locks", []string{"brackets"}},
		{"root with ..", "zk://127.0.0.1:2181/locks/../x", []string{"root", `".."`}},
		{"root with an empty segment", "zk://127.0.0.1:2181/locks//x", []string{"root", "empty"}},
		{"root with NUL", "zk://127.0.0.1:2181/locks\x00", []string{"root", "U+0000"}},
		{"fragment", "zk://127.0.0.1:2181/locks#x", []string{"fragment"}},
		{"TLS key without TLS", "zk://127.0.0.1:2181/locks?tls_ca=/etc/ca.pem", []string{`"tls_ca"`, "zks://"}},
		{"password in the clear", "zk://app:secret@zk.example.com:2181/locks", []string{"zk.example.com", "zks://", "auth_plaintext"}},
		{"password without user", "zk://:secret@127.0.0.1:2181/locks", []string{"user"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			client, err := zklock.Open(c.url)
			if err == nil {
				_ = client.Close()
				t.Fatalf("Open(%q) succeeded", c.url)
			}
			if d := time.Since(began); d > atOnce {
				t.Errorf("refused after %v, want at once", d)
			}
			var wrapped *zklock.Error
			if !errors.As(err, &wrapped) || wrapped.Op != "open" {
				t.Errorf("%v: want a *zklock.Error with Op open", err)
			}
			saysAll(t, err, c.says)
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the password is in %q", err)
			}
		})
	}
}

func saysAll(t *testing.T, err error, words []string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not contain %q", err, word)
		}
	}
}

func TestBadNameIsRefusedWithoutARequest(t *testing.T) {
	t.Parallel()
	// No server listens there: a request would fail only after connect_timeout.
	c := dial(t, ports.Refusing(t), quick("connect_timeout", patience.String()))
	for _, b := range []struct{ what, name, says string }{
		{"empty", "", "empty"},
		{"..", "orders/../42", `".."`},
		{"only ..", "..", `".."`},
		{".", "./orders", `"."`},
		{"NUL", "orders\x0042", "U+0000"},
		{"newline", "orders\n42", "U+000A"},
		{"C1 control", "orders\u0085", "U+0085"},
		{"empty segment", "orders//42", "empty segment"},
		{"slash in front", "/orders", "empty segment"},
		{"slash at the end", "orders/", "empty segment"},
		{"not UTF-8", "orders\xff", "UTF-8"},
		{"too long", strings.Repeat("x", 513), "513 bytes"},
	} {
		t.Run(b.what, func(t *testing.T) {
			for verb, acquire := range map[string]func(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error){
				"Acquire":    c.Mutex(b.name).Acquire,
				"TryAcquire": c.Mutex(b.name).TryAcquire,
			} {
				began := time.Now()
				l, err := acquire(within(t))
				if l != nil || !errors.Is(err, zklock.ErrInvalidName) {
					t.Fatalf("%s: %v, %v, want ErrInvalidName", verb, l, err)
				}
				if d := time.Since(began); d > atOnce {
					t.Errorf("%s: refused after %v, want at once", verb, d)
				}
				saysAll(t, err, []string{b.says})
				if msg := err.Error(); !utf8.ValidString(msg) || strings.ContainsAny(msg, "\x00\n\u0085") {
					t.Errorf("%s: %q contains the name's bytes without escapes", verb, err.Error())
				}
			}
			if p := c.Mutex(b.name).Path(); p != "" {
				t.Errorf("the mutex has the path %q, want none", p)
			}
		})
	}
	if n := c.Stats().SessionsOpened; n != 0 {
		t.Errorf("%d sessions were opened, want none", n)
	}
}

// TestPortOfAnotherProtocolIsRefusedAtOnce: a server that answers with another protocol will
// not become a ZooKeeper server later, so calls fail at once.
func TestPortOfAnotherProtocolIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, answer string
		says         []string
	}{
		// Many web servers send this as soon as they read a byte that is not HTTP.
		{"HTTP", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", []string{"HTTP"}},
		{"TLS", "\x15\x03\x01\x00\x02\x02\x46", []string{"TLS", "zks://"}}, // an alert
		{"SMTP", "220 mail.example.com ESMTP\r\n", []string{"220 mail"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := answering(t, c.answer)
			client := dial(t, addr, quick("connect_timeout", patience.String()))
			for verb, call := range calls(client) {
				began := time.Now()
				err := call(within(t))
				if !errors.Is(err, zklock.ErrUnavailable) || !errors.Is(err, driver.ErrProtocol) {
					t.Fatalf("%s: %v, want ErrUnavailable because of ErrProtocol", verb, err)
				}
				if d := time.Since(began); d > atOnce {
					t.Errorf("%s: refused after %v, want at once", verb, d)
				}
				saysAll(t, err, append(c.says, addr, "not a ZooKeeper server"))
			}
		})
	}
}

// answering runs a server that answers the first bytes that it reads with that text. It
// returns the server's address.
func answering(t testing.TB, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4<<10)) // the whole handshake, so that the close does not become a reset
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// TestPasswordIsInNoOutput searches all output of a process that meets every kind of error
// with a password in its URL.
func TestPasswordIsInNoOutput(t *testing.T) {
	t.Parallel()
	zk := sharedEnsemble(t)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	const user = "app:" + canary + "@"
	root := rootOf(t)
	with := func(hosts string, kv ...string) string {
		return "zk://" + user + hosts + root + "?" + quick(append([]string{"connect_timeout", "500ms"}, kv...)...).Encode()
	}
	server := zk.Hosts()
	file := t.TempDir() + "/password"
	if err := os.WriteFile(file, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWorker(t, task{Role: "refuse", URLs: []string{
		with(server, "connect_timeout", patience.String()),                // works
		with(server, "connect_timeout", patience.String(), "acl", "open"), // works
		with(server, "create_root", "perhaps"),                            // fails, like the others without a comment
		with(server, "session_timeout", canary),                           // a password in the wrong place
		with(server, "session_timeout", "1ms"),
		with(unusedAddrs(t)),
		with(web.Listener.Addr().String()),
		with("zk.example.com:2181"),
		with("127.0.0.1:0"),
		with("127.0.0.1:" + canary),
		with("[::1"),
		with(""),
		with(server) + "#" + canary,
		with(server) + "&@",
		"zk://app:" + canary + "%zz@" + server + root,
		"zk://app:" + canary + "/x@" + server + root,
		"zk://app:" + canary + "?@" + server + root,
		"zk://app:" + canary + server + root, // without the @
		"zk://:" + canary + "@" + server + root,
		"//" + user + server + root,
		"z k://" + user + server + root,
		"zoo://" + user + server + root,
		"zk://" + user + server + "/../x",
		"zks://" + user + server + root + "?" + quick("connect_timeout", "2s").Encode(), // the server does not speak TLS
		"zk://app@" + server + root + "?" + quick("password_file", file).Encode(),       // works
		"zk://app@" + server + root + "?password_file=" + url.QueryEscape(file+"x"),
	}})
	opened, refused := 0, 0
	for r, ok := w.next(); ok; r, ok = w.next() {
		switch r.What {
		case "held":
			opened++
		case "refused":
			refused++
		}
		if strings.Contains(fmt.Sprintf("%+v", r), canary) {
			t.Errorf("the password is in %+v", r)
		}
	}
	for line := range strings.Lines(w.stderr.String()) {
		if strings.Contains(line, canary) {
			t.Errorf("the password is in the log: %s", line)
		}
	}
	if !strings.Contains(w.stderr.String(), "looking for canaries") {
		t.Errorf("the worker logged nothing, so the test searched nothing")
	}
	if opened != 3 || refused != len(w.task.URLs)-3 {
		t.Errorf("%d URLs worked, %d were refused, want 3 and %d", opened, refused, len(w.task.URLs)-3)
	}
}

// unusedAddrs returns a list of addresses where connections are refused.
func unusedAddrs(t testing.TB) string { return ports.Refusing(t) + "," + ports.Refusing(t) }

// refuse opens all URLs, uses the clients that open, and prints every error in several
// formats.
func (w *worker) refuse() error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	logger.Info("looking for canaries")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, u := range w.task.URLs {
		if err := w.visit(ctx, u, logger); err != nil {
			w.print(report{What: "refused", Err: fmt.Sprintf("%v | %+v | %#v | %q", err, err, err, err)})
			for e := err; e != nil; e = errors.Unwrap(e) {
				fmt.Fprintf(os.Stderr, "%v | %+v | %#v\n", e, e, e)
			}
			logger.Error("refused", "error", err)
			continue
		}
		w.print(report{What: "held"})
	}
	return nil
}

func (w *worker) visit(ctx context.Context, u string, logger *slog.Logger) error {
	c, err := zklock.Open(u, zklock.WithLogger(logger))
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%v | %+v | %#v\n", c.Mutex("x"), c.Mutex("x"), c.Mutex("x"))
	l, err := c.Mutex("canaries").Acquire(ctx)
	if err == nil {
		fmt.Fprintf(os.Stderr, "%v | %+v\n", l.Token(), c.Stats())
		err = l.Release(ctx)
	}
	return errors.Join(err, c.Close())
}
