package contention_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/internal/testkit/wait"
)

const own = "github.com/zklock/go-zklock/contrib/contention_test."

// Two services share orders, on a real ZooKeeper. The merged profiles of three replicas of the one
// have its call site, the class of the lock and the handlers that held it. What the call sites have
// waited is within 5% of what the clients have counted.
func TestServicesUnderLoad(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	url := ensemble.Start(t, ensemble.Config{}).URL("/shop", fleet.ShortSession())
	office := run(t, url, "backoffice-1", "export")
	var web []replicaOf
	var urls []string
	for i := range 3 {
		r := run(t, url, fmt.Sprintf("web-%d", i+1), "pay")
		web, urls = append(web, r), append(urls, r.contention())
	}
	wait.Until(t, "each replica has waited 30 times, and one of them behind the export", func() bool {
		least, behind := 30, false
		for _, r := range web {
			text, n := page(t, r.contention()), 0
			_, _ = fmt.Sscan(text, &n)
			least, behind = min(least, n), behind || strings.Contains(text, " backoffice export")
		}
		return least == 30 && behind
	})
	documented(t, web[0].addr, web[1].addr)
	paid := time.Duration(0)
	for _, r := range web {
		paid += r.end()
	}
	exported := office.end()

	all := []string{"-top", "-cum", "-unit=s", "-nodefraction=0"}
	top := pprof(t, append(all, urls...)...)
	t.Logf("three replicas of web:\n%s", top)
	near(t, "paying", seconds(t, top, own+"(*shop).payOrder"), paid)
	near(t, "all of orders/*", seconds(t, top, "lock orders/*"), paid)
	shows(t, top, `[1-9]\S*s +\S+ +(held by|behind) backoffice export\n`, `[1-9]\S*s +\S+ +held by web POST /orders/\{id\}/pay\n`)
	peek := pprof(t, append([]string{"-peek=^lock orders", "-unit=s"}, urls...)...)
	if !regexp.MustCompile(`(?s)payOrder\n.*\| +lock orders/\*\n.* web POST /orders/\{id\}/pay`).MatchString(peek) {
		t.Errorf("between the call site and the holder, peek does not show the class of the lock:\n%s", peek)
	}
	both := pprof(t, append(append(all, urls...), office.contention())...)
	near(t, "exporting", seconds(t, both, own+"(*shop).exportOrder"), exported)
	near(t, "both services", seconds(t, both, "lock orders/*"), paid+exported)
}

// documented runs the commands of docs/finding-slow-locks.md.
func documented(t *testing.T, first, second string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/finding-slow-locks.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("the page has no commands")
	}
	here := strings.NewReplacer("web-1:9464", first, "web-2:9464", second, "seconds=30", "seconds=0.1")
	ran := 0
	for command := range strings.Lines(block[1]) {
		ran++
		command = here.Replace(strings.TrimSpace(command))
		if profile, ok := strings.CutPrefix(command, "go tool pprof -http=: "); ok {
			drawn(t, profile)
			continue
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", command)
		shell.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		if want := regexp.MustCompile(`payOrder|Total samples|locks? held`); !want.Match(out) {
			t.Errorf("%s printed\n%s", command, out)
		}
	}
	if ran < 5 {
		t.Errorf("%d commands were run, want 5 or more", ran)
	}
}

// drawn has the web server of pprof draw a flame graph.
func drawn(t *testing.T, profile string) {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "go", "tool", "-n", "pprof").Output()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ensemble.FreePort(t)) // of ports that the system picks, another process may take one
	server := exec.CommandContext(t.Context(), strings.TrimSpace(string(path)), "-no_browser", "-http="+addr, profile)
	server.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	}()
	wait.Until(t, "pprof serves a flame graph with the class and the holder", func() bool {
		resp, err := http.Get("http://" + addr + "/ui/flamegraph")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(page), "lock orders/*") && strings.Contains(string(page), "web POST /orders/{id}/pay")
	})
}

// near fails the test unless a profile's seconds are within 5% of what was counted.
func near(t *testing.T, what string, got float64, counted time.Duration) {
	t.Helper()
	if want := counted.Seconds(); got < 0.95*want || got > 1.05*want || want == 0 {
		t.Errorf("%s: %v s in the profile, want %v s", what, got, want)
	}
}

// What an operator looks for is in the profiles, with its line: a lock that was put into a slice, a
// handler that sleeps, and 40 goroutines of two processes that line up for one name.
func TestFindTheLine(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	url := ensemble.Start(t, ensemble.Config{}).URL("/shop", fleet.ShortSession())
	first := run(t, url, "web-1", "shelf", "sleep", "convoy")
	second := run(t, url, "web-2", "wait", "convoy")
	wait.Until(t, "locks are held, and waited for", func() bool {
		return strings.Contains(page(t, first.held()), "lock reports/*") && strings.Contains(page(t, second.contention()), "lock reports/*")
	})
	shows(t, page(t, first.held()),
		`lock carts/\*\n\t\S*\(\*shop\)\.reserve\n\t\t\S*/services_test\.go:\d+`,
		`lock reports/\*\n\t\S*\(\*shop\)\.report\n\t\t\S*/services_test\.go:\d+`)
	shows(t, page(t, second.contention()),
		`lock reports/\*, held by web services_test\.go:\d+\n\t\S*\(\*shop\)\.printReport\n\t\t\S*/services_test\.go:\d+`)
	for _, r := range []replicaOf{first, second} {
		wait.Until(t, "each process has waited in the convoy", func() bool { return strings.Contains(page(t, r.contention()), "lock stock/*") })
	}
	lines := pprof(t, "-list=takeStock", first.contention(), second.contention())
	if !regexp.MustCompile(`\. +[0-9.]+(m?s|mins|hrs) +\d+:.*s\.client\.Mutex\("stock/all"\)`).MatchString(lines) {
		t.Errorf("the listing does not show the line that waits:\n%s", lines)
	}
	held := pprof(t, "-top", "-cum", "-nodefraction=0", "-sample_index=locks", first.held())
	shows(t, held, `\(\*shop\)\.reserve\n`, `\(\*shop\)\.report\n`)
}

func shows(t *testing.T, page string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(p).MatchString(page) {
			t.Errorf("the page lacks %s:\n%s", p, page)
		}
	}
}
