package doctor

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// keeper serves handshakes as ClickHouse Keeper does, whose sessions all have a password of 16 zeros, and answers srvr.
// It counts the requests that follow a handshake.
func keeper(t *testing.T) (host string, requests *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	requests = new(atomic.Int32)
	var sessions atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				word := make([]byte, 4)
				if _, err := io.ReadFull(c, word); err != nil {
					return
				}
				if string(word) == "srvr" {
					_, _ = io.WriteString(c, "ClickHouse Keeper version: v24.8.4.13-lts\nLatency min/avg/max: 0/0/2\nConnections: 1\nMode: leader\n")
				}
				if word[0] != 0 {
					return // another word
				}
				if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(word))); err != nil {
					return
				}
				welcome := binary.BigEndian.AppendUint32(nil, 37) // the length
				welcome = binary.BigEndian.AppendUint32(welcome, 0)
				welcome = binary.BigEndian.AppendUint32(welcome, 10_000) // the session timeout in ms
				welcome = binary.BigEndian.AppendUint64(welcome, uint64(sessions.Add(1)))
				welcome = binary.BigEndian.AppendUint32(welcome, 16)
				if _, err := c.Write(append(welcome, make([]byte, 16+1)...)); err != nil {
					return
				}
				if _, err := io.ReadFull(c, word); err == nil {
					requests.Add(1)
				}
			}()
		}
	}()
	return l.Addr().String(), requests
}

// Of ClickHouse Keeper doctor says what it is, by the handshake alone, and that zklock refuses it. Other servers that do not fit
// have the advice on TLS.
func TestKeeperIsNamed(t *testing.T) {
	one, asked := keeper(t)
	two, askedToo := keeper(t)
	u := driver.URL{Scheme: "zk", Hosts: []string{one, two}, Root: "/zklock", Params: url.Values{}}
	client, err := zklock.Open("zk://" + one + "," + two + "/?create_root=false")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := Examine(t.Context(), Patient{Client: client, Driver: zkdriver.Driver{}, URL: u, SessionTimeout: 10 * time.Second, TickTime: time.Second})
	if len(r.Findings) != 1 || !r.Misfit || r.NoQuorum {
		t.Fatalf("%+v", r)
	}
	f := r.Findings[0]
	for _, part := range []string{one + " and " + two + " give out no session", "it is ClickHouse Keeper, and not ZooKeeper", "two clients may hold one lock", "allow_keeper=true"} {
		if !strings.Contains(f.Text, part) {
			t.Errorf("the text has no %q: %s", part, f.Text)
		}
	}
	if f.Level != ToDo || f.What != "server" || !slices.Equal(r.Advice(), []string{adviceKeeper}) {
		t.Errorf("%+v", f)
	}
	if n := asked.Load() + askedToo.Load(); n != 0 {
		t.Errorf("it got %d requests", n)
	}

	r = Report{}
	r.reach(Patient{}, []server{{host: "zk1", err: driver.ErrTLS}, {host: "zk2", err: errRefused}})
	if got := r.Advice(); !slices.Equal(got, []string{adviceTLS, "start the server zk2, or correct the URL; if it has ended by itself, its log says why, such as a full disk"}) {
		t.Errorf("without Keeper: %q", got)
	}
}

// Where the advice on Keeper points to, Keeper is explained.
func TestAdviceOnKeeperIsDocumented(t *testing.T) {
	_, after, _ := strings.Cut(adviceKeeper, "docs/")
	name, _, _ := strings.Cut(after, " ")
	text, err := os.ReadFile("../../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "| `allow_keeper` | false | `zk`, `zks`: use ClickHouse Keeper") {
		t.Errorf("%s does not say what Keeper costs", name)
	}
}

// ClickHouse Keeper, which allow_keeper lets a program use, is shown by its name, and not as a version of ZooKeeper.
func TestKeeperThatIsAllowedIsShown(t *testing.T) {
	host, _ := keeper(t)
	u := driver.URL{Scheme: "zk", Hosts: []string{host}, Params: url.Values{"allow_keeper": {"true"}}}
	text, err := ask(t.Context(), u, host, "srvr")
	if err != nil {
		t.Fatal(err)
	}
	if granted, err := grant(t.Context(), zkdriver.Driver{}, u, 10*time.Second); err != nil || granted != 10*time.Second {
		t.Errorf("grant: %v, %v", granted, err)
	}
	var r Report
	r.reach(Patient{}, []server{{host: "k1:9181", srvr: fields(text, ":")}})
	want := []Finding{{Level: Warning, What: "server", Text: "k1:9181 is ClickHouse Keeper v24.8.4.13-lts: a lost connection loses all locks, and two clients may hold one lock", Advice: "use ZooKeeper"}}
	if !reflect.DeepEqual(r.Findings, want) {
		t.Errorf("%+v", r.Findings)
	}
}
