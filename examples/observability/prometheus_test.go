package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
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

// TestAlertsNameACommand: the text of each alert has the command to type next, with flags that the command has.
func TestAlertsNameACommand(t *testing.T) {
	all := strings.Split(alerts(t), "- alert: ")[1:]
	if len(all) < 10 {
		t.Fatalf("alerts.yml has %d alerts", len(all))
	}
	for _, alert := range all {
		name, text, _ := strings.Cut(alert, "\n")
		_, text, _ = strings.Cut(text, "description:")
		if !regexp.MustCompile(`zklock doctor|zklock who (--tree )?NAME|zklock ls --sort (wait|age)`).MatchString(strings.Join(strings.Fields(text), " ")) {
			t.Errorf("%s names no command: %s", name, text)
		}
	}
}

// monitor is a real Prometheus that scrapes one program, in a process of its own.
type monitor struct{ addr string }

// scraping starts a Prometheus that evaluates alerting rules and scrapes addresses. It runs
// until the test is over.
func scraping(t *testing.T, rules string, targets ...string) monitor {
	t.Helper()
	program, dir := tool(t, "prometheus"), t.TempDir()
	list, err := json.Marshal(targets)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yml]\nscrape_configs:\n"+
		"  - {job_name: shop, static_configs: [{targets: %s}]}\n", list)
	for name, text := range map[string]string{"prometheus.yml": config, "alerts.yml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := monitor{freeAddr(t)}
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.addr)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // the exit status of an interrupted Prometheus does not matter
	})
	return p
}

// sample is one series in the answer to a query, with its present value.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query returns the series that an expression has now; none while Prometheus is not up.
func (p monitor) query(expr string) []sample {
	resp, err := http.Get("http://" + p.addr + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct{ Result []sample }
	}
	if json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return nil
	}
	return answer.Data.Result
}

// value returns the value of an expression that has one series; "" if it has not.
func (p monitor) value(expr string) string {
	if found := p.query(expr); len(found) == 1 {
		return fmt.Sprint(found[0].Value[1])
	}
	return ""
}

// alerts returns the text of alerts.yml.
func alerts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A real Prometheus scrapes the example, and answers a query for the 99th percentile of
// waits.
func TestPrometheusAnswersHowLongWaitsAre(t *testing.T) {
	shop := start(t, "-url", "mem://shop", "-prometheus", ":0", "-demo", "1h")
	p := scraping(t, alerts(t), shop.metrics)
	p99 := ""
	eventually(t, "Prometheus has the 99th percentile of waits", func() bool {
		p99 = p.value(`histogram_quantile(0.99, sum by (le) (rate(zklock_wait_duration_seconds_bucket[1m])))`)
		return p99 != "" && p99 != "NaN"
	})
	var seconds float64
	if _, err := fmt.Sscan(p99, &seconds); err != nil || seconds <= 0 || seconds > 60 {
		t.Errorf("the 99th percentile of waits is %s s, want more than 0 and at most 60", p99)
	}
	t.Logf("the 99th percentile of waits is %v", time.Duration(seconds*float64(time.Second)))
	if v := p.value("zklock_session_max"); v == "" {
		t.Error("Prometheus has no zklock_session_max")
	}
	shop.stop()
}

// Of three processes, one serves customers, a request hangs in another, and the last cannot
// reach its ensemble. The alert for stuck holders fires, no other alert does, and each panel
// of the dashboard has data. The alert's limits are those of alerts.yml in seconds instead of
// minutes.
func TestPrometheusAlertsOnAStuckHolder(t *testing.T) {
	shop := start(t, "-url", "mem://shop", "-prometheus", ":0", "-demo", "1h")
	quiet := start(t, "-url", "mem://quiet", "-prometheus", ":0")
	cut := start(t, "-url", "zk://127.0.0.1:1/shop?connect_timeout=100ms", "-prometheus", ":0")
	quick := strings.NewReplacer("zklock_hold_longest_seconds) > 900", "zklock_hold_longest_seconds) > 2",
		"zklock_wait_longest_seconds) > 300\n        for: 1m", "zklock_wait_longest_seconds) > 300\n        for: 1s")
	rules := quick.Replace(alerts(t))
	if !strings.Contains(rules, "zklock_hold_longest_seconds) > 2") {
		t.Fatal("alerts.yml has another alert for stuck holders than this test knows")
	}
	p := scraping(t, rules, shop.metrics, quiet.metrics, cut.metrics)
	eventually(t, "Prometheus has scraped all processes", func() bool { return len(p.query("zklock_session_max")) == 3 })

	firing := func() (names []string) {
		for _, s := range p.query(`ALERTS{alertstate="firing"}`) {
			names = append(names, s.Metric["alertname"])
		}
		return names
	}
	if got := firing(); got != nil {
		t.Errorf("before a request hangs, these alerts fire: %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var requests sync.WaitGroup
	defer requests.Wait()
	defer cancel()
	pay := func(addr string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/orders/stuck/pay?for=1h", nil)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}
	requests.Go(func() { pay(quiet.http) })
	pay(cut.http)
	eventually(t, "the alert for stuck holders fires", func() bool { return slices.Contains(firing(), "ZklockHolderStuck") })
	if got := firing(); len(got) != 1 {
		t.Errorf("these alerts fire: %q, want only ZklockHolderStuck", got)
	}

	grafana := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*")
	for _, panel := range panels(t) {
		eventually(t, "the panel "+panel.Title+" has data", func() bool {
			for _, target := range panel.Targets {
				for _, s := range p.query(grafana.Replace(target.Expr)) {
					if s.Value[1] != "NaN" {
						return true
					}
				}
			}
			return false
		})
	}
	cancel()
	requests.Wait()
	eventually(t, "the alert is over", func() bool { return firing() == nil })
	for _, service := range []*program{shop, quiet, cut} {
		service.stop()
	}
}

// Two processes stand in one election, and nothing is wrong, for longer than any limit of the rules:
// these are those of alerts.yml in seconds instead of minutes. No alert fires, also not when the leader
// resigns, and the wait of the candidate ends. A request that holds its lock for no longer than the
// leader makes the alert for stuck holders fire.
func TestPrometheusDoesNotAlertOnAnIdleElection(t *testing.T) {
	tool(t, "prometheus")
	e := ensemble.Start(t, ensemble.Config{})
	url := e.URL("/shop", url.Values{"session_timeout": {"10s"}, "tick_time": {"500ms"}})
	first := start(t, "-url", url, "-prometheus", ":0", "-elect", "reminders")
	leads := func(p *program) func() bool {
		return func() bool {
			return regexp.MustCompile(`zklock_held\{.*zklock_candidacy="true".*\} 1\n`).MatchString(get(t, "http://"+p.metrics+"/metrics"))
		}
	}
	eventually(t, "the first process leads", leads(first))
	second := start(t, "-url", url, "-prometheus", ":0", "-elect", "reminders")
	rules := alerts(t)
	for of, is := range map[string]string{"zklock_hold_longest_seconds) > 900": "zklock_hold_longest_seconds) > 5", "zklock_wait_longest_seconds) > 300": "zklock_wait_longest_seconds) > 5", "for: 1m\n": "for: 1s\n", "for: 2m\n": "for: 1s\n"} {
		if !strings.Contains(rules, of) {
			t.Fatalf("alerts.yml lacks %q", of)
		}
		rules = strings.ReplaceAll(rules, of, is)
	}
	p := scraping(t, rules, first.metrics, second.metrics)
	// Each scrape is of another second.
	lasts := func(metric string, seconds int) func() bool {
		expr := fmt.Sprintf(`sum_over_time(%s{zklock_candidacy="true",zklock_name="reminders",instance=%q}[5m]) >= %d`, metric, second.metrics, seconds)
		return func() bool { return len(p.query(expr)) == 1 }
	}
	eventually(t, "the candidate has waited for three times as long as a holder may hold the lock", lasts("zklock_waiting", 15))
	first.stop()
	eventually(t, "the candidate leads", leads(second))
	eventually(t, "it has led for three times as long as a holder may hold", lasts("zklock_held", 15))
	const ever = `count_over_time(ALERTS{alertstate="firing"}[10m])`
	if fired := p.query(ever); len(fired) != 0 {
		t.Errorf("these alerts fired while an election was idle: %v", fired)
	}
	for _, metric := range []string{"zklock_wait_duration_seconds_count", "zklock_wait_longest_seconds > 0", "zklock_hold_longest_seconds > 0"} {
		if found := p.query(metric); len(found) != 0 {
			t.Errorf("%s is %v", metric, found)
		}
	}
	for path, want := range map[string]string{"contention": "0 waits in ", "held": "0 locks held"} {
		if page := get(t, "http://"+second.metrics+"/debug/zklock/"+path+"?debug=1"); !strings.HasPrefix(page, want) {
			t.Errorf("the profile %s is\n%s", path, page)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var request sync.WaitGroup
	request.Go(func() {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+second.http+"/orders/stuck/pay?for=1h", nil)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	})
	eventually(t, "the alert for a holder that hangs fires", func() bool { return len(p.query(`ALERTS{alertstate="firing",alertname="ZklockHolderStuck"}`)) == 1 })
	cancel()
	request.Wait()
	second.stop()
}

// An export does not watch its context. When its lock is lost, because no server answers, it goes on
// for seconds, and the alert for that fires, at its first time.
func TestPrometheusAlertsOnWorkAfterALoss(t *testing.T) {
	tool(t, "prometheus")
	e := ensemble.Start(t, ensemble.Config{})
	shop := start(t, "-url", e.URL("/shop", url.Values{"session_timeout": {"2s"}, "tick_time": {"500ms"}}), "-prometheus", ":0")
	p := scraping(t, alerts(t), shop.metrics)
	eventually(t, "Prometheus scrapes the process", func() bool { return len(p.query("zklock_session_max")) == 1 })
	var request sync.WaitGroup
	defer request.Wait()
	request.Go(func() {
		resp, err := http.Post("http://"+shop.http+"/orders/42/export?for=8s", "", nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
	})
	eventually(t, "the export holds its lock", func() bool {
		return strings.Contains(get(t, "http://"+shop.metrics+"/debug/zklock/held?debug=1"), "lock orders/*")
	})
	e.Servers()[0].Kill()
	eventually(t, "the alert for work after a loss fires", func() bool {
		return len(p.query(`ALERTS{alertstate="firing",alertname="ZklockStopsLate",zklock_name="orders"}`)) == 1
	})
	request.Wait()
	if err := e.Servers()[0].Start(); err != nil {
		t.Fatal(err)
	}
	shop.stop()
}

// panel is one panel of the dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr string }
}

// panels returns the dashboard's panels that show queries.
func panels(t *testing.T) (with []panel) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) > 0 {
			with = append(with, p)
		}
	}
	if len(with) < 10 {
		t.Fatalf("the dashboard has %d panels with queries, want 10 or more", len(with))
	}
	return with
}

// freeAddr returns an address where no process listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
