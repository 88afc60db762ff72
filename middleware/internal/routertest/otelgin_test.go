package routertest_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// What the spans of a request must not show of the lock that it did not get.
const (
	canaryName  = "canary-name"
	canaryHost  = "canary-host"
	canaryPID   = 700700700
	canaryLabel = "canary-label"
)

// ginWorld is an ensemble with processes that export their spans to one place.
type ginWorld struct {
	ensemble *memdriver.Ensemble
	spans    *tracetest.InMemoryExporter
	refused  []string // the errors of requests that were not served
}

// process returns the server of a process: one route, behind otelgin and a lock.
func (w *ginWorld) process(t *testing.T, h gin.HandlerFunc, opts ...tracing.Option) *gin.Engine {
	t.Helper()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
	hooks := tracing.Hooks(append(opts, tracing.WithTracerProvider(provider))...)
	client, err := zklock.OpenConnector(w.ensemble.Connector(), zklock.WithHooks(hooks),
		zklock.WithIdentity(zklock.Identity{Host: canaryHost, PID: canaryPID}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	// otelgin shows the path of each request, so the name is not in it.
	lock := ginlock.New(func(*gin.Context) zklock.Acquirer { return client.Mutex("orders/" + canaryName) },
		middleware.WithWait(0),
		middleware.WithLabel(func(*http.Request) string { return canaryLabel }),
		middleware.WithObserver(func(_ *http.Request, err error) { w.refused = append(w.refused, err.Error()) }))
	e := gin.New()
	e.Use(otelgin.Middleware("shop", otelgin.WithTracerProvider(provider)))
	e.GET("/pay", lock, h)
	return e
}

// get sends a request, and checks the status of the response.
func get(t *testing.T, h http.Handler, status int) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/pay", nil))
	if rec.Code != status {
		t.Errorf("status %d, body %q, want %d", rec.Code, rec.Body, status)
	}
}

// shown returns the texts of a span that a reader of the trace sees.
func shown(s tracetest.SpanStub) string {
	attributes := slices.Clone(s.Attributes)
	var text strings.Builder
	fmt.Fprintln(&text, s.Name, s.Status.Code, s.Status.Description)
	for _, event := range s.Events {
		fmt.Fprintln(&text, event.Name)
		attributes = append(attributes, event.Attributes...)
	}
	for _, link := range s.Links {
		attributes = append(attributes, link.Attributes...)
	}
	for _, a := range attributes {
		fmt.Fprintln(&text, a.Key, a.Value.String())
	}
	return text.String()
}

// TestInsideOtelgin: otelgin gives the span of a request an error status if the response is a 5xx or
// c.Errors is not empty, and adds the texts of these errors. A 423 is not an error, and no span describes
// the lock's holder. By default tracing shows the lock's name, in its own spans only.
func TestInsideOtelgin(t *testing.T) {
	for name, opts := range map[string][]tracing.Option{
		"names shown":   nil,
		"names omitted": {tracing.WithName(tracing.OmitName)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &ginWorld{ensemble: memdriver.New(), spans: tracetest.NewInMemoryExporter()}
				t.Cleanup(func() { _ = w.ensemble.Close() })
				entered, leave, served := make(chan struct{}), make(chan struct{}), make(chan struct{})
				holder := w.process(t, func(*gin.Context) { close(entered); <-leave }, opts...)
				other := w.process(t, func(*gin.Context) { t.Error("the handler ran") }, opts...)
				go func() {
					defer close(served)
					get(t, holder, http.StatusOK)
				}()
				<-entered
				get(t, holder, http.StatusLocked)
				get(t, other, http.StatusLocked)
				close(leave)
				<-served
				w.ensemble.Partition(memdriver.AroundClients(0))
				get(t, other, http.StatusServiceUnavailable)
				w.ensemble.Heal()
				w.check(t, opts == nil)
			})
		})
	}
}

// check checks the spans of one request that was served, two that met a held lock and one that met
// an outage. namesShown says that the spans of tracing have names.
func (w *ginWorld) check(t *testing.T, namesShown bool) {
	t.Helper()
	canaries := []string{canaryName, canaryHost, fmt.Sprint(canaryPID), canaryLabel, "held by"}
	for _, canary := range canaries {
		if !strings.Contains(strings.Join(w.refused, "\n"), canary) {
			t.Errorf("%q is in no error, so no span can show it: %q", canary, w.refused)
		}
	}
	answered := map[string]int{}
	acquisitions := 0
	for _, s := range w.spans.GetSpans() {
		secrets := canaries
		switch s.InstrumentationScope.Name {
		case otelgin.ScopeName:
			set := attribute.NewSet(s.Attributes...)
			status, _ := set.Value("http.response.status_code")
			answered[status.String()+" "+s.Status.Code.String()]++
		case tracing.ScopeName:
			if s.Name == "zklock.acquire" {
				acquisitions++
			}
			if namesShown {
				secrets = canaries[1:]
			}
		}
		for _, secret := range secrets {
			if text := shown(s); strings.Contains(text, secret) {
				t.Errorf("a span shows %q:\n%s", secret, text)
			}
		}
	}
	want := map[string]int{"200 Unset": 1, "423 Unset": 2, "503 Error": 1}
	if !maps.Equal(answered, want) || acquisitions != 4 {
		t.Errorf("the servers' spans are %v, want %v; %d spans of acquisitions, want 4", answered, want, acquisitions)
	}
}
