package inspect_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/inspect"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// A service shows its operators the locks, next to net/http/pprof.
func ExampleHandler() {
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	mux := http.NewServeMux()
	mux.Handle("/debug/zklock/", inspect.Handler(client))
	server := httptest.NewServer(mux) // a program listens where only operators can connect
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	resp, err := http.Get(server.URL + "/debug/zklock/api/locks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	fmt.Println(string(text), err)
	// Output:
	// {"locks":[],"more":false}
	//  <nil>
}
