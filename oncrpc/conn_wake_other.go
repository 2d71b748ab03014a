//go:build !linux

package oncrpc

// wakeAt does nothing: whether a system looks at SO_RCVLOWAT when it waits for
// more than one socket is its own affair.
func (cc *clientConn) wakeAt(int) {}
