// Command picture draws the output of processes of the example that ran with -stdout: a
// slow request together with the request that it waited for, and the panels of the
// dashboard. The pictures are not screenshots of Jaeger or Grafana; spans, links and
// values are those of the run.
//
//	go run ./picture -trace trace.svg -panels panels.svg north.json south.json
//
// With -deadlock it draws two requests that have waited for each other.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	set := flag.NewFlagSet("picture", flag.ContinueOnError)
	trace := set.String("trace", "trace.svg", "the `file` for the picture of the traces")
	panels := set.String("panels", "panels.svg", "the `file` for the picture of the panels")
	deadlock := set.String("deadlock", "", "the `file` for a picture of a deadlock, in place of the other two")
	if err := set.Parse(args); err != nil {
		return err
	}
	var r record
	for _, file := range set.Args() {
		if err := r.read(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if *deadlock != "" {
		failed, others, err := r.deadlock()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, failed.Status.Description)
		return os.WriteFile(*deadlock, r.drawDeadlock(failed, others), 0o666)
	}
	waiter, holder, err := r.longestWait()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s of %s waited %v for %s of %s\n", waiter.Name, waiter.service, waiter.EndTime.Sub(waiter.StartTime), holder.Name, holder.service)
	return errors.Join(
		os.WriteFile(*trace, r.drawWait(waiter, holder), 0o666),
		os.WriteFile(*panels, r.drawPanels(), 0o666))
}

// longestWait finds the longest wait for a request of another process, and the span that
// its link refers to. It counts a wait only for as long as that request held the lock,
// since the request may have handed the lock over.
func (r *record) longestWait() (waiter, holder *span, err error) {
	byID := r.byID()
	holds := make(map[string]time.Duration) // by trace
	for i := range r.spans {
		s := &r.spans[i]
		if s.Name == "zklock.hold" {
			holds[s.SpanContext.TraceID] = s.EndTime.Sub(s.StartTime)
		}
	}
	most := time.Duration(0)
	for i := range r.spans {
		s := &r.spans[i]
		if s.Name != "zklock.wait" || len(s.Links) != 1 {
			continue
		}
		to := byID[s.Links[0].SpanContext.SpanID]
		if to == nil || to.service == s.service {
			continue
		}
		if d := min(s.EndTime.Sub(s.StartTime), holds[to.SpanContext.TraceID]); d > most {
			most, waiter, holder = d, s, to
		}
	}
	if waiter == nil {
		return nil, nil, errors.New("no request waited for a request of another process: run two processes on one ensemble")
	}
	return waiter, holder, nil
}

// deadlock finds a wait that a deadlock has ended, and the spans of another process that its links refer to.
func (r *record) deadlock() (failed *span, others []*span, err error) {
	byID := r.byID()
	for i := range r.spans {
		failed, others = &r.spans[i], nil
		if failed.Name != "zklock.wait" || valueOf(failed.Attributes, "error.type") != "deadlock" {
			continue
		}
		for _, l := range failed.Links {
			if to := byID[l.SpanContext.SpanID]; to != nil && to.service != failed.service {
				others = append(others, to)
			}
		}
		if len(others) > 0 {
			return failed, others, nil
		}
	}
	return nil, nil, errors.New("no deadlock of two processes has ended a wait")
}

// byID returns the spans by their ids.
func (r *record) byID() map[string]*span {
	byID := make(map[string]*span)
	for i := range r.spans {
		byID[r.spans[i].SpanContext.SpanID] = &r.spans[i]
	}
	return byID
}

// trace returns the spans of a span's trace, sorted by their start.
func (r *record) trace(of *span) []*span {
	var spans []*span
	for i := range r.spans {
		if r.spans[i].SpanContext.TraceID == of.SpanContext.TraceID {
			spans = append(spans, &r.spans[i])
		}
	}
	slices.SortStableFunc(spans, func(a, b *span) int {
		return cmp.Or(a.StartTime.Compare(b.StartTime), b.EndTime.Compare(a.EndTime))
	})
	return spans
}
