package inspect_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// stand stands for election until the test ends.
func (w *world) stand(c *zklock.Client, name string) {
	w.Helper()
	e := election.New(c, name, election.WithLogger(nil))
	go func() {
		_ = e.Run(w.Context(), func(ctx context.Context, _ *election.Term) error { <-ctx.Done(); return nil })
	}()
}

// An election in which nothing is wrong is neither the longest wait nor what keeps a process from
// moving. A real wait is, though it is shorter.
func TestIdleElectionIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stand(w.web, "reminders")
		synctest.Wait()
		w.stand(w.jobs, "reminders")
		<-w.waiting
		time.Sleep(84 * time.Minute)
		h := inspect.Handler(w.web)
		head := func() string {
			lines := strings.SplitN(get(t, h, "/?format=text").Body.String(), "\n", 4)
			return lines[2]
		}
		if got, want := head(), "1 name, 0 waiting processes, 1 candidate"; got != want {
			t.Errorf("the head line of an idle election is %q, want %q", got, want)
		}
		// The candidate's process holds a lock for which another one waits.
		w.hold(w.jobs.Mutex("orders/42"), "refund")
		w.wait(w.web.Mutex("orders/42"), "POST /pay")
		time.Sleep(time.Minute)
		if got, want := head(), `2 names, 1 waiting process and 1 request of this process, 1 candidate, longest wait 1m0s: orders/42, held by jobs-1/7 "refund", which asked 1m0s ago`; got != want {
			t.Errorf("the head line is\n%q, want\n%q", got, want)
		}
	})
}

// Each part of the page calls a leader and a candidate what they are, in HTML, as text and as JSON.
func TestCandidaciesAreShownAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stand(w.web, "reminders")
		synctest.Wait()
		w.stand(w.jobs, "reminders")
		<-w.waiting
		w.hold(w.web.Mutex("orders/42"), "POST /pay")
		time.Sleep(time.Hour)
		h := inspect.Handler(w.web)
		for query, wants := range map[string][]string{
			"/?format=text":                {"orders/42  web-3/812           asked 1h0m0s ago  0            -             POST /pay\nreminders  web-3/812 (leader)  asked 1h0m0s ago  1 candidate  -             -\n"},
			"/?sort=age&format=text":       {"orders/42  web-3/812           asked 1h0m0s ago  0            -             POST /pay\nreminders"},
			"/?name=reminders&format=text": {"1  leader     exclusive", "2  candidate  exclusive"},
			"/?host=web-3&format=text":     {"web-3 holds 1 and waits for 0, leads 1; waiting for what it holds: 0", "reminders  leader"},
			"/?host=jobs-1&format=text":    {"jobs-1 holds 0 and waits for 0, is a candidate for 1; waiting for what it holds: 0", "reminders  candidate"},
			"/":                            {"2 names, 0 waiting processes, 1 candidate</p>", `<span class="role">leader</span>`, ">1 candidate</td>"},
			"/?name=reminders":             {"<td>leader</td>", "<td>candidate</td>"},
			"/api/locks/reminders":         {`"held":true,"kept":false,"candidacy":true`, `"held":false,"kept":false,"candidacy":true`},
		} {
			text := get(t, h, query).Body.String()
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s lacks %q:\n%s", query, want, text)
				}
			}
			if strings.Contains(query, "reminders") && strings.Contains(text, "What holds it up") {
				t.Errorf("%s says that a process must move:\n%s", query, text)
			}
		}
		if n := w.jobs.Waiting(); len(n) != 0 {
			t.Errorf("Waiting: %v", n)
		}
		// A request without a candidacy waits for the leader like for any holder.
		w.wait(w.jobs.Mutex("reminders"), "migration")
		time.Sleep(time.Minute)
		for query, want := range map[string]string{
			"/?format=text":                "1 waiting process, 1 candidate, longest wait 1m0s: reminders, held by web-3/812, which asked 1h1m0s ago",
			"/?name=reminders&format=text": "web-3/812 leads reminders, asked 1h1m0s ago",
		} {
			if text := get(t, h, query).Body.String(); !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", query, want, text)
			}
		}
	})
}

// The foot explains the columns that the page has, and each button says that it copies a command.
func TestFootAndButtonsSayWhatTheyMean(t *testing.T) {
	w := newWorld(t)
	w.hold(w.web.Mutex("orders/42"), "POST /pay")
	h := inspect.Handler(w.web)
	for query, column := range map[string]string{"/": "Held", "/?name=orders/42": "Since", "/?host=web-3": "Since"} {
		text := get(t, h, query).Body.String()
		_, foot, _ := strings.Cut(text, "<footer>")
		if !strings.Contains(text, ">"+column+"<") || !strings.Contains(foot, column) || column == "Held" && strings.Contains(foot, "Since") {
			t.Errorf("%s has a column %s, and the foot\n%s", query, column, foot)
		}
		if !strings.Contains(text, `>copy <span class="wide">revoke </span>command<`) || !strings.Contains(foot, `"Copy revoke command" copies a line for a shell`) {
			t.Errorf("%s: a button does not say that it copies a command:\n%s", query, text)
		}
	}
}

// In a browser, a list with an election fits into the window. The order by wait has the election
// behind what waits.
func TestListWithAnElectionFits(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	w.busyDay()
	w.stand(w.web, "a-reminders")
	w.stand(w.jobs, "a-reminders")
	<-w.waiting
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 1200, "height": 620, "deviceScaleFactor": 1, "mobile": false})
	for _, page := range []string{"", "?q=a-reminders", "?name=a-reminders"} {
		b.open(srv.URL + "/" + page)
		b.until(live + ` && document.querySelectorAll("tbody tr").length > 0`)
		if fits := b.value(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`); fits != "true" {
			t.Errorf("%q: %s pixels wide, want %s", page, b.value("document.documentElement.scrollWidth"), b.value("document.documentElement.clientWidth"))
		}
		switch page {
		case "":
			b.until(`document.querySelector("tbody th").innerText === "warehouse/stock/amsterdam-south-2" && ` + contains("21 waiting processes, 1 candidate"))
		default:
			b.until(contains("leader") + " && " + contains("candidate"))
		}
	}
}
