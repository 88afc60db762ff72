package main

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The output of two services on one ensemble is enough to draw the pictures.
func TestPictureOfTwoServices(t *testing.T) {
	dir := t.TempDir()
	args := []string{"run", "./picture", "-trace", filepath.Join(dir, "trace.svg"), "-panels", filepath.Join(dir, "panels.svg")}
	var wg sync.WaitGroup
	for _, name := range []string{"north", "south"} {
		file := filepath.Join(dir, name+".json")
		args = append(args, file)
		wg.Go(func() {
			out, err := os.Create(file)
			if err == nil {
				err = run(t.Context(), []string{"-url", "mem://" + t.Name(), "-name", name, "-demo", "5s", "-every", "500ms", "-stdout"}, out, io.Discard)
			}
			if err = errors.Join(err, out.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, words := range map[string][]string{
		"trace.svg":  {"zklock.wait", "zklock.hold", "process north", "process south", "the link of zklock.wait"},
		"panels.svg": {"Acquisitions by outcome", "acquired", "p99", "enqueue"},
	} {
		svg, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s is not XML: %v", file, err)
		}
		for _, word := range words {
			if !strings.Contains(string(svg), word) {
				t.Errorf("%s lacks %q", file, word)
			}
		}
	}
}

var update = flag.Bool("update", false, "write deadlock.svg from a run")

// Two services whose requests wait for each other are enough to draw the deadlock. One of the two fails.
func TestPictureOfADeadlock(t *testing.T) {
	dir := t.TempDir()
	picture := filepath.Join(dir, "deadlock.svg")
	args := []string{"run", "./picture", "-deadlock", picture}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var services, requests sync.WaitGroup
	var addresses []string
	for _, name := range []string{"north", "south"} {
		file := filepath.Join(dir, name+".json")
		args = append(args, file)
		log, to := io.Pipe()
		services.Go(func() {
			out, err := os.Create(file)
			if err == nil {
				err = run(ctx, []string{"-url", "mem://" + t.Name(), "-name", name, "-every", "500ms", "-stdout"}, out, to)
			}
			if err = errors.Join(err, out.Close(), to.Close()); err != nil {
				t.Error(err)
			}
		})
		line, err := bufio.NewReader(log).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, strings.Fields(line)[1])
	}
	codes := make(chan int, 2)
	for i, address := range addresses {
		requests.Go(func() {
			resp, err := http.Post(fmt.Sprintf("http://%s/orders/%d/move/%d?for=300ms", address, i+1, 2-i), "text/plain", nil)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			codes <- resp.StatusCode
		})
	}
	requests.Wait()
	cancel()
	services.Wait()
	http.DefaultClient.CloseIdleConnections()
	if a, b := <-codes, <-codes; a+b != http.StatusOK+http.StatusConflict {
		t.Errorf("statuses %d and %d, want 200 of one and 409 of the other", a, b)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	svg, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(svg, new(struct{})); err != nil {
		t.Errorf("not XML: %v", err)
	}
	for _, want := range []string{"The request that failed, process ", "The request that went on, process ", "deadlock: ", "holds orders/1 and waits for orders/2", "holds orders/2 and waits for orders/1"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if strings.Count(string(svg), "marker-end") != 2 {
		t.Errorf("the picture has %d links, want those to the holder and to its wait", strings.Count(string(svg), "marker-end"))
	}
	if *update {
		if err := os.WriteFile("deadlock.svg", svg, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
