package inspect_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// picturesEnv is the environment variable with a folder for screenshots of the page.
const picturesEnv = "ZKLOCK_INSPECT_PICTURES"

// browser is a real browser without a window, with one page. The test drives it through the
// browser's debugging protocol: JSON messages on two pipes, each ended by a zero byte.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	number  int
	session string
}

// requiredEnv makes tests fail that lack a program, in place of skipping them.
const requiredEnv = "ZKLOCK_TEST_REQUIRED"

// patience bounds every wait of a test. A test that reaches it has found a hang.
const patience = time.Minute

// findBrowser returns the path of a browser that works; "" if there is none. Ubuntu's
// chromium-browser may only say what else to install.
func findBrowser() string {
	for _, name := range []string{"chromium", "google-chrome", "google-chrome-stable", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil && exec.Command(path, "--version").Run() == nil {
			return path
		}
	}
	return ""
}

// canInstall reports whether .ci/install installs a browser on this system.
func canInstall() bool {
	text, _ := os.ReadFile("/etc/os-release")
	return slices.Contains(strings.Split(string(text), "\n"), "ID=debian")
}

// newBrowser starts a browser, or skips the test if there is none.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path := findBrowser()
	switch {
	case path == "" && os.Getenv(requiredEnv) == "1" && canInstall():
		t.Fatal("there is no browser: install the package chromium")
	case path == "":
		t.Skip("there is no browser: install chromium")
	}
	profile, err := os.MkdirTemp("", "zklock-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The browser's other processes may write for a moment after its end.
		for begin := time.Now(); os.RemoveAll(profile) != nil; time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > patience {
				t.Fatalf("the folder %s cannot be removed", profile)
			}
		}
	})
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe", "--window-size=1200,520", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b := &browser{t: t, to: ourOut, from: bufio.NewReader(ourIn)}
	t.Cleanup(func() {
		b.session = ""
		_, _ = b.try("Browser.close", nil) // it may end before it answers
		_ = cmd.Wait()
		_, _ = ourOut.Close(), ourIn.Close()
	})
	hang := time.AfterFunc(5*patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { hang.Stop() })
	target := b.call("Target.createTarget", map[string]any{"url": "about:blank"})["targetId"]
	b.session, _ = b.call("Target.attachToTarget", map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
	b.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true})
	return b
}

// call sends a command and returns its result.
func (b *browser) call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	result, err := b.try(method, params)
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	return result
}

// try sends a command and returns its result, or the browser's error.
func (b *browser) try(method string, params map[string]any) (map[string]any, error) {
	b.number++
	message := map[string]any{"id": b.number, "method": method, "params": params}
	if params == nil {
		message["params"] = map[string]any{}
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return nil, err
	}
	for {
		text, err := b.from.ReadBytes(0)
		if err != nil {
			return nil, fmt.Errorf("the browser has ended: %w", err)
		}
		var answer struct {
			ID     int
			Result map[string]any
			Error  struct{ Message string }
		}
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &answer) != nil || answer.ID != b.number {
			continue // an event
		}
		if answer.Error.Message != "" {
			return nil, errors.New(answer.Error.Message)
		}
		return answer.Result, nil
	}
}

// open opens a page.
func (b *browser) open(url string) { b.t.Helper(); b.call("Page.navigate", map[string]any{"url": url}) }

// value returns the value of a JavaScript expression as text.
func (b *browser) value(expression string) string {
	b.t.Helper()
	return valueOf(b.call("Runtime.evaluate", map[string]any{"expression": expression}))
}

func valueOf(answer map[string]any) string {
	result, _ := answer["result"].(map[string]any)
	return fmt.Sprint(result["value"])
}

// until waits until a JavaScript expression is true. While one page replaces another, the browser
// has no page where it could evaluate the expression.
func (b *browser) until(expression string) {
	b.t.Helper()
	// The page is another process: there is nothing to wait for.
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
		if answer, err := b.try("Runtime.evaluate", map[string]any{"expression": expression}); err == nil && valueOf(answer) == "true" {
			return
		}
	}
	b.t.Fatalf("not true: %s; the page:\n%s", expression, b.value("document.body.innerText"))
}

// press presses a key, as a keyboard does: what the key does is up to the browser.
func (b *browser) press(key string) {
	b.t.Helper()
	params := map[string]any{"type": "keyDown", "key": key}
	switch key {
	case "Enter":
		params["code"], params["windowsVirtualKeyCode"], params["text"] = "Enter", 13, "\r"
	case "Tab":
		params["code"], params["windowsVirtualKeyCode"] = "Tab", 9
	default:
		if len(key) == 1 {
			params["text"] = key
		}
	}
	b.call("Input.dispatchKeyEvent", params)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
}

// contains returns the JavaScript expression that is true if the page shows a text.
func contains(text string) string {
	quoted, _ := json.Marshal(text)
	return "document.body.innerText.includes(" + string(quoted) + ")"
}
