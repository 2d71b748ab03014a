package port

import (
	"net"
	"net/netip"
	"testing"
)

// TestFree: the address can be listened at, and none is found twice while it is.
func TestFree(t *testing.T) {
	for range 200 {
		address, err := Free("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // nothing hangs on it
		if p := netip.MustParseAddrPort(address).Port(); p < first || p > last {
			t.Errorf("%s: the kernel gives out such ports", address)
		}
	}
}
