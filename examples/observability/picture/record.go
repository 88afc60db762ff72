package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// attribute is an attribute as OpenTelemetry's stdout exporters print it.
type attribute struct {
	Key   string
	Value struct{ Value any }
}

// valueOf returns the text of the attribute with that key, and "" if there is none.
func valueOf(attributes []attribute, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			text, _ := a.Value.Value.(string)
			return text
		}
	}
	return ""
}

type spanContext struct{ TraceID, SpanID string }

// span is a span as the exporter prints it.
type span struct {
	service             string
	Name                string
	SpanContext, Parent spanContext
	StartTime, EndTime  time.Time
	Attributes          []attribute
	Links               []struct{ SpanContext spanContext }
	Status              struct{ Description string }
}

// point is the value of a metric, a sum or a histogram, at one moment.
type point struct {
	Attributes   []attribute
	Time         time.Time
	Value        float64
	Count, Sum   float64
	Bounds       []float64
	BucketCounts []float64
}

// collection holds all metrics of a process at one moment, by name.
type collection map[string][]point

// record is the output of all processes.
type record struct {
	spans     []span
	processes [][]collection
}

// read adds the output of one process.
func (r *record) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var collections []collection
	for d := json.NewDecoder(f); ; {
		var line struct {
			span
			Resource     []attribute
			ScopeMetrics []struct {
				Scope   struct{ Name string }
				Metrics []struct {
					Name string
					Data struct{ DataPoints []point }
				}
			}
		}
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		if line.ScopeMetrics == nil {
			line.service = valueOf(line.Resource, "service.name")
			r.spans = append(r.spans, line.span)
			continue
		}
		c := make(collection)
		for _, scope := range line.ScopeMetrics {
			for _, m := range scope.Metrics {
				if strings.HasPrefix(m.Name, "zklock.") {
					c[m.Name] = m.Data.DataPoints
				}
			}
		}
		collections = append(collections, c)
	}
	r.processes = append(r.processes, collections)
	return nil
}

// steps returns how many collections every process has, without the last one, which the
// process makes at its end and not with the others.
func (r *record) steps() int {
	n := len(r.processes[0])
	for _, p := range r.processes {
		n = min(n, len(p))
	}
	return n - 1
}

// seconds returns the time from the first step that panels show to the last.
func (r *record) seconds() float64 {
	const metric = "zklock.acquire.duration" // which every step has
	first, last := r.at(1, metric, "")[""], r.at(r.steps()-1, metric, "")[""]
	return last.Time.Sub(first.Time).Seconds()
}

// at adds up a metric's points of all processes at a step, grouped by an attribute.
func (r *record) at(step int, metric, by string) map[string]point {
	sum := make(map[string]point)
	for _, p := range r.processes {
		for _, d := range p[step][metric] {
			key := valueOf(d.Attributes, by)
			s := sum[key]
			s.Value, s.Count, s.Sum = s.Value+d.Value, s.Count+d.Count, s.Sum+d.Sum
			if s.Bounds = d.Bounds; s.BucketCounts == nil {
				s.BucketCounts = make([]float64, len(d.BucketCounts))
			}
			for i, n := range d.BucketCounts {
				s.BucketCounts[i] += n
			}
			s.Time = d.Time
			sum[key] = s
		}
	}
	return sum
}
