package faultdriver_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The second create is executed, but its reply is lost: the caller cannot know whether the
// node exists now.
func ExampleWrap() {
	ctx := context.Background()
	ensemble := memdriver.New()
	defer ensemble.Close()

	faults := faultdriver.On(faultdriver.Create, faultdriver.Nth(2, faultdriver.LoseReply()))
	fmt.Println(faults)
	connector := faultdriver.Wrap(ensemble.Connector(), faults)
	defer connector.Close()
	session, err := connector.Connect(ctx, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)

	everyone := driver.OpenACL(driver.PermAll)
	for _, path := range []string{"/a", "/b"} {
		_, err := session.Create(ctx, path, nil, driver.Ephemeral, everyone)
		fmt.Println(path, "unknown outcome:", errors.Is(err, driver.ErrConnLoss))
	}
	names, _, err := session.Children(ctx, "/")
	fmt.Println(len(names) >= 2, err)
	// Output:
	// on(create, nth(2, lose-reply))
	// /a unknown outcome: false
	// /b unknown outcome: true
	// true <nil>
}

// A delete is executed long after its caller has given it up. By then the node was deleted by
// another request and created again, so the late delete removes the new node.
func ExampleLate() {
	ctx := context.Background()
	ensemble := memdriver.New()
	defer ensemble.Close()

	var gate faultdriver.Gate
	faults := faultdriver.Once(faultdriver.On(faultdriver.Delete, faultdriver.Late(&gate)))
	connector := faultdriver.Wrap(ensemble.Connector(), faults)
	defer connector.Close()
	session, err := connector.Connect(ctx, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)

	everyone := driver.OpenACL(driver.PermAll)
	create := func() { _, err = session.Create(ctx, "/node", nil, driver.Ephemeral, everyone) }
	create()
	fmt.Println("late:", errors.Is(session.Delete(ctx, "/node", driver.AnyVersion), driver.ErrConnLoss))
	fmt.Println("again:", session.Delete(ctx, "/node", driver.AnyVersion))
	create()
	fmt.Println("released:", gate.Release())
	_, err = session.Get(ctx, "/node")
	fmt.Println("node gone:", errors.Is(err, driver.ErrNoNode))
	// Output:
	// late: true
	// again: <nil>
	// released: 1
	// node gone: true
}

// A Log shows, after a run, which faults have struck. A Toggle is switched off at the end, so
// that a client can recover before the test checks the result.
func ExampleLog() {
	toggle := faultdriver.NewToggle(faultdriver.Random(42, 0.5, faultdriver.Drop(), faultdriver.LoseReply()))
	log := faultdriver.NewLog(faultdriver.Path("/locks/...", faultdriver.Writes(toggle)))

	toggle.On()
	for i := range 4 {
		log.Inject(faultdriver.Op{Kind: faultdriver.Set, Paths: []string{"/locks/a"}, Seq: uint64(i + 1)})
		log.Inject(faultdriver.Op{Kind: faultdriver.Set, Paths: []string{"/other"}})
	}
	toggle.Off()
	log.Inject(faultdriver.Op{Kind: faultdriver.Set, Paths: []string{"/locks/a"}, Seq: 5})
	fmt.Print(log.Text())
	// Output:
	// path(/locks/..., writes(toggle(random(seed=42, rate=0.5, drop, lose-reply)))): 3 struck
	// 	#1 set /locks/a: drop
	// 	#2 set /locks/a: lose-reply
	// 	#4 set /locks/a: drop
}

// A schedule that does not depend on the order of operations: each first attempt at a write is
// lost, and each second one succeeds.
func ExampleIf() {
	first := func(op faultdriver.Op) bool { return op.Attempt == 1 }
	fmt.Println(faultdriver.If("first attempt", first, faultdriver.Writes(faultdriver.Drop())))
	// Output:
	// if(first attempt, writes(drop))
}

// Every fault and every combinator prints itself.
func ExampleAny() {
	second := 2 * time.Second
	for _, inj := range []faultdriver.Injector{
		faultdriver.First(3, faultdriver.Fail(driver.ErrNoAuth)),
		faultdriver.After(2, faultdriver.Any(faultdriver.NotSent(), faultdriver.Hang())),
		faultdriver.Random(1, 0.5, faultdriver.Delay(second), faultdriver.DelayReply(second)),
		faultdriver.Script(faultdriver.None(), faultdriver.HangReply(), faultdriver.LateAfter(second)),
		faultdriver.On(faultdriver.Get, faultdriver.LoseEvent()),
		faultdriver.On(faultdriver.Watch, faultdriver.DelayEvent(second)),
		faultdriver.NewCounter(faultdriver.Drop()),
	} {
		fmt.Println(inj)
	}
	// Output:
	// first(3, fail("not authorized"))
	// after(2, any(not-sent, hang))
	// random(seed=1, rate=0.5, delay(2s), delay-reply(2s))
	// script(none, hang-reply, late-after(2s))
	// on(get, lose-event)
	// on(watch, delay-event(2s))
	// counter(drop)
}
