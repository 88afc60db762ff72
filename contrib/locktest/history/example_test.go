package history_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

func ExampleReadFrom() {
	events, err := history.ReadFrom(strings.NewReader(`{"at":12000,"kind":"acquire","worker":1,"id":1,"name":"a"}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(events[0].Kind, events[0].Name)
	// Output: acquire a
}

func ExampleWriteTo() {
	recorder := history.NewRecorder()
	at := recorder.Note(history.Event{Kind: history.Calm})
	events := []history.Event{{At: 5, Kind: history.Calm}}
	if err := history.WriteTo(os.Stdout, events); err != nil {
		panic(err)
	}
	fmt.Println(len(recorder.Events()), at > 0)
	// Output:
	// {"at":5,"kind":"calm"}
	// 1 true
}
