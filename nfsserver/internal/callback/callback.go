package callback

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// DefaultTimeout is the timeout of one try of a call.
	DefaultTimeout = 2 * time.Second

	// retries is how often a call is repeated, unless [Caller.Once]: a datagram may get
	// lost. A host that has not answered then is taken for down; the caller may try
	// again later.
	retries = 1

	// maxReply bounds a reply, in bytes; a longer one counts as none. Replies of the
	// procedures called here are far shorter, and thousands of hosts may be called at
	// once.
	maxReply = 4 << 10
)

// Dial connects to address, "host:port", over network, "tcp" or "udp". If local
// is valid, the connection comes from that address of ours.
type Dial func(ctx context.Context, network string, local netip.Addr, address string) (net.Conn, error)

// Host is the host that is called.
type Host struct {
	// Name is an address or a name of the host, without a port.
	Name string
	// Local is our address that the host has called: clients accept grants from no
	// other. With the zero Addr the kernel chooses.
	Local netip.Addr
	// Network is the transport to be tried first, "tcp" or "udp".
	Network string
}

// Caller makes the calls. All methods may be called concurrently.
type Caller struct {
	Dial    Dial
	Machine string        // the name of this host, for credentials
	Timeout time.Duration // of one try; 0 is [DefaultTimeout]
	// Once says that a call that may have arrived is not repeated, neither over the
	// same transport nor over the other.
	Once bool
}

// ErrNotThere says that the host has a port mapper, which does not know the
// program: it cannot have been called.
var ErrNotThere = errors.New("not registered with the host's port mapper")

// Call finds the program of p at the host and calls p. What res borrows is not valid
// after Call has returned: read only its numbers. After an error [MayHaveArrived] tells
// whether the call may have been executed.
func (c *Caller) Call(ctx context.Context, h Host, p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) error {
	networks := []string{"udp", "tcp"}
	if h.Network == "tcp" {
		slices.Reverse(networks)
	}
	var errs []error
	for _, network := range networks {
		port, err := c.Find(ctx, h, network, p.Program, p.Version)
		if err == nil {
			err = c.Ask(ctx, network, h.Local, net.JoinHostPort(h.Name, strconv.Itoa(int(port))), p, args, res)
			if err == nil {
				return nil
			}
			err = &calledError{err}
		}
		if c.Once && MayHaveArrived(err) {
			return fmt.Errorf("%s over %s: %w", p.Name, network, err)
		}
		errs = append(errs, fmt.Errorf("%s over %s: %w", p.Name, network, err))
	}
	return errors.Join(errs...)
}

// calledError marks an error after the program had been found: only then can it have
// received the call.
type calledError struct{ err error }

func (e *calledError) Error() string { return e.err.Error() }
func (e *calledError) Unwrap() error { return e.err }

// MayHaveArrived reports whether a call that failed with err may have been executed, and
// only its reply lost.
func MayHaveArrived(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), MayHaveArrived)
	}
	called, ok := errors.AsType[*calledError](err)
	return ok && !errors.Is(called, oncrpc.ErrNotSent) && !errors.Is(called, oncrpc.ErrNoConnection)
}

// Find asks the host's port mapper where a program is.
func (c *Caller) Find(ctx context.Context, h Host, network string, prog, vers uint32) (uint16, error) {
	mapper := net.JoinHostPort(h.Name, strconv.Itoa(rpcbind.PMAP_PORT))
	if ip, err := netip.ParseAddr(h.Name); err == nil && ip.Is6() {
		return c.find6(ctx, h, network, mapper, prog, vers)
	}
	prot := uint32(rpcbind.IPPROTO_TCP)
	if network == "udp" {
		prot = rpcbind.IPPROTO_UDP
	}
	var res rpcbind.PMAPPROC_GETPORTres
	args := rpcbind.Mapping{Prog: prog, Vers: vers, Prot: prot}
	if err := c.Ask(ctx, network, h.Local, mapper, rpcbind.PMAPPROC_GETPORT, &args, &res); err != nil {
		return 0, err
	}
	if res.Value == 0 || res.Value > 0xffff {
		return 0, ErrNotThere
	}
	return uint16(res.Value), nil
}

// find6 is Find over IPv6, which version 2 has no numbers for.
func (c *Caller) find6(ctx context.Context, h Host, network, mapper string, prog, vers uint32) (uint16, error) {
	var addr universal
	args := rpcbind.Rpcb{RProg: prog, RVers: vers, RNetid: []byte(network + "6")}
	err := c.Ask(ctx, network, h.Local, mapper, rpcbind.RPCBVERS4_RPCBPROC_GETADDR, &args, &addr)
	if err != nil {
		return 0, err
	}
	if addr.port == 0 {
		return 0, ErrNotThere
	}
	return addr.port, nil
}

// Ask makes one call to address, which is known to serve p.
func (c *Caller) Ask(ctx context.Context, network string, local netip.Addr, address string, p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) (err error) {
	cred, err := (&oncrpc.AuthSys{Machine: c.machine()}).Auth()
	if err != nil {
		return err
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	again := retries
	if c.Once {
		again = -1
	}
	client := oncrpc.NewClient(oncrpc.ClientOptions{
		FirstXID: random(), Timeout: timeout, Retries: again, DialTries: 1, MaxReply: maxReply,
		Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := c.Dial(ctx, network, local, address)
			if err == nil && network == "udp" {
				conn = &datagrams{Conn: conn}
			}
			return conn, err
		},
	})
	defer func() { err = errors.Join(err, client.Close()) }()
	reply, err := client.Call(ctx, p, cred, args, res)
	reply.Release()
	return err
}

// machine is the name of this host, as far as a credential has room for it.
func (c *Caller) machine() string { return c.Machine[:min(len(c.Machine), oncrpc.MaxMachineName)] }

func random() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return binary.BigEndian.Uint32(b[:])
}
