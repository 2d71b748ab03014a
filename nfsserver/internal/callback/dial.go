package callback

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
)

const (
	// The reserved ports on which no well-known service listens (those of
	// bindresvport(3)).
	firstReserved = 600
	lastReserved  = 1023

	// reservedTries is how many of them are tried before any port will do.
	reservedTries = 8
)

// DialNet is the [Dial] of package net. It calls from a reserved port if it may: the
// kernel's lock manager accepts calls of a status monitor, and rpcbind registrations,
// only from such ports.
func DialNet(ctx context.Context, network string, local netip.Addr, address string) (net.Conn, error) {
	if !local.IsValid() {
		local = unspecified(address)
	}
	for range reservedTries {
		port := firstReserved + rand.Uint32N(lastReserved-firstReserved+1)
		conn, err := dialFrom(ctx, network, netip.AddrPortFrom(local, uint16(port)), address)
		if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
			break
		}
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return conn, err
		}
	}
	return dialFrom(ctx, network, netip.AddrPortFrom(local, 0), address)
}

// unspecified is the unspecified address of the family of address. For a name it is the
// zero Addr, since only the resolver knows the family.
func unspecified(address string) netip.Addr {
	to, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return netip.Addr{}
	case to.Addr().Is4():
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func dialFrom(ctx context.Context, network string, local netip.AddrPort, address string) (net.Conn, error) {
	var d net.Dialer
	var from net.IP
	if local.Addr().IsValid() {
		from = local.Addr().AsSlice()
	}
	d.LocalAddr = &net.TCPAddr{IP: from, Port: int(local.Port()), Zone: local.Addr().Zone()}
	if network == "udp" {
		d.LocalAddr = &net.UDPAddr{IP: from, Port: int(local.Port()), Zone: local.Addr().Zone()}
	}
	return d.DialContext(ctx, network, address)
}

// From is the address and port of the far end of a connection over TCP or UDP. For others,
// such as pipes, it is the zero AddrPort.
func From(a net.Addr) netip.AddrPort {
	var ap netip.AddrPort
	if a, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		ap = a.AddrPort()
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
