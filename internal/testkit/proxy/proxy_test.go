package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

func TestForwardsEverythingBothWays(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() {
		client.Write(big)
		client.CloseWrite()
	}()
	server.deadline(patience)
	got, err := io.ReadAll(server)
	if err != nil || !bytes.Equal(got, big) {
		t.Fatalf("%d bytes of %d arrived, or the bytes differ, %v", len(got), len(big), err)
	}
	server.send("still open")
	client.receives("still open")
	server.Close()
	client.isAtEnd()
}

func TestResetIsPassedOn(t *testing.T) {
	client, server := newBench(t, proxy.Config{}).pair()
	server.SetLinger(0)
	server.Close()
	client.isReset()
}

func TestCutResetsAndRefusesUntilHeal(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	b.proxy.Cut()
	client.isReset()
	server.isReset()
	b.isRefused()
	b.proxy.Heal()
	b.pair()
}

func TestRefuseLeavesConnectionsAlone(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	b.proxy.Refuse()
	b.isRefused()
	client.send("a")
	server.receives("a")
}

func TestKillConnsWelcomesNewOnes(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	if n := b.proxy.KillConns(); n != 1 {
		t.Errorf("killed %d connections, want 1", n)
	}
	client.isReset()
	server.isReset()
	b.pair()
}

func TestKillEndLeavesTheOtherInSilence(t *testing.T) {
	for _, end := range []proxy.End{proxy.Client, proxy.Server} {
		b := newBench(t, proxy.Config{})
		dead, alive := b.pair()
		if end == proxy.Server {
			dead, alive = alive, dead
		}
		b.proxy.KillEnd(end)
		dead.isReset()
		alive.send("unheard")
		alive.hearsNothing()
		b.proxy.Heal()
		alive.isReset()
	}
}

func TestBlackholeSwallowsOneDirectionOnly(t *testing.T) {
	for _, d := range []proxy.Direction{proxy.Up, proxy.Down} {
		b := newBench(t, proxy.Config{})
		mouth, ear := b.pair()
		if d == proxy.Down {
			mouth, ear = ear, mouth
		}
		b.proxy.Blackhole(d)
		mouth.send("lost")
		ear.hearsNothing()
		ear.send("heard")
		mouth.receives("heard")
		b.proxy.Heal()
		mouth.isReset() // its stream has a hole
		ear.isReset()
	}
}

func TestBlackholeKeepsTheEndOfOneSideFromTheOther(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	b.proxy.Blackhole(proxy.Both)
	client.Close()
	server.hearsNothing()
	b.proxy.Heal()
	server.isReset()
}

func TestBlackholeLeavesConnectionsThatLostNothing(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	b.proxy.Blackhole(proxy.Both)
	server.hearsNothing()
	b.proxy.Heal()
	client.send("a")
	server.receives("a")
}

func TestConnectionsIntoABlackholeAreNotDialled(t *testing.T) {
	b := newBench(t, proxy.Config{})
	b.proxy.Blackhole(proxy.Up)
	client := b.dial()
	client.send("lost")
	client.hearsNothing()
	b.l.(*net.TCPListener).SetDeadline(time.Now().Add(silence))
	if nc, err := b.l.Accept(); err == nil {
		nc.Close()
		t.Error("the server was dialled")
	}
	b.proxy.Heal()
	client.isReset()
	b.pair()
}

func TestStallDeliversAtHeal(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	b.proxy.Stall(proxy.Up)
	client.send("late")
	server.hearsNothing()
	server.send("in time")
	client.receives("in time")
	b.proxy.Heal()
	server.receives("late")
}

func TestDelayIsLatencyNotBandwidth(t *testing.T) {
	const delay = 150 * time.Millisecond
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	b.proxy.Delay(proxy.Up, delay)
	began := time.Now()
	for range 20 { // one after the other they would take 3 s
		client.send("x")
	}
	server.receives(strings.Repeat("x", 20))
	if d := time.Since(began); d < delay || d >= 20*delay {
		t.Errorf("20 bytes sent at once arrived after %v, want a little over %v", d, delay)
	}
	server.send("y")
	client.receives("y")
}

func TestHalfCloseLeavesTheOtherDirection(t *testing.T) {
	b := newBench(t, proxy.Config{})
	client, server := b.pair()
	b.proxy.HalfClose(proxy.Down)
	client.isAtEnd()
	client.send("still here")
	server.receives("still here")
}

func TestPatienceOutlastsARefusal(t *testing.T) {
	target := fmt.Sprintf("127.0.0.1:%d", ensemble.FreePort(t)) // no other test listens there in the meantime
	for _, patience := range []time.Duration{0, patience} {
		p, err := proxy.Start(proxy.Config{Target: target, Patience: patience})
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, proxy: p}
		if patience == 0 {
			b.isRefused()
		} else {
			client := b.dial()
			client.hearsNothing()
			if b.l, err = net.Listen("tcp", target); err != nil {
				t.Fatal(err)
			}
			client.send("a")
			b.accept().receives("a")
			b.l.Close()
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRewriteReplacesTheClientsStream(t *testing.T) {
	b := newBench(t, proxy.Config{Rewrite: func(client io.Reader) io.Reader {
		return io.MultiReader(strings.NewReader("before "), client)
	}})
	client := b.dial()
	client.send("a")
	b.accept().receives("before a")
}
