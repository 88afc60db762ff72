package memdriver

import "time"

// disk is what a server's log is on. An entry counts once it was flushed. Entries that arrive while a flush is under way
// share the next one, as ZooKeeper groups them.
type disk struct {
	e        *Ensemble
	takes    time.Duration // how long a flush takes; 0: none is needed
	waiting  []func()      // called when the next flush has ended, in order
	flushing bool
}

// store calls stored when an entry that was written now is on the disk.
func (d *disk) store(stored func()) {
	if d.takes == 0 && !d.flushing {
		stored()
		return
	}
	d.waiting = append(d.waiting, stored)
	d.flush()
}

func (d *disk) flush() {
	if d.flushing || len(d.waiting) == 0 {
		return
	}
	group := d.waiting
	d.waiting, d.flushing = nil, true
	d.e.after(d.takes, func() {
		d.flushing = false
		for _, stored := range group {
			stored()
		}
		d.flush()
	})
}

// Flush implements memcontrol.Controls.
func (e controls) Flush(server int, takes time.Duration) {
	e.enter()
	defer e.leave()
	e.servers[server].disk.takes = max(takes, 0)
}
