package contention

// Samples returns how many samples the profile of waits has, their sum, and how many of the waits
// are in the sample of all further call sites.
func (p *Profile) Samples() (n int, sum [2]int64, others int64) {
	for s, t := range p.waits.snapshot() {
		n, sum[0], sum[1] = n+1, sum[0]+t.count, sum[1]+int64(t.delay)
		if s.calls == (stack{}) {
			others += t.count
		}
	}
	return n, sum, others
}
