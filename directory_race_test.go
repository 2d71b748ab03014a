//go:build race

package nfsbox_test

// raceEnabled: the race detector takes memory of its own, several times as much.
const raceEnabled = true
