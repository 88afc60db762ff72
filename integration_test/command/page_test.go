//go:build linux

package command_test

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// TestPageServesTheLocks: the page, the API and the stream of events, until TERM. It warns when
// other machines can reach it.
func TestPageServesTheLocks(t *testing.T) {
	t.Parallel()
	e := servers(t)
	c, name := observer(t, e), newName(t)
	if _, err := c.Mutex(name).Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, ":0": true} {
		p := start(t, urlOf(e.Hosts()), nil, "page", "--listen", listen)
		var base string
		eventually(t, "the page is served, or cannot be", func() bool {
			_, text, ok := strings.Cut(p.stderr.String(), "serving ")
			base, _, _ = strings.Cut(text, "\n")
			select {
			case <-p.done:
				return true
			default:
				return ok
			}
		})
		if listen == "[::1]:0" && strings.Contains(p.stderr.String(), "cannot assign") {
			continue // a machine without IPv6
		}
		base = strings.Replace(base, "[::]", "127.0.0.1", 1)
		if got := strings.Contains(p.stderr.String(), "no password"); got != warns {
			t.Errorf("%s: warns %v: %s", listen, got, p.stderr.String())
		}
		for path, want := range map[string]string{"": "<html", "api/locks": `"name":"` + name + `"`} {
			answer, err := http.Get(base + path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
				t.Errorf("%s%s: %d, %v\n%s", base, path, answer.StatusCode, err, text)
			}
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "attacker.example"
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("a foreign host: %d", answer.StatusCode)
		}
		events, err := http.Get(base + "api/events") // does not end by itself
		if err != nil {
			t.Fatal(err)
		}
		p.signal(t, syscall.SIGTERM)
		if code := p.code(t); code != 0 {
			t.Errorf("%d, %s", code, p.stderr.String())
		}
		events.Body.Close()
	}
	if code, _, _ := finish(t, urlOf(e.Hosts()), nil, "page", "--listen", "nonsense"); code != 64 {
		t.Errorf("a bad address: %d", code)
	}
}
