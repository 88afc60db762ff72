package judge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	"github.com/zklock/go-zklock/contrib/locktest/txnlog"
)

// TestJudgeServers: one process has session 0x1 and holds a from 2 s to 8 s; by the logs, the turn of its contender
// begins at 1.9 s, and its session expires at 9 s. Each change below is a mistake of a library, but for the last ones.
func TestJudgeServers(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	at := func(seconds float64) int64 { return int64(seconds * 1e9) }
	when := func(seconds float64) time.Time { return began.Add(time.Duration(at(seconds))) }
	type run struct {
		sure, granted float64
		token         history.Token
		shared        bool
		stay, other   txnlog.Stay
		fault         string
	}
	for _, c := range []struct {
		what string
		make func(*run)
		want judge.Servers
	}{
		{"nothing", func(*run) {}, judge.Servers{Judged: 1, Expired: 1, Least: time.Second}},
		{"a lease that is too long", func(r *run) { r.sure = 9.1 }, judge.Servers{Judged: 1, Outlived: 1, Expired: 1, Least: -100 * time.Millisecond}},
		{"one that is as long as it may be", func(r *run) { r.sure = 9 }, judge.Servers{Judged: 1, Expired: 1}},
		{"a grant before the turn", func(r *run) { r.granted = 1.8 }, judge.Servers{Judged: 1, Early: 1}},
		{"a grant without a turn", func(r *run) { r.stay.Turn = time.Time{} }, judge.Servers{Judged: 1, Early: 1}},
		{"a grant after the node was deleted", func(r *run) { r.stay.Gone, r.stay.Expired = when(0.9), false }, judge.Servers{Judged: 1, Early: 1}},
		{"a token that is one too small", func(r *run) { r.token = "0000000100000006.00000000" }, judge.Servers{Judged: 1, Tokens: 1}},
		{"the right token", func(r *run) { r.token = "0000000100000007.00000001" }, judge.Servers{Judged: 1, Expired: 1, Least: time.Second}},
		{"a reader in a writer's node whose data do not say so yet", func(r *run) {
			r.token, r.shared, r.stay.SharedTurn, r.stay.Turn = "0000000100000007.00000000", true, when(1.9), when(2.1)
		}, judge.Servers{Judged: 1, Expired: 1, Least: time.Second}},
		{"the same with a writer ahead", func(r *run) {
			r.token, r.shared, r.stay.SharedTurn, r.stay.Turn = "0000000100000007.00000000", true, when(2.1), when(2.1)
		}, judge.Servers{Judged: 1, Early: 1}},
		{"a writer, whose turn as a reader has come", func(r *run) {
			r.token, r.stay.SharedTurn, r.stay.Turn = "0000000100000007.00000000", when(1.9), when(2.1)
		}, judge.Servers{Judged: 1, Early: 1}},
		{"a reader of a library without tokens, which may be in a writer's node", func(r *run) {
			r.shared, r.stay.SharedTurn, r.stay.Turn = true, when(1.9), when(2.1)
		}, judge.Servers{Judged: 1, Early: 1}},
		{"a node of another process only", func(r *run) { r.stay.Session = 2 }, judge.Servers{Unknown: 1}},
		{"a node of another name only", func(r *run) { r.stay.Name = "b" }, judge.Servers{Unknown: 1}},
		{"a deletion meanwhile", func(r *run) { r.stay.Gone, r.stay.Expired = when(7), false }, judge.Servers{Judged: 1, Outlived: 1}},
		{"a second contender of the process", func(r *run) { r.other.Session = 1 }, judge.Servers{Judged: 1, Expired: 1, Least: time.Second}},
		{"a clock that jumped", func(r *run) { r.sure, r.fault = 9.1, "clock of a server jumps" }, judge.Servers{Judged: 1, Jumped: true}},
	} {
		r := run{sure: 8, granted: 2, stay: txnlog.Stay{Name: "a", Path: "/r/a/x", Session: 1, Zxid: 0x100000007, Created: when(1.5), Turn: when(1.9), Gone: when(9), Expired: true}}
		r.other = txnlog.Stay{Name: "a", Path: "/r/a/y", Session: 2, Zxid: 0x100000009, Created: when(1.6), Turn: when(9), Gone: when(9.5)}
		c.make(&r)
		events := []history.Event{
			{Kind: history.Clock, Wall: began.UnixNano()},
			{Kind: history.Session, Worker: 1, Reason: "0x1", At: 1},
			{Kind: history.Session, Worker: 2, Reason: "0x2", At: 2},
			{Kind: history.Acquire, ID: 1, Worker: 1, Name: "a", At: at(1), Shared: r.shared},
			{Kind: history.Granted, ID: 1, Worker: 1, Name: "a", At: at(r.granted), Token: r.token},
			{Kind: history.Check, ID: 1, Worker: 1, Name: "a", At: at(r.sure)},
			{Kind: history.Held, ID: 1, Worker: 1, Name: "a", At: at(r.sure) + 5e8},
		}
		if r.fault != "" {
			events = append(events, history.Event{Kind: history.Fault, Server: 1, Reason: r.fault, At: at(10)})
		}
		got := judge.JudgeServers(events, []*txnlog.Stay{&r.stay, &r.other})
		got.Stuck = nil
		if got.Judged != c.want.Judged || got.Unknown != c.want.Unknown || got.Early != c.want.Early || got.Tokens != c.want.Tokens || got.Outlived != c.want.Outlived ||
			got.Expired != c.want.Expired || got.Least != c.want.Least || got.Jumped != c.want.Jumped {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
		if passed := c.want.Early+c.want.Tokens+c.want.Outlived == 0 && c.want.Judged > 0; got.Passed() != passed {
			t.Errorf("%s: passed is %v", c.what, !passed)
		}
	}
	stuck := txnlog.Stay{Name: "a", Path: "/r/a/x", Session: 1, Turn: when(1), Data: []byte("host")}
	if got := judge.JudgeServers(nil, []*txnlog.Stay{&stuck}); len(got.Stuck) != 1 || !strings.Contains(got.Stuck[0], "/r/a/x of session 0x1") {
		t.Errorf("stuck: %q", got.Stuck)
	}
}
