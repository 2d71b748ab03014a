package oncrpc_test

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/layers"
)

// order are the files, from the ground up: a file knows only those of the lines above
// its own. The connection of a client (conn*.go) knows nothing of the client's policy
// (client*.go), and neither knows the server. Files of one line do not know each other.
const order = `
doc bounds stats
errors
record batch auth share
message
conn
conn_end
conn_send conn_reply
conn_lead
client
client_notes
client_retry
client_conns
client_tick
client_join
client_call

server
server_reply
server_stats
server_call server_conn
server_work server_conns
server_read server_packet
server_life
`

// TestLayers: files point down.
func TestLayers(t *testing.T) { layers.Hold(t, order, 1000) }
