package queue

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "whole-name-order",
		Breaks: "contenders are ordered by their whole names, which begin with the GUID, not by the sequence number at the end",
		In:     Sort,
		Find:   "int(a.Seq - b.Seq)",
		Put:    "slices.Compare([]byte(a.Name), []byte(b.Name))",
		Tests:  []string{"TestGrantsComeInTheOrderOfTheQueue"},
		By:     "zklock",
	},
	{
		Name:   "kinds-side-by-side",
		Breaks: "a semaphore and a mutex of one name are held at the same time",
		In:     Conflict,
		Find:   "q[i].Kind.Permits != q[self].Kind.Permits",
		Put:    "false",
		Tests:  []string{"TestKindsThatDoNotKnowEachOtherConflict"},
	},
	{
		Name:   "writer-ignores-readers",
		Breaks: "a writer does not wait for readers ahead of it",
		In:     Decide,
		Find:   "q[self].Kind.Mode == Exclusive || q[i].Kind.Mode == Exclusive",
		Put:    "q[i].Kind.Mode == Exclusive",
		Tests:  []string{"TestDecideAgreesWithBruteForce"},
	},
	{
		Name:   "one-permit-too-many",
		Breaks: "n permits are held by n+1 holders",
		In:     Decide,
		Find:   "self < n",
		Put:    "self <= n",
		Tests:  []string{"TestPermitsAreHandedOnWhicheverHolderLeaves"},
	},
	{
		Name:   "permits-watch-one",
		Breaks: "the first waiter for a permit watches one holder instead of all",
		In:     Decide,
		Find:   "self > n",
		Put:    "self >= n",
		Tests:  []string{"TestPermitsAreHandedOnWhicheverHolderLeaves"},
	},
	{
		Name:   "names-meet",
		Breaks: "two different names share one znode",
		In:     isPlain,
		Find:   "$plain || c == '_'",
		Put:    "$plain || c == '_' || c == '%'",
		Tests:  []string{"TestNameThatIsAPrefixOfAnother"},
		By:     "zklock",
	},
	{
		Name:   "watch-the-first",
		Breaks: "an exclusive contender watches the first in the queue, and not the one just ahead",
		In:     Decide,
		Find:   "[]int{i}",
		Put:    "[]int{i * 0}",
		Tests:  []string{"TestDecideAgreesWithBruteForce"},
	},
	{
		Name:   "downgraded-writer-blocks",
		Breaks: "readers wait for a writer that was downgraded",
		In:     Effective,
		Find:   "k.Mode == Exclusive && d.Mode == Shared.$name()",
		Put:    "false",
		Tests:  []string{"TestNodeDataBound"},
		By:     "zklock",
	},
}
