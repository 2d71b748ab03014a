//go:build !linux

package socket

// WakeAt does nothing: systems differ in whether poll heeds SO_RCVLOWAT.
func (s *Socket) WakeAt(int) {}
