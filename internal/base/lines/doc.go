// Package lines finds the lines of a stream that match a pattern, as grep(1) does in the locale C. A character
// is a byte there, and a newline ends a line.
//
// A [Pattern] is compiled once, and used by any number of goroutines. A [Searcher] reads one stream after the other,
// a block at a time. Its memory does not grow with a stream, nor with a line beyond [MaxLine].
//
// Expressions are those of Go (https://pkg.go.dev/regexp/syntax, RE2's), over bytes. Lines with bytes that are not ASCII are
// rewritten before an expression sees them. Each such byte becomes a character of its own, which has no case and is no
// letter. Of several matches that begin at one place the longest counts, as in POSIX.
//
// Before any expression runs, bytes.Index looks for the text that each match has to contain, if there is one.
package lines
