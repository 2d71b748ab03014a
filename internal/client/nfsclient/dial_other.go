//go:build !linux

package nfsclient

import (
	"errors"
	"fmt"
	"syscall"
)

// checkControl refuses options that only Linux supports.
func checkControl(o *Options) error {
	switch {
	case o.Interface != "":
		return fmt.Errorf("nfs: binding to a network interface is %w here", errors.ErrUnsupported)
	case o.SynCount != 0:
		return fmt.Errorf("nfs: TCP_SYNCNT is %w here", errors.ErrUnsupported)
	}
	return nil
}

func control(*Options) func(network, address string, c syscall.RawConn) error { return nil }
