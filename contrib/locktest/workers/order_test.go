package workers_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/worker"
)

// TestKazooGrantsBeforeItLoses: the worker of kazoo writes granted before its listener can report the loss of that hold. The
// kazoo of the test ends the session as soon as the worker has noted a hold.
func TestKazooGrantsBeforeItLoses(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("ZKLOCK_TEST_REQUIRED") == "" {
		t.Skip("python3 is not installed, which .ci/install does")
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "kazoo/worker.py")
	cmd.Env = append(os.Environ(), "PYTHONPATH=testdata", "PYTHONDONTWRITEBYTECODE=1", worker.ServersEnv+"=none", worker.TTLEnv+"=4s")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	says := func(line string) {
		t.Helper()
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	answers := json.NewDecoder(stdout)
	hears := func(want string) {
		t.Helper()
		var m worker.Message
		if err := answers.Decode(&m); err != nil || m.Op != want {
			t.Fatalf("the worker wrote %+v, %v, want %s", m, err, want)
		}
	}
	hears(worker.Ready)
	says(`{"op":"acquire","id":7,"name":"a"}`)
	hears(worker.Granted)
	hears(worker.Lost)
	says(`{"op":"check","id":7,"name":"a"}`)
	hears(worker.Lost)
	says(`{"op":"release","id":7,"name":"a"}`)
	hears(worker.Released)
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
