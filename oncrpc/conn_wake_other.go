//go:build !linux

package oncrpc

// wakeAt does nothing: systems differ in whether poll heeds SO_RCVLOWAT.
func (cc *clientConn) wakeAt(int) {}
