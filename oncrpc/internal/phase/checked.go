//go:build !race

package phase

// checked is false: a step costs one store.
const checked = false
