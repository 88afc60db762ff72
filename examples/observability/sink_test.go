package main

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"sync"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// sink is an OTLP collector that keeps the spans and the names of metrics that it gets.
type sink struct {
	collector.UnimplementedTraceServiceServer
	addr string

	mu       sync.Mutex
	received []received      // guarded by mu
	metrics  map[string]bool // guarded by mu; service/metric
}

// received is a span with its ids in hexadecimal.
type received struct {
	service, name, trace, id, parent string
	links                            []string // trace/id
	attributes                       map[string]string
}

// listen starts a sink, and stops it when the test ends.
func listen(t *testing.T) *sink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{addr: l.Addr().String(), metrics: make(map[string]bool)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	metrics.RegisterMetricsServiceServer(server, metricSink{s: s})
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before Serve was called
			t.Error(err)
		}
	})
	return s
}

// Export implements collector.TraceServiceServer.
func (s *sink) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		service := ""
		for _, kv := range resource.GetResource().GetAttributes() {
			if kv.GetKey() == "service.name" {
				service = kv.GetValue().GetStringValue()
			}
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, sp := range scope.GetSpans() {
				got := received{service: service, name: sp.GetName(), trace: hex.EncodeToString(sp.GetTraceId()), id: hex.EncodeToString(sp.GetSpanId()),
					parent: hex.EncodeToString(sp.GetParentSpanId()), attributes: make(map[string]string)}
				for _, l := range sp.GetLinks() {
					got.links = append(got.links, hex.EncodeToString(l.GetTraceId())+"/"+hex.EncodeToString(l.GetSpanId()))
				}
				for _, kv := range sp.GetAttributes() {
					got.attributes[kv.GetKey()] = kv.GetValue().GetStringValue()
				}
				s.received = append(s.received, got)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// metricSink receives metrics for a sink. It is a separate type because the methods for
// spans and for metrics are both named Export.
type metricSink struct {
	metrics.UnimplementedMetricsServiceServer
	s *sink
}

// Export implements metrics.MetricsServiceServer.
func (m metricSink) Export(_ context.Context, r *metrics.ExportMetricsServiceRequest) (*metrics.ExportMetricsServiceResponse, error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for _, resource := range r.GetResourceMetrics() {
		for _, kv := range resource.GetResource().GetAttributes() {
			if kv.GetKey() != "service.name" {
				continue
			}
			for _, scope := range resource.GetScopeMetrics() {
				for _, metric := range scope.GetMetrics() {
					m.s.metrics[kv.GetValue().GetStringValue()+"/"+metric.GetName()] = true
				}
			}
		}
	}
	return &metrics.ExportMetricsServiceResponse{}, nil
}

// one returns the only span of that name that a service sent.
func (s *sink) one(t *testing.T, service, name string) received {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []received
	for _, r := range s.received {
		if r.service == service && r.name == name {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %s of %s, want 1, among %+v", len(found), name, service, s.received)
	}
	return found[0]
}
