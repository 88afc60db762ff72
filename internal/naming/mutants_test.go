package naming

import "github.com/zklock/go-zklock/internal/testkit/mutant"

var _ = []mutant.Mutant{
	{
		Name:   "name-unescaped",
		Breaks: "the values of a name are not escaped, so one with a slash names the lock of other values",
		In:     Format.escape,
		Find:   "strings.IndexAny(value, f.special)",
		Put:    "-1",
		Tests:  []string{"TestNoValuesNameTheLockOfOthers"},
	},
	{
		Name:   "name-percent",
		Breaks: "percent signs of values are not escaped, so a value can have the escape of another",
		In:     New,
		Find:   `"%/"`,
		Put:    `"/"`,
		Tests:  []string{"TestNoValuesNameTheLockOfOthers"},
	},
	{
		Name:   "name-separator",
		Breaks: "only slashes are escaped, and not the character that separates two values",
		In:     New,
		Find:   "f.special += c",
		Put:    "_ = c",
		Tests:  []string{"TestNoValuesNameTheLockOfOthers"},
	},
	{
		Name:   "name-adjacent",
		Breaks: "two values may follow each other with nothing that shows where the first one ends",
		In:     New,
		Find:   "!$separates(texts[i])",
		Put:    `texts[i] == ""`,
		Tests:  []string{"TestBadFormatsPanic"},
	},
}
