package once

import (
	"fmt"
	"time"
)

// calendar says when the slots of a schedule begin. Each of its methods depends on its arguments and on the rules of the zone
// only, so the processes of a fleet agree.
//
// Without a zone they begin at the multiples of the period since the zero time, in UTC. With one, the period is a number of
// days, and a slot begins at a time of the day by the clocks on the wall there. So it lasts an hour less or more where these
// are set: all that is asked of its beginnings is that they do not fall from a day to the next, that each has the date of its
// day, which a job may keep, and that time.Date has the same answer everywhere for a time that a day does not have, or has twice.
type calendar struct {
	period time.Duration
	zone   *time.Location // nil without WithZone
	at     time.Duration  // since midnight
}

const day = 24 * time.Hour

// check returns an error if there are no such slots.
func (c *calendar) check() error {
	switch {
	case c.period < time.Second || c.period%time.Second != 0:
		return misuse(fmt.Sprintf("the period is %v: pass a number of whole seconds, such as an hour", c.period))
	case c.zone == nil:
		return nil
	case c.period%day != 0:
		return misuse(fmt.Sprintf("the period is %v: with WithZone, pass a number of days, such as 24*time.Hour", c.period))
	case c.at < 0 || c.at >= day || c.at%time.Second != 0:
		return misuse(fmt.Sprintf("WithZone has the time %v: pass whole seconds since midnight, such as 2*time.Hour", c.at))
	}
	return nil
}

// slot returns the slot at a time: the last that has begun.
func (c *calendar) slot(t time.Time) time.Time {
	if c.zone == nil {
		return t.UTC().Truncate(c.period)
	}
	n := c.number(t) + c.days()
	for c.begin(n).After(t) {
		n -= c.days()
	}
	return c.begin(n)
}

// after returns the first slot that begins after a time.
func (c *calendar) after(t time.Time) time.Time {
	if c.zone == nil {
		return c.slot(t).Add(c.period)
	}
	n := c.number(t) - c.days()
	for !c.begin(n).After(t) {
		n += c.days()
	}
	return c.begin(n)
}

// before returns the last slot that begins before a time.
func (c *calendar) before(t time.Time) time.Time {
	if c.zone == nil {
		return t.UTC().Add(-1).Truncate(c.period)
	}
	n := c.number(t) + c.days()
	for !c.begin(n).Before(t) {
		n -= c.days()
	}
	return c.begin(n)
}

// between returns how many slots one slot comes after another.
func (c *calendar) between(from, to time.Time) int64 {
	return int64((to.Sub(from) + c.period/2) / c.period) // the hours of some days do not add up
}

// days returns the period in days.
func (c *calendar) days() int { return int(c.period / day) }

// zero is a day with the number 0: a Monday, as the first day of Truncate is.
var zero = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)

// number returns the number of the day of a time in the zone, or one before, that is a multiple of the days of a period.
func (c *calendar) number(t time.Time) int {
	y, m, d := t.In(c.zone).Date()
	n := int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()/int64(day/time.Second) - zero.Unix()/int64(day/time.Second))
	return n - n%c.days()
}

// begin returns when the slot of a day begins. Where the clocks are set forward past its time, time.Date answers with a time that
// is earlier or later by as much, depending on the zone. That can be on another day, and two slots would have one date. So it is
// the later one, or else the earlier one, that is on the day. A day that a zone leaves out has the beginning of the next one.
func (c *calendar) begin(number int) time.Time {
	t := time.Date(1, 1, 1+number, int(c.at/time.Hour), int(c.at%time.Hour/time.Minute), int(c.at%time.Minute/time.Second), 0, c.zone)
	_, offset := t.Zone()
	asked := zero.Unix() + int64(number)*int64(day/time.Second) + int64(c.at/time.Second)
	moved := time.Duration(asked-t.Unix()-int64(offset)) * time.Second
	if moved == 0 {
		return t
	}
	later, earlier := t, t.Add(moved)
	if moved > 0 {
		later, earlier = earlier, later
	}
	if of := zero.AddDate(0, 0, number).Day(); earlier.Day() == of && later.Day() != of {
		return earlier
	}
	return later
}
