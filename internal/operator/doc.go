// Package operator has what the page of package inspect and the command zklock show alike: queues as
// JSON, which contenders block which, since when they hold, which process must move, across names, and deadlocks.
package operator
