package oncrpc

import (
	"net"
	"syscall"
)

// attach makes nc a connection of lane l. hub.mu is held.
func (h *hub) attach(nc net.Conn, l lane) {
	cc := &clientConn{hub: h, nc: nc, stream: nc, lane: l, inline: vectored(nc), heard: h.clock(), idle: h.clock(), wakes: 1}
	if s, ok := nc.(syscall.Conn); ok && cc.inline && canPeek {
		if raw, err := s.SyscallConn(); err == nil {
			cc.raw, cc.led, cc.stream = raw, true, quick(nc, raw)
		}
	}
	cc.window = h.pool.Get(min(clientReadBuffer, max(h.maxReply, smallRecord)))
	cc.r = recordReader{src: (*clientSource)(cc), buf: cc.window.B, max: h.maxReply}
	h.conns = append(h.conns, cc)
	if !cc.led {
		cc.readInBackground()
	}
}

// leave takes pc off the connection. hub.mu is held.
func (cc *clientConn) leave(pc *call) {
	pc.conn = nil
	cc.calls--
	if pc.bulkRes != nil {
		cc.bulks.Add(-1)
	}
	if cc.calls > 0 {
		return
	}
	cc.idle = max(cc.hub.now, pc.gotAt)
	if cc.retired {
		cc.fail(errRetired)
	} else if cc.owed > 0 && !cc.reading {
		cc.handOver()
	}
}
