// Package xdr benchmarks our generated codec beside codecs by reflection, on
// the two messages that a walk of a tree is made of: the arguments of
// READDIRPLUS, and a page of its entries. A test first proves that all of them
// speak of the same bytes.
package xdr
