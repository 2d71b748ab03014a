package nfsclient

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/proto/rpcbind"
	"github.com/nfsbox/nfsbox/xdr"
)

// service is a program of a server, and how to find it.
type service struct {
	name     string
	prog     *xdr.Program
	null     *xdr.Proc
	port     func(o *Options) uint16  // the port that the options name, or 0
	arg      string                   // the URL's argument for the port
	maxReply int                      // 0: the default of package oncrpc
	lasting  bool                     // used for more than one question
	single   bool                     // on one connection
	fallback bool                     // it may be at NFS's port, Options.Port or NFSPort, or elsewhere
	early    func(rpc *oncrpc.Client) // if not nil: sends more calls before the service is known to be there
	dialed   func()                   // if not nil: called after each connection but the first
}

var mountService = service{
	name:     "MOUNT",
	prog:     &mount3.MOUNT_V3,
	null:     mount3.MOUNTPROC3_NULL,
	port:     func(o *Options) uint16 { return o.MountPort },
	arg:      "mountport",
	maxReply: maxMountReply,
	fallback: true,
}

var nfsService = service{
	name:     "NFS version 3",
	prog:     &nfs3.NFS_V3,
	null:     nfs3.NFSPROC3_NULL,
	port:     func(o *Options) uint16 { return o.NFSPort },
	arg:      "nfsport",
	maxReply: maxNFSReply,
	lasting:  true,
}

var lockService = service{
	name:     "NLM version 4",
	prog:     &nlm4.NLM_V4,
	null:     nlm4.NLMPROC4_NULL,
	port:     func(o *Options) uint16 { return o.LockPort },
	arg:      "nlmport",
	maxReply: maxLockReply,
	lasting:  true,
	single:   true,
	fallback: true,
}

var portmapService = service{name: "portmapper", maxReply: maxMountReply}

// connect finds the service's port and returns a client connected to it. The package's
// documentation has the order in which ports are tried.
func (o *Options) connect(ctx context.Context, s *service) (rpc *oncrpc.Client, port uint16, err error) {
	if port = s.port(o); port != 0 {
		return o.try(ctx, s, port)
	}
	var first error
	shared := o.Port
	if shared == 0 && s.fallback {
		shared = o.NFSPort
	}
	if shared != 0 {
		rpc, port, err = o.try(ctx, s, shared)
		if err == nil || !s.fallback || ctx.Err() != nil || errors.Is(err, syscall.ECONNREFUSED) || isForeign(err) {
			// Nothing listens there, or something else, so NFS does not either: a port for
			// MOUNT would not help.
			return rpc, port, err
		}
		first = err
	}
	port, err = o.ask(ctx, s)
	switch {
	case err == nil:
		return o.try(ctx, s, port)
	case ctx.Err() != nil || errors.Is(err, errNotRegistered) || nameless(err):
		return nil, 0, errors.Join(first, err)
	case first != nil && errors.Is(err, syscall.ECONNREFUSED):
		return nil, 0, fmt.Errorf("%w; and there is no portmapper to ask for another port (%s= names one)", first, s.arg)
	case first != nil:
		return nil, 0, fmt.Errorf("%w; and %w (give its port with %s=)", first, err, s.arg)
	}
	rpc, port, e := o.try(ctx, s, nfsPort)
	if why, ok := sameErrno(err, e); ok {
		return rpc, port, fmt.Errorf("nfs: %s: neither at port %d (portmapper) nor at %d (%s): %w (%s)", o.Host, rpcbind.PMAP_PORT, nfsPort, s.name, why, o.giveWhat(s, e))
	}
	if e != nil {
		e = fmt.Errorf("%w; and without the portmapper: %w (%s)", err, e, o.giveWhat(s, e))
	}
	return rpc, port, e
}

// sameErrno is the system's error that both have for their cause.
func sameErrno(a, b error) (syscall.Errno, bool) {
	for _, why := range []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH} {
		if errors.Is(a, why) && errors.Is(b, why) {
			return why, true
		}
	}
	return 0, false
}

// nameless reports whether the host's name has no address: no port of it has one then.
func nameless(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// isForeign reports whether the server speaks a protocol that is known to be another one.
func isForeign(err error) bool {
	e, ok := errors.AsType[*oncrpc.RecordError](err)
	return ok && e.Speaks != ""
}

// giveWhat says what to add to the URL, for a server whose portmapper does not answer and whose
// usual port has no s because of err.
func (o *Options) giveWhat(s *service, err error) string {
	if o.NFSPort == 0 && o.MountPort == 0 && errors.Is(err, syscall.ECONNREFUSED) {
		return "give the server's own port in the URL, nfs://HOST:PORT/..."
	}
	return fmt.Sprintf("give its port with %s=", s.arg)
}

func (o *Options) ask(ctx context.Context, s *service) (uint16, error) {
	rpc, r, err := o.client(ctx, rpcbind.PMAP_PORT, &portmapService)
	if err != nil {
		return 0, fmt.Errorf("nfs: %s: portmapper: %w", o.Host, err)
	}
	p := &portmapper{rpc: rpc, remote: r.remote}
	port, err := p.port(ctx, s.prog)
	if err = errors.Join(err, rpc.Close(), r.drop()); err != nil {
		return 0, fmt.Errorf("nfs: %s: port of %s: %w", o.Host, s.name, err)
	}
	return port, nil
}

func (o *Options) try(ctx context.Context, s *service, port uint16) (*oncrpc.Client, uint16, error) {
	rpc, r, err := o.client(ctx, port, s)
	if err != nil {
		return nil, 0, fmt.Errorf("nfs: %s: %s: %w", o.Host, s.name, err)
	}
	if s.early != nil {
		s.early(rpc)
	}
	reply, err := rpc.Call(ctx, s.null, oncrpc.Auth{}, xdr.Void{}, xdr.Void{})
	reply.Release()
	if err == nil {
		o.Log.Debug("nfs: found", "server", o.Host, "service", s.name, "port", port)
		return rpc, port, nil
	}
	if errors.Is(err, oncrpc.ErrTimeout) && !errors.Is(err, oncrpc.ErrNotSent) {
		if err = fmt.Errorf("%w: %w", fault.ErrMute, err); o.speaksHTTP(ctx, port) {
			err = &oncrpc.RecordError{Speaks: "HTTP"}
		}
	}
	if e, ok := errors.AsType[*oncrpc.RecordError](err); ok && e.Speaks != "" {
		err = &foreignError{fmt.Sprintf("nfs: %s: port %d: %v", o.Host, port, e), err}
	} else {
		err = fmt.Errorf("nfs: %s: %s at port %d: %w", o.Host, s.name, port, err)
	}
	return nil, 0, errors.Join(err, rpc.Close(), r.drop())
}

// foreignError is the error of a port at which another protocol is spoken. The call that found out is of no interest.
// httpTime bounds how long a port that has not answered a call is asked whether it speaks HTTP.
const httpTime = time.Second

// speaksHTTP reports whether the port answers a request of HTTP/1.0. A server of HTTP may wait for the end of
// a line, for minutes, where it was sent a call, so that nothing else tells it from a server that is slow.
func (o *Options) speaksHTTP(ctx context.Context, port uint16) bool {
	ctx, cancel := context.WithTimeout(ctx, httpTime)
	defer cancel()
	c, err := o.dial(ctx, port)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // what it said is known
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var head [5]byte
	if _, err := io.WriteString(c, "HEAD / HTTP/1.0\r\n\r\n"); err != nil {
		return false
	}
	_, err = io.ReadFull(c, head[:])
	return err == nil && string(head[:]) == "HTTP/"
}

type foreignError struct {
	text string
	err  error
}

func (e *foreignError) Error() string        { return e.text }
func (e *foreignError) Unwrap() error        { return e.err }
func (e *foreignError) Is(target error) bool { return target == fault.ErrForeign }

// client connects to a port of the server, so that a port without a listener is an error at once,
// and makes an RPC client that begins with that connection.
func (o *Options) client(ctx context.Context, port uint16, s *service) (*oncrpc.Client, *redial, error) {
	bounded, cancel := context.WithTimeout(ctx, o.dialTime())
	defer cancel()
	first, err := o.dialFirst(bounded, port)
	if err != nil {
		return nil, nil, err
	}
	var xid [4]byte
	o.Rand(xid[:])
	r := &redial{o: o, s: s, port: port, remote: first.RemoteAddr()}
	r.first.Store(&first)
	opt := oncrpc.ClientOptions{
		Dial:      r.dial,
		FirstXID:  binary.BigEndian.Uint32(xid[:]),
		Timeout:   o.Timeout,
		Retries:   o.Retries,
		DialTries: o.DialTries,
		MaxReply:  s.maxReply,
		Silent:    o.silent(port),
	}
	if s.lasting {
		opt.Conns, opt.Hard, opt.Resend, opt.Log = o.Conns, o.FS.Hard, true, o.Log
	}
	if s.single {
		opt.Conns = 1
	}
	return oncrpc.NewClient(opt), r, nil
}

// redial returns the first connection once, and then makes new ones. It resolves the name again
// each time, because the server may move to another address.
type redial struct {
	o      *Options
	s      *service
	port   uint16
	remote net.Addr // peer of the first connection
	first  atomic.Pointer[net.Conn]
}

// drop closes the first connection if it was never used. The RPC client is closed already.
func (r *redial) drop() error {
	if c := r.first.Swap(nil); c != nil {
		return (*c).Close()
	}
	return nil
}

// errLost fails calls under Options.DialOnce.
var errLost = errors.New("the connection was lost, and is not to be made again")

func (r *redial) dial(ctx context.Context) (net.Conn, error) {
	if c := r.first.Swap(nil); c != nil {
		return *c, nil
	}
	if r.o.DialOnce {
		return nil, errLost
	}
	c, err := r.o.dial(ctx, r.port)
	if err != nil && r.s.dialed != nil && r.s.port(r.o) == 0 {
		c, err = r.moved(ctx, err)
	}
	if err == nil && r.s.dialed != nil {
		r.s.dialed()
	}
	return c, err
}

// moved connects to the port that the portmapper says now: lock managers may get another one with each
// start. why is what the old one failed with.
func (r *redial) moved(ctx context.Context, why error) (net.Conn, error) {
	port, err := r.o.ask(ctx, r.s)
	if err != nil || port == r.port {
		return nil, why
	}
	return r.o.dial(ctx, port)
}
