package iogate

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/layers"
)

// order are the files, from the ground up: what waits (lane) knows nothing of the gate, and the gate's state nothing of what is
// done with it. Files of one line do not know each other.
const order = `
doc kinds blocking blocking_plain
bounds op
options figures nowait
lane pool
goroutines threads threads_off
choose
gate
share queue
wait
enter tryread calls life snapshot
`

// TestLayers: files point down.
func TestLayers(t *testing.T) { layers.Hold(t, order, 100) }
