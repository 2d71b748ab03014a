package daemon

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/layers"
)

// order are the files, from the ground up: what runs (core) knows neither the exports nor what serves them.
// Files of one line do not know each other.
const order = `
bounds doc holder key sites
api_secrets listener process
api_server manager
core
hold
life localio replies state users
operators proxy tree within
exports
api
listen server
warn
precheck reload
daemon
`

// TestLayers: files point down.
func TestLayers(t *testing.T) { layers.Hold(t, order, 300) }
