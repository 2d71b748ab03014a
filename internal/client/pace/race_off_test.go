//go:build !race

package pace

// raceEnabled: see race_on_test.go.
const raceEnabled = false
