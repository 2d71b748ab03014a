//go:build !race

package nfsbox_test

// raceEnabled: see directory_race_test.go.
const raceEnabled = false
