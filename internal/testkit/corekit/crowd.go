package corekit

// Crowd returns n, or a fifth of it with the race detector: that takes ten times as long for a crowd, and finds in a
// small one what it finds in a large one.
func Crowd(n int) int {
	if Race {
		return n / 5
	}
	return n
}
