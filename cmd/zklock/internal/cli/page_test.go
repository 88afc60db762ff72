package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestPageRefusesForeignHosts: a browser sends the name of the site that it has asked for, in the
// header Host. The page refuses all names that are not its own.
func TestPageRefusesForeignHosts(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, c := range []struct {
		host     string
		loopback bool
		names    []string
		foreign  bool
	}{
		{"127.0.0.1:7070", true, nil, false},
		{"127.0.0.1", true, nil, false},
		{"[::1]:7070", true, nil, false},
		{"localhost:8080", true, nil, false}, // the port of a tunnel
		{"LOCALHOST", true, nil, false},
		{"attacker.example:7070", true, nil, true},
		{"localhost.attacker.example", true, nil, true},
		{"127.0.0.1.attacker.example", true, nil, true},
		{"10.1.2.3:7070", true, nil, true},
		{"10.1.2.3:7070", false, nil, false},
		{"locks.example", false, nil, true},
		{"locks.example:443", false, []string{"web-3", "locks.example"}, false},
		{"Web-3", false, []string{"web-3"}, false},
		{"", true, []string{""}, true},
		{":7070", true, []string{""}, true},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = c.host
		refuseForeign(ok, c.loopback, c.names).ServeHTTP(w, r)
		if want := map[bool]int{true: http.StatusMisdirectedRequest, false: http.StatusNoContent}[c.foreign]; w.Code != want {
			t.Errorf("%q, loopback %v, names %q: %d, want %d", c.host, c.loopback, c.names, w.Code, want)
		}
	}
}
