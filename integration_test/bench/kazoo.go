package main

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/zklock/go-zklock/integration_test/kazoo"
)

//go:embed kazoo/kazoo_bench.py
var kazooSource []byte

// unpackKazoo writes the worker that uses kazoo into dir, and returns a function that makes
// its command. An error names the missing part.
func unpackKazoo(dir, hosts string) (start func() (*exec.Cmd, error), version string, err error) {
	python, err := kazoo.Find()
	if err != nil {
		return nil, "", err
	}
	source := filepath.Join(dir, "kazoo_bench.py")
	if err := os.WriteFile(source, kazooSource, 0o644); err != nil {
		return nil, "", err
	}
	return func() (*exec.Cmd, error) { return python.Command(source, hosts), nil }, python.Version, nil
}
