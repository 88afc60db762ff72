package ginlock_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/zklock/go-zklock/internal/testkit/hostile"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/middleware/ginlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestHandlerRunsUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		seen := make(chan outcome, 10)
		e := w.router(ginlock.New(w.byID()), func(c *gin.Context) {
			l, ok := zklock.FromContext(c.Request.Context())
			if !ok || l.Name() != "orders/42" || !l.Valid() {
				t.Error("the handler's context does not carry a valid lock orders/42")
			}
			c.Header("X-Handler", "yes")
			c.JSON(http.StatusCreated, gin.H{"id": c.Param("id")})
			if !c.Writer.Written() || c.Writer.Status() != http.StatusCreated || c.Writer.Size() != len(`{"id":"42"}`) {
				t.Errorf("written %v, status %d, size %d", c.Writer.Written(), c.Writer.Status(), c.Writer.Size())
			}
		}, seen)
		rec := do(e, "POST", "/orders/42")
		if rec.Code != 201 || rec.Body.String() != `{"id":"42"}` || rec.Header().Get("X-Handler") != "yes" {
			t.Errorf("status %d, body %q, header %v", rec.Code, rec.Body, rec.Header())
		}
		got := <-seen
		if got.swapped || got.aborted || len(got.errs) != 0 || got.status != 201 || len(w.Locks()) != 1 {
			t.Errorf("the outer middleware saw %+v, and %d locks were acquired", got, len(w.Locks()))
		}
	})
}

func TestHandlersBehindRunOnceAndStatusAloneIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ran := 0
		e := gin.New()
		e.POST("/orders/:id", ginlock.New(w.byID()), func(*gin.Context) { ran++ }, func(c *gin.Context) { ran++; c.Status(204) })
		if rec := do(e, "POST", "/orders/42"); rec.Code != 204 || ran != 2 {
			t.Errorf("status %d, %d handlers ran", rec.Code, ran)
		}
	})
}

func TestWhatIsNotServed(t *testing.T) {
	unavailable := func(w *world) { w.ensemble.Partition(memdriver.AroundClients(0)) }
	for _, c := range []struct {
		name    string
		before  func(*world)
		holds   bool
		url     string
		opts    []middleware.Option
		status  int
		matches error
	}{
		{"contended", nil, true, "/orders/42", nil, 423, zklock.ErrNotAcquired},
		{"contended try", nil, true, "/orders/42", []middleware.Option{middleware.WithWait(0), middleware.WithStatus(409)}, 409, zklock.ErrNotAcquired},
		{"unavailable", unavailable, false, "/orders/42", nil, 503, zklock.ErrUnavailable},
		{"bad name", nil, false, "/orders/..", nil, 400, zklock.ErrInvalidName},
		{"no name", nil, false, "/files/", nil, 400, zklock.ErrInvalidName},
		{"no parameter", nil, false, "/", nil, 500, zklock.ErrMisuse},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if c.holds {
					defer w.Hold("orders/42")()
				}
				if c.before != nil {
					c.before(w)
				}
				seen := make(chan outcome, 10)
				observed := 0
				opts := append(c.opts, middleware.WithObserver(func(*http.Request, error) { observed++ }))
				e := w.router(ginlock.New(w.byID(), opts...), func(*gin.Context) { t.Error("the handler ran") }, seen)
				rec := do(e, "GET", c.url)
				if rec.Code != c.status || rec.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(rec.Body.String(), "LOCK_") {
					t.Errorf("status %d, body %q, header %v", rec.Code, rec.Body, rec.Header())
				}
				got := <-seen
				want := 1
				if errors.Is(c.matches, zklock.ErrNotAcquired) {
					want = 0 // an answer, and no error: otelgin marks the span of each request that has one
				}
				if !got.aborted || got.swapped || got.status != c.status || len(got.errs) != want || observed != 1 {
					t.Fatalf("the outer middleware saw %+v, and the observer %d errors", got, observed)
				}
				for _, err := range got.errs {
					if !errors.Is(err, c.matches) {
						t.Errorf("c.Errors has %v, want %v", err, c.matches)
					}
					for _, secret := range []string{"orders", "42", "files", "..", "session 0x", "127.0.0.1", "held by", "behind"} {
						if strings.Contains(err.Error(), secret) {
							t.Errorf("%q is in c.Errors, and so in spans: %v", secret, err)
						}
					}
				}
			})
		})
	}
}

// Two requests have one lock only if all of their values are equal, whatever a client sends.
func TestValuesOfARequestNameNoOtherLock(t *testing.T) {
	w := newWorld(t)
	var params gin.Params
	var held string
	e := gin.New()
	e.UseRawPath = true
	e.POST("/events/:event/seats/:seat", func(c *gin.Context) {
		if params != nil { // no client can send some of them: the router finds no route for an empty one
			c.Params = params
		}
	}, ginlock.New(ginlock.ByParams(w.client, "events/%s/seats/%s", "event", "seat")), func(c *gin.Context) {
		l, _ := zklock.FromContext(c.Request.Context())
		held = l.Name()
	})
	hostile.Pairs(t, func(event, seat string) string {
		params, held = gin.Params{{Key: "event", Value: event}, {Key: "seat", Value: seat}}, ""
		if rec := do(e, "POST", "/events/a/seats/b"); held == "" && (rec.Code != 400 || !strings.Contains(rec.Body.String(), middleware.ReasonName)) {
			t.Errorf("%q, %q: status %d, body %q", event, seat, rec.Code, rec.Body)
		}
		return held
	})
	params = nil
	for url, want := range map[string]string{
		"/events/gala/seats/7":          "events/gala/seats/7",
		"/events/%2Fgala/seats/7":       "events/%2Fgala/seats/7", // no catch-all parameter, so the slash is the client's
		"/events/a%2Fseats%2Fb/seats/c": "events/a%2Fseats%2Fb/seats/c",
		"/events/a%252F/seats/7":        "events/a%252F/seats/7",
	} {
		if rec := do(e, "POST", url); held != want || rec.Code != 200 {
			t.Errorf("%s: lock %q, status %d; want %q", url, held, rec.Code, want)
		}
	}
}

func TestPicks(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		pick   func(*gin.Context) zklock.Acquirer
		url    string
		name   string
		status int
	}{
		{w.byID(), "/orders/7", "orders/7", 200},
		{w.byID(), "/files/a/b", "orders/a/b", 200},
		{w.byID(), "/files/", "", 400},
		{middleware.Optional(w.byID()), "/", "", 200}, // a route without the parameter
		{middleware.Optional(w.byID()), "/files/", "", 200},
		{ginlock.ByParams(w.client, "orders/%s", "id"), "/files/a/b", "orders/a%2Fb", 200},
		{ginlock.ByParams(w.client, "%s/%s", "id", "id"), "/orders/7", "7/7", 200},
		{ginlock.ByParams(w.client, "%s/%s", "id", "id"), "/files/", "", 400},
		{ginlock.ByParams(w.client, "%s/%s", "id", "of"), "/orders/7", "", 500}, // no route has the parameter
		{ginlock.ByFullPath(w.client, "routes/%s"), "/orders/7", "routes/orders/:id", 200},
		{ginlock.ByFullPath(w.client, "routes/%s"), "/files/x", "routes/files/*id", 200},
		{ginlock.ByFullPath(w.client, "routes/%s"), "/", "", 400},
		{func(*gin.Context) zklock.Acquirer { return nil }, "/orders/7", "", 200},
	} {
		var name string
		seen := make(chan outcome, 10)
		rec := do(w.router(ginlock.New(c.pick), func(g *gin.Context) {
			if l, ok := zklock.FromContext(g.Request.Context()); ok {
				name = l.Name()
			}
		}, seen), "GET", c.url)
		got := <-seen
		if rec.Code != c.status || name != c.name || got.swapped {
			t.Errorf("%s: lock %q, status %d, want %q, %d", c.url, name, rec.Code, c.name, c.status)
		}
	}
	for _, f := range []func(){func() { ginlock.New(nil) }, func() { ginlock.ByParam(w.client, "id", "x") }, func() { ginlock.ByFullPath(w.client, "%d") },
		func() { ginlock.ByParam(nil, "id", "%s") }, func() { ginlock.ByFullPath(nil, "%s") }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a wrong argument did not panic")
				}
			}()
			f()
		}()
	}
}

func TestPanicReleasesAndReachesRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		seen := make(chan outcome, 10)
		rec := do(w.router(ginlock.New(w.byID()), func(*gin.Context) { panic("boom") }, seen), "GET", "/orders/42")
		got := <-seen
		if rec.Code != 500 || len(w.Locks()) != 1 || got.swapped {
			t.Errorf("status %d, %d locks, and the outer middleware saw %+v", rec.Code, len(w.Locks()), got)
		}
	})
}

func TestClientThatHangsUpWhileWaiting(t *testing.T) {
	w := newWorld(t)
	defer w.Hold("orders/42")()
	gone := make(chan error, 1)
	seen := make(chan outcome, 10)
	srv := httptest.NewServer(w.router(ginlock.New(w.byID(), middleware.WithObserver(func(_ *http.Request, err error) { gone <- err })),
		func(*gin.Context) { t.Error("the handler ran") }, seen))
	defer srv.Close()
	ctx, hangUp := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", srv.URL+"/orders/42", strings.NewReader("order"))
	failed := make(chan error, 1)
	go func() {
		_, err := srv.Client().Do(req)
		failed <- err
	}()
	<-w.waiting
	hangUp()
	<-failed
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the observer got %v, want context.Canceled", err)
	}
	srv.Close()
	// A logger must not take the request for one that was served.
	got := <-seen
	if !got.aborted || got.status != 503 {
		t.Errorf("the outer middleware saw %+v, want an aborted request with status 503", got)
	}
}

func TestStreamsAndHijacks(t *testing.T) {
	w := newWorld(t)
	next := make(chan struct{})
	e := gin.New()
	e.GET("/stream/:id", ginlock.New(w.byID()), func(c *gin.Context) {
		i := 0
		c.Stream(func(out io.Writer) bool {
			c.SSEvent("tick", i)
			i++
			return i < 3
		})
		<-next
	})
	e.GET("/hijack/:id", ginlock.New(w.byID()), func(c *gin.Context) {
		conn, _, err := c.Writer.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nevent:tick\n")
		<-next
		conn.Close()
	})
	srv := httptest.NewServer(e)
	defer srv.Close()
	for _, path := range []string{"/stream/42", "/hijack/42"} {
		resp, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "event:tick\n" {
			t.Errorf("%s: %q, %v", path, line, err)
		}
		if _, err := w.client.Mutex("orders/42").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("%s: TryAcquire while the handler runs: %v, want ErrNotAcquired", path, err)
		}
		next <- struct{}{}
		resp.Body.Close()
	}
	// A server does not wait for the handlers of hijacked connections.
	w.WantFree()
}

func TestNestedLocksAndOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := gin.New()
		e.GET("/orders/:id", ginlock.New(w.byID()), ginlock.New(ginlock.ByFullPath(w.client, "%s"), middleware.WithMaxHold(time.Second)),
			func(c *gin.Context) {
				if n := len(zklock.HeldIn(c.Request.Context())); n != 2 {
					t.Errorf("the context carries %d locks, want 2", n)
				}
				<-c.Request.Context().Done()
				if cause := context.Cause(c.Request.Context()); cause != zklock.ErrMaxHold {
					t.Errorf("the context's cause is %v, want ErrMaxHold", cause)
				}
				c.String(202, "late")
			})
		if rec := do(e, "GET", "/orders/42"); rec.Code != 202 || rec.Body.String() != "late" {
			t.Errorf("status %d, body %q", rec.Code, rec.Body)
		}
	})
}

func TestServerSeesTheForm(t *testing.T) {
	w := newWorld(t)
	seen := make(chan outcome, 10)
	e := w.router(ginlock.New(w.byID()), func(c *gin.Context) {
		if _, err := c.MultipartForm(); err != nil {
			t.Error(err)
		}
	}, seen)
	r := httptest.NewRequest("POST", "/orders/42", strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	e.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil {
		t.Error("the outer request has no form, so the server cannot remove its files")
	}
}

func TestEngineInsideThePlainMiddleware(t *testing.T) {
	w := newWorld(t)
	e := gin.New()
	e.GET("/stream", func(c *gin.Context) { // uses CloseNotify
		c.Stream(func(out io.Writer) bool { io.WriteString(out, "once"); return false })
	})
	srv := httptest.NewServer(middleware.New(func(*http.Request) zklock.Acquirer { return w.client.Mutex("a") })(e))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "once" || err != nil {
		t.Errorf("the client read %q, %v", body, err)
	}
}

// TestParameterThatTheRouteDoesNotHaveIsLogged: if a route does not have the parameter of the pick,
// every request to it is refused. The program is set up wrong, and the middleware logs that.
func TestParameterThatTheRouteDoesNotHaveIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var log strings.Builder
		lock := func(pick func(*gin.Context) zklock.Acquirer) gin.HandlerFunc {
			return ginlock.New(pick, middleware.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		}
		by := func(key string) func(*gin.Context) zklock.Acquirer {
			return ginlock.ByParam(w.client, key, "orders/%s")
		}
		e := gin.New()
		e.GET("/orders/:id", lock(by("order")))
		e.GET("/optional/:id", lock(middleware.Optional(by("order"))))
		e.GET("/files/*path", lock(by("path")))
		e.NoRoute(lock(by("id")))
		if rec := do(e, "GET", "/optional/42"); rec.Code != 200 || log.Len() > 0 {
			t.Errorf("optional: status %d, logged %q", rec.Code, log.String())
		}
		for url, logged := range map[string]bool{"/orders/42": true, "/files/": false, "/nowhere": false} {
			log.Reset()
			if rec := do(e, "GET", url); rec.Code != map[bool]int{true: 500, false: 400}[logged] {
				t.Errorf("%s: status %d", url, rec.Code)
			}
			synctest.Wait()
			if text := log.String(); logged != strings.Contains(text, `no parameter`) || !logged && text != "" {
				t.Errorf("%s: logged %q", url, text)
			}
		}
		for _, key := range []string{"", ":id", "*id", "/id"} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("ByParam accepted the key %q", key)
					}
				}()
				ginlock.ByParam(w.client, key, "orders/%s")
			}()
		}
		for what, f := range map[string]func(){
			"no client":       func() { ginlock.ByParams(nil, "%s/%s", "a", "b") },
			"no key":          func() { ginlock.ByParams(w.client, "orders") },
			"too few keys":    func() { ginlock.ByParams(w.client, "%s/%s", "a") },
			"a key's colon":   func() { ginlock.ByParams(w.client, "%s/%s", "a", ":b") },
			"one text of two": func() { ginlock.ByParams(w.client, "%s%s", "a", "b") },
		} {
			func() {
				defer func() {
					if v, ok := recover().(string); !ok || !strings.HasPrefix(v, "ginlock: ByParams: ") {
						t.Errorf("%s: recovered %v", what, v)
					}
				}()
				f()
			}()
		}
	})
}
