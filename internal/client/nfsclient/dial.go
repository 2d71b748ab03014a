package nfsclient

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

const (
	// Reserved ports between these two are tried, like other clients do: those below 512
	// belong to services.
	firstReserved = 512
	lastReserved  = 1023

	// maxPortTries bounds the reserved ports tried for one connection. At the bound
	// PortAuto takes any port, and PortReserved fails.
	maxPortTries = 128
)

func (o *Options) dial(ctx context.Context, port uint16) (net.Conn, error) {
	address := net.JoinHostPort(o.Host, strconv.Itoa(int(port)))
	if o.Dial != nil {
		return o.Dial(ctx, "tcp", address)
	}
	if o.SourcePort == PortReserved || o.SourcePort == PortAuto && os.Geteuid() == 0 {
		c, err := o.dialReserved(ctx, address)
		if err == nil || !noPort(err) {
			return c, err
		}
		if o.SourcePort == PortReserved {
			return nil, fmt.Errorf("no reserved source port to be had (needs root or CAP_NET_BIND_SERVICE): %w", err)
		}
	}
	d := net.Dialer{Control: control(o)}
	return d.DialContext(ctx, "tcp", address)
}

// dialReserved connects from a reserved port, starting at a random one.
func (o *Options) dialReserved(ctx context.Context, address string) (c net.Conn, err error) {
	var r [2]byte
	o.Rand(r[:])
	at := int(binary.BigEndian.Uint16(r[:]))
	for i := range maxPortTries {
		port := firstReserved + (at+i)%(lastReserved-firstReserved+1)
		d := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}, Control: control(o)}
		c, err = d.DialContext(ctx, "tcp", address)
		if err == nil || !taken(err) {
			return c, err
		}
	}
	return nil, err
}

// taken reports whether err is about one port, so that another may work.
func taken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// noPort reports whether err says that this process gets no reserved port. Only bind returns
// EACCES or EPERM for that; the server cannot cause it.
func noPort(err error) bool {
	var call *os.SyscallError
	denied := errors.As(err, &call) && call.Syscall == "bind" &&
		(errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM))
	return denied || taken(err)
}
