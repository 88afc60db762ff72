package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"html"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write screen.svg from a run")

var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")

// TestStoryFitsAScreen: the program prints fewer than 25 lines of at most 80 columns, which
// show what a lock is for. Without a terminal it prints no colours. No log line disturbs the
// screen.
func TestStoryFitsAScreen(t *testing.T) {
	var out, logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	defer slog.SetDefault(before)
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if logged.Len() > 0 {
		t.Errorf("logged:\n%s", &logged)
	}
	shown := out.String()
	if escapes.MatchString(shown) {
		t.Error("escape sequences without colour")
	}
	for _, want := range []string{
		`with a lock      10 sold\n`,
		`replica 2 holds the lock +after \d+\.\d s, token [0-9a-f.]{25}\n`,
		`replica 3 holds the lock +after \d+\.\d s, token [0-9a-f.]{25}\n`,
		`replica 3 writes +accepted\n`,
		`replica 2 goes on and writes +refused`,
		`\nok: .*\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("no %q", want)
		}
	}
	lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
	if len(lines) >= 25 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if t.Failed() {
		t.Logf("\n%s", shown)
	}
}

// figures are what differs from run to run.
var figures = regexp.MustCompile(`[0-9a-f]{16}\.[0-9a-f]{8}|[0-9.]+ s\b|\d+ sold.*|( \d+)+$`)

// TestPictureIsOfTheStory compares the picture in the README with the output of a run in
// colour. It ignores the figures, which differ from run to run.
func TestPictureIsOfTheStory(t *testing.T) {
	const path = "screen.svg"
	var out bytes.Buffer
	if err := (&story{out: &out, colour: true, url: "mem://"}).play(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	shown := "zklock on mem://\n" + out.String()
	if !strings.Contains(shown, "\x1b[32mok\x1b[0m") {
		t.Errorf("no colours:\n%s", shown)
	}
	if *update {
		if err := os.WriteFile(path, []byte(picture(shown)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	svg, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, m := range regexp.MustCompile(`(?m)^<text[^>]*>(.*)</text>$`).FindAllSubmatch(svg, -1) {
		text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(m[1]), "")
		drawn = append(drawn, figures.ReplaceAllString(html.UnescapeString(text), "#"))
	}
	var want []string
	for _, line := range strings.Split(escapes.ReplaceAllString(shown, ""), "\n") {
		if line != "" {
			want = append(want, figures.ReplaceAllString(line, "#"))
		}
	}
	if got, want := strings.Join(drawn, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("%s is out of date: run go test ./examples/quickstart -run TestPictureIsOfTheStory -update\ndrawn:\n%s\nshown:\n%s", path, got, want)
	}
}

// picture draws a terminal of 80 columns.
func picture(shown string) string {
	const width, height, margin = 8.4, 19.0, 16.0
	lines := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
	var b strings.Builder
	w, h := 80*width+2*margin, float64(len(lines))*height+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="#1b1f24"/>`+"\n")
	spans := strings.NewReplacer("\x1b[1m", `<tspan font-weight="bold" fill="#ffffff">`, "\x1b[31m", `<tspan fill="#ff8178">`,
		"\x1b[32m", `<tspan fill="#57d364">`, "\x1b[0m", "</tspan>")
	for i, line := range lines {
		if line == "" {
			continue
		}
		columns := utf8.RuneCountInString(escapes.ReplaceAllString(line, ""))
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" fill="#d7dde4" xml:space="preserve" textLength="%.1f">%s</text>`+"\n",
			margin, margin+14+float64(i)*height, float64(columns)*width, spans.Replace(html.EscapeString(line)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// fake returns a member that answers all orders with the same text.
func fake(t *testing.T, answer string) *member {
	in, orders := io.Pipe()
	m := &member{orders: orders, answers: make(chan string)}
	m.kill = func() error { return nil }
	m.pause = func() (func() error, error) { return func() error { return nil }, nil }
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			m.answers <- answer
		}
	}()
	t.Cleanup(func() {
		orders.Close()
		<-done
	})
	return m
}

// TestStoryNoticesFailures: a lock that does not exclude, a late write that gets through,
// and a replica that fails are errors.
func TestStoryNoticesFailures(t *testing.T) {
	open, err := openShop()
	if err != nil {
		t.Fatal(err)
	}
	defer open.close()
	s := &story{out: io.Discard, fleet: &fleet{}, shop: open}
	for _, test := range []struct {
		want  string
		scene func() error
	}{
		{"exclusion is broken: 30 of 10 tickets", func() error {
			return s.sales(t.Context(), []*member{fake(t, "sold"), fake(t, "sold"), fake(t, "sold")})
		}},
		{"late write", func() error { return s.paused(t.Context(), fake(t, "accepted"), fake(t, "accepted")) }},
		{"out of tickets", func() error { return s.killed(t.Context(), fake(t, "1"), fake(t, failed+"out of tickets")) }},
	} {
		if err := test.scene(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// TestReplicaThatHasEnded: the story does not wait for the answer of a replica that died.
func TestReplicaThatHasEnded(t *testing.T) {
	m := fake(t, "")
	gone := make(chan string)
	close(gone)
	m.answers = gone
	if _, err := m.answer(context.Background()); err == nil {
		t.Error("an answer from a replica that has ended")
	}
}
