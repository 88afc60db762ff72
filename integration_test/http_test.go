package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// The environment variables of a server process of TestHTTPServersOnOneEnsemble.
const (
	httpEnvURL      = "ZKLOCK_TEST_HTTP_URL"
	httpEnvRegister = "ZKLOCK_TEST_HTTP_REGISTER"
)

// TestHTTPServersOnOneEnsemble runs two server processes, sends them 2,000 requests for 20
// keys, and kills one of them after half of the requests. For each request, a server reads a
// number from a register that does not know of locks, and writes back the next number. A
// wrong number at the end shows that two requests for a key ran at the same time.
func TestHTTPServersOnOneEnsemble(t *testing.T) {
	t.Parallel()
	const (
		requests = 2000
		keys     = 20
		clients  = 60
		timeout  = 10 * time.Second // of sessions: a server that is stopped for seconds keeps its locks
	)
	zk := sharedEnsemble(t)
	reg := newRegister(t)
	url := withCanary(zk.URL(rootOf(t), quick("session_timeout", timeout.String())))
	servers := [2]*httpServer{startHTTPServer(t, url, reg.url), startHTTPServer(t, url, reg.url)}

	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	// send sends a request to the two servers in turn until one serves it. The requests for a
	// key go to both of them. A request whose answer was lost may have been served: it is sent
	// again with the same id.
	send := func(id int) error {
		var err error
		for try, deadline := id/keys, time.Now().Add(patience); time.Now().Before(deadline); try++ {
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
		t.Errorf("the surviving server served %d requests, want at least %d", n, requests/2)
	}
	if n := reg.servedBy(servers[0].pid()); n == 0 {
		t.Error("the killed server had served no request")
	}
	servers[1].stop(t)
	t.Logf("%d requests in %v, %v of it after the kill; up to %d keys in use at the same time", requests, took, after, reg.most)

	conn := dialRaw(t, zk.Hosts(), 10*time.Second)
	c := dial(t, zk.Hosts(), quick())
	for key := range keys {
		m := c.Mutex(fmt.Sprintf("counters/%d", key))
		eventually(t, "the queue of "+m.Name()+" is empty", func() bool { return len(contenders(t, conn, m)) == 0 })
	}
}

// TestHTTPServerProcess is the code of a server process of TestHTTPServersOnOneEnsemble.
func TestHTTPServerProcess(t *testing.T) {
	url, register := os.Getenv(httpEnvURL), os.Getenv(httpEnvRegister)
	if url == "" {
		t.Skip("TestHTTPServersOnOneEnsemble runs it in separate processes")
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
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes it or has ended
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
	ended func() error // waits for the process's end
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
	t.Fatalf("the server ended before it served: %v", s.ended())
	return nil
}

func (s *httpServer) pid() int { return s.cmd.Process.Pid }

// kill kills the process, and returns when it is gone.
func (s *httpServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.ended()
}

// stop asks the process to end and waits for its end.
func (s *httpServer) stop(t *testing.T) {
	t.Helper()
	_ = s.stdin.Close()
	if err := s.ended(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
