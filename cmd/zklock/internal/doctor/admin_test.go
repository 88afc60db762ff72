package doctor

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A server whose whitelist lacks conf says its syncLimit over HTTP, so the silence of a leader can be judged. What another
// program or another server says there does not count.
func TestAdminServerSaysTheConfiguration(t *testing.T) {
	const answer = `{"client_port":%d,"data_dir":"/data","tick_time":2000,"max_client_cnxns":60,"initial_limit":10,"sync_limit":5,"command":"configuration","error":null}`
	for what, c := range map[string]struct {
		answer string
		counts bool
	}{
		"the server":      {fmt.Sprintf(answer, 2181), true},
		"another server":  {fmt.Sprintf(answer, 2182), false},
		"another program": {"<html></html>", false},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/commands/configuration" {
				_, _ = w.Write([]byte(c.answer))
			}
		}))
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		conf := adminConf(t.Context(), "127.0.0.1:2181", port)
		s.Close()
		asked := server{conf: conf, granted: 30 * time.Second}
		ticks, known := asked.number("syncLimit")
		if tick, certain := asked.tick(); known != c.counts || certain != c.counts || c.counts && (ticks != 5 || tick != 2*time.Second) {
			t.Errorf("%s: %v, want it to count: %t", what, conf, c.counts)
		}
		if most, ok := asked.number("maxClientCnxns"); ok != c.counts || c.counts && most != 60 {
			t.Errorf("%s: maxClientCnxns %d, %t", what, most, ok)
		}
	}
}
