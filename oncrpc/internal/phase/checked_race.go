//go:build race

package phase

// checked has a forbidden step panic.
const checked = true
