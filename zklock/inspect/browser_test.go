package inspect_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/inspect"
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

// newBrowser starts a browser, or skips the test if there is none.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe", "--window-size=1200,520", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b := &browser{t: t, to: ourOut, from: bufio.NewReader(ourIn)}
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil)
		_ = cmd.Wait()
		_, _ = ourOut.Close(), ourIn.Close()
	})
	hang := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { hang.Stop() })
	target := b.call("Target.createTarget", map[string]any{"url": "about:blank"})["targetId"]
	b.session, _ = b.call("Target.attachToTarget", map[string]any{"targetId": target, "flatten": true})["sessionId"].(string)
	return b
}

// call sends a command and returns its result.
func (b *browser) call(method string, params map[string]any) map[string]any {
	b.t.Helper()
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
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatalf("chromium: %v", err)
	}
	for {
		text, err := b.from.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("chromium has ended: %v", err)
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
			b.t.Fatalf("%s: %s", method, answer.Error.Message)
		}
		return answer.Result
	}
}

// open opens a page.
func (b *browser) open(url string) { b.t.Helper(); b.call("Page.navigate", map[string]any{"url": url}) }

// value returns the value of a JavaScript expression as text.
func (b *browser) value(expression string) string {
	b.t.Helper()
	result, _ := b.call("Runtime.evaluate", map[string]any{"expression": expression})["result"].(map[string]any)
	return fmt.Sprint(result["value"])
}

// until waits until a JavaScript expression is true.
func (b *browser) until(expression string) {
	b.t.Helper()
	for range 300 {
		if b.value(expression) == "true" {
			return
		}
		b.value("new Promise(r => setTimeout(r, 50))")
		time.Sleep(50 * time.Millisecond) // the page is another process: there is nothing to wait for
	}
	b.t.Fatalf("not true: %s; the page:\n%s", expression, b.value("document.body.innerText"))
}

// press presses a key.
func (b *browser) press(key string) {
	b.t.Helper()
	params := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		params["text"] = key
	}
	b.call("Input.dispatchKeyEvent", params)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
}

// contains returns the JavaScript expression that is true if the page shows a text.
func contains(text string) string {
	quoted, _ := json.Marshal(text)
	return "document.body.innerText.includes(" + string(quoted) + ")"
}

// shop makes locks that look like those of a service.
func shop(w *world) {
	w.hold(w.web.Mutex("orders/42"), "POST /orders/{id}/pay")
	w.wait(w.jobs.Mutex("orders/42"), "refund 7")
	w.hold(w.jobs.Mutex("import"), "row 1200 of 9000")
	w.hold(w.jobs.RWMutex("catalog").Reader(), "GET /catalog")
	w.wait(w.web.RWMutex("catalog").Writer(), "reindex")
	w.hold(w.web.Semaphore("uploads", 2), "PUT /uploads/{id}")
}

const live = `document.getElementById("state").textContent === "live"`

// In a browser the page is live and can be used with the keyboard: the policy allows the
// page's own script, style and events.
func TestPageInABrowser(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	shop(w)
	l := w.hold(w.jobs.Mutex("batch"), "row 0")
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	b.open(srv.URL + "/")
	b.until(live)
	b.until(contains("row 0"))
	if err := l.SetLabel(t.Context(), "row 1"); err != nil {
		t.Fatal(err)
	}
	b.until(contains("row 1") + " && !" + contains("row 0"))

	// The first link is that of the first name; the focus survives a change of the list.
	b.press("j")
	b.until(`document.activeElement.textContent === "batch"`)
	if err := l.SetLabel(t.Context(), "row 2"); err != nil {
		t.Fatal(err)
	}
	b.until(contains("row 2"))
	b.until(`document.activeElement.textContent === "batch"`)
	b.press("j")
	b.until(`document.activeElement.textContent === "catalog"`)
	b.press("k")
	b.value(`document.activeElement.click()`)
	b.until(live + " && " + contains("Queue of batch"))
	if err := l.SetLabel(t.Context(), "row 3"); err != nil {
		t.Fatal(err)
	}
	b.until(contains("row 3"))
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until(contains("No client holds this name"))
	b.press("Escape")
	b.until(live + " && " + contains("orders/42") + " && !" + contains("batch"))
	b.press("/")
	b.until(`document.activeElement.id === "prefix"`)
	if errors := b.value(`getComputedStyle(document.querySelector("table")).borderCollapse`); errors != "collapse" {
		t.Errorf("the style sheet was not applied: border-collapse is %q", errors)
	}
	b.open(srv.URL + "/?name=orders%2F42")
	b.until(live + " && " + contains("refund 7") + ` && document.querySelector("a[href='#c1']") !== null`)
}

// The page has another background in light and in dark. ZKLOCK_INSPECT_PICTURES keeps the
// pictures.
func TestPageInLightAndDark(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	shop(w)
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { b.open("about:blank"); srv.Close() })
	backgrounds := make(map[string]bool)
	for _, scheme := range []string{"light", "dark"} {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
		for page, path := range map[string]string{"list": "/", "queue": "/?name=orders%2F42"} {
			b.open(srv.URL + path)
			b.until(live)
			backgrounds[b.value("getComputedStyle(document.body).backgroundColor")] = true
			png, err := base64.StdEncoding.DecodeString(fmt.Sprint(b.call("Page.captureScreenshot", map[string]any{"format": "png"})["data"]))
			if err != nil || !strings.HasPrefix(string(png), "\x89PNG") {
				t.Fatalf("a screenshot of %d bytes: %v", len(png), err)
			}
			if dir := os.Getenv(picturesEnv); dir != "" {
				if err := os.WriteFile(filepath.Join(dir, "inspect-"+page+"-"+scheme+".png"), png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(backgrounds) != 2 {
		t.Errorf("backgrounds %v, want one for light and one for dark", backgrounds)
	}
}
