package contention_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// A profile shows no more of a name than its class, no label that it was not asked for, and nothing
// that could pass for a line of its own.
func TestNoSecrets(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		plain, labels, classes := join(t, e, "web-1"), join(t, e, "web-1", contention.WithHolderLabels()),
			join(t, e, "web-1", contention.WithClass(func(string) string { return "payments\n\x1b" }))
		const name, label = "orders/secret-name", "secret-label\n99 locks held\x1b[0m"
		go pay(plain.Client, name, time.Hour, zklock.WithLabel(label))
		synctest.Wait()
		for _, c := range []*replica{labels, plain, classes} {
			go ship(c.Client, name, 0)
			synctest.Wait()
		}
		time.Sleep(time.Second)
		for _, c := range []struct {
			of   *replica
			want string
			none []string
		}{
			{plain, "held by web", []string{"secret", "99 locks"}},
			{labels, "held by web secret-label\uFFFD99 locks held\uFFFD[0m", []string{"secret-name", "\x1b"}},
			{classes, "lock payments\uFFFD\uFFFD", []string{"secret", "orders", "\x1b"}},
		} {
			for _, h := range []http.Handler{c.of.Handler(), c.of.HeldHandler()} {
				for _, page := range []string{text(t, h, "?debug=1"), unzip(t, text(t, h, ""))} {
					for _, none := range c.none {
						if strings.Contains(page, none) {
							t.Errorf("the page contains %q:\n%s", none, page)
						}
					}
				}
			}
			if page := text(t, c.of.Handler(), "?debug=1"); !strings.Contains(page, c.want) {
				t.Errorf("the page lacks %q:\n%s", c.want, page)
			}
		}
	})
}

func unzip(t *testing.T, page string) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader([]byte(page)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// With WithCallerLabels, an acquisition without a label has the line that acquires, also if a
// package of zklock is in between. Others keep their label, and without the option there is none.
func TestCallerLabels(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		web, plain := join(t, e, "web-1", contention.WithCallerLabels()), join(t, e, "web-2")
		label := func(name string) (label string) {
			t.Helper()
			found, err := web.Contenders(t.Context(), name)
			if err != nil || len(found) != 1 {
				t.Fatalf("contenders of %s: %v, %v", name, found, err)
			}
			return found[0].Label
		}
		go pay(web.Client, "orders/1", time.Hour)
		go pay(web.Client, "orders/2", time.Hour, zklock.WithLabel("mine"))
		go pay(plain.Client, "orders/3", time.Hour)
		synctest.Wait()
		if got := label("orders/1"); !strings.HasPrefix(got, "world_test.go:") {
			t.Errorf("the label is %q", got)
		}
		if mine, none := label("orders/2"), label("orders/3"); mine != "mine" || none != "" {
			t.Errorf("the labels are %q and %q, want mine and none", mine, none)
		}
		_, _, line, _ := runtime.Caller(0)
		ran, err := once.Do(t.Context(), web.Client, "report", "2026-01-01", func(context.Context) error {
			if got, want := label("report"), fmt.Sprintf("option_test.go:%d", line+1); got != want {
				t.Errorf("the label of a job is %q, want %q", got, want)
			}
			return nil
		})
		if !ran || err != nil {
			t.Errorf("ran: %v, %v", ran, err)
		}
	})
}
