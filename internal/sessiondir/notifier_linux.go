package sessiondir

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
)

// notifier reports the files of a directory that a process has closed. The kernel does that, too, for
// a process that dies.
type notifier struct {
	f *os.File // nil if the machine gives no more notifiers: then files are only looked at now and then
}

// reserve returns a descriptor whose number a notifier takes over. When a process dies, the kernel
// gives back its newest descriptors first, and needs some 15 ms for an inotify. The flocks of
// sessions' files must not wait for that, so the notifier's number is lower than theirs. The
// descriptor is -1 if there is none left.
func reserve() int {
	fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// newNotifier returns a notifier for d. It has the descriptor that d has kept for it.
func newNotifier(d *directory) *notifier {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return &notifier{}
	}
	if low := int(d.low.Swap(-1)); low >= 0 {
		if syscall.Dup3(fd, low, syscall.O_CLOEXEC) == nil {
			fd, low = low, fd
		}
		_ = syscall.Close(low) // the notifier has the other number, too, or cannot have this one
	}
	n := &notifier{os.NewFile(uintptr(fd), "inotify")}
	dir, err := d.root.Open(".")
	if err == nil {
		defer dir.Close()
		// By its descriptor, so that it is this directory, whatever has its path now.
		_, err = syscall.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(int(dir.Fd())), syscall.IN_CLOSE_WRITE)
	}
	if err != nil {
		n.close()
		return &notifier{}
	}
	return n
}

func (n *notifier) close() {
	if n.f != nil {
		_ = n.f.Close()
	}
}

// rest is the longest time between two looks at all files: a notice that was missed costs no more.
const rest = time.Second

// wait returns the names of files that may be free; all says that any may be. It says so from the
// instant until on, and when ctx ends.
func (n *notifier) wait(ctx context.Context, until time.Time) (names []string, all bool) {
	if n.f == nil {
		sleep(ctx, rest/10)
		return nil, true
	}
	if err := n.f.SetReadDeadline(until); err != nil {
		sleep(ctx, rest/10)
		return nil, true
	}
	defer context.AfterFunc(ctx, func() { _ = n.f.SetReadDeadline(time.Unix(1, 0)) })()
	buf := make([]byte, 64<<10)
	got, err := n.f.Read(buf)
	if err != nil {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			sleep(ctx, rest/10)
		}
		return nil, true
	}
	for b := buf[:got]; len(b) >= syscall.SizeofInotifyEvent; {
		mask, length := binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
		b = b[syscall.SizeofInotifyEvent:]
		name, _, _ := bytes.Cut(b[:length], []byte{0})
		b = b[length:]
		all = all || mask&syscall.IN_Q_OVERFLOW != 0
		if isSession(string(name)) {
			names = append(names, string(name))
		}
	}
	return names, all
}
