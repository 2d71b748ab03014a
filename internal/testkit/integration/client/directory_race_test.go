//go:build race

package client

// raceEnabled: the race detector takes memory of its own, several times as much.
const raceEnabled = true
