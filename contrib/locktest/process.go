package locktest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/internal/child"
	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// process is one process of a worker. Its methods are safe for concurrent use.
type process struct {
	number  int
	history *history.Recorder
	child   *child.Process
	stdin   *os.File
	stdout  *os.File
	ready   chan struct{} // closed when the worker is ready
	ended   chan struct{} // closed when the worker's output has ended: no answer follows
	holds   atomic.Int32  // locks that the process holds, as far as the clients know
	died    sync.Once     // the end is noted once
	ending  atomic.Bool   // the process may end by itself: see end
	late    atomic.Pointer[lateWrite]

	writing sync.Mutex
	out     *json.Encoder // guarded by writing

	mu    sync.Mutex
	boxes map[int]*box // of the acquisitions under way, by id; nil: its client has given it up; guarded by mu
	fault error        // a mistake in the protocol; guarded by mu
}

// lateWrite is a write that a fault holds up, as if the process that does it were stopped.
type lateWrite struct {
	reached chan struct{} // closed when a client is about to write
	resume  chan struct{} // closed when it may
}

// beforeWrite waits if a fault wants to stop the process at this moment.
func (p *process) beforeWrite(ctx context.Context) {
	if l := p.late.Swap(nil); l != nil {
		close(l.reached)
		select {
		case <-l.resume:
		case <-ctx.Done():
		}
	}
}

// box has the answers to one acquisition.
type box struct {
	name    string
	answers chan worker.Message
	loss    atomic.Bool // one of the answers is a loss, which the client has not read

	// The reader's.
	granted bool            // the grant was noted
	lost    bool            // a loss was noted
	early   *worker.Message // a loss that came before the grant; nil: there was none
}

// unread is how many answers of one acquisition wait for their client: at most one for each request,
// and a loss.
const unread = 16

// startProcess starts a process of a worker, with more variables. The process is ready later.
func startProcess(c Config, command, more, addrs []string, number int, h *history.Recorder) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), c.Env...), more...)
	cmd.Env = append(cmd.Env, worker.ServersEnv+"="+strings.Join(addrs, ","), worker.TTLEnv+"="+c.TTL.String())
	if c.Stderr != nil { // a nil *os.File in an interface would not be nil
		cmd.Stderr = c.Stderr
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, cmp.Or(err, in.Close(), stdin.Close())
	}
	cmd.Stdin, cmd.Stdout = in, out
	h.Note(history.Event{Kind: history.Start, Worker: number, Reason: strings.Join(command, " ")})
	started, err := child.Start(cmd)
	_, _ = in.Close(), out.Close() // the process has its own descriptors
	if err != nil {
		_, _ = stdin.Close(), stdout.Close()
		return nil, fmt.Errorf("start worker %s: %w", command[0], err)
	}
	p := &process{
		number: number, history: h, child: started, stdin: stdin, stdout: stdout, out: json.NewEncoder(stdin),
		ready: make(chan struct{}), ended: make(chan struct{}), boxes: make(map[int]*box),
	}
	go p.read() // ends with the process: see end
	return p, nil
}

// read reads the answers until the output ends. It notes each and gives it to its acquisition.
func (p *process) read() {
	defer close(p.ended)
	defer p.stdout.Close()
	for lines := json.NewDecoder(p.stdout); ; {
		var m worker.Message
		err := lines.Decode(&m)
		if err == nil {
			err = p.answer(m)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.mu.Lock()
				p.fault = fmt.Errorf("worker %d: %w", p.number, err)
				p.mu.Unlock()
			}
			why := history.Crashed
			if p.ending.Load() {
				why = ""
			}
			p.kill(why)
			return
		}
	}
}

// kinds are the answers and their events.
var kinds = map[string]history.Kind{
	worker.Granted: history.Granted, worker.Held: history.Held, worker.Lost: history.Lost,
	worker.Released: history.Released, worker.Failed: history.Failed,
}

// answer takes an answer. One whose acquisition is over is a loss that came too late, and is dropped; a grant is
// a mistake then, since no client would release it. A loss that comes before its grant is noted after it, since the
// judge looks for the end of a hold after its grant.
func (p *process) answer(m worker.Message) error {
	if m.Op == worker.Ready {
		return p.begin()
	}
	kind, ok := kinds[m.Op]
	if !ok {
		return fmt.Errorf("it answered with the unknown word %q", m.Op)
	}
	p.mu.Lock()
	b, known := p.boxes[m.ID]
	p.mu.Unlock()
	switch {
	case kind == history.Granted && (!known || b != nil && b.granted):
		return fmt.Errorf("it granted acquisition %d, which does not wait for a lock", m.ID)
	case b == nil:
		return nil
	case kind == history.Granted:
		b.granted = true
		if err := p.put(b, m); err != nil || b.early == nil {
			return err
		}
		return p.put(b, *b.early)
	case kind == history.Lost && !b.granted:
		b.early = &m
		return nil
	case kind != history.Failed && !b.granted:
		return fmt.Errorf("it answered acquisition %d with %q before it granted it", m.ID, m.Op)
	}
	return p.put(b, m)
}

// begin notes that the worker is ready.
func (p *process) begin() error {
	select {
	case <-p.ready:
		return errors.New("it said twice that it is ready")
	default:
		close(p.ready)
		return nil
	}
}

// put notes an answer and gives it to the client. The first loss is noted. A loss is dropped while the client has another
// one to read, so a client that has read a loss and asks again gets an answer.
func (p *process) put(b *box, m worker.Message) error {
	loses := m.Op == worker.Lost
	if !loses || !b.lost {
		p.history.Note(history.Event{Kind: kinds[m.Op], Worker: p.number, ID: m.ID, Name: b.name, Token: history.Token(m.Token), Reason: m.Reason})
	}
	b.lost = b.lost || loses
	if loses && b.loss.Swap(true) {
		return nil
	}
	select {
	case b.answers <- m:
		return nil
	default:
		return fmt.Errorf("it answered acquisition %d more than %d times", m.ID, unread)
	}
}

// open begins an acquisition, whose answers close forgets.
func (p *process) open(id int, name string) *box {
	b := &box{name: name, answers: make(chan worker.Message, unread)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boxes[id] = b
	return b
}

func (p *process) close(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.boxes, id)
}

// giveUp forgets an acquisition that has no answer yet. A grant may still come, and is dropped.
func (p *process) giveUp(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.boxes[id] = nil
}

// send notes a request and sends it. If the process has ended, there is no answer.
func (p *process) send(e history.Event) (at time.Time) {
	p.writing.Lock()
	defer p.writing.Unlock()
	at = time.Now()
	e.Worker = p.number
	p.history.Note(e)
	_ = p.out.Encode(worker.Message{Op: string(e.Kind), ID: e.ID, Name: e.Name, Holding: e.Holding, Shared: e.Shared, Permits: e.Permits})
	return at
}

// await waits for the next answer to an acquisition. It reports false if the process or ctx ends before.
func (p *process) await(ctx context.Context, b *box) (m worker.Message, ok bool) {
	select {
	case m = <-b.answers:
		return b.read(m), true
	default:
	}
	select {
	case m = <-b.answers:
		return b.read(m), true
	case <-p.ended:
	case <-ctx.Done():
	}
	return m, false
}

// read notes that the client has an answer.
func (b *box) read(m worker.Message) worker.Message {
	if m.Op == worker.Lost {
		b.loss.Store(false)
	}
	return m
}

// kill notes the end of the process, with a reason if it is a fault, and ends it. What the process has
// written is still read, but not what a child of it, that has the same output, writes afterwards.
func (p *process) kill(reason string) {
	p.died.Do(func() { p.history.Note(history.Event{Kind: history.Kill, Worker: p.number, Reason: reason}) })
	p.child.Kill()
	_ = p.stdout.SetReadDeadline(time.Now().Add(time.Second)) // fails if it is closed already
}

// end closes the input of the process, which makes it end by itself, and waits for that. After a limit
// it kills the process. It returns the mistake in the protocol, if there was one.
func (p *process) end(limit time.Duration) error {
	p.ending.Store(true)
	_ = p.stdin.Close() // it may have ended already
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.child.Done():
	case <-timer.C:
	}
	p.kill("")
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}
