package rpcfault

import (
	"fmt"
	"strings"
)

// Stats are counters of a proxy. All but Open and Waiting only grow.
type Stats struct {
	Conns       uint64        // connections taken
	Refused     uint64        // connections refused: by a Refuse, or above the bound
	Unreachable uint64        // connections closed because the server could not be dialled
	Calls       uint64        // read from clients
	Replies     uint64        // read from servers
	Unmatched   uint64        // of them, without a known call
	Unparsed    uint64        // messages without an RPC head, passed on
	Malformed   uint64        // connections closed because what came was no record
	Injected    [kinds]uint64 // faults that were done, by Kind

	Open    int // connections now
	Waiting int // messages that wait to be sent
}

// String is what a failing test prints: the seed, and what was done.
func (p *Proxy) String() string {
	s := p.Stats()
	var b strings.Builder
	fmt.Fprintf(&b, "rpcfault: seed %d: %d connections, %d refused, %d calls, %d replies, %d open;", p.opt.Seed, s.Conns, s.Refused, s.Calls, s.Replies, s.Open)
	for k, n := range s.Injected {
		if n > 0 {
			fmt.Fprintf(&b, " %d %v", n, Kind(k))
		}
	}
	return b.String()
}
