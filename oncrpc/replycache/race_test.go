//go:build race

package replycache

const raceEnabled = true
