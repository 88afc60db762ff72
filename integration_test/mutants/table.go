package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// String returns the test that caught the mutant, or that it survives, or the error.
func (v verdict) String() string {
	switch {
	case v.err != nil:
		return "ERROR: " + v.err.Error()
	case v.caught == "":
		return "SURVIVES"
	case !v.expected():
		return v.caught + ", not by " + strings.Join(v.mutant.tests, " or ")
	}
	return v.caught
}

// expected reports whether the mutant was caught by one of the tests that it names.
func (v verdict) expected() bool {
	name, _, _ := strings.Cut(v.caught, " ")
	name, _, _ = strings.Cut(name, "/")
	return slices.Contains(v.mutant.tests, name)
}

// report prints the table. The error has the number of mutants that were not caught.
func report(w io.Writer, verdicts []verdict, took time.Duration) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "mutant\twhat it breaks\tcaught by\tseconds")
	var survivors, failures, surprises int
	for _, v := range verdicts {
		result := v.String()
		switch {
		case v.err != nil:
			failures++
			result, _, _ = strings.Cut(result, "\n")
		case v.caught == "":
			survivors++
		case !v.expected():
			surprises++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\n", v.mutant.name, v.mutant.breaks, result, v.took.Seconds())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d mutants in %v: %d caught, %d of them by a test other than expected; %d survive, %d could not be tried\n",
		len(verdicts), took.Round(time.Second), len(verdicts)-survivors-failures, surprises, survivors, failures)
	if survivors+failures > 0 {
		return fmt.Errorf("%d of %d mutants were not caught", survivors+failures, len(verdicts))
	}
	return nil
}
