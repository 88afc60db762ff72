package inspect

import (
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// silence is how long the ensemble may take for an answer before the page says that there is none.
const silence = 3 * time.Second

// pulse knows whether the ensemble answers. The client's errors are for calls, which wait for
// connect_timeout; a reader of the page must know earlier.
type pulse struct {
	mu      sync.Mutex
	reading int       // guarded by mu; readings under way
	failed  bool      // guarded by mu; the newest reading to end has failed
	asked   time.Time // guarded by mu; when the readings under way began to be without an answer
	last    time.Time // guarded by mu; the newest answer
}

// begin counts a reading.
func (p *pulse) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading++; p.reading == 1 {
		p.asked = time.Now()
	}
}

// answer notes that the ensemble has answered.
func (p *pulse) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	p.asked, p.failed = p.last, false
}

// end ends a reading, with its error if the ensemble did not answer.
func (p *pulse) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading--
	p.failed = err != nil
}

// silent returns since when the ensemble has not answered; the zero time if it does. last is the
// newest answer, or the time of the question if there was none.
func (p *pulse) silent(c *zklock.Client) (since time.Time) {
	st := c.Stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed || st.Open > 0 && st.Connected == 0 || p.reading > 0 && time.Since(p.asked) > silence {
		if p.last.IsZero() {
			return p.asked
		}
		return p.last
	}
	return time.Time{}
}

// fail notes that the ensemble does not answer.
func (p *pulse) fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
}
