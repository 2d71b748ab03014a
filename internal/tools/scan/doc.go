// Package scan counts what lies in trees. [Usage] sums up directories, from the bottom, as du(1) does. [Scan] counts by
// type, size, age, depth, owner and name, and keeps the largest and the oldest. It makes a [Report] of that: tables,
// printed as lines of JSON, as CSV ([Report.WriteCSV]) or as a page ([Report.WriteHTML]). [Links] knows which names
// belong to one object.
//
// All are for a walk: attributes come with the listings, so that nothing is asked of the file system for a
// single object. Memory is bounded, however large the tree is, by the depth of the walk and by the bounds in bounds.go.
// Their comments say what a report has at each.
//
// # What counts once
//
// An object with several names counts once, with its first name. Its further names are counted as such, and are
// neither in sizes nor in ages. Names are looked at one by one.
package scan
