//go:build !race

package v3_test

// raceEnabled: see race_on_test.go.
const raceEnabled = false
