// Package scan counts what lies in trees. [Usage] sums up directories, from the bottom, as du(1) does. [Scan] counts by
// type, size, age, depth, owner and name, keeps the largest and the oldest, and makes a [Report] of it: tables that are
// printed as lines of JSON, as CSV ([Report.WriteCSV]) or as a page ([Report.WriteHTML]). [Links] knows which names
// belong to one object.
//
// All are for a walk: attributes come with the listings, so that nothing is asked of the file system for a
// single object. Memory is bounded, however large the tree: by the depth of the walk, and by the bounds in bounds.go,
// whose comments say what a report has then.
//
// # What counts once
//
// An object with several names counts once, with its first name; its further names are counted as such, and are
// neither in its sizes nor in its ages. Names are looked at one by one.
package scan
