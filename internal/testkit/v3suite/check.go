package v3suite

import (
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

func procName(p *xdr.Proc) string { return strings.TrimPrefix(p.Name, "NFSPROC3_") }

// status ends the test unless the answer to the last call is one of those that
// the RFC permits there.
func (e *env) status(got nfs3.Nfsstat3, want ...nfs3.Nfsstat3) {
	if !e.gotStatus(got, want...) {
		panic(stop{})
	}
}

// gotStatus notes an answer to the last call that is none of those, and says so.
func (e *env) gotStatus(got nfs3.Nfsstat3, want ...nfs3.Nfsstat3) bool {
	if slices.Contains(want, got) {
		// Where the RFC leaves a choice, every answer counts as provoked.
		for _, w := range want {
			e.seen[pair{e.last, w}] = true
		}
		return true
	}
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = statusName(w)
	}
	e.Errorf("%s: status %s, want %s", e.last, statusName(got), strings.Join(names, " or "))
	return false
}

func statusName(s nfs3.Nfsstat3) string {
	if s == garbageArgs {
		return "GARBAGE_ARGS"
	}
	return s.String()
}

// ok ends the test unless the last call succeeded.
func (e *env) ok(got nfs3.Nfsstat3) { e.status(got, nfs3.NFS3_OK) }

// settled is a without what may move by itself: the access time, and the space
// used, which file systems allocate late.
func settled(a nfs3.Fattr3) nfs3.Fattr3 {
	a.Used, a.Atime = 0, nfs3.Nfstime3{}
	return a
}

// post checks attributes from behind a call that succeeded: they are there, and
// are those that GETATTR reports.
func (e *env) post(what string, p *nfs3.PostOpAttr, h handle) {
	if !p.AttributesFollow {
		e.Errorf("%s: no attributes", what)
		return
	}
	e.postIfAny(what, p, h)
}

// postIfAny checks attributes that the server may leave out.
func (e *env) postIfAny(what string, p *nfs3.PostOpAttr, h handle) {
	if !p.AttributesFollow {
		return
	}
	if now := e.attr(h); settled(p.Attributes) != settled(now) {
		e.Errorf("%s: attributes %+v; GETATTR says %+v", what, p.Attributes, now)
	}
}

// wcc checks what a call that succeeded says of an object that it changed: the
// attributes after it are there and true, and those before it, if they are
// there, are those that GETATTR had reported.
func (e *env) wcc(what string, w *nfs3.WccData, before nfs3.Fattr3, h handle) {
	if !w.After.AttributesFollow {
		e.Errorf("%s: no attributes from after it", what)
	}
	e.wccIfAny(what, w, before, h)
}

// wccIfAny checks what a call that failed says of an object.
func (e *env) wccIfAny(what string, w *nfs3.WccData, before nfs3.Fattr3, h handle) {
	want := nfs3.WccAttr{Size: before.Size, Mtime: before.Mtime, Ctime: before.Ctime}
	if w.Before.AttributesFollow && w.Before.Attributes != want {
		e.Errorf("%s: attributes from before it are %+v; GETATTR had said %+v", what, w.Before.Attributes, want)
	}
	e.postIfAny(what, &w.After, h)
}

// unchanged checks that a directory's data have not been touched since before.
func (e *env) unchanged(what string, before nfs3.Fattr3, h handle) {
	if now := e.attr(h); now.Mtime != before.Mtime || now.Size != before.Size || now.Nlink != before.Nlink {
		e.Errorf("%s: %+v has become %+v", what, before, now)
	}
}

// old is a time that no clock shows any more: what is set to it and has moved
// since was moved by the operation under test.
var old = nfs3.Nfstime3{Seconds: 1_000_000_000}

// age sets the modification times of objects far back.
func (e *env) age(all ...handle) {
	for _, h := range all {
		e.ok(e.setattr(h, nfs3.Sattr3{Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: old}}).Status)
	}
}

// touched checks that the data of objects have changed since age.
func (e *env) touched(what string, all ...handle) {
	for _, h := range all {
		if e.attr(h).Mtime == old {
			e.Errorf("%s: the modification time has not moved", what)
		}
	}
}

func (e *env) same(what string, a, b handle) {
	x, y := e.attr(a), e.attr(b)
	if x.Fileid != y.Fileid || x.Fsid != y.Fsid {
		e.Errorf("%s: file ids %d and %d, want one object", what, x.Fileid, y.Fileid)
	}
}

func (e *env) nlink(what string, h handle, want uint32) {
	if got := e.attr(h).Nlink; got != want {
		e.Errorf("%s: nlink %d, want %d", what, got, want)
	}
}

func (e *env) gone(dir handle, name string) {
	e.gotStatus(e.lookup(dir, name).Status, nfs3.NFS3ERR_NOENT)
}

func (e *env) content(what string, h handle, want string) {
	res := e.read(h, 0, uint32(len(want))+1)
	if !e.gotStatus(res.Status, nfs3.NFS3_OK) {
		return
	}
	if got := string(res.Resok.Data); got != want {
		e.Errorf("%s: content %.40q (%d bytes), want %.40q (%d bytes)", what, got, len(got), want, len(want))
	}
}
