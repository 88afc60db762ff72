package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestSlotsOfASchedule: a slot begins where the clocks of its zone show a multiple of the period, also on the days on
// which they change.
func TestSlotsOfASchedule(t *testing.T) {
	for _, c := range []struct{ every, zone, now, want string }{
		{"24h", "UTC", "2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"24h", "UTC", "2026-11-22T23:59:59.999Z", "2026-11-22T00:00:00Z"},
		{"24h", "Europe/Berlin", "2026-11-21T22:59:59Z", "2026-11-20T23:00:00Z"},
		{"24h", "Europe/Berlin", "2026-11-21T23:00:00Z", "2026-11-21T23:00:00Z"},
		{"24h", "Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-24T22:00:00Z"}, // a day of 25 hours
		{"24h", "Europe/Berlin", "2026-10-25T23:00:00Z", "2026-10-25T23:00:00Z"},
		{"12h", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-24T22:00:00Z"}, // before and after the change: one slot
		{"12h", "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-24T22:00:00Z"},
		{"12h", "Europe/Berlin", "2026-10-25T11:00:00Z", "2026-10-25T11:00:00Z"},
		{"12h", "Europe/Berlin", "2026-03-29T09:59:59Z", "2026-03-28T23:00:00Z"}, // a day of 23 hours
		{"12h", "Europe/Berlin", "2026-03-29T10:00:00Z", "2026-03-29T10:00:00Z"},
		{"1h", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z"}, // the hour that is there twice
		{"1h", "Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T01:00:00Z"},
		{"15m", "Asia/Kathmandu", "2026-11-22T10:14:59Z", "2026-11-22T10:00:00Z"}, // 5:45 ahead
		{"1h", "Asia/Kathmandu", "2026-11-22T10:14:59Z", "2026-11-22T09:15:00Z"},
		{"168h", "UTC", "2026-11-22T10:00:00Z", "2026-11-16T00:00:00Z"}, // a Monday
		{"168h", "America/New_York", "2026-11-23T04:59:59Z", "2026-11-16T05:00:00Z"},
		{"168h", "America/New_York", "2026-11-23T05:00:00Z", "2026-11-23T05:00:00Z"},
	} {
		every, err := time.ParseDuration(c.every)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (&slotFlags{every: every, zone: c.zone}).begun(now.Local()); err != nil || got != c.want {
			t.Errorf("--every %s --zone %s at %s: %s, %v, want %s", c.every, c.zone, c.now, got, err, c.want)
		}
	}
}

// TestSlotsRise: the slots of two years, looked at every half hour, never fall, in zones that change their
// clocks, one of them by half an hour. Every day has its slots.
func TestSlotsRise(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "America/Santiago"} {
		for every, want := range map[time.Duration]int{24 * time.Hour: 730, 12 * time.Hour: 1460, time.Hour: 17520} {
			in, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			last, slots := "", 0
			begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for now := begin; now.Before(begin.AddDate(2, 0, 0)); now = now.Add(30 * time.Minute) {
				slot := slotAt(now.In(in), every)
				if slot < last {
					t.Fatalf("%v in %s: at %v the slot %s, after %s", every, zone, now, slot, last)
				}
				if slot != last {
					slots++
				}
				last = slot
			}
			if slots < want || slots > want+3 { // the first one has begun before; a change by half an hour makes one more
				t.Errorf("%v in %s: %d slots in two years, want %d", every, zone, slots, want)
			}
		}
	}
}

// TestSlotUsage: mistakes have the code 64, and one line that names the flag.
func TestSlotUsage(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	for args, says := range map[string]string{
		"--once= x":     "--once",
		"--once \xff x": "--once",
		"--once " + strings.Repeat("x", 513) + " x": "--once",
		"--once 1 --every 1h x":                     "--every",
		"--zone UTC x":                              "--zone",
		"--once 1 --zone UTC x":                     "--zone",
		"--every 1h --zone Mars/Olympus x":          "Mars",
		"--every 1h --zone Local x":                 "Local",
		"--every 1h --zone= x":                      "--zone",
		"--every 7h x":                              "--every",
		"--every 25h x":                             "--every",
		"--every 0 x":                               "--every",
		"--every -24h x":                            "--every",
		"--every 1500ms x":                          "--every",
		"--once 1 x y":                              "one name",
		"--once 1 --shared x":                       "one name",
		"--once 1 --permits 2 x":                    "one name",
		"--every 1h --candidate x":                  "one name",
	} {
		code, out, stderr := command(t, e, append(append([]string{"run"}, strings.Split(args, " ")...), "--", "true")...)
		if code != 64 || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d, %q, %q", args, code, out, stderr)
		}
	}
}
