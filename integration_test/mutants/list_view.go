package main

const (
	viewFile = "zklock/internal/place/view.go"
	walkFile = "zklock/internal/place/walk.go"
)

// viewMutants show operators something else than the queue.
var viewMutants = []mutant{
	{
		name:   "view-without-the-holders-node",
		breaks: "a Watch does not notice that a writer has become a reader, and that readers behind it hold too",
		file:   viewFile,
		by:     core,
		edits:  change("if len(q.Known) == 0 || q.Known[0].Kind.Mode != queue.Exclusive && !q.Known[0].MayBeKept() {", "if true {"),
		tests:  []string{"TestWatchReportsADowngrade"},
	},
	{
		name:   "view-reads-all-again",
		breaks: "a Watch reads every contender again after each change",
		file:   viewFile,
		by:     core,
		edits:  change("known[e.Name] = e\n", "_ = e\n"),
		tests:  []string{"TestWatchCountsItsRequests"},
	},
	{
		name:   "view-lists-again-for-the-holders-node",
		breaks: "a Watch lists the queue again when only the holder's data has changed",
		file:   viewFile,
		by:     core,
		edits:  change("if v.queue == nil || v.queue.Fired() {", "if true {"),
		tests:  []string{"TestWatchCountsItsRequests"},
	},
	{
		name:   "view-silent-during-an-outage",
		breaks: "a Watch goes on showing an old queue while its session has no connection",
		file:   viewFile,
		by:     core,
		edits:  change("patience = desk.cfg.ConnectTimeout", "patience = 0"),
		tests:  []string{"TestWatchGoesOnAfterAnOutage"},
	},
	{
		name:   "walk-in-the-order-of-paths",
		breaks: "names below another name come before names that are less in byte order",
		file:   walkFile,
		by:     core,
		edits:  change("return v[i].name < v[j].name", `return strings.ReplaceAll(v[i].name, "/", "\x00") < strings.ReplaceAll(v[j].name, "/", "\x00")`),
		tests:  []string{"TestLocksOfNamesThatArePaths"},
	},
	{
		name:   "walk-without-turns",
		breaks: "Locks has more than its share of requests under way",
		file:   walkFile,
		by:     core,
		edits:  change("make(turns, maxReads)", "nil"),
		tests:  []string{"TestLocksCountsItsRequests"},
	},
	{
		name:   "walk-ends-with-its-session",
		breaks: "Locks fails if its session ends in the middle",
		file:   walkFile,
		by:     core,
		edits:  change("if !errors.Is(err, errs.ErrSessionOver) {\n\t\t\treturn err\n\t\t}", "return err"),
		tests:  []string{"TestLocksGoesOnOnAnotherSession"},
	},
	{
		name:   "walk-lists-ledgers",
		breaks: "Locks takes a ledger for a lock",
		file:   "zklock/internal/queue/dialect.go",
		by:     core,
		edits:  change("if strings.HasPrefix(name, LedgerMark) {", "if false {"),
		tests:  []string{"TestLocksOfNamesThatArePaths"},
	},
	{
		name:   "watch-per-view",
		breaks: "each view of a name arms a watch of its own, which stays when the view has ended",
		file:   "zklock/internal/session/watch.go",
		by:     core,
		edits:  change("if w == nil || w.stale(gen) {", "if w == nil || w.stale(gen) || key.of == ofChildren {"),
		tests:  []string{"TestWatchCountsItsRequests"},
	},
}
