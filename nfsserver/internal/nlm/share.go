package nlm

import (
	"bytes"
	"context"
	"slices"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// share is procedure 20: open a file and deny others to read or write it, as in DOS. A
// reservation that exists already is granted again.
func (s *Service) share(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Shareargs) (xdr.Appender, error) {
	res := &nlm4.Nlm4Shareres{Cookie: bytes.Clone(a.Cookie)}
	err := s.beginShare(ctx, q, c, &a.Share)
	if err == nil {
		err = s.admit(a.Reclaim)
	}
	if err == nil {
		err = s.mayShare(ctx, q, a.Share.Access)
	}
	if err == nil {
		err = s.reserve(ctx, q, &a.Share)
	}
	res.Stat, err = s.refusal(ctx, c, err)
	return res, err
}

// beginShare is begin for a reservation, which is of the whole file.
func (s *Service) beginShare(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Share) error {
	return s.begin(ctx, q, c, &nlm4.Nlm4Lock{CallerName: a.CallerName, Fh: a.Fh, Oh: a.Oh}, false)
}

// mayShare checks that the caller may do what it reserves. A client that reserves nothing,
// and only keeps others out, must at least have the right to read.
func (s *Service) mayShare(ctx context.Context, q *request, access nlm4.Fsh4Access) error {
	var want vfs.Access
	if access&nlm4.FsaR != 0 {
		want |= vfs.AccessRead
	}
	if access&nlm4.FsaW != 0 {
		want |= vfs.AccessModify
	}
	if want == 0 {
		want = vfs.AccessRead
	}
	got, _, err := q.view.FS.Access(ctx, q.h, want)
	if err == nil && got&want != want {
		err = vfs.ErrAccess
	}
	return err
}

func (s *Service) reserve(ctx context.Context, q *request, a *nlm4.Nlm4Share) error {
	q.c.gate.RLock()
	defer q.c.gate.RUnlock()
	f, err := s.open(ctx, q.h)
	if err != nil {
		return err
	}
	defer s.end(f)
	mine := share{q.c, string(a.Oh), a.Mode, a.Access}
	if slices.Contains(f.shares, mine) {
		return nil
	}
	for _, o := range f.shares {
		same := o.c == mine.c && o.oh == mine.oh
		if !same && (int32(o.mode)&int32(mine.access) != 0 || int32(mine.mode)&int32(o.access) != 0) {
			return vfs.ErrLocked
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := q.c.home
	if !may(h.shares, maxClientShares, s.shares, maxShares) || !may(countOf(f.shares, h), maxFileShares, len(f.shares), maxFileShares) {
		return errStatus(nlm4.NLM4_DENIED_NOLOCKS)
	}
	f.shares = append(f.shares, mine)
	s.shares++
	h.shares++
	f.refer(q.c, 1)
	return nil
}

// unshare is procedure 21. It is no error if there is no such reservation.
func (s *Service) unshare(ctx context.Context, q *request, c *oncrpc.Call, a *nlm4.Nlm4Shareargs) (xdr.Appender, error) {
	res := &nlm4.Nlm4Shareres{Cookie: bytes.Clone(a.Cookie)}
	err := s.beginShare(ctx, q, c, &a.Share)
	if err == nil {
		q.c.gate.RLock()
		defer q.c.gate.RUnlock()
		var f *file
		if f, err = s.open(ctx, q.h); err == nil {
			mine := share{q.c, string(a.Share.Oh), a.Share.Mode, a.Share.Access}
			s.dropShares(f, func(o share) bool { return o == mine })
			s.end(f)
		}
	}
	res.Stat, err = s.refusal(ctx, c, err)
	return res, err
}

// dropShares removes reservations. The caller has f's turn.
func (s *Service) dropShares(f *file, which func(share) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.shares = slices.DeleteFunc(f.shares, func(o share) bool {
		if !which(o) {
			return false
		}
		s.shares--
		o.c.home.shares--
		f.refer(o.c, -1)
		return true
	})
}
