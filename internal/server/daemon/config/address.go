package config

import (
	"net"
	"net/netip"
)

// OnLoopback reports whether an address to listen at is reached from this host
// alone. What is a name is not known to be.
func OnLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Elsewhere reports whether other hosts may reach an address.
func Elsewhere(address string) bool { return !OnLoopback(address) }
