//go:build !unix

package main

import (
	"net"
	"testing"
)

// signalled needs signals.
func signalled(*testing.T, net.Listener, []string) {}
