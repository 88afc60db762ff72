package gocronlock_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// slots is how many seconds TestShortJobEverySecond takes with slots: -slots=60 is a minute.
var slots = flag.Int("slots", 0, "the number of slots of TestShortJobEverySecond, each of a second; 0 skips it")

// fives starts five processes of a role. The last argument of each is its number.
func fives(t *testing.T, role string, args ...string) (processes []*fleet.Process) {
	t.Helper()
	for i := range 5 {
		processes = append(processes, fleet.Start(t, role, append(slices.Clone(args), strconv.Itoa(i))...))
	}
	return processes
}

// Five processes have a short job, and the test says when it is due for each: at once, or one
// after the other. With slots it runs once in each slot. Without slots every later process runs
// it again, which is issue 841 of gocron.
func TestShortJobRunsOncePerSlot(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	t.Run("slots", func(t *testing.T) {
		processes := fives(t, "due", e.URL("/slots", fleet.ShortSession()), "slots")
		for slot := range 20 {
			if runs := runsAtOnce(t, processes, slot); runs != 1 {
				t.Errorf("slot %d, all processes at once: %d runs, want 1", slot, runs)
			}
			if runs := runsInTurn(t, processes, slot); runs != 0 {
				t.Errorf("slot %d once more, one process after the other: %d runs, want none", slot, runs)
			}
		}
		for slot := 20; slot < 40; slot++ {
			// Another process is first each time.
			processes = append(processes[1:], processes[0])
			if runs := runsInTurn(t, processes, slot); runs != 1 {
				t.Errorf("slot %d, one process after the other: %d runs, want 1", slot, runs)
			}
		}
	})
	t.Run("no slots", func(t *testing.T) {
		processes := fives(t, "due", e.URL("/plain", fleet.ShortSession()), "plain")
		if runs := runsInTurn(t, processes, 0); runs != 5 {
			t.Errorf("one process after the other: %d runs, want 5: the test shows nothing", runs)
		}
	})
}

// runsAtOnce makes the job due in all processes at once, and returns how often it has run.
func runsAtOnce(t *testing.T, processes []*fleet.Process, slot int) (runs int) {
	t.Helper()
	for _, p := range processes {
		p.Send(strconv.Itoa(slot))
	}
	for _, p := range processes {
		n, err := strconv.Atoi(p.Expect("ran"))
		if err != nil {
			t.Fatal(err)
		}
		runs += n
	}
	return runs
}

// runsInTurn makes the job due in one process after the other, and returns how often it has run.
func runsInTurn(t *testing.T, processes []*fleet.Process, slot int) (runs int) {
	t.Helper()
	for i := range processes {
		runs += runsAtOnce(t, processes[i:i+1], slot)
	}
	return runs
}

// watched is a locker that reports each job that was unlocked.
type watched struct {
	gocron.Locker
	unlocked chan<- struct{}
}

func (w watched) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	l, err := w.Locker.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return watchedLock{l, w.unlocked}, nil
}

type watchedLock struct {
	gocron.Lock
	unlocked chan<- struct{}
}

func (w watchedLock) Unlock(ctx context.Context) error {
	defer func() { w.unlocked <- struct{}{} }()
	return w.Lock.Unlock(ctx)
}

// runDue is a process with a job that is due in a slot whenever the test sends the slot's number.
// The slots are of an hour. When the job is due, the processes' clocks are up to 20 minutes early
// or late.
func runDue(m *fleet.Member) error {
	number, err := strconv.Atoi(m.Args[2])
	if err != nil {
		return err
	}
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	var now time.Time
	var opts []gocronlock.Option
	if m.Args[1] == "slots" {
		opts = []gocronlock.Option{gocronlock.WithSlots(time.Hour), gocronlock.WithClock(func() time.Time { return now })}
	}
	decided := make(chan struct{})
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(watched{gocronlock.NewLocker(client, opts...), decided}))
	if err != nil {
		return err
	}
	scheduler.Start()
	defer scheduler.Shutdown()
	for {
		line, err := m.Await()
		if err != nil {
			return err
		}
		slot, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(slot)*time.Hour + time.Duration(number-2)*10*time.Minute)
		runs := 0
		_, err = scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() { runs++ }), gocron.WithName("short"),
			gocron.WithEventListeners(gocron.AfterLockError(func(uuid.UUID, string, error) { decided <- struct{}{} })))
		if err != nil {
			return err
		}
		<-decided // the job was skipped, or has run and was unlocked
		m.Say("ran", strconv.Itoa(runs))
	}
}

// Five processes have a job of a millisecond, every second, each at a different time of the
// second, by the clocks of gocron. It takes real seconds. In a slot in which a process had no answer, on a busy machine,
// the job may not run at all: that process may have got the slot. It never runs twice.
func TestShortJobEverySecond(t *testing.T) {
	if *slots == 0 {
		t.Skip("it takes as many seconds as there are slots: -slots=60")
	}
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	count := func(root, mode string, n int) (runs map[string]int, all int, unanswered map[string]bool) {
		first := time.Now().Add(4 * time.Second).Truncate(time.Second)
		runs, unanswered = make(map[string]int), make(map[string]bool)
		for _, p := range fives(t, "short", e.URL(root, fleet.ShortSession()), mode, strconv.FormatInt(first.UnixMilli(), 10), strconv.Itoa(n)) {
			for _, slot := range strings.Fields(p.Expect("ran")) {
				runs[slot]++
				all++
			}
			if failures := strings.TrimSpace(p.Expect("failed")); failures != "" {
				t.Log("the slots in which a process had no answer, and the last error:", failures)
				for _, slot := range strings.Fields(failures) {
					if _, err := strconv.Atoi(slot); err != nil {
						break // the error begins
					}
					unanswered[slot] = true
				}
			}
		}
		return runs, all, unanswered
	}
	runs, all, unanswered := count("/slots", "slots", *slots)
	t.Logf("with slots: %d runs in %d slots\n%v", all, *slots, e.Settings(5*time.Second, 5, "short"))
	for i := range *slots {
		slot := strconv.Itoa(i)
		if n := runs[slot]; n > 1 || n == 0 && !unanswered[slot] {
			t.Errorf("slot %d: %d runs, want 1", i, n)
		}
		delete(runs, slot)
	}
	if len(runs) > 0 {
		t.Errorf("the job has run in other slots: %v", runs)
	}
	_, plain, _ := count("/plain", "plain", 10)
	t.Logf("without slots: %d runs in 10 s", plain)
	if plain <= 10 {
		t.Error("without slots the job has run no more often than with them: the test shows nothing")
	}
}

// runShort is a process with a job of a millisecond, every second from a given time on. At the
// end it reports the slots of its runs, and the slots and errors of its failed attempts to
// lock.
func runShort(m *fleet.Member) error {
	var numbers [3]int
	for i, arg := range m.Args[2:] {
		var err error
		if numbers[i], err = strconv.Atoi(arg); err != nil {
			return err
		}
	}
	first := time.UnixMilli(int64(numbers[0]))                   // the first slot
	last := first.Add(time.Duration(numbers[1]-1) * time.Second) // the last slot
	early := time.Duration(numbers[2]) * 100 * time.Millisecond
	client, err := zklock.Open(m.Args[0])
	if err != nil {
		return err
	}
	defer client.Close()
	// The scheduler's goroutine that runs the job owns these: Lock, the job and the listener are
	// called one after the other.
	var slot string // the one that was asked for last
	var ran, failed []string
	why := ""
	opts := []gocronlock.Option{gocronlock.WithSlots(time.Second), gocronlock.WithClock(func() time.Time {
		now := time.Now()
		if now.After(last) {
			now = last // a scheduler that is stopped for a while gets no further slot
		}
		slot = strconv.Itoa(int(now.Sub(first).Round(time.Second) / time.Second))
		return now
	})}
	if m.Args[1] == "plain" {
		opts = nil
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronlock.NewLocker(client, opts...)))
	if err != nil {
		return err
	}
	_, err = scheduler.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(func() {
		<-time.After(time.Millisecond)
		ran = append(ran, cmp.Or(slot, "any"))
	}), gocron.WithName("short"), gocron.WithSingletonMode(gocron.LimitModeReschedule),
		gocron.WithStartAt(gocron.WithStartDateTime(first.Add(-early))),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			if slot != "" && !errors.Is(err, gocronlock.ErrDone) {
				failed, why = append(failed, slot), err.Error()
			}
		})))
	if err != nil {
		return err
	}
	scheduler.Start()
	<-time.After(time.Until(last.Add(500 * time.Millisecond))) // before the next run of any of the five
	if err := scheduler.Shutdown(); err != nil {               // waits for the job
		return err
	}
	m.Say("ran", ran...)
	m.Say("failed", append(failed, why)...)
	return nil
}

// A job of Once that takes too long gets the end of its context, and its error says why.
func TestOnceEndsAJobThatHangs(t *testing.T) {
	client, _ := zklocktest.New(t, zklock.WithLogger(nil))
	err := gocronlock.Once(client, "x", time.Hour, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, gocronlock.WithMaxHold(time.Millisecond))(t.Context())
	if !errors.Is(err, zklock.ErrMaxHold) {
		t.Errorf("Once: %v, want ErrMaxHold", err)
	}
}
