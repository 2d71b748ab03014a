//go:build race

package pace

// raceEnabled: simulations take long under the race detector.
const raceEnabled = true
