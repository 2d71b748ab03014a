//go:build !linux

package sockdiag

import (
	"errors"
	"net"
)

// Owner is [errors.ErrUnsupported] here.
func Owner(net.Conn) (uint32, error) { return 0, errors.ErrUnsupported }

// Works is [errors.ErrUnsupported] here.
func Works() error { return errors.ErrUnsupported }
