// Package near finds the word that was meant where another was written: a key of a file, a
// flag, an export.
package near

import (
	"iter"
	"strings"
)

// Far is the distance of words of which none was meant for the other.
const Far = 3

// maxLength bounds the words that are compared, in bytes. Longer ones are far from all but
// their beginnings.
const maxLength = 64

// Of is the first of those words that are nearest to a wrong one; "" if all are far from it,
// or one is the same.
func Of(wrong string, all iter.Seq[string]) string {
	best, least := "", Far
	for word := range all {
		if d := Distance(wrong, word); d < least {
			best, least = word, d
		}
	}
	if least == 0 {
		return ""
	}
	return best
}

// Distance is how far a word is from the wrong one: how many bytes have to be changed, added,
// left out or swapped with their neighbour (Damerau and Levenshtein), but 1 if one begins with
// the other. It is Far beyond 2, and where half of the wrong word would be another.
func Distance(wrong, word string) int {
	d := steps(wrong, word)
	if d > 0 && len(wrong) > 3 && word != "" && (strings.HasPrefix(word, wrong) || strings.HasPrefix(wrong, word)) {
		d = 1
	}
	if 2*d > len(wrong) {
		return Far
	}
	return d
}

// steps make b of a. They are Far for more.
func steps(a, b string) int {
	if len(a) > maxLength || len(b) > maxLength || len(a)-len(b) >= Far || len(b)-len(a) >= Far {
		return Far
	}
	var before, last, row [maxLength + 1]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return min(last[len(b)], Far)
}
