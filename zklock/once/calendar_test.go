package once

import (
	"errors"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

func load(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Skipf("this system has no rules of zones: %v", err)
	}
	return zone
}

// Each day has one slot at its time, with its date, also a day of 23 hours and one of 25, and the beginnings only rise. So have
// weeks.
func TestCalendar(t *testing.T) {
	for _, c := range []struct {
		zone   string
		at     time.Duration
		around string   // a day
		begin  []string // of the slots from the day before on
	}{
		{"Europe/Berlin", 2 * time.Hour, "2026-03-29", []string{"03-28T01:00", "03-29T01:00", "03-30T00:00"}},
		{"Europe/Berlin", 150 * time.Minute, "2026-03-29", []string{"03-28T01:30", "03-29T01:30", "03-30T00:30"}},
		{"Europe/Berlin", 150 * time.Minute, "2026-10-25", []string{"10-24T00:30", "10-25T01:30", "10-26T01:30"}},
		{"America/New_York", 2 * time.Hour, "2026-11-01", []string{"10-31T06:00", "11-01T07:00", "11-02T07:00"}},
		{"Asia/Kolkata", 0, "2026-03-29", []string{"03-27T18:30", "03-28T18:30", "03-29T18:30"}},
		{"Pacific/Apia", 2 * time.Hour, "2011-12-30", []string{"12-28T12:00", "12-29T12:00", "12-30T12:00"}},      // a day that Samoa left out
		{"America/Havana", 30 * time.Minute, "2026-03-08", []string{"03-07T05:30", "03-08T05:30", "03-09T04:30"}}, // no 00:30: it is 01:30
		{"America/Santiago", 0, "2026-09-06", []string{"09-05T04:00", "09-06T04:00", "09-07T03:00"}},              // no midnight
		{"Africa/Cairo", 0, "2026-04-24", []string{"04-22T22:00", "04-23T22:00", "04-24T21:00"}},
		{"Atlantic/Azores", 30 * time.Minute, "2026-03-29", []string{"03-28T01:30", "03-29T01:30", "03-30T00:30"}},
		{"Atlantic/Azores", 30 * time.Minute, "2026-10-25", []string{"10-24T00:30", "10-25T00:30", "10-26T01:30"}},
		{"America/Nuuk", 23*time.Hour + 30*time.Minute, "2026-03-29", []string{"03-28T01:30", "03-29T00:30", "03-30T00:30"}}, // 24:30 is on the 29th
		{"Australia/Lord_Howe", 135 * time.Minute, "2026-10-04", []string{"10-02T15:45", "10-03T15:45", "10-04T15:15"}},      // half an hour
	} {
		zone := load(t, c.zone)
		cal := calendar{period: 24 * time.Hour, zone: zone, at: c.at}
		noon, err := time.ParseInLocation(time.DateOnly, c.around, zone)
		if err != nil {
			t.Fatal(err)
		}
		noon = noon.Add(-12 * time.Hour)
		at := cal.slot(noon)
		var got []string
		for range c.begin {
			got = append(got, at.UTC().Format("01-02T15:04"))
			at = cal.after(at)
		}
		for i := range c.begin {
			if got[i] != c.begin[i] {
				t.Errorf("%s at %v: the slots begin at %v, want %v", c.zone, c.at, got, c.begin)
				break
			}
		}
		for _, days := range []int{1, 7} {
			cal.period = time.Duration(days) * 24 * time.Hour
			slots, last := 0, cal.slot(noon)
			for now := noon; now.Before(noon.AddDate(1, 0, 0)); now = now.Add(29 * time.Minute) {
				s := cal.slot(now)
				if s.After(now) || !cal.after(s).After(now) || s.Before(last) || !cal.before(cal.after(s)).Equal(s) || !cal.slot(s).Equal(s) {
					t.Fatalf("%s, %d days, at %v: the slot is %v, the next one %v, the one before that %v", c.zone, days, now, s, cal.after(s), cal.before(cal.after(s)))
				}
				if s.After(last) {
					if slots++; days == 1 && s.Day() == last.Day() {
						t.Fatalf("%s at %v: the slots %v and %v have one date", c.zone, c.at, last, s)
					}
					if n := cal.between(last, s); n != 1 {
						t.Fatalf("%s: %v is %d slots after %v", c.zone, s, n, last)
					}
					last = s
				}
			}
			if want := 365 / days; slots < want-1 || slots > want+1 {
				t.Errorf("%s: %d slots of %d days in a year, want %d", c.zone, slots, days, want)
			}
		}
	}
}

// A calendar that cannot be is a mistake.
func TestCalendarIsChecked(t *testing.T) {
	for _, c := range []calendar{
		{period: time.Hour, zone: time.UTC}, {period: 25 * time.Hour, zone: time.UTC},
		{period: day, zone: time.UTC, at: -1}, {period: day, zone: time.UTC, at: day}, {period: day, zone: time.UTC, at: time.Millisecond}, {period: 0}, {period: 1500 * time.Millisecond},
	} {
		if err := c.check(); !errors.Is(err, zklock.ErrMisuse) {
			t.Errorf("%+v: %v, want ErrMisuse", c, err)
		}
	}
	if err := (&calendar{period: 7 * day, zone: time.UTC, at: 2 * time.Hour}).check(); err != nil {
		t.Error(err)
	}
}
