package bench

import (
	"fmt"
	"math/rand/v2"
)

// KindOf is what a failure is counted under.
var KindOf = kindOf

// Places are the blocks that the i-th caller reads at random.
func Places(seed uint64, i, n int, blocks uint64) string {
	c := readCaller{places: rand.NewPCG(seed, uint64(i)), w: &readWork{mount: &mount{o: &Options{Random: true}}, blocks: blocks}}
	var list []uint64
	for range n {
		list = append(list, c.place())
	}
	return fmt.Sprint(list)
}

// Compared is what runs say.
func Compared(o CompareOptions, runs []*Round) *Comparison { return compared(&o, runs) }

// Matches says whether res, of a verb, has the counts of the server; nil if that is
// not known.
func Matches(verb string, res *Result) *bool {
	v, err := verbOf(verb)
	if err != nil {
		panic(err)
	}
	return countsMatch(v, res)
}
