package nfsclient

import (
	"syscall"
)

// checkControl returns nil: Linux supports everything in control.
func checkControl(*Options) error { return nil }

// control prepares a socket before it connects; nil if there is nothing to do.
func control(o *Options) func(network, address string, c syscall.RawConn) error {
	if o.Interface == "" && o.SynCount == 0 {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var inner error
		err := c.Control(func(fd uintptr) {
			if o.Interface != "" {
				inner = syscall.BindToDevice(int(fd), o.Interface)
			}
			if inner == nil && o.SynCount != 0 {
				inner = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_SYNCNT, o.SynCount)
			}
		})
		if err != nil {
			return err
		}
		return inner
	}
}
