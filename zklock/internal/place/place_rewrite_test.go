package place

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// asked is a hold that asked for its place at a time.
type asked struct {
	idleHold
	since int64
}

func (d asked) Origin() Origin               { return Origin{Label: "next", Since: time.UnixMilli(d.since)} }
func (d asked) RecallHandler() RecallHandler { return nil }

// A place's node was created a minute late. Whatever describes another holder in its data, they still
// say so.
func TestDataOfAnotherHolderStillSayHowLateTheNodeIs(t *testing.T) {
	const sent, created = 1_000_000, 1_060_000
	for what, change := range map[string]func(*Place, *queue.Data){
		"describe": func(p *Place, d *queue.Data) { p.describe(d, nil) },
		"Relabel":  (*Place).Relabel,
	} {
		p := &Place{Desk: &Desk{Session: &session.Session{}}, nodes: []*ownNode{{}}}
		p.hold, p.turn = asked{since: created + 5000}, 2
		d := queue.Data{Since: sent}
		if change(p, &d); d.Since != created+5000 || d.Label != "next" {
			t.Fatalf("%s has not asked the holder: %+v", what, d)
		}
		if late := d.Late(created); late != created-sent {
			t.Errorf("%s: the node is shown as %d ms late, want %d: %+v", what, late, created-sent, d)
		}
	}
}
