package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// The environment of a process that serves HTTP for the test below.
const (
	httpEnvURL      = "ZKLOCK_TEST_HTTP_URL"
	httpEnvRegister = "ZKLOCK_TEST_HTTP_REGISTER"
)

// TestHTTPServersOnOneEnsemble runs two server processes, sends them 2,000
// requests for 20 keys, and kills one of them half-way. Each request has a
// server read a number at a register that knows nothing of locks, and write it
// back one higher: what comes out tells whether they were ever together.
func TestHTTPServersOnOneEnsemble(t *testing.T) {
	const (
		requests = 2000
		keys     = 20
		clients  = 60
		timeout  = 4 * time.Second // of sessions
	)
	zk := sharedEnsemble(t)
	reg := newRegister(t)
	url := withCanary(zk.URL(rootOf(t), quick("session_timeout", timeout.String())))
	servers := [2]*httpServer{startHTTPServer(t, url, reg.url), startHTTPServer(t, url, reg.url)}

	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	// send has a request served by one of the servers, whichever can. A request
	// whose answer is lost may have been served: it keeps its id.
	send := func(id int) error {
		var err error
		for try, deadline := id, time.Now().Add(patience); time.Now().Before(deadline); try++ {
			var resp *http.Response
			resp, err = client.Post(fmt.Sprintf("http://%s/counters/%d?id=%d", servers[try%2].addr, id%keys, id), "text/plain", strings.NewReader("order"))
			if err != nil {
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return err
	}

	ids := make(chan int)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for id := range ids {
				if err := send(id); err != nil {
					t.Errorf("request %d: %v", id, err)
				}
			}
		})
	}
	start := time.Now()
	killed := make(chan time.Time, 1)
	wg.Go(func() {
		<-reg.halfway(requests / 2)
		servers[0].kill()
		reg.bury(servers[0].pid())
		killed <- time.Now()
	})
	for id := range requests {
		ids <- id
	}
	close(ids)
	wg.Wait()
	took, after := time.Since(start), time.Since(<-killed)

	reg.check(t, requests, keys)
	if n := reg.servedBy(servers[1].pid()); n < requests/2 {
		t.Errorf("the server that was left served %d requests", n)
	}
	if n := reg.servedBy(servers[0].pid()); n == 0 {
		t.Error("the server that was killed had served nothing")
	}
	servers[1].stop(t)
	t.Logf("%d requests in %v, %v of it after the kill; up to %d keys at once", requests, took, after, reg.most)

	conn := dialRaw(t, zk.Hosts(), 10*time.Second)
	c := dial(t, zk.Hosts(), quick())
	for key := range keys {
		m := c.Mutex(fmt.Sprintf("counters/%d", key))
		eventually(t, "nobody is left in the queue of "+m.Name(), func() bool { return len(contenders(t, conn, m)) == 0 })
	}
}

// TestHTTPServerProcess is the inside of a server process.
func TestHTTPServerProcess(t *testing.T) {
	url, register := os.Getenv(httpEnvURL), os.Getenv(httpEnvRegister)
	if url == "" {
		t.Skip("it is run by TestHTTPServersOnOneEnsemble in processes of its own")
	}
	client, err := zklock.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	calls := &http.Client{Transport: &middleware.Transport{Base: &http.Transport{MaxIdleConnsPerHost: 100}}}
	call := func(ctx context.Context, method, query string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, method, register+query+"&pid="+strconv.Itoa(os.Getpid()), nil)
		if err != nil {
			return "", err
		}
		resp, err := calls.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return string(body), err
	}
	lock := middleware.New(middleware.ByPathValue(client, "key", "counters/%s"), middleware.WithWait(patience))
	mux := http.NewServeMux()
	mux.Handle("POST /counters/{key}", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := "?key=" + r.PathValue("key") + "&id=" + r.URL.Query().Get("id")
		text, err := call(r.Context(), http.MethodGet, query)
		if err == nil {
			n, _ := strconv.Atoi(text)
			_, err = call(r.Context(), http.MethodPut, query+"&value="+strconv.Itoa(n+1))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: mux}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	fmt.Printf("serving on %s\n", l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it, or is no more
	if err := errors.Join(srv.Shutdown(within(t)), client.Shutdown(within(t))); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// httpServer is a process that runs TestHTTPServerProcess.
type httpServer struct {
	cmd   *exec.Cmd
	stdin io.Closer
	addr  string
	ended func() error // waits for the end
}

func startHTTPServer(t *testing.T, url, register string) *httpServer {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHTTPServerProcess$")
	cmd.Env = append(os.Environ(), httpEnvURL+"="+url, httpEnvRegister+"="+register)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &httpServer{cmd: cmd, stdin: stdin}
	var rest strings.Builder
	s.ended = sync.OnceValue(func() error {
		_, _ = io.Copy(&rest, stdout)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w\n%s", err, &rest)
		}
		return nil
	})
	t.Cleanup(s.kill)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "serving on "); ok {
			s.addr = addr
			return s
		}
		fmt.Fprintln(&rest, lines.Text())
	}
	t.Fatalf("the server does not serve: %v", s.ended())
	return nil
}

func (s *httpServer) pid() int { return s.cmd.Process.Pid }

// kill ends the process without a word, and returns when it is gone.
func (s *httpServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.ended()
}

// stop has the process end in order.
func (s *httpServer) stop(t *testing.T) {
	t.Helper()
	_ = s.stdin.Close()
	if err := s.ended(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// register keeps numbers, and keeps books about who is at work on which. Its
// only protection are the fencing tokens of its callers.
type register struct {
	url string

	mu      sync.Mutex
	values  map[string]int // guarded by mu
	holders map[string]int // guarded by mu; key -> process between its GET and its PUT
	applied map[string]int // guarded by mu; id -> process
	dead    map[int]bool   // guarded by mu; processes
	faults  []string       // guarded by mu
	most    int            // guarded by mu; keys at work on at once
	half    int            // guarded by mu
	reached chan struct{}  // closed when half ids are applied
}

func newRegister(t *testing.T) *register {
	g := &register{values: make(map[string]int), holders: make(map[string]int), applied: make(map[string]int), dead: make(map[int]bool), reached: make(chan struct{})}
	check := middleware.New(func(*http.Request) zklock.Acquirer { return nil },
		middleware.WithSequencerCheck(new(fence.Guard), func(*http.Request) (string, bool) { return "", true }),
		middleware.WithObserver(func(r *http.Request, err error) { g.fault("%s %s: %v", r.Method, r.URL, err) }))
	srv := httptest.NewServer(check(http.HandlerFunc(g.serve)))
	t.Cleanup(srv.Close)
	g.url = srv.URL
	return g
}

func (g *register) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	key, id := q.Get("key"), q.Get("id")
	pid, _ := strconv.Atoi(q.Get("pid"))
	if len(r.Header.Values(fence.Key)) != 1 {
		g.fault("%s %s: no token came along", r.Method, r.URL)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method == http.MethodGet {
		if by, busy := g.holders[key]; busy {
			g.faults = append(g.faults, fmt.Sprintf("process %d is at work on key %s, and process %d begins", by, key, pid))
		}
		if !g.dead[pid] { // or it was on its way when its process was killed
			g.holders[key] = pid
			g.most = max(g.most, len(g.holders))
		}
		fmt.Fprint(w, g.values[key])
		return
	}
	delete(g.holders, key)
	if _, again := g.applied[id]; again {
		return // its answer was lost the first time
	}
	if value := q.Get("value"); value != strconv.Itoa(g.values[key]+1) {
		g.faults = append(g.faults, fmt.Sprintf("key %s: %s written over %d", key, value, g.values[key]))
	}
	g.values[key]++
	g.applied[id] = pid
	if g.half > 0 && len(g.applied) == g.half {
		close(g.reached)
	}
}

func (g *register) fault(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

// halfway returns a channel that is closed when n requests were served.
func (g *register) halfway(n int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.half = n
	return g.reached
}

// bury takes note that a process is no more, and so not at work on anything.
func (g *register) bury(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead[pid] = true
	for key, by := range g.holders {
		if by == pid {
			delete(g.holders, key)
		}
	}
}

func (g *register) servedBy(pid int) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, by := range g.applied {
		if by == pid {
			n++
		}
	}
	return n
}

func (g *register) check(t *testing.T, requests, keys int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.faults {
		t.Error(f)
	}
	if len(g.applied) != requests {
		t.Errorf("%d requests were served, want %d", len(g.applied), requests)
	}
	for key := range keys {
		if n := g.values[strconv.Itoa(key)]; n != requests/keys {
			t.Errorf("key %d was counted to %d, want %d", key, n, requests/keys)
		}
	}
	if g.most < keys/4 {
		t.Errorf("at most %d keys were at work on at once: they were in each other's way", g.most)
	}
}
