// Package filter says what is chosen of a tree: by rules, as rsync(1) has them, by a list of paths, and by the
// sizes and times of files. It leaves out the directories in which servers show their snapshots.
//
// A [Filter] is for a walk, which calls [Filter.Choose] with each entry of a directory. A directory that it
// leaves out is not listed. When it chooses a directory, it returns what it knows of that, and the walk hands this back
// with the entries. So an entry costs what its own name does, however deep it lies.
//
// # Rules
//
// The first rule that matches decides; what none matches is chosen. Patterns are rsync's, and match bytes. One without **, and
// without a slash before its end, matches the last part of a path. Others match whole parts at the
// path's end. A slash at the beginning ties a pattern to the top of the tree. With one at its end it matches
// directories alone. * and ? match anything but slashes, ** slashes as well, [...] one character of
// a set. A pattern that ends in /*** matches a directory, and all below it. In a pattern with *, ? or [
// a backslash takes the meaning of the next character away.
//
// A pattern becomes an automaton without choices to go back to: its time is the length of a name times that of the
// pattern, by 64. Where rsync takes a pattern that can never match, as one with a [ and no ], it is an error.
package filter
