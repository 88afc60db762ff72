package zklock_test
import "testing"
func TestDbg(t *testing.T) {
	for s := uint64(1); s < 4; s++ {
	w := play(t, s, newTally(), options{trusting: true, verbose: true})
	t.Logf("%v\n%v", &w.trace, w.model.violations)
	}
}
