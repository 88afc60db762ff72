package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

const (
	requestsPerAccount = 12
	requestTime        = 20 * time.Millisecond
	timelineWidth      = 60
)

var accounts = []string{"anna", "ben", "carl", "dora", "emil"}

// serve lets an HTTP server handle a burst of requests, one at a time for each account, and
// prints a timeline of the requests in the handler.
func serve(ctx context.Context, out io.Writer, mutex func(name string) *zklock.Mutex) result {
	holds := make(map[string]*ledger)
	for _, account := range accounts {
		holds[account] = new(ledger)
	}

	// The middleware calls this function to learn which lock a request needs. The middleware waits
	// for the lock, and holds it while the handler runs. Put the middleware inside the mux, because
	// the mux sets the values of the path.
	oneAtATime := middleware.New(func(r *http.Request) zklock.Acquirer {
		return mutex("quickstart/accounts/" + r.PathValue("account"))
	}, middleware.WithWait(time.Minute))
	handle := func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context() // ends if the lock is lost
		err := holds[r.PathValue("account")].record(ctx, 0, time.Now(), func() error { return work(ctx, requestTime) })
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /accounts/{account}", oneAtATime(http.HandlerFunc(handle)))

	begin := time.Now()
	err := burst(ctx, mux)
	end := time.Now()

	fmt.Fprintf(out, "\n%d HTTP requests at once, %d for each of %d accounts. Each row shows over time which request is in the handler:\n",
		len(accounts)*requestsPerAccount, requestsPerAccount, len(accounts))
	fmt.Fprint(out, "a is the first request of the account to enter, b the second, and so on; - is none, ! is more than one\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  account\trequests\tmost at once\t%s from left to right\n", ms(end.Sub(begin)))
	var all []hold
	most := 0
	for _, account := range accounts {
		h := holds[account].inOrder()
		fmt.Fprintf(w, "  %s\t%d\t%d\t%s\n", account, len(h), mostAtOnce(h), timeline(h, begin, end))
		all = append(all, h...)
		most = max(most, mostAtOnce(h))
		if broken := check(h); broken != nil {
			err = errors.Join(err, fmt.Errorf("account %s: %w", account, broken))
		}
	}
	w.Flush()
	seen := fmt.Sprintf("%d HTTP requests: at most %d at once per account, %d over all accounts", len(all), most, mostAtOnce(all))
	return result{seen, err}
}

// burst serves handler on a free port and sends it all requests at the same time.
func burst(ctx context.Context, handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var serving, sending sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // returns when the server is closed
	defer serving.Wait()
	defer server.Close()

	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	errs := make([]error, len(accounts)*requestsPerAccount)
	for i := range errs {
		url := fmt.Sprintf("http://%s/accounts/%s", listener.Addr(), accounts[i%len(accounts)])
		sending.Go(func() { errs[i] = post(ctx, client, url) })
	}
	sending.Wait()
	return summarize(errs)
}

func post(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", url, resp.Status)
	}
	return nil
}

// timeline draws holds over time. The first hold is "a", the second "b", and so on. "-"
// means no hold, and "!" more than one.
func timeline(holds []hold, begin, end time.Time) string {
	var line strings.Builder
	step := end.Sub(begin) / timelineWidth
	for t := begin.Add(step / 2); t.Before(end) && line.Len() < timelineWidth; t = t.Add(step) {
		switch inside := insideAt(holds, t); len(inside) {
		case 0:
			line.WriteByte('-')
		case 1:
			line.WriteByte('a' + byte(inside[0]))
		default:
			line.WriteByte('!')
		}
	}
	return line.String()
}
