package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tool returns the path of a program of Debian's package prometheus. The program is in the
// folder ZKLOCK_TEST_PROMETHEUS, or on the PATH if that variable is not set.
func tool(t *testing.T, name string) string {
	t.Helper()
	home := os.Getenv("ZKLOCK_TEST_PROMETHEUS")
	if home != "" {
		name = filepath.Join(home, name)
	}
	path, err := exec.LookPath(name)
	if err != nil && home != "" {
		t.Fatal(err) // the variable promises that the program exists
	}
	if err != nil {
		t.Skipf("%v: install Debian's package prometheus, or set ZKLOCK_TEST_PROMETHEUS to a folder with promtool and prometheus", err)
	}
	return path
}

func TestPromtoolFindsNothingWrong(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "metrics"}, {"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		cmd := exec.Command(promtool, args...)
		if args[1] == "metrics" {
			cmd.Stdin = strings.NewReader(scrape(t))
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// A real Prometheus scrapes the example, and answers a query for the 99th percentile of
// waits.
func TestPrometheusAnswersHowLongWaitsAre(t *testing.T) {
	prometheus := tool(t, "prometheus")
	shop := start(t, "-url", "mem://shop", "-prometheus", ":0", "-demo", "1h")
	dir := t.TempDir()
	rules, err := filepath.Abs("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%q]\nscrape_configs:\n"+
		"  - {job_name: shop, static_configs: [{targets: [%q]}]}\n", rules, shop.metrics)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	cmd := exec.Command(prometheus, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // the exit status of an interrupted Prometheus does not matter
	})
	query := func(expr string) string {
		resp, err := http.Get("http://" + addr + "/api/v1/query?query=" + url.QueryEscape(expr))
		if err != nil {
			return "" // Prometheus is not up yet
		}
		defer resp.Body.Close()
		var answer struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		if json.NewDecoder(resp.Body).Decode(&answer) != nil || len(answer.Data.Result) != 1 {
			return ""
		}
		return fmt.Sprint(answer.Data.Result[0].Value[1])
	}
	p99 := ""
	eventually(t, "Prometheus has the 99th percentile of waits", func() bool {
		p99 = query(`histogram_quantile(0.99, sum by (le) (rate(zklock_wait_duration_seconds_bucket[10s])))`)
		return p99 != "" && p99 != "NaN"
	})
	var seconds float64
	if _, err := fmt.Sscan(p99, &seconds); err != nil || seconds <= 0 || seconds > 60 {
		t.Errorf("the 99th percentile of waits is %s s, want more than 0 and at most 60", p99)
	}
	t.Logf("the 99th percentile of waits is %v", time.Duration(seconds*float64(time.Second)))
	if v := query("zklock_session_max"); v == "" {
		t.Error("Prometheus has no zklock_session_max")
	}
	shop.stop()
}

// freeAddr returns an address at which no process listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
