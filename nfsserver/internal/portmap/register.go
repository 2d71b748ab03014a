package portmap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// registryTimeout is the timeout of one call to the host's registry.
	registryTimeout = 5 * time.Second

	// maxEntries bounds what is registered: a program, a transport and a family
	// of addresses are one. More is an error.
	maxEntries = 256
)

// sockets are where rpcbind(8) listens for programs of its host.
var sockets = [...]string{"/run/rpcbind.sock", "/var/run/rpcbind.sock"}

// DialRegistry connects to the registry of this host: by its socket, which tells
// it who we are, or over loopback.
func DialRegistry(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	for _, path := range sockets {
		if c, err := d.DialContext(ctx, "unix", path); err == nil {
			return c, nil
		}
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	return callback.DialNet(ctx, "tcp", loopback, netip.AddrPortFrom(loopback, rpcbind.PMAP_PORT).String())
}

// Entry is a program and where it is served, over the transport that the address
// is of.
type Entry struct {
	Program *xdr.Program
	Addr    net.Addr
}

// record is an entry as registries have it.
type record struct {
	prog, vers  uint32
	netid, addr string // RFC 5665; version 2 has no addr
	port        uint16
}

func (r record) String() string {
	return fmt.Sprintf("program %d version %d on %s port %d", r.prog, r.vers, r.netid, r.port)
}

// Registration is what has been entered.
type Registration struct {
	// Left are the entries that were not made, since another server had entered
	// the same program over the same transport.
	Left []string

	dial func(context.Context) (net.Conn, error)
	set  []record
}

// Register enters programs with the registry that dial leads to, that of this
// host. Nothing that others have entered is replaced, whatever its version, and
// nothing stays entered if Register fails.
func Register(ctx context.Context, dial func(context.Context) (net.Conn, error), entries ...Entry) (*Registration, error) {
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("portmap: %d entries, and %d are the most", len(entries), maxEntries)
	}
	r := &Registration{dial: dial}
	err := r.with(ctx, func(g registry) error { return r.enter(ctx, g, entries) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("portmap: registering: %w", err), r.Close(context.WithoutCancel(ctx)))
	}
	return r, nil
}

func (r *Registration) enter(ctx context.Context, g registry, entries []Entry) error {
	have, err := g.dump(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at, ok := at(e.Addr)
		if !ok {
			return fmt.Errorf("%v is no address of TCP or UDP", e.Addr)
		}
		for _, ip := range families(at.addr.Addr()) {
			mine := record{prog: e.Program.Number, vers: e.Program.Version, port: at.addr.Port()}
			mine.netid, mine.addr = universal(at.network, ip, mine.port)
			if !g.knows(mine.netid) {
				continue
			}
			if other, found := foreign(have, mine); found {
				r.Left = append(r.Left, fmt.Sprintf("%v: there is %v", mine, other))
				continue
			}
			if err := g.set(ctx, mine); err != nil {
				return fmt.Errorf("%v: %w", mine, err)
			}
			r.set = append(r.set, mine)
		}
	}
	return nil
}

// families are the addresses to enter for a listener: one that takes both families
// is entered for both.
func families(ip netip.Addr) []netip.Addr {
	if ip == netip.IPv6Unspecified() {
		return []netip.Addr{netip.IPv4Unspecified(), ip}
	}
	return []netip.Addr{ip}
}

// foreign finds an entry of another server that mine would replace or stand beside. An
// entry with our port is our own, from before: no other server can listen there.
func foreign(have []record, mine record) (record, bool) {
	i := slices.IndexFunc(have, func(o record) bool {
		return o.prog == mine.prog && o.netid == mine.netid && o.port != mine.port
	})
	if i < 0 {
		return record{}, false
	}
	return have[i], true
}

// Close removes what was entered, as far as it is still there.
func (r *Registration) Close(ctx context.Context) error {
	if len(r.set) == 0 {
		return nil
	}
	err := r.with(ctx, func(g registry) error {
		have, err := g.dump(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, mine := range r.set {
			same := func(o record) bool { return mine.prog == o.prog && mine.vers == o.vers && mine.netid == o.netid }
			i := slices.IndexFunc(have, same)
			if i < 0 || have[i].port != mine.port {
				continue // another server has removed or replaced it
			}
			if err := g.unset(ctx, mine, have); err != nil {
				errs = append(errs, fmt.Errorf("%v: %w", mine, err))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("portmap: taking out what was registered: %w", err)
	}
	r.set = nil
	return nil
}

// with runs do with a connection to the registry, in the version that it speaks.
func (r *Registration) with(ctx context.Context, do func(registry) error) error {
	c := oncrpc.NewClient(oncrpc.ClientOptions{Dial: r.dial, DialTries: 1, Timeout: registryTimeout, Retries: -1})
	v4 := registry4{caller{c}}
	_, err := v4.dump(ctx)
	if mismatch, ok := errors.AsType[*oncrpc.AcceptError](err); ok && mismatch.Stat == oncrpc.ProgMismatch {
		err = do(registry2{caller{c}})
	} else if err == nil {
		err = do(v4)
	}
	return errors.Join(err, c.Close())
}

// registry is a version of the protocol.
type registry interface {
	knows(netid string) bool
	dump(context.Context) ([]record, error)
	set(context.Context, record) error
	unset(ctx context.Context, r record, have []record) error
}

var errRefused = errors.New("the registry refuses")

type caller struct{ c *oncrpc.Client }

// call makes a call and has use look at what the result borrows.
func (c caller) call(ctx context.Context, p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler, use func() error) error {
	reply, err := c.c.Call(ctx, p, oncrpc.Auth{}, args, res)
	defer reply.Release()
	if err != nil {
		return err
	}
	return use()
}

// registry4 is RPCBIND, version 4.
type registry4 struct{ caller }

func (registry4) knows(string) bool { return true }

func (g registry4) dump(ctx context.Context) (all []record, err error) {
	var list rpcbind.RpcblistPtr
	err = g.call(ctx, rpcbind.RPCBVERS4_RPCBPROC_DUMP, xdr.Void{}, &list, func() error {
		for _, e := range list {
			r := record{prog: e.RpcbMap.RProg, vers: e.RpcbMap.RVers, netid: string(e.RpcbMap.RNetid), addr: string(e.RpcbMap.RAddr)}
			r.port, _ = callback.UniversalPort(r.addr) // a path has none
			all = append(all, r)
		}
		return nil
	})
	return all, err
}

func (g registry4) set(ctx context.Context, r record) error {
	return g.change(ctx, rpcbind.RPCBVERS4_RPCBPROC_SET, r)
}

func (g registry4) unset(ctx context.Context, r record, _ []record) error {
	return g.change(ctx, rpcbind.RPCBVERS4_RPCBPROC_UNSET, r)
}

func (g registry4) change(ctx context.Context, p *xdr.Proc, r record) error {
	var res rpcbind.RPCBVERS4_RPCBPROC_SETres
	args := &rpcbind.Rpcb{RProg: r.prog, RVers: r.vers, RNetid: []byte(r.netid), RAddr: []byte(r.addr), ROwner: []byte(owner)}
	return g.call(ctx, p, args, &res, func() error { return refused(res.Value) })
}

func refused(done bool) error {
	if !done {
		return errRefused
	}
	return nil
}

// registry2 is the port mapper, version 2.
type registry2 struct{ caller }

func (registry2) knows(netid string) bool { return protocol(netid) != 0 }

// protocol is what version 2 calls a transport; it knows no IPv6.
func protocol(netid string) uint32 {
	for _, n := range networks {
		if n.name == netid {
			return n.number
		}
	}
	return 0
}

func (g registry2) dump(ctx context.Context) (all []record, err error) {
	var list rpcbind.Pmaplist
	err = g.call(ctx, rpcbind.PMAPPROC_DUMP, xdr.Void{}, &list, func() error {
		for _, e := range list {
			r := record{prog: e.Map.Prog, vers: e.Map.Vers, port: uint16(e.Map.Port)}
			for _, n := range networks {
				if n.number == e.Map.Prot {
					r.netid = n.name
				}
			}
			all = append(all, r)
		}
		return nil
	})
	return all, err
}

func (g registry2) set(ctx context.Context, r record) error {
	var res rpcbind.PMAPPROC_SETres
	args := &rpcbind.Mapping{Prog: r.prog, Vers: r.vers, Prot: protocol(r.netid), Port: uint32(r.port)}
	return g.call(ctx, rpcbind.PMAPPROC_SET, args, &res, func() error { return refused(res.Value) })
}

// unset removes the entries of both transports at once, as version 2 does; so it removes
// none if one of them is another server's. They may be gone already with an earlier unset.
func (g registry2) unset(ctx context.Context, r record, have []record) error {
	for _, o := range have {
		if o.prog == r.prog && o.vers == r.vers && o.port != r.port {
			return fmt.Errorf("it would take out %v as well", o)
		}
	}
	now, err := g.dump(ctx)
	if err != nil || !slices.Contains(now, record{prog: r.prog, vers: r.vers, netid: r.netid, port: r.port}) {
		return err
	}
	var res rpcbind.PMAPPROC_UNSETres
	args := &rpcbind.Mapping{Prog: r.prog, Vers: r.vers, Prot: protocol(r.netid), Port: uint32(r.port)}
	return g.call(ctx, rpcbind.PMAPPROC_UNSET, args, &res, func() error { return refused(res.Value) })
}
