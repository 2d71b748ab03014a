package export

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// errBroken is the error of a service that does not work.
var errBroken = errors.New("broken")

func memory() *memfs.FS { return memfs.New(memfs.Options{Mode: 0o777}) }

func remote(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// probeFS has an empty root and records its callers.
type probeFS struct {
	vfs.FS
	last *vfs.Caller
}

func (f *probeFS) As(c *vfs.Caller) vfs.FS {
	f.last = c
	return f
}

func (f *probeFS) Root(context.Context) (vfs.Handle, vfs.Attr, error) {
	h, err := vfs.MakeHandle([]byte("root"))
	return h, vfs.Attr{Valid: vfs.MaskType, Type: vfs.TypeDir}, err
}

// resolver is a name service that the test owns.
type resolver struct {
	mu    sync.Mutex
	names map[string][]string // by address
	addrs map[string][]string // by name, with a dot at the end
	err   error               // of every look-up
	block chan struct{}       // if set, look-ups end when it is closed, or with their context
	asked map[string]int

	blocks func(what string) bool // which look-ups block blocks; nil: all
	most   int                    // look-ups at once
	now    int
}

func (r *resolver) set(f func(r *resolver)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

func (r *resolver) look(ctx context.Context, what string, in func() map[string][]string) ([]string, error) {
	r.mu.Lock()
	if r.asked == nil {
		r.asked = make(map[string]int)
	}
	r.asked[what]++
	r.now++
	r.most = max(r.most, r.now)
	block := r.block
	if r.blocks != nil && !r.blocks(what) {
		block = nil
	}
	r.mu.Unlock()
	var err error
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
	if err == nil {
		err = r.err
	}
	if err != nil {
		return nil, err
	}
	out := in()[what]
	if len(out) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: what, IsNotFound: true}
	}
	return out, nil
}

func (r *resolver) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	return r.look(ctx, addr, func() map[string][]string { return r.names })
}

func (r *resolver) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	found, err := r.look(ctx, host, func() map[string][]string { return r.addrs })
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, s := range found {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}
