// Package filter says what is chosen of a tree: by rules, as rsync(1) has them, by a list of paths, by the
// sizes and times of files; and it leaves out the directories in which servers show their snapshots.
//
// A [Filter] is for a walk: [Filter.Choose] is asked with each entry of a directory. A directory that it
// leaves out is not listed. What it knows of a directory, it returns when that is chosen, and
// is given again with the entries: so an entry costs what its own name does, however deep it lies.
//
// # Rules
//
// The first rule that matches decides; what none matches is chosen. Patterns are rsync's, and match bytes. One without a
// slash, but for one at its end, and without ** matches the last part of a path; others match whole parts at the
// path's end. With a slash at its beginning a pattern matches from the top of the tree on, and with one at its end,
// directories alone. * and ? match anything but slashes, ** slashes as well, [...] one character of
// a set. A pattern that ends in /*** matches a directory, and all below it. A backslash before a character of a pattern with *, ? or [
// takes its meaning away.
//
// A pattern becomes an automaton without choices to go back to: its time is the length of a name times that of the
// pattern, by 64. Where rsync takes a pattern that can never match, as one with a [ and no ], it is an error.
package filter
