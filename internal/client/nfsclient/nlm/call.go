package nlm

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/byterange"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// link is the way to the lock manager.
type link struct {
	rpc    atomic.Pointer[oncrpc.Client]
	heard  atomic.Int64 // when the server last answered, since shared.began
	cookie atomic.Uint64

	// gate is taken to connect. It guards the next fields.
	gate   chan struct{}
	before bool      // there was a client
	missed time.Time // when there was none to be had
	why    error
}

// connect returns the client of the lock manager, and looks for it first if need be.
func (s *shared) connect(ctx context.Context) (*oncrpc.Client, error) {
	l := &s.link
	if rpc := l.rpc.Load(); rpc != nil {
		return rpc, nil
	}
	select {
	case l.gate <- struct{}{}:
		defer func() { <-l.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if rpc := l.rpc.Load(); rpc != nil {
		return rpc, nil
	}
	if l.why != nil && time.Since(l.missed) < missTime {
		return nil, l.why
	}
	bounded, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	rpc, err := s.o.Connect(bounded, s.suspect)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		l.missed, l.why = time.Now(), &UnavailableError{Server: s.o.Server, Err: err}
		return nil, l.why
	}
	if l.why = nil; l.before {
		s.suspect()
	}
	l.before = true
	l.rpc.Store(rpc)
	return rpc, nil
}

// unlink gives up a client whose server has no lock manager any more.
func (s *shared) unlink(rpc *oncrpc.Client) {
	if s.link.rpc.CompareAndSwap(rpc, nil) {
		_ = rpc.Close() // it has an error already
	}
}

// call calls the lock manager. done, if not nil, is called while the results are there. The error is
// a cutError if the call may have been executed.
func (s *shared) call(ctx context.Context, p *xdr.Proc, auth oncrpc.Auth, args xdr.Appender, res xdr.Unmarshaler, done func()) error {
	rpc, err := s.connect(ctx)
	if err != nil {
		return err
	}
	reply, err := rpc.Call(ctx, p, auth, args, res)
	defer reply.Release()
	switch {
	case err == nil:
		s.link.heard.Store(int64(time.Since(s.began)))
		if done != nil {
			done()
		}
		return nil
	case missing(err):
		s.unlink(rpc)
		return &UnavailableError{Server: s.o.Server, Err: err}
	case errors.Is(err, oncrpc.ErrTimeout):
		err = errors.Join(vfs.ErrNoAnswer, err)
	}
	if refused(err) {
		return err
	}
	return &cutError{err}
}

// contact finds out whether the connection still stands, if the server has not answered of late.
func (s *shared) contact(ctx context.Context) {
	if time.Since(s.began)-time.Duration(s.link.heard.Load()) > freshTime {
		s.ping(ctx)
	}
}

// ping calls NULL. A connection that was lost is made again by it. Whatever it fails for is found by
// the calls that follow.
func (s *shared) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	_ = s.call(ctx, nlm4.NLMPROC4_NULL, oncrpc.Auth{}, xdr.Void{}, xdr.Void{}, nil)
}

func (s *shared) cookie() []byte {
	return binary.BigEndian.AppendUint64(nil, s.link.cookie.Add(1))
}

func (s *shared) alock(h *vfs.Handle, o *owner, span byterange.Span) nlm4.Nlm4Lock {
	return nlm4.Nlm4Lock{CallerName: []byte(s.o.Host), Fh: h.Bytes(), Oh: o.oh[:], Svid: o.svid, LOffset: span.First, LLen: span.Len()}
}

// lock is LOCK.
func (s *shared) lock(ctx context.Context, e *entry, auth oncrpc.Auth, span byterange.Span, reclaim bool) error {
	args := nlm4.Nlm4Lockargs{Cookie: s.cookie(), Exclusive: span.Exclusive, Alock: s.alock(&e.h, e.owner, span), Reclaim: reclaim}
	var res nlm4.Nlm4Res
	if err := s.call(ctx, nlm4.NLMPROC4_LOCK, auth, &args, &res, nil); err != nil {
		return err
	}
	if res.Stat.Stat == nlm4.NLM4_BLOCKED {
		return &cutError{vfs.ErrLocked} // it was not asked to wait, and may grant it later
	}
	return status(res.Stat.Stat)
}

// unlock is UNLOCK.
func (s *shared) unlock(ctx context.Context, e *entry, auth oncrpc.Auth, span byterange.Span) error {
	args := nlm4.Nlm4Unlockargs{Cookie: s.cookie(), Alock: s.alock(&e.h, e.owner, span)}
	var res nlm4.Nlm4Res
	if err := s.call(ctx, nlm4.NLMPROC4_UNLOCK, auth, &args, &res, nil); err != nil {
		return err
	}
	return status(res.Stat.Stat)
}

// holder is a lock that stands in the way.
type holder struct {
	lock vfs.Lock
	svid int32
	oh   string
}

// test is TEST. The error Is vfs.ErrLocked if there is a holder.
func (s *shared) test(ctx context.Context, h *vfs.Handle, o *owner, auth oncrpc.Auth, span byterange.Span) (by holder, err error) {
	args := nlm4.Nlm4Testargs{Cookie: s.cookie(), Exclusive: span.Exclusive, Alock: s.alock(h, o, span)}
	var res nlm4.Nlm4Testres
	err = s.call(ctx, nlm4.NLMPROC4_TEST, auth, &args, &res, func() {
		w := &res.TestStat.Holder
		by = holder{svid: w.Svid, oh: string(w.Oh), lock: vfs.Lock{Exclusive: w.Exclusive, Off: w.LOffset, Len: w.LLen}}
	})
	if err != nil {
		return by, err
	}
	if err = status(res.TestStat.Stat); errors.Is(err, vfs.ErrLocked) {
		by.lock.Owner = s.whose(by.svid, []byte(by.oh))
	}
	return by, err
}

// errFailed is NLM4_FAILED, which servers answer for whatever has no status.
var errFailed = errors.New("the server refuses the lock, and does not say why")

var errServerFull = &FullError{"the server says so (NLM4_DENIED_NOLOCKS)"}

// status is a status as an error.
func status(st nlm4.Nlm4Stats) error {
	switch st {
	case nlm4.NLM4_GRANTED:
		return nil
	case nlm4.NLM4_DENIED, nlm4.NLM4_BLOCKED, nlm4.NLM4_DEADLCK:
		return vfs.ErrLocked
	case nlm4.NLM4_DENIED_NOLOCKS:
		return errServerFull
	case nlm4.NLM4_DENIED_GRACE_PERIOD:
		return errGrace
	case nlm4.NLM4_ROFS:
		return vfs.ErrROFS
	case nlm4.NLM4_STALE_FH:
		return vfs.ErrStale
	case nlm4.NLM4_FBIG:
		return vfs.ErrFBig
	}
	return errFailed
}
