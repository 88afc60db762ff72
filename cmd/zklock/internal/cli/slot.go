package cli

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // a container may have no time zones
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/zklock/once"
)

// errSlotHasRun means that there is nothing to do: the slot, or a later one, has run.
var errSlotHasRun = errors.New("the slot has run")

// slotFlags are the flags of run that say for which slot its command runs.
type slotFlags struct {
	once  string
	every time.Duration
	zone  string
	set   bool // one of --once and --every is
}

// addTo adds the flags to a command.
func (f *slotFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.once, "once", "", "run the command only if no run of this slot, or a later one, has succeeded: a text that rises, such as a date")
	flags.DurationVar(&f.every, "every", 0, "--once with the slot that began at the last multiple of this time since midnight, such as 24h or 15m")
	flags.StringVar(&f.zone, "zone", "UTC", "the time zone of --every, such as Europe/Berlin; the same on all hosts")
}

// slot returns the slot at a moment; "" if the command runs without one.
func (f *slotFlags) slot(cmd *cobra.Command, now time.Time) (string, error) {
	given := cmd.Flags().Changed
	f.set = given("once") || given("every")
	switch {
	case given("once") && given("every"):
		return "", usage("--once and --every do not go together")
	case given("zone") && !given("every"):
		return "", usage("--zone belongs to --every")
	case !f.set:
		return "", nil
	case given("every"):
		return f.begun(now)
	case f.once == "":
		return "", usage("--once has an empty slot: pass a text that rises from slot to slot, such as a date")
	case len(f.once) > once.MaxSlot || !utf8.ValidString(f.once):
		return "", usage(fmt.Sprintf("--once wants UTF-8 of at most %d bytes", once.MaxSlot))
	}
	return f.once, nil
}

// begun returns the slot of --every at a moment.
func (f *slotFlags) begun(now time.Time) (string, error) {
	zone, err := time.LoadLocation(f.zone)
	switch {
	case err != nil || f.zone == "" || f.zone == "Local": // two hosts may have different ones
		return "", usage(fmt.Sprintf("--zone: %q is not a time zone: pass one such as Europe/Berlin or UTC", f.zone))
	case f.every < time.Second || f.every%time.Second != 0 || f.every%day != 0 && day%f.every != 0:
		return "", usage("--every wants whole seconds of which a day is a multiple, such as 15m, 1h or 24h, or whole days")
	}
	return slotAt(now.In(zone), f.every), nil
}

const day = 24 * time.Hour

// slotAt returns the slot of a schedule at a moment in a zone: when it began, in UTC, in the form of once.Every.
//
// A slot begins where a clock on the wall shows a multiple of the period, so a day has 23 hours or 25 when
// the clocks change. Where they show an hour twice, periods of an hour or less have a slot for each of the two.
// Several days together are counted as once.Every counts them: seven days begin on a Monday.
func slotAt(now time.Time, every time.Duration) string {
	year, month, date := now.Date()
	hour, minute, second := now.Clock()
	since := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second // midnight
	var begin time.Time
	switch {
	case every <= time.Hour:
		begin = now.Truncate(time.Second).Add(-(since % every))
	case every < day:
		begin = time.Date(year, month, date, 0, 0, int((since - since%every).Seconds()), 0, now.Location())
	default:
		year, month, date = time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Truncate(every).Date()
		begin = time.Date(year, month, date, 0, 0, 0, 0, now.Location())
	}
	return begin.UTC().Format(time.RFC3339)
}
