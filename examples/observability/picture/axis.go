package main

import (
	"fmt"
	"math"
)

// axis has ticks at round values: 1, 2 or 5 times a power of ten apart.
type axis struct {
	step  float64
	ticks int // without that at 0
	unit  string
}

// axisTo makes an axis from 0 that ends at most or, with whole steps, just above it, in
// four to eight steps.
func axisTo(most float64, unit string) axis {
	if most <= 0 {
		most = 1
	}
	power := math.Pow10(int(math.Floor(math.Log10(most / 4))))
	step := power
	for _, round := range []float64{2, 5, 10} {
		if most/step > 8 {
			step = power * round
		}
	}
	return axis{step, int(math.Ceil(most/step - 1e-9)), unit}
}

// end is the value of the last tick.
func (a axis) end() float64 { return a.step * float64(a.ticks) }

// label is what is written at a tick.
func (a axis) label(tick int) string {
	v := a.step * float64(tick)
	if a.unit == "s" {
		return seconds(v, a.end())
	}
	return fmt.Sprintf("%.6g%s", v, a.unit)
}

// seconds writes a time in the unit that suits a time of the size of scale, with at most
// three digits.
func seconds(v, scale float64) string {
	switch {
	case v == 0:
		return "0"
	case scale < 1e-3:
		return fmt.Sprintf("%.3g µs", v*1e6)
	case scale < 1:
		return fmt.Sprintf("%.3g ms", v*1e3)
	}
	return fmt.Sprintf("%.3g s", v)
}
