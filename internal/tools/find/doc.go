// Package find has the tests of find(1) that need nothing but a name, a path and
// attributes: what a walk has anyway. They are find's own in what they mean,
// down to how sizes and ages are rounded. All tests of a [Matcher] must hold.
package find
