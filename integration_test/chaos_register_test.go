package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// registers are counters, one for each lock name. They refuse the token of a holder if a
// later holder's token has been seen. A holder raises a counter with two requests: one reads
// it and one writes it. The write has the value that the holder has read, so that an update
// that overwrites another one is noticed. Reads carry tokens, too, because a later write
// builds on them.
type registers struct {
	guard fence.Guard

	mu     sync.Mutex
	values map[string]int
	stale  int      // the number of refused requests
	lost   []string // updates that overwrote others
}

// registered is the answer to a request.
type registered struct {
	Values []int  // the counters before the write, in the order of the sequencers
	Stale  string // why the request was refused; "" if it was not
}

// serveRegisters runs the registers on 127.0.0.1 until the test is over.
func serveRegisters(t testing.TB) (r *registers, url string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = &registers{values: make(map[string]int)}
	server := &http.Server{Handler: r}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(ln) // it ends with the listener
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return r, "http://" + ln.Addr().String()
}

// ServeHTTP returns the counters of the locks whose sequencers are in the request. If the
// request also has the values that its holder has read, ServeHTTP raises the counters.
func (r *registers) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	seqs, err := fence.ParseValues(req.Header.Values(fence.Key), "")
	read := req.URL.Query()["read"]
	if err != nil || len(seqs) == 0 || len(read) > 0 && len(read) != len(seqs) {
		http.Error(w, fmt.Sprint("bad request: ", err), http.StatusBadRequest)
		return
	}
	var answer registered
	err = r.guard.Do(seqs, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i, s := range seqs {
			now := r.values[s.Name]
			answer.Values = append(answer.Values, now)
			if len(read) == 0 {
				continue
			}
			if read[i] != strconv.Itoa(now) {
				r.lost = append(r.lost, fmt.Sprintf("%s: token %v read %s and overwrote %d", s.Name, s.Token, read[i], now))
			}
			r.values[s.Name] = now + 1
		}
		return nil
	})
	if err != nil {
		answer.Stale = err.Error()
		r.mu.Lock()
		r.stale++
		r.mu.Unlock()
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the worker is gone
}

// registerClient is a worker's client of the registers.
type registerClient struct {
	url  string
	http *http.Client
}

func newRegisterClient(url string) *registerClient {
	return &registerClient{url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: patience}}
}

// errStale means that the registers refused a holder's token.
var errStale = errors.New("refused by the registers")

// read returns the counters of a lock's names.
func (c *registerClient) read(l *zklock.Lock) ([]int, error) { return c.send(l, nil) }

// write raises the counters of a lock's names; read has the values that were read before.
func (c *registerClient) write(l *zklock.Lock, read []int) error {
	_, err := c.send(l, read)
	return err
}

func (c *registerClient) send(l *zklock.Lock, read []int) ([]int, error) {
	query := make(url.Values)
	for _, v := range read {
		query.Add("read", strconv.Itoa(v))
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, c.url+"/?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	for _, s := range fence.Of(l) {
		req.Header.Add(fence.Key, s.String())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer registered
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("registers: %s: %v", resp.Status, err)
	}
	if answer.Stale != "" {
		return nil, fmt.Errorf("%w: %s", errStale, answer.Stale)
	}
	return answer.Values, nil
}
