//go:build race

package iogate

const raceEnabled = true
