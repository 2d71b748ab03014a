// Package scan counts what lies in a tree. [Usage] sums up directories, from the bottom, as du(1) does. [Links] knows
// which names belong to one object.
//
// Both are for a walk: attributes come with the listings, so that nothing is asked of the file system for a
// single object. Memory is bounded, however large the tree: by the depth of the walk, and by named bounds.
package scan
