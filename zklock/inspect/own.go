package inspect

import "fmt"

// own returns what this client does, or why it acquires nothing, which the names in use do not show. It is the
// first line of each page.
func (i *inspector) own() (text string, fails bool) {
	st := i.client.Stats()
	if st.Problem != "" {
		return "the process of this page acquires no lock: " + st.Problem, true
	}
	text = "the process of this page holds " + many(st.Held, "lock")
	if st.Waiting > 0 {
		text += ", " + many(st.Waiting, "request") + " in line"
	}
	if n := st.Acquiring - st.Waiting; n > 0 {
		text += ", " + many(n, "request") + " waiting for the ensemble"
	}
	if st.Suspended > 0 { // the ensemble may answer on the others, and then Problem is empty
		text += fmt.Sprintf("; %d of its %d sessions without a connection: the names on such a session wait", st.Suspended, st.Open)
	}
	return text, false
}

// fault returns why this client acquires nothing, or not all names; "" if it does. An open page gets an event when it changes.
func (i *inspector) fault() string {
	if text, fails := i.own(); fails || i.client.Stats().Suspended > 0 {
		return text
	}
	return ""
}
