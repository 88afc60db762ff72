package memdriver

import "github.com/zklock/go-zklock/internal/memcontrol"

// controls are what an Ensemble can do for tests of this project only; see memcontrol.Of.
type controls struct{ *Ensemble }

var _ memcontrol.Controls = controls{}

func init() {
	memcontrol.Provide(func(ensemble any) memcontrol.Controls { return controls{ensemble.(*Ensemble)} })
}

// Journal implements memcontrol.Controls.
func (e controls) Journal(f func(memcontrol.Transaction)) {
	e.enter()
	defer e.leave()
	e.config.journal = f
}
