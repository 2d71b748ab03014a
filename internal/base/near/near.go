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

// bytesForEach is how many bytes of a wrong word one step takes. In fewer, a step makes another
// word of it: nobody who writes nope means home.
const bytesForEach = 3

// minBegun is the shortest word, in bytes, that says by itself which longer one was meant, or that a
// longer one was begun with.
const minBegun = 4

// Distance is how far a word is from the wrong one: how many bytes have to be changed, added,
// left out or swapped with their neighbour (Damerau and Levenshtein), but 1 if one begins with
// the other and the shorter has four bytes. It is Far beyond 2, and where more than a third of the
// wrong word would be another; of two bytes, swapped ones are 1.
func Distance(wrong, word string) int {
	d := steps(wrong, word)
	begun := min(len(wrong), len(word)) >= minBegun && (strings.HasPrefix(word, wrong) || strings.HasPrefix(wrong, word))
	switch {
	case d > 0 && begun:
		return 1
	case len(wrong) == 2 && len(word) == 2 && wrong[0] == word[1] && wrong[1] == word[0]:
		return d
	case bytesForEach*d > len(wrong):
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
