package memdriver

import "time"

// Backup implements memcontrol.Controls.
func (e controls) Backup() (restore func(down time.Duration)) {
	e.enter()
	defer e.leave()
	from := e.servers[0]
	if l := e.acting(); l != nil {
		from = l.srv
	}
	saved := from.tree.clone()
	for _, tx := range from.commits {
		if tx.kind != txnSync {
			saved.replay(tx)
		}
	}
	return func(down time.Duration) { e.restore(saved, down) }
}

// restore stops all servers, replaces their data and logs, and starts them when down has passed. As on
// real servers, the next leader numbers its transactions from those that it knows, so it assigns ids
// again that were lost.
func (e controls) restore(saved *tree, down time.Duration) {
	for i := range e.servers {
		e.Restart(i)
	}
	e.enter()
	defer e.leave()
	e.epoch = saved.zxid>>32 - 1 // an election raises it
	e.recorded = saved.zxid
	for _, s := range e.servers {
		s.tree, s.log, s.commits, s.epoch = saved.clone(), nil, nil, 0
		s.upAt = e.clock.now.Add(max(down, restartTime))
	}
	e.solo = len(e.servers) == 1 && e.servers[0].lag == 0
	if e.busy() {
		e.wake() // the restored data may have sessions where there were none: they have to expire
	}
}
