package main

import (
	"slices"
	"testing"
)

func TestAxisHasRoundTicks(t *testing.T) {
	for _, test := range []struct {
		most float64
		unit string
		want []string
	}{
		{154, "/s", []string{"0/s", "20/s", "40/s", "60/s", "80/s", "100/s", "120/s", "140/s", "160/s"}},
		{1.345, "s", []string{"0", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1 s", "1.2 s", "1.4 s"}},
		{0.3363, "s", []string{"0", "50 ms", "100 ms", "150 ms", "200 ms", "250 ms", "300 ms", "350 ms"}},
		{0.00008, "s", []string{"0", "10 µs", "20 µs", "30 µs", "40 µs", "50 µs", "60 µs", "70 µs", "80 µs"}},
		{8, "", []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
		{4, "", []string{"0", "1", "2", "3", "4"}},
		{0, "", []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
	} {
		a := axisTo(test.most, test.unit)
		var got []string
		for i := range a.ticks + 1 {
			got = append(got, a.label(i))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, want %q", test.most, got, test.want)
		}
		if a.end() < test.most {
			t.Errorf("%v: the axis ends at %v", test.most, a.end())
		}
	}
}
