package contention_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{"service": service}))
}

// waited is what the call sites of a service have waited, by the client's own count.
type waited struct {
	mu sync.Mutex
	by map[string]time.Duration // guarded by mu
}

// siteKey is the context key of a call site's name.
type siteKey struct{}

func (w *waited) hooks() zklock.Hooks {
	return zklock.Hooks{Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
		site, _ := ctx.Value(siteKey{}).(string)
		return ctx, func(r zklock.AcquireResult) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.by[site] += r.Waited
		}
	}}
}

// service is a process with a profile. It says its address, works in the way that each line asks
// for, and says at the end what its call sites have waited.
func service(m *fleet.Member) error {
	url, host := m.Args[0], m.Args[1]
	profile := contention.New(contention.WithHolderLabels(), contention.WithCallerLabels())
	sum := &waited{by: make(map[string]time.Duration)}
	client, err := zklock.Open(url, zklock.WithHooks(profile.Hooks()), zklock.WithHooks(sum.hooks()), zklock.WithIdentity(zklock.Identity{Host: host, PID: os.Getpid()}))
	if err != nil {
		return err
	}
	defer client.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/zklock/contention", profile.Handler())
	mux.Handle("/debug/zklock/held", profile.HeldHandler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	m.Say("serves", l.Addr().String())
	s := &shop{client: client, stop: make(chan struct{})}
	for {
		switch line, err := m.Await(); {
		case err != nil:
			return err
		case line == "end":
			close(s.stop)
			s.work.Wait()
			for site, d := range sum.by {
				m.Say("waited", site, strconv.FormatInt(int64(d), 10))
			}
			m.Say("ended")
			if _, err := m.Await(); err != nil { // the test reads the profile
				return err
			}
			if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		default:
			s.begin(line)
			m.Say("begun")
		}
	}
}

// shop has the work of a service.
type shop struct {
	client *zklock.Client
	stop   chan struct{} // closed when the work has to end
	work   sync.WaitGroup
	shelf  []*zklock.Lock
}

func (s *shop) begin(what string) {
	switch what {
	case "pay":
		for i := range 4 {
			s.repeat("pay", func(ctx context.Context) error { return s.payOrder(ctx, i%2) })
		}
	case "export":
		s.repeat("export", func(ctx context.Context) error { return s.exportOrder(ctx, 0) })
	case "convoy":
		for range 20 {
			s.repeat("convoy", s.takeStock)
		}
	case "shelf":
		s.reserve()
	case "sleep":
		s.work.Go(s.report)
	case "wait":
		s.work.Go(func() { s.printReport(context.WithValue(context.Background(), siteKey{}, "wait")) })
	}
}

// repeat does something again and again.
func (s *shop) repeat(site string, do func(context.Context) error) {
	ctx := context.WithValue(context.Background(), siteKey{}, site)
	s.work.Go(func() {
		for {
			select {
			case <-s.stop:
				return
			default:
			}
			if do(ctx) != nil {
				return
			}
		}
	})
}

// spend waits for d, or for the end of the work.
func (s *shop) spend(d time.Duration) error {
	select {
	case <-s.stop:
	case <-time.After(d):
	}
	return nil
}

func (s *shop) payOrder(ctx context.Context, id int) error {
	return zklock.Do(ctx, s.client.Mutex(fmt.Sprint("orders/", id)), func(context.Context, *zklock.Lock) error {
		return s.spend(2 * time.Millisecond)
	}, zklock.WithLabel("POST /orders/{id}/pay"))
}

func (s *shop) exportOrder(ctx context.Context, id int) error {
	return zklock.Do(ctx, s.client.Mutex(fmt.Sprint("orders/", id)), func(context.Context, *zklock.Lock) error {
		return s.spend(20 * time.Millisecond)
	}, zklock.WithLabel("export"))
}

func (s *shop) takeStock(ctx context.Context) error {
	return zklock.Do(ctx, s.client.Mutex("stock/all"), func(context.Context, *zklock.Lock) error {
		return s.spend(time.Millisecond)
	})
}

// reserve keeps a lock in a slice.
func (s *shop) reserve() {
	lock, err := s.client.Mutex("carts/7").Acquire(context.Background())
	if err == nil {
		s.shelf = append(s.shelf, lock)
	}
}

// report sleeps while it holds a lock.
func (s *shop) report() {
	_ = zklock.Do(context.Background(), s.client.Mutex("reports/daily"), func(context.Context, *zklock.Lock) error {
		return s.spend(time.Hour)
	})
}

// printReport waits for the report.
func (s *shop) printReport(ctx context.Context) {
	_ = zklock.Do(ctx, s.client.Mutex("reports/daily"), func(context.Context, *zklock.Lock) error { return nil })
}

// replicaOf is a process of a service, as the test sees it.
type replicaOf struct {
	*fleet.Process
	addr string
}

func run(t *testing.T, url, host string, work ...string) replicaOf {
	t.Helper()
	p := replicaOf{Process: fleet.Start(t, "service", url, host)}
	p.addr = p.Expect("serves")
	for _, w := range work {
		p.Send(w)
		p.Expect("begun")
	}
	return p
}

func (p replicaOf) contention() string { return "http://" + p.addr + "/debug/zklock/contention" }
func (p replicaOf) held() string       { return "http://" + p.addr + "/debug/zklock/held" }

// end ends the work, and returns what its only call site has waited.
func (p replicaOf) end() time.Duration {
	p.Send("end")
	_, text, _ := strings.Cut(p.Expect("waited"), " ")
	n, _ := strconv.ParseInt(text, 10, 64)
	p.Expect("ended")
	return time.Duration(n)
}

// page returns a page of a service as text.
func page(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url + "?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pprof runs go tool pprof.
func pprof(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "pprof"}, args...)...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// seconds returns the cumulative seconds of a function in a table of pprof.
func seconds(t *testing.T, table, function string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ +\S+ +\S+ +\S+ +([0-9.]+)s +\S+ +` + regexp.QuoteMeta(function) + `$`).FindStringSubmatch(table)
	if m == nil {
		t.Fatalf("the table lacks %s:\n%s", function, table)
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
