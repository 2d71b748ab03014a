// Package lines finds the lines of a stream that match a pattern, as grep(1) does in the locale C: a character
// is a byte, and a line is what a newline ends.
//
// A [Pattern] is compiled once, and used by any number of goroutines. A [Searcher] reads one stream after the other,
// a block at a time. Its memory does not grow with a stream, nor with a line beyond [MaxLine].
//
// Expressions are those of Go (https://pkg.go.dev/regexp/syntax, RE2's), over bytes. To them a byte
// that is not ASCII becomes a character of its own, which has no case and belongs to no class of letters: lines that
// have such bytes are rewritten before an expression sees them. Of a match that could be shorter or longer
// the longest counts, as in POSIX.
//
// Before any expression runs, bytes.Index looks for the text that each match has to contain, if there is one.
package lines
