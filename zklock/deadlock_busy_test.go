package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// registerTally counts the requests about the register, and injects no fault.
type registerTally struct {
	mu                                 sync.Mutex
	creates, deletes, deleteOps, lists int // deletes are requests; one may have many deleteOps
}

// Inject implements faultdriver.Injector.
func (r *registerTally) Inject(op faultdriver.Op) (none faultdriver.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if op.Kind == faultdriver.Children && op.Paths[0] == "/zklock/%waits" {
		r.lists++
	}
	deletes := 0
	for _, path := range op.Paths {
		switch {
		case !strings.HasPrefix(path, "/zklock/%waits/"):
		case op.Kind == faultdriver.Multi && strings.HasSuffix(path, "-"): // the server has not numbered it yet
			r.creates++
		case op.Kind == faultdriver.Multi || op.Kind == faultdriver.Delete:
			deletes++
		}
	}
	r.deleteOps += deletes
	r.deletes += min(deletes, 1)
	return none
}

// String implements faultdriver.Injector.
func (*registerTally) String() string { return "count the requests about the register" }

// busy is a name for which goroutines of some clients wait again and again, each with a lock of its own.
type busy struct {
	clients []*zklock.Client
	stop    chan struct{}
	done    sync.WaitGroup
	work    func(ctx context.Context, client, i int) // with the name's lock

	mu      sync.Mutex
	grants  int // guarded by mu
	victims int // guarded by mu
}

// begin lets goroutines of each client wait.
func (b *busy) begin(t *testing.T, each int) {
	t.Helper()
	b.stop = make(chan struct{})
	for c, client := range b.clients {
		for i := range each {
			own := mustLock(t)(client.Mutex(fmt.Sprint("own", c, "-", i)).Acquire(t.Context()))
			b.done.Go(func() {
				ctx, cancel := own.Context(t.Context())
				defer cancel()
				for stopped := false; !stopped; {
					l, err := client.Mutex("top").Acquire(ctx)
					b.mu.Lock()
					if err == nil {
						b.grants++
					} else {
						b.victims++
					}
					b.mu.Unlock()
					if errors.Is(err, zklock.ErrDeadlock) {
						break // it lets the others go on
					} else if err != nil {
						t.Error(err)
						break
					}
					within, cancel := l.Context(ctx)
					b.work(within, c, i)
					cancel()
					mustRelease(t, l)
					select {
					case <-b.stop:
						stopped = true
					default:
					}
				}
				mustRelease(t, own)
			})
		}
	}
}

// counts returns how many grants and victims there were.
func (b *busy) counts() (grants, victims int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.grants, b.victims
}

// TestRegistrationsOfABusyQueue: each grant changes what many waits stand behind. A wait is registered when it has
// lasted for deadlock_timeout, and again only a few times. More waits cause no more rounds, and so no more lists.
func TestRegistrationsOfABusyQueue(t *testing.T) {
	for _, c := range []struct{ clients, each int }{{1, 100}, {2, 10}, {2, 100}} {
		t.Run(fmt.Sprint(c.clients, "clients", c.each, "waits each"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, tally := memdriver.New(), new(registerTally)
				b := &busy{work: func(context.Context, int, int) { time.Sleep(100 * time.Millisecond) }}
				for range c.clients {
					b.clients = append(b.clients, connect(t, faultdriver.Wrap(e.Connector(), tally), map[string]string{"session_timeout": "1h", "max_waiters": "0"}))
				}
				b.begin(t, c.each)
				time.Sleep(25*time.Second + time.Millisecond)
				synctest.Wait()
				grants, victims := b.counts()
				tally.mu.Lock()
				creates, deletes, deleteOps, lists := tally.creates, tally.deletes, tally.deleteOps, tally.lists
				tally.mu.Unlock()
				close(b.stop)
				b.done.Wait()

				waits := c.clients * c.each
				t.Logf("%d waits, %d grants in 25 s: %d registrations, %d removed with %d requests, %d lists", waits, grants, creates, deleteOps, deletes, lists)
				if grants < 200 || victims != 0 {
					t.Errorf("%d grants, %d victims", grants, victims)
				}
				// grants + waits have begun. Those that have lasted for 1 s were registered, and again after 5 and 13 s.
				if most := 3 * (grants + waits); creates > most {
					t.Errorf("%d registrations, want at most %d", creates, most)
				}
				if deleteOps > creates {
					t.Errorf("%d deletes of %d registrations", deleteOps, creates)
				}
				// A wait that ends deletes its registration by itself. The others share transactions in each round.
				if most := grants + c.clients*2*25; deletes > most {
					t.Errorf("%d requests that delete, want at most %d", deletes, most)
				}
				if most := c.clients * 2 * 25; lists > most {
					t.Errorf("%d lists, want at most two a second for each client", lists)
				}
			})
		})
	}
}

// TestCircleThatClosesInABusyQueue: the name is passed on every 100 ms, inside processes and between them. Then a
// holder waits for the lock of another goroutine, which waits for the name. So nothing changes any more. One of the
// two fails within two deadlock_timeouts and two rounds, whichever of them began to wait when.
func TestCircleThatClosesInABusyQueue(t *testing.T) {
	for closes := 10; closes < 40; closes += 30 / corekit.Crowd(10) {
		t.Run(fmt.Sprint("after", closes, "grants"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				var closed, found time.Time
				b := &busy{clients: []*zklock.Client{connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)}}
				b.work = func(ctx context.Context, c, i int) {
					time.Sleep(100 * time.Millisecond)
					if n, _ := b.counts(); n != closes {
						return
					}
					closed = time.Now()
					l, err := b.clients[c].Mutex(fmt.Sprint("own", 1-c, "-", (i+3)%10)).Acquire(ctx)
					found = time.Now()
					if err == nil {
						mustRelease(t, l)
						return
					}
					wantDeadlock(t, outcome{err: err}, "top>own"+fmt.Sprint(1-c, "-", (i+3)%10), "own"+fmt.Sprint(1-c, "-", (i+3)%10)+">top")
					b.mu.Lock()
					defer b.mu.Unlock()
					b.victims++
				}
				b.begin(t, 10)
				time.Sleep(20 * time.Second)
				close(b.stop)
				b.done.Wait()
				if _, victims := b.counts(); victims != 1 {
					t.Errorf("%d victims, want 1", victims)
				}
				if took := found.Sub(closed); took > 3*time.Second {
					t.Errorf("found after %v", took)
				} else {
					t.Log("found after", took)
				}
			})
		})
	}
}

// TestCircleBehindRequestsThatGiveUp: a reader of a circle has lost its node and queued again. The writers ahead of it
// give up one after the other, from the nearest on. So what it stands behind changes all the time, and the circle stays.
func TestCircleBehindRequestsThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, c := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.RWMutex("y").Writer().Acquire(t.Context()))
		for i := range 100 {
			go func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(time.Duration(100-i)*300*time.Millisecond, cancel).Stop()
				if _, err := c.RWMutex("y").Writer().Acquire(ctx, zklock.WithCandidacy()); err == nil {
					t.Error("acquired")
				}
			}()
			synctest.Wait()
		}
		first := nested(t, x, a.RWMutex("y").Reader())
		time.Sleep(1200 * time.Millisecond)
		queue, err := b.Contenders(t.Context(), "y")
		if err != nil || len(queue) < 90 {
			t.Fatal(queue, err)
		}
		if err := memcontrol.Of(e).Delete("/zklock/y/" + queue[len(queue)-1].Node); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		last := nested(t, y, b.Mutex("x"))
		time.Sleep(12 * time.Second)
		ended := 0
		for _, w := range []<-chan outcome{first, last} {
			select {
			case o := <-w:
				ended++
				wantDeadlock(t, o, "x>y", "y>x")
			default:
			}
		}
		if ended != 1 {
			t.Errorf("%d waits of the circle have ended, want 1", ended)
		}
		time.Sleep(20 * time.Second) // those that give up have given up
		mustRelease(t, y)
		mustRelease(t, x)
	})
}

// TestWriterAheadThatGivesUp: a nested reader waits behind a writer of its process. The writer gives up, and the
// leader of the local queue stays, as a reader. The registration says that the reader waits for other readers, which
// is over: it goes in the next round, and the wait is registered again when it has been the same for a while.
func TestWriterAheadThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.RWMutex("y").Writer().Acquire(t.Context()))
		passing(t, a.RWMutex("y").Reader()) // it leads
		go func() {
			if _, err := a.RWMutex("y").Writer().Acquire(t.Context(), zklock.WithWait(1700*time.Millisecond)); err == nil {
				t.Error("acquired")
			}
		}()
		synctest.Wait()
		w := nested(t, x, a.RWMutex("y").Reader())
		for _, s := range []struct {
			after time.Duration
			want  int
		}{{1600 * time.Millisecond, 1}, {700 * time.Millisecond, 0}, {1200 * time.Millisecond, 1}} {
			time.Sleep(s.after)
			if n := registered(e); n != s.want {
				t.Errorf("%v later %d waits are registered, want %d", s.after, n, s.want)
			}
		}
		goesOn(t, y, w, x)
	})
}
