//go:build !race

package client

// raceEnabled: see directory_race_test.go.
const raceEnabled = false
