package judge_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// Worker 1 still believes in its lock after worker 2 has got it.
func Example() {
	events := []history.Event{
		{At: 1, Kind: history.Acquire, Worker: 1, ID: 1, Name: "a"},
		{At: 2, Kind: history.Granted, Worker: 1, ID: 1, Name: "a"},
		{At: 3, Kind: history.Acquire, Worker: 2, ID: 2, Name: "a"},
		{At: 4, Kind: history.Granted, Worker: 2, ID: 2, Name: "a"},
		{At: 5, Kind: history.Check, Worker: 1, ID: 1, Name: "a"},
		{At: 6, Kind: history.Check, Worker: 2, ID: 2, Name: "a"},
		{At: 7, Kind: history.Held, Worker: 1, ID: 1, Name: "a"},
		{At: 8, Kind: history.Held, Worker: 2, ID: 2, Name: "a"},
	}
	holds := judge.Holds(events)
	verdict := judge.Plain(holds)
	opinion, known := judge.Porcupine(holds, 0)
	fmt.Println(verdict.Overlaps, opinion.Exclusion, known, opinion.Agrees(verdict))
	fmt.Println(judge.Measure(events).Passed())
	// Output:
	// 1 false true true
	// false
}

func ExampleOverlapped() {
	events := []history.Event{
		{At: 1, Kind: history.Start, Worker: 1, Reason: "./one"},
		{At: 2, Kind: history.Start, Worker: 2, Reason: "./two"},
		{At: 3, Kind: history.Acquire, Worker: 1, ID: 1, Name: "a"},
		{At: 4, Kind: history.Granted, Worker: 1, ID: 1, Name: "a"},
		{At: 5, Kind: history.Acquire, Worker: 2, ID: 2, Name: "a"},
		{At: 6, Kind: history.Granted, Worker: 2, ID: 2, Name: "a"},
		{At: 7, Kind: history.Check, Worker: 1, ID: 1, Name: "a"},
		{At: 8, Kind: history.Held, Worker: 1, ID: 1, Name: "a"},
	}
	fmt.Println(judge.Overlapped(events))
	// Output: map[./one:1 ./two:0]
}

// The second process waits for the lock of the first one, which is killed.
func ExampleSuccessions() {
	events := []history.Event{
		{At: 1, Kind: history.Acquire, Worker: 1, ID: 1, Name: "a"},
		{At: 2, Kind: history.Granted, Worker: 1, ID: 1, Name: "a"},
		{At: 3, Kind: history.Acquire, Worker: 2, ID: 2, Name: "a"},
		{At: 4, Kind: history.Kill, Worker: 1, Reason: history.HolderKilled},
		{At: 1_000_000_004, Kind: history.Granted, Worker: 2, ID: 2, Name: "a"},
	}
	fmt.Println(judge.Successions(events))
	// Output: [1s]
}

// Two clients take two locks in opposite order. The library fails the second one's wait.
func ExampleMeasureDeadlocks() {
	events := []history.Event{
		{At: 1, Kind: history.Acquire, Worker: 1, ID: 1, Name: "a"},
		{At: 2, Kind: history.Granted, Worker: 1, ID: 1, Name: "a"},
		{At: 3, Kind: history.Acquire, Worker: 2, ID: 2, Name: "b"},
		{At: 4, Kind: history.Granted, Worker: 2, ID: 2, Name: "b"},
		{At: 5, Kind: history.Acquire, Worker: 1, ID: 3, Name: "b", Holding: 1},
		{At: 6, Kind: history.Acquire, Worker: 2, ID: 4, Name: "a", Holding: 2},
		{At: 1_000_000_006, Kind: history.Failed, Worker: 2, ID: 4, Name: "a", Reason: "deadlock"},
	}
	d := judge.MeasureDeadlocks(events)
	fmt.Println(d.Circles, d.Broken, d.Time(0.5), d.Passed())
	// Output: 1 1 1s true
}

// A hold by the logs of a server: its session ended 3.3 s after the grant.
func ExampleJudgeServers() {
	stays, err := judge.ReadStays([]string{"../txnlog/testdata"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, checked := range []int64{3e9, 4e9} {
		events := []history.Event{
			{At: 0, Kind: history.Clock, Wall: 1795976102e9},
			{At: 1, Kind: history.Session, Worker: 1, Reason: "0x10001a375640000"},
			{At: 2, Kind: history.Acquire, Worker: 1, ID: 1, Name: "orders/42"},
			{At: 1e9, Kind: history.Granted, Worker: 1, ID: 1, Name: "orders/42"},
			{At: checked, Kind: history.Check, Worker: 1, ID: 1, Name: "orders/42"},
			{At: checked + 1, Kind: history.Held, Worker: 1, ID: 1, Name: "orders/42"},
		}
		s := judge.JudgeServers(events, stays)
		fmt.Printf("judged %d, believed in after the znode was gone %d\n", s.Judged, s.Outlived)
	}
	// Output:
	// judged 1, believed in after the znode was gone 0
	// judged 1, believed in after the znode was gone 1
}

// A server falls silent while a lock is held, which is lost. From one grant to the next are 5 s.
func ExampleMeasureSilence() {
	second := int64(time.Second)
	s := judge.MeasureSilence([]history.Event{
		{At: 1, Kind: history.Acquire, ID: 1, Name: "a"},
		{At: second, Kind: history.Granted, ID: 1, Name: "a"},
		{At: 2 * second, Kind: history.Fault, Server: 1},
		{At: 3 * second, Kind: history.Acquire, ID: 2, Name: "b"},
		{At: 4 * second, Kind: history.Lost, ID: 1, Name: "a"},
		{At: 6 * second, Kind: history.Granted, ID: 2, Name: "b"},
		{At: 7 * second, Kind: history.Healed},
		{At: 8 * second, Kind: history.Calm},
	})
	fmt.Println(s.Lost, "of", s.Held, "lost, longest wait", s.Longest)
	// Output: 1 of 1 lost, longest wait 5s
}

// A client still believes in its lock half a second after another one has got it, while a clock is wrong.
func ExampleMistakes() {
	ms := func(n int64) int64 { return n * 1e6 }
	events := []history.Event{
		{At: ms(1), Kind: history.Start, Worker: 1, Reason: "./one"},
		{At: ms(2), Kind: history.Start, Worker: 2, Reason: "./two"},
		{At: ms(100), Kind: history.Acquire, Worker: 1, ID: 7, Name: "a"},
		{At: ms(110), Kind: history.Granted, Worker: 1, ID: 7, Name: "a", Token: "5"},
		{At: ms(200), Kind: history.Fault, Server: 2, Reason: "clock of a server jumps"},
		{At: ms(240), Kind: history.Acquire, Worker: 2, ID: 8, Name: "a"},
		{At: ms(250), Kind: history.Granted, Worker: 2, ID: 8, Name: "a", Token: "6"},
		{At: ms(260), Kind: history.Release, Worker: 2, ID: 8, Name: "a"},
		{At: ms(270), Kind: history.Released, Worker: 2, ID: 8, Name: "a"},
		{At: ms(280), Kind: history.Acquire, Worker: 2, ID: 9, Name: "a"},
		{At: ms(290), Kind: history.Granted, Worker: 2, ID: 9, Name: "a", Token: "7"},
		{At: ms(700), Kind: history.Check, Worker: 1, ID: 7, Name: "a"},
		{At: ms(701), Kind: history.Check, Worker: 2, ID: 9, Name: "a"},
		{At: ms(710), Kind: history.Held, Worker: 1, ID: 7, Name: "a"},
		{At: ms(711), Kind: history.Held, Worker: 2, ID: 9, Name: "a"},
		{At: ms(800), Kind: history.Healed, Server: 2},
	}
	for _, m := range judge.Mistakes(events) {
		fmt.Println(m)
	}
	drawn, err := judge.Explain(events, 7)
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(drawn) {
		fmt.Println(strings.TrimRight(line, " \n"))
	}
	// Output:
	// 0.250s  a: overlapped hold, acquisition 7 of process 1 (./one); by 8 (process 2), 9 (process 2); 50ms after "clock of a server jumps" of server 2 began
	//                                      0.050s to 0.770s, 9ms a column
	// a 7 (process 1)                           .==================================================================--------
	// a 8 (process 2)                                          .----
	// a 9 (process 2)                                               .==============================================--------
	// clock of a server jumps of server 2                  ################################################################
	//
	//     0.100s  acquire 7 a process 1
	//     0.110s  granted 7 a process 1 token 5
	//     0.200s  fault server 2 "clock of a server jumps"
	//     0.240s  acquire 8 a process 2
	//     0.250s  granted 8 a process 2 token 6
	//     0.260s  release 8 a process 2
	//     0.270s  released 8 a process 2
	//     0.280s  acquire 9 a process 2
	//     0.290s  granted 9 a process 2 token 7
	//     0.700s  check 7 a process 1
	//     0.701s  check 9 a process 2
	//     0.710s  held 7 a process 1
	//     0.711s  held 9 a process 2
}
