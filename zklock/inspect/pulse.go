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
	ended   time.Time // guarded by mu; when the newest reading ended
	failed  bool      // guarded by mu; the newest reading to end has failed
	asked   time.Time // guarded by mu; the newest answer, or the first question after it
}

// begin counts a reading. A failure of long ago, when a page was open last, says nothing about now.
func (p *pulse) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reading++; p.reading == 1 && (!p.failed || time.Since(p.ended) > 3*acrossEvery) {
		p.asked, p.failed = time.Now(), false
	}
}

// answer notes that the ensemble has answered.
func (p *pulse) answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.failed = time.Now(), false
}

// end ends a reading, with its error if the ensemble did not answer.
func (p *pulse) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reading--
	p.ended, p.failed = time.Now(), err != nil
}

// silent returns since when the ensemble has not answered; the zero time if it does.
func (p *pulse) silent(c *zklock.Client) (since time.Time) {
	st := c.Stats()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed || st.Open > 0 && st.Connected == 0 || p.reading > 0 && time.Since(p.asked) > silence {
		return p.asked
	}
	return time.Time{}
}

// fail notes that the ensemble does not answer.
func (p *pulse) fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
}
