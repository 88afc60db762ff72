package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/driver"
)

// answering returns the address of a server that answers srvr.
func answering(t *testing.T, answer string) (host string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				word := make([]byte, 4)
				if _, err := io.ReadFull(bufio.NewReader(c), word); err == nil && string(word) == "srvr" {
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A server that is down, one without a quorum, and one whose name is wrong are found at once, and
// each has its own error.
func TestReachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := closed.Addr().String()
	_ = closed.Close()
	for host, want := range map[string]error{
		refusing: errRefused,
		answering(t, "This ZooKeeper instance is not currently serving requests\n"): errNotServing,
		answering(t, "Zookeeper version: 3.8.0\nMode: follower\n"):                  nil,
		answering(t, "srvr is not executed because it is not in the whitelist.\n"):  nil,

		"no.such.host.invalid:2181": errUnknownHost,
	} {
		_, got := reachable(t.Context(), driver.URL{Scheme: "zk"}, host)
		if !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
		if (server{err: got}).isDown() != (want != nil) {
			t.Errorf("%s: isDown is wrong for %v", host, got)
		}
	}
}

// Advice to start a server is for one that does not run.
func TestAdviceOnServers(t *testing.T) {
	for want, err := range map[string]error{
		"start the server zk1:2181, or correct the URL; if it has ended by itself, its log says why, such as a full disk":               errRefused,
		"look at the process, the host and the network of zk1:2181, or correct the URL":                                                 errNoRoute,
		"look at the log and the disk of zk1:2181, which may be full, and at the other servers: it has to reach more than half of them": errNotServing,
		"look at the log of zk1:2181: it runs, and gives out no session":                                                                context.DeadlineExceeded,
		"do what the text says about SASL, such as making a KDC reachable, or look at the logs of the servers":                          errors.New("SASL (GSSAPI): no KDC of realm R answers"),
		"correct the user and the password":                                                         driver.ErrAuthFailed,
		"look at the leader, and at the log and the disk of zk1:2181":                               errWaits,
		"look at the process, the disk and the log of zk1:2181, and restart it, or correct the URL": errHangs,
	} {
		if got := adviceOn(Patient{URL: driver.URL{User: "shop"}}, server{host: "zk1:2181", err: fmt.Errorf("connect: %w", err)}); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// A cause that several servers have is shown once, with all of them, and one that each has for itself is not.
func TestOneCauseIsShownOnce(t *testing.T) {
	refuses := func(host string) server {
		return server{host: host, err: fmt.Errorf("zkdriver: no session could be opened: %s: the certificate has expired (%w)", address(host), driver.ErrTLS)}
	}
	var r Report
	r.reach(Patient{}, []server{refuses("zk1"), {host: "zk2", err: errRefused}, refuses("zk3:2281"), refuses("zk4"), {host: "zk5", err: errRefused}})
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Text)
	}
	want := []string{
		fmt.Sprintf("zk1, zk3:2281 and zk4 give out no session: the certificate has expired (%v)", driver.ErrTLS),
		"zk2 gives out no session: " + errRefused.Error(), "zk5 gives out no session: " + errRefused.Error(),
	}
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
}

// A client that has its identity in a certificate, or in SASL, has no user to set in the URL.
func TestAdviceFitsTheIdentity(t *testing.T) {
	key := func(key string) url.Values { return url.Values{key: {"x"}} }
	for want, u := range map[string]driver.URL{
		"set the user in the URL":                         {},
		"set another user in the URL":                     {User: "shop"},
		"use another certificate in tls_cert and tls_key": {Params: key("tls_cert")},
		"use another identity for sasl in the URL":        {User: "shop", Params: key("sasl")},
	} {
		if got := another(u); got != want {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
}

// A server that lacks a leader is not at fault while another server hangs.
func TestServersThatWaitAreNotBlamed(t *testing.T) {
	var r Report
	r.reach(Patient{}, []server{{host: "zk1", err: errHangs}, {host: "zk2", err: errWaits}, {host: "zk3", err: errNotServing}})
	if advice := r.Advice(); len(advice) != 1 || !strings.Contains(advice[0], "zk1") {
		t.Errorf("advice %q", advice)
	}
	for _, f := range r.Findings[1:] {
		if f.Level != Warning || f.Advice != "see to zk1 first: this server may only lack a leader or a quorum" {
			t.Errorf("%+v", f)
		}
	}
}

// Of three servers that open no session, the advice is about the leader, which runs and commits nothing.
func TestLeaderThatCommitsNothingIsBlamed(t *testing.T) {
	says := func(name, mode string) server {
		host := answering(t, "Zookeeper version: 3.8.0\nMode: "+mode+"\n")
		return server{host: name, err: why(t.Context(), driver.URL{Scheme: "zk"}, host, false, true, context.DeadlineExceeded)}
	}
	servers := []server{says("zk1", "follower"), says("zk2", "leader"), says("zk3", "follower")}
	var r Report
	r.reach(Patient{}, servers)
	r.noQuorum(servers, "none of the servers gives out sessions")
	if advice := r.Advice(); len(advice) != 1 || advice[0] != "look at the log and the disk of zk2, and restart it: it leads, and commits nothing" {
		t.Errorf("advice %q", advice)
	}
	for _, f := range r.Findings {
		if blamed := f.Text[:3] != "zk1" && f.Text[:3] != "zk3"; (f.Level == ToDo) != blamed {
			t.Errorf("%+v", f)
		}
	}
}

// A leader commits nothing while more than half of the servers cannot follow it: they are at fault, and it is not.
func TestLeaderWithoutFollowersIsNotBlamed(t *testing.T) {
	leads := server{host: "zk3", err: fmt.Errorf("srvr: %w", errLeads)}
	for want, servers := range map[string][]server{
		"zk1 zk2":     {{host: "zk1", err: errHangs}, {host: "zk2", err: errRefused}, leads},
		"zk1 zk2 zk4": {{host: "zk1", err: errHangs}, {host: "zk2", err: errNoRoute}, leads, {host: "zk4", err: errRefused}, {host: "zk5", err: errWaits}},
		"zk1 zk3":     {{host: "zk1", err: errHangs}, {host: "zk2", err: errWaits}, leads},
		"zk3":         {leads},
	} {
		var r Report
		r.reach(Patient{}, servers)
		r.noQuorum(servers, "none of the servers gives out sessions")
		var blamed []string
		for _, f := range r.Findings {
			if f.Level == ToDo && f.What == "server" {
				blamed = append(blamed, f.Text[:3])
			}
		}
		if got := strings.Join(blamed, " "); got != want {
			t.Errorf("blamed %q, want %q: %+v", got, want, r.Findings)
		}
	}
}
