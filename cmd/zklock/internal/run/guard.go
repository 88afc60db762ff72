//go:build unix

package run

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// guardName is the first argument of a guard, and on Linux the name of its process. It does
// not contain the name of this program: pkill with that name must not end both.
const guardName = "lock-guard"

// IsGuard reports whether this process was started to be a guard. Then it must call BeGuard and
// nothing else.
func IsGuard() bool { return len(os.Args) == 1 && os.Args[0] == guardName }

// guardWrapper is the descriptor of a guard and of a closer above the three standard ones: a socket that ends with
// the wrapper. The wrapper passes the files of its sessions through it, and the process answers with one byte when it
// works and has them. Files that the process has not taken out of the socket are open, too.
const guardWrapper = 3

// BeGuard waits for the wrapper's end and then kills the process group, and with it this
// process. It does not return.
func BeGuard() {
	beHelper(guardName)
	awaitWrapper()
	for {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
}

// beHelper makes this process one that the wrapper's end ends, and nothing else. Signals to the group
// are for the command. A stop cannot be ignored: the wrapper lets the process continue.
func beHelper(name string) {
	for n := syscall.Signal(1); n < 32; n++ {
		switch n {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG,
			syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP:
		default:
			signal.Ignore(n)
		}
	}
	nameProcess(name)
	_ = os.Chdir("/") // it must not keep a file system busy
}

// awaitWrapper gets the files of the wrapper's sessions, reports to the wrapper that this process works, and waits for the
// wrapper's end. If the wrapper ends before it has passed all files, there is no command.
func awaitWrapper() (files []*os.File) {
	var b [1]byte
	oob := make([]byte, syscall.CmsgSpace(4*filesAtOnce))
	for {
		n, got, _, _, err := syscall.Recvmsg(guardWrapper, b[:], oob, 0)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return files
		}
		files = append(files, received(oob[:got])...)
		if b[0] == lastFile {
			_, _ = syscall.Write(guardWrapper, b[:])
		}
	}
}

// The bytes that the wrapper writes to a guard or a closer.
const (
	lastFile  = 0
	moreFiles = 1
)

// filesAtOnce bounds the files in one message. The kernel's limit is 253.
const filesAtOnce = 100

// received returns the files that came with a message.
func received(oob []byte) (files []*os.File) {
	messages, _ := syscall.ParseSocketControlMessage(oob)
	for i := range messages {
		descriptors, _ := syscall.ParseUnixRights(&messages[i])
		for _, fd := range descriptors {
			files = append(files, os.NewFile(uintptr(fd), "session"))
		}
	}
	return files
}

// guardStart bounds the wait for a guard that was started. Without load, that takes some
// milliseconds. Only tests change it.
var guardStart = 5 * time.Second

// guard is the wrapper's view of its guard, or of its closer.
type guard struct {
	what  string
	pid   int
	alive *os.File // the socket to the process, which reads its end when this is closed
	ended bool     // it has ended, and is not collected
}

// end ends a guard that is not collected. It kills the guard before it closes the socket: a guard
// that reads the end of the socket kills its group.
func (g *guard) end() {
	_ = syscall.Kill(g.pid, syscall.SIGKILL)
	_ = g.alive.Close()
}

// reap ends a guard that is not collected, and waits for its end.
func (g *guard) reap() {
	g.end()
	for {
		if _, err := syscall.Wait4(g.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// startGuard starts a guard in a process group and returns when it works. group 0 means a
// new group, which the guard leads. The guard has files open until it ends. If startGuard returns a
// guard together with an error, the caller must end and collect that process.
func startGuard(group int, files []*os.File) (*guard, error) {
	g, err := forkGuard(group)
	if err != nil {
		return nil, err
	}
	return g, g.employ(files)
}

func forkGuard(group int) (*guard, error) { return fork("guard", []string{guardName}, group) }

// fork starts this program as a guard or a closer. It works once it has got files.
func fork(what string, args []string, group int) (*guard, error) {
	self, err := executable()
	if err != nil {
		return nil, fmt.Errorf("find the program for the %s: %w", what, err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open a file for the %s: %w", what, err)
	}
	defer null.Close()
	ours, theirs, err := sockets()
	if err != nil {
		return nil, fmt.Errorf("make a socket to the %s: %w", what, err)
	}
	defer theirs.Close()
	descriptors := []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd()}
	descriptors = closeOthers(descriptors)
	env := []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	env = append(env, filesForCloser()...)
	pid, err := syscall.ForkExec(self, args, &syscall.ProcAttr{
		Env:   env,
		Files: descriptors,
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pgid: group},
	})
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the %s: %w", what, err)
	}
	return &guard{what: what, pid: pid, alive: ours}, nil
}

// sockets returns the two ends of a connection.
func sockets() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range pair {
		syscall.CloseOnExec(fd)
	}
	_ = syscall.SetNonblock(pair[0], true) // so that await has a deadline
	return os.NewFile(uintptr(pair[0]), "wrapper"), os.NewFile(uintptr(pair[1]), "helper"), nil
}

// filesForCloser returns the environment variables that name the system's authorities and the files of
// Kerberos. The paths are absolute, since beHelper changes the folder.
func filesForCloser() (env []string) {
	for _, key := range []string{"SSL_CERT_FILE", "KRB5_CLIENT_KTNAME", "KRB5CCNAME"} {
		if value, set := os.LookupEnv(key); set {
			env = append(env, key+"="+absolute(strings.TrimPrefix(value, "FILE:")))
		}
	}
	for _, key := range []string{"SSL_CERT_DIR", "KRB5_CONFIG"} { // lists
		if value, set := os.LookupEnv(key); set {
			paths := filepath.SplitList(value)
			for i := range paths {
				paths[i] = absolute(paths[i])
			}
			env = append(env, key+"="+strings.Join(paths, string(filepath.ListSeparator)))
		}
	}
	return env
}

// absolute returns the absolute path of a file. An empty path is none, and stays.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path
}

// employ passes files to the process, and waits until it works.
func (g *guard) employ(files []*os.File) error {
	if err := g.give(files); err != nil {
		return err
	}
	return g.await()
}

// give passes files to the process, once. It does not wait until the process takes them.
func (g *guard) give(files []*os.File) error {
	for some := range slices.Chunk(files, filesAtOnce) {
		descriptors := make([]int, len(some))
		for i, f := range some {
			descriptors[i] = int(f.Fd())
		}
		if err := g.write(moreFiles, syscall.UnixRights(descriptors...)); err != nil {
			return err
		}
	}
	return g.write(lastFile, nil)
}

func (g *guard) write(b byte, oob []byte) error {
	conn, err := g.alive.SyscallConn()
	if err != nil {
		return fmt.Errorf("use the socket to the %s: %w", g.what, err)
	}
	failed := conn.Write(func(fd uintptr) bool {
		for {
			if err = syscall.Sendmsg(int(fd), []byte{b}, oob, nil, 0); err != syscall.EINTR {
				return err != syscall.EAGAIN
			}
		}
	})
	if err = cmp.Or(failed, err); err != nil {
		return fmt.Errorf("pass files to the %s: %w", g.what, err)
	}
	return nil
}

// await waits until the process works.
func (g *guard) await() error {
	_ = g.alive.SetReadDeadline(time.Now().Add(guardStart))
	if n, err := g.alive.Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("the %s does not work: %v", g.what, err)
	}
	return nil
}
