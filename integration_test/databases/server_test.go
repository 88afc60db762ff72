package databases

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// folderEnv is the environment variable with the folder of unpacked packages.
const folderEnv = "ZKLOCK_TEST_DATABASES"

// patience bounds every wait of a test. It does not test speed: a test that reaches it has
// found a hang.
const patience = 2 * time.Minute

// places are the folders of the databases' programs in Debian's packages, below the root of the
// system or below folderEnv's folder.
var places = []string{"usr/lib/postgresql/*/bin", "usr/sbin", "usr/bin"}

// errMissing means that a database cannot be started on this machine.
var errMissing = errors.New("it is not installed")

// find returns the path of a program.
func find(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, root := range []string{os.Getenv(folderEnv), "/"} {
		for _, place := range places {
			found, err := filepath.Glob(filepath.Join(root, place, name))
			if err != nil {
				return "", err
			}
			if root != "" && len(found) > 0 {
				return found[len(found)-1], nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w", name, errMissing)
}

// server is a running database server.
type server struct {
	folder string // of its data and its socket
	cmd    *exec.Cmd
	log    bytes.Buffer
	done   chan struct{} // closed when the server has ended
	stop   os.Signal     // ends it at once
}

// newServer makes the folder of a server.
func newServer(stop os.Signal) (*server, error) {
	folder, err := os.MkdirTemp("", "zklock-db-")
	if err != nil {
		return nil, err
	}
	s := &server{folder: folder, stop: stop}
	if err := giveAway(folder); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// command returns a command that runs in the server's folder.
func (s *server) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = s.folder
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+s.folder)
	if libraries := unpackedLibraries(); libraries != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+libraries)
	}
	restrict(cmd)
	return cmd
}

// unpackedLibraries returns the folders of the libraries of unpacked packages.
func unpackedLibraries() string {
	found, err := filepath.Glob(filepath.Join(os.Getenv(folderEnv), "usr/lib/*-linux-gnu*"))
	if err != nil || os.Getenv(folderEnv) == "" || len(found) == 0 {
		return ""
	}
	return found[0]
}

// prepare runs a program to its end.
func (s *server) prepare(path string, args ...string) error {
	if out, err := s.command(path, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", path, err, out)
	}
	return nil
}

// start starts the server's program, and waits until the database answers.
func (s *server) start(db *sql.DB, path string, args ...string) error {
	s.cmd = s.command(path, args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.WaitDelay = 10 * time.Second // for children of the server that keep its output open
	s.done = make(chan struct{})
	started := make(chan error)
	go func() {
		// The kernel kills the server when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // a signal ends it
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return err
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ping(db)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.done:
			return fmt.Errorf("%s has ended:\n%s", path, s.log.Bytes())
		case <-limit.C:
			return fmt.Errorf("%s does not answer after %v: %w", path, patience, err)
		}
	}
}

// ping asks the database for an answer, and does not wait long for it.
func ping(db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return db.PingContext(ctx)
}

// close ends the server and removes its folder.
func (s *server) close() error {
	if s.done != nil {
		_ = s.cmd.Process.Signal(s.stop) // an error means that it has ended already
		kill := time.AfterFunc(patience/4, func() { _ = s.cmd.Process.Kill() })
		<-s.done
		kill.Stop()
	}
	return os.RemoveAll(s.folder)
}

// startPostgres starts PostgreSQL, and returns the server and its data source name.
func startPostgres() (*server, string, error) {
	initdb, err := find("initdb")
	if err == nil {
		initdb, err = filepath.EvalSymlinks(initdb)
	}
	if err != nil {
		return nil, "", err
	}
	s, err := newServer(syscall.SIGQUIT) // without a checkpoint
	if err != nil {
		return nil, "", err
	}
	source := "user=zklock database=postgres sslmode=disable host=" + s.folder
	data := filepath.Join(s.folder, "data")
	err = s.prepare(initdb, "-D", data, "-U", "zklock", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8")
	if err == nil {
		err = s.startWith("pgx", source, filepath.Join(filepath.Dir(initdb), "postgres"), "-D", data, "-c", "listen_addresses=",
			"-c", "unix_socket_directories="+s.folder, "-c", "fsync=off", "-c", "lock_timeout=60s", "-c", "deadlock_timeout=100ms", "-c", "jit=off")
	}
	return s.orClosed(source, err)
}

// startMariaDB starts MariaDB, and returns the server and its data source name. The server
// has no users and no rights: the folder of its socket protects it.
func startMariaDB() (*server, string, error) {
	mariadbd, err := find("mariadbd")
	if err != nil {
		return nil, "", err
	}
	s, err := newServer(os.Kill)
	if err != nil {
		return nil, "", err
	}
	base := filepath.Dir(filepath.Dir(mariadbd))
	data, socket := filepath.Join(s.folder, "data"), filepath.Join(s.folder, "socket")
	source := "root@unix(" + socket + ")/test"
	err = s.prepare("mkdir", "-p", filepath.Join(data, "test")) // the folder of a database
	if err == nil {
		err = s.startWith("mysql", source, mariadbd, "--no-defaults", "--basedir="+base, "--datadir="+data, "--skip-grant-tables",
			"--skip-networking", "--socket="+socket, "--pid-file="+filepath.Join(s.folder, "pid"),
			"--innodb-flush-log-at-trx-commit=0", "--lock-wait-timeout=60", "--innodb-lock-wait-timeout=60", "--loose-innodb-snapshot-isolation=OFF")
	}
	return s.orClosed(source, err)
}

// startWith starts the server, and waits until it answers on a data source.
func (s *server) startWith(driver, source, path string, args ...string) error {
	db, err := sql.Open(driver, source)
	if err != nil {
		return err
	}
	defer db.Close()
	return s.start(db, path, args...)
}

// orClosed returns the server, or closes it after an error.
func (s *server) orClosed(source string, err error) (*server, string, error) {
	if err != nil {
		return nil, "", errors.Join(err, s.close())
	}
	return s, source, nil
}

// required ends the test after an error of starting a database: it is skipped if the
// database is not installed and need not be.
func required(t *testing.T, database string, err error) {
	t.Helper()
	switch {
	case errors.Is(err, errMissing) && os.Getenv(ensemble.RequiredEnv) != "1":
		t.Skipf("%s: %v: run .ci/databases FOLDER and set %s=FOLDER (with %s=1 this test would fail)", database, err, folderEnv, ensemble.RequiredEnv)
	case err != nil:
		t.Fatalf("%s: %v", database, err)
	}
}
