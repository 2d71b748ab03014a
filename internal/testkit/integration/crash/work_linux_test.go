package crash

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/xdr"
)

// crashClient makes calls to a server that may die.
type crashClient struct {
	rpc  *oncrpc.Client
	ctx  context.Context
	auth oncrpc.Auth
	held []oncrpc.Reply
}

// call makes a call; what res borrows is good until done.
func (c *crashClient) call(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) error {
	reply, err := c.rpc.Call(c.ctx, p, c.auth, args, res)
	if err != nil {
		return fmt.Errorf("%v: %w", p, err)
	}
	c.held = append(c.held, reply)
	return nil
}

func (c *crashClient) done() {
	for _, r := range c.held {
		r.Release()
	}
	c.held = c.held[:0]
}

// worker changes names and objects of its own, in directories that it shares with
// others, and enters in the ledger what it was told.
type worker struct {
	*crashClient
	l      *ledger
	n      int
	r      *rand.Rand
	super  bool // it may do what only root may
	isDead func() bool
	fail   func(format string, args ...any)
	made   int
	stop   bool
}

// do makes a call and reports whether it was acknowledged. A call that the server
// did not live to answer ends the work; another that fails is a failure.
func (w *worker) do(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler, status func() int32) bool {
	err := w.call(p, args, res)
	if err == nil && status() == 0 {
		w.l.mu.Lock()
		w.l.acked++
		return true // with the ledger's lock
	}
	w.stop = true
	if !w.isDead() {
		if err == nil {
			err = fmt.Errorf("%v: %v", p, nfs3.Nfsstat3(status()))
		}
		w.fail("a call fails, of a server that lives: %v", err)
	}
	return false
}

// step does one thing.
func (w *worker) step() {
	defer w.done()
	ops := []struct {
		weight int
		do     func()
	}{
		{10, w.create}, {2, w.createOver}, {4, w.mkdir}, {4, w.symlink}, {3, w.mknod}, {5, w.remove}, {3, w.rmdir},
		{5, w.renameWithin}, {5, w.renameAcross}, {4, w.renameOver}, {4, w.link},
		{4, w.setMode}, {4, w.setOwner}, {4, w.setTimes}, {4, w.setSize},
		{8, w.writeUnstable}, {6, w.commit}, {4, w.writeData}, {5, w.writeFile}, {4, w.setACL}, {12, w.lookup},
	}
	total := 0
	for _, op := range ops {
		total += op.weight
	}
	at := w.r.IntN(total)
	for _, op := range ops {
		if at -= op.weight; at < 0 {
			op.do()
			return
		}
	}
}

func isType(types ...nfs3.Ftype3) func(place, *object) bool {
	return func(_ place, o *object) bool { return slices.Contains(types, o.typ) }
}

// pick chooses one of the worker's names. The caller has the ledger's lock.
func (w *worker) pick(ok func(place, *object) bool) (p place, o *object, found bool) {
	list := w.l.places(w.n, ok)
	if len(list) == 0 {
		return p, nil, false
	}
	p = list[w.r.IntN(len(list))]
	return p, w.l.at(p).v[0], true
}

// dir chooses a directory to work in: one that all share, or one of its own.
func (w *worker) dir(not *object) (*object, bool) {
	var list []*object
	for _, p := range w.l.places(-1, isType(nfs3.NF3DIR)) {
		list = append(list, w.l.at(p).v[0])
	}
	for _, p := range w.l.places(w.n, isType(nfs3.NF3DIR)) {
		list = append(list, w.l.at(p).v[0])
	}
	list = slices.DeleteFunc(list, func(o *object) bool { return o == not })
	if len(list) == 0 {
		return nil, false
	}
	return list[w.r.IntN(len(list))], true
}

func (w *worker) fresh(dir *object) place {
	w.made++
	return place{dir, fmt.Sprintf("w%d-%d-%d", w.n, w.l.life, w.made)}
}

// born enters what was made. The caller has the ledger's lock, and leaves it.
func (w *worker) born(p place, o *object, h *nfs3.PostOpFh3, a *nfs3.PostOpAttr) {
	defer w.l.mu.Unlock()
	if !h.HandleFollows || !a.AttributesFollow {
		w.fail("%s was made without a handle or attributes", p.name)
		return
	}
	o.handle, o.id = bytes.Clone(h.Handle.Data), a.Attributes.Fileid
	o.knows(&a.Attributes)
	o.mayGo = false
	w.l.set(p, o)
}

// knows takes the attributes of a reply that promises them.
func (o *object) knows(a *nfs3.Fattr3) {
	o.mode.is(a.Mode)
	o.uid.is(a.Uid)
	o.gid.is(a.Gid)
}

// begin notes that p may soon stand for a new object, and returns that.
func (w *worker) begin(typ nfs3.Ftype3, modes ...uint32) (p place, o *object, ok bool) {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	dir, ok := w.dir(nil)
	if !ok {
		return p, nil, false
	}
	p, o = w.fresh(dir), &object{typ: typ, owner: w.n, mayGo: true}
	for _, m := range modes {
		o.mode.may(m)
	}
	w.l.at(p).may(o)
	return p, o, true
}

func (w *worker) create() {
	how := nfs3.Createhow3{Mode: nfs3.Createmode3(w.r.IntN(3)), ObjAttributes: mode(0o600 | w.r.Uint32N(0o200))}
	size := 0
	if how.Mode != nfs3.EXCLUSIVE && w.r.IntN(3) == 0 {
		size = w.r.IntN(9000)
		how.ObjAttributes.Size = nfs3.SetSize3{SetIt: true, Size: uint64(size)}
	}
	p, o, ok := w.begin(nfs3.NF3REG)
	if !ok {
		return
	}
	o.data.sizes = []int{size}
	if how.Mode == nfs3.EXCLUSIVE {
		for i := range how.Verf {
			how.Verf[i] = byte(w.r.Uint32())
		}
		o.verf = how.Verf
	}
	var res nfs3.CREATE3res
	if w.do(nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: at(p.dir.handle, p.name), How: how}, &res, func() int32 { return int32(res.Status) }) {
		o.data = content{stable: make([]byte, size)}
		o.exclusive = how.Mode == nfs3.EXCLUSIVE
		w.born(p, o, &res.Resok.Obj, &res.Resok.ObjAttributes)
	}
}

// createOver is an unchecked create of what exists, which it truncates.
func (w *worker) createOver() {
	w.l.mu.Lock()
	p, o, ok := w.pick(func(_ place, o *object) bool { return o.typ == nfs3.NF3REG })
	if ok {
		o.exclusive = false
		o.data.sizes, o.mtime.v = []int{0}, nil
	}
	w.l.mu.Unlock()
	if !ok {
		return
	}
	how := nfs3.Createhow3{ObjAttributes: nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true}}}
	var res nfs3.CREATE3res
	if w.do(nfs3.NFSPROC3_CREATE, &nfs3.CREATE3args{Where: at(p.dir.handle, p.name), How: how}, &res, func() int32 { return int32(res.Status) }) {
		defer w.l.mu.Unlock()
		o.data.sizes = nil
		o.data.truncate(0)
		if !bytes.Equal(res.Resok.Obj.Handle.Data, o.handle) {
			w.fail("CREATE of %s, which is there, returns another handle", p.name)
		}
	}
}

func (w *worker) mkdir() {
	p, o, ok := w.begin(nfs3.NF3DIR)
	if !ok {
		return
	}
	var res nfs3.MKDIR3res
	if w.do(nfs3.NFSPROC3_MKDIR, &nfs3.MKDIR3args{Where: at(p.dir.handle, p.name), Attributes: mode(0o700 | w.r.Uint32N(0o100))}, &res, func() int32 { return int32(res.Status) }) {
		w.l.names[o] = make(map[string]*oneOf[*object])
		w.born(p, o, &res.Resok.Obj, &res.Resok.ObjAttributes)
	}
}

func (w *worker) symlink() {
	p, o, ok := w.begin(nfs3.NF3LNK)
	if !ok {
		return
	}
	o.target = fmt.Sprintf("target-%d-%0*d", w.made, w.r.IntN(100), w.n)
	var res nfs3.SYMLINK3res
	if w.do(nfs3.NFSPROC3_SYMLINK, &nfs3.SYMLINK3args{Where: at(p.dir.handle, p.name), Symlink: nfs3.Symlinkdata3{SymlinkData: []byte(o.target)}}, &res, func() int32 { return int32(res.Status) }) {
		w.born(p, o, &res.Resok.Obj, &res.Resok.ObjAttributes)
	}
}

func (w *worker) mknod() {
	what := nfs3.Mknoddata3{Type: nfs3.NF3FIFO, PipeAttributes: mode(0o640)}
	switch {
	case w.r.IntN(3) == 0:
		what.Type = nfs3.NF3SOCK
	case w.super && w.r.IntN(2) == 0:
		what = nfs3.Mknoddata3{Type: nfs3.NF3CHR, Device: nfs3.Devicedata3{DevAttributes: mode(0o600), Spec: nfs3.Specdata3{Specdata1: 1, Specdata2: 3}}}
	}
	p, o, ok := w.begin(what.Type)
	if !ok {
		return
	}
	var res nfs3.MKNOD3res
	if w.do(nfs3.NFSPROC3_MKNOD, &nfs3.MKNOD3args{Where: at(p.dir.handle, p.name), What: what}, &res, func() int32 { return int32(res.Status) }) {
		w.born(p, o, &res.Resok.Obj, &res.Resok.ObjAttributes)
	}
}

// takes notes that p may soon stand for nothing, and whether o may go with it.
func (w *worker) takes(p place, o *object) {
	w.l.at(p).may(nil)
	o.mayGo = w.l.sureNames(o) == 0
}

// took notes that p stands for something else, or for nothing.
func (w *worker) took(p place, o, now *object) {
	w.l.set(p, now)
	w.l.lost(o)
}

func (w *worker) remove() {
	w.l.mu.Lock()
	p, o, ok := w.pick(func(_ place, o *object) bool { return o.typ != nfs3.NF3DIR })
	if ok {
		w.takes(p, o)
	}
	w.l.mu.Unlock()
	if !ok {
		return
	}
	var res nfs3.REMOVE3res
	if w.do(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: at(p.dir.handle, p.name)}, &res, func() int32 { return int32(res.Status) }) {
		w.took(p, o, nil)
		w.l.mu.Unlock()
	}
}

func (w *worker) rmdir() {
	w.l.mu.Lock()
	p, o, ok := w.pick(func(_ place, o *object) bool { return o.typ == nfs3.NF3DIR && w.l.empty(o) })
	if ok {
		w.takes(p, o)
	}
	w.l.mu.Unlock()
	if !ok {
		return
	}
	var res nfs3.RMDIR3res
	if w.do(nfs3.NFSPROC3_RMDIR, &nfs3.RMDIR3args{Object: at(p.dir.handle, p.name)}, &res, func() int32 { return int32(res.Status) }) {
		w.took(p, o, nil)
		w.l.mu.Unlock()
	}
}

func (w *worker) renameWithin() {
	w.rename(func(from place, _ *object) (place, bool) { return w.fresh(from.dir), true })
}

func (w *worker) renameAcross() {
	w.rename(func(from place, o *object) (place, bool) {
		dir, ok := w.dir(from.dir)
		if !ok || o.typ == nfs3.NF3DIR && dir.owner >= 0 {
			return place{}, false // perhaps into itself
		}
		return w.fresh(dir), true
	})
}

func (w *worker) renameOver() {
	w.rename(func(from place, o *object) (place, bool) {
		to, _, ok := w.pick(func(p place, other *object) bool {
			if o.typ == nfs3.NF3DIR {
				return other.typ == o.typ && other != o && w.l.empty(other) && p.dir.owner < 0
			}
			return other.typ != nfs3.NF3DIR && other != o
		})
		return to, ok
	})
}

// rename moves one of the worker's names to where to says.
func (w *worker) rename(to func(place, *object) (place, bool)) {
	w.l.mu.Lock()
	from, o, ok := w.pick(func(place, *object) bool { return true })
	var target place
	var old *object
	if ok {
		if target, ok = to(from, o); ok {
			if old = w.l.at(target).v[0]; old != nil {
				w.takes(target, old)
				w.l.at(target).is(old) // it will not be nothing
			}
			w.l.at(from).may(nil)
			w.l.at(target).may(o)
			if from.dir != target.dir {
				o.adrift = w.l.life
			}
		}
	}
	w.l.mu.Unlock()
	if !ok {
		return
	}
	var res nfs3.RENAME3res
	if w.do(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: at(from.dir.handle, from.name), To: at(target.dir.handle, target.name)}, &res, func() int32 { return int32(res.Status) }) {
		o.adrift = 0
		w.l.set(from, nil)
		if old != nil {
			w.took(target, old, o)
		} else {
			w.l.set(target, o)
		}
		w.l.mu.Unlock()
	}
}

func (w *worker) link() {
	w.l.mu.Lock()
	_, o, ok := w.pick(func(_ place, o *object) bool { return o.typ != nfs3.NF3DIR })
	var p place
	if ok {
		var dir *object
		if dir, ok = w.dir(nil); ok {
			p = w.fresh(dir)
			w.l.at(p).may(o)
		}
	}
	w.l.mu.Unlock()
	if !ok {
		return
	}
	var res nfs3.LINK3res
	if w.do(nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: fh(o.handle), Link: at(p.dir.handle, p.name)}, &res, func() int32 { return int32(res.Status) }) {
		w.l.set(p, o)
		w.l.mu.Unlock()
	}
}

// set makes a SETATTR. before notes what may be, after what is.
func (w *worker) set(ok func(place, *object) bool, before func(*object) nfs3.Sattr3, after func(*object, *nfs3.Fattr3)) {
	w.l.mu.Lock()
	_, o, found := w.pick(ok)
	var set nfs3.Sattr3
	if found {
		o.exclusive = false
		set = before(o)
	}
	w.l.mu.Unlock()
	if !found {
		return
	}
	var res nfs3.SETATTR3res
	if w.do(nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: fh(o.handle), NewAttributes: set}, &res, func() int32 { return int32(res.Status) }) {
		after(o, &res.Resok.ObjWcc.After.Attributes)
		w.l.mu.Unlock()
	}
}

func (w *worker) setMode() {
	m := 0o400 | w.r.Uint32N(0o400)
	w.set(func(_ place, o *object) bool { return o.typ != nfs3.NF3LNK && o.typ != nfs3.NF3DIR && !o.hasACL },
		func(o *object) nfs3.Sattr3 { o.mode.may(m | 0o200); return mode(m | 0o200) },
		func(o *object, _ *nfs3.Fattr3) { o.mode.is(m | 0o200) })
}

func (w *worker) setOwner() {
	if !w.super {
		return
	}
	uid, gid := w.r.Uint32N(4000), w.r.Uint32N(4000)
	w.set(func(place, *object) bool { return true },
		func(o *object) nfs3.Sattr3 {
			o.uid.may(uid)
			o.gid.may(gid)
			return nfs3.Sattr3{Uid: nfs3.SetUid3{SetIt: true, Uid: uid}, Gid: nfs3.SetGid3{SetIt: true, Gid: gid}}
		},
		func(o *object, _ *nfs3.Fattr3) { o.uid.is(uid); o.gid.is(gid) })
}

func (w *worker) setTimes() {
	at := nfs3.Nfstime3{Seconds: 1e9 + w.r.Uint32N(1e6), Nseconds: 1000 * w.r.Uint32N(1e6)}
	w.set(func(_ place, o *object) bool { return o.typ != nfs3.NF3DIR },
		func(o *object) nfs3.Sattr3 {
			if len(o.mtime.v) > 0 {
				o.mtime.may(at)
			}
			return nfs3.Sattr3{Mtime: nfs3.SetMtime{SetIt: nfs3.SET_TO_CLIENT_TIME, Mtime: at}}
		},
		func(o *object, _ *nfs3.Fattr3) { o.mtime.is(at) })
}

func (w *worker) setSize() {
	n := w.r.IntN(20000)
	w.set(isType(nfs3.NF3REG),
		func(o *object) nfs3.Sattr3 {
			o.data.sizes, o.mtime.v = []int{n}, nil
			return nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: uint64(n)}}
		},
		func(o *object, a *nfs3.Fattr3) {
			o.data.sizes = nil
			o.data.truncate(n)
			o.mtime.is(a.Mtime)
		})
}

func (w *worker) writeUnstable() { w.write(nfs3.UNSTABLE) }
func (w *worker) writeData()     { w.write(nfs3.DATA_SYNC) }
func (w *worker) writeFile()     { w.write(nfs3.FILE_SYNC) }

func (w *worker) write(how nfs3.StableHow) {
	data := make([]byte, 1+w.r.IntN(9000))
	for i := range data {
		data[i] = byte(w.r.Uint32())
	}
	w.l.mu.Lock()
	_, o, ok := w.pick(isType(nfs3.NF3REG))
	var off, life, before int
	if ok {
		if n := o.data.size(); n > 0 && w.r.IntN(3) > 0 {
			off = w.r.IntN(n + 1)
		} else if w.r.IntN(2) == 0 {
			off = w.r.IntN(12000)
		}
		life, before = w.l.life, len(o.data.pending)
		o.data.pending = append(o.data.pending, unstable{off: off, data: data})
		o.mtime.v, o.exclusive = nil, false
	}
	w.l.mu.Unlock()
	if !ok {
		return
	}
	var res nfs3.WRITE3res
	if !w.do(nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh(o.handle), Offset: uint64(off), Count: uint32(len(data)), Stable: how, Data: data}, &res, func() int32 { return int32(res.Status) }) {
		return
	}
	defer w.l.mu.Unlock()
	ok3 := &res.Resok
	if int(ok3.Count) != len(data) || ok3.Committed < how {
		w.fail("WRITE of %d bytes, %v: %d, %v", len(data), how, ok3.Count, ok3.Committed)
	}
	w.verifier(ok3.Verf, life)
	switch ok3.Committed {
	case nfs3.UNSTABLE:
		o.data.pending[before].verf = ok3.Verf
		return
	case nfs3.FILE_SYNC:
		o.mtime.is(ok3.FileWcc.After.Attributes.Mtime)
	}
	o.data.pending = o.data.pending[:before]
	o.data.write(off, data)
}

// verifier checks that no two lives have the same. One life may have several: the
// server takes another whenever it is in doubt.
func (w *worker) verifier(v [8]byte, life int) {
	if was, ok := w.l.verfs[v]; ok && was != life {
		w.fail("the write verifier of life %d is that of life %d: what was lost will not be sent again", life, was)
	}
	w.l.verfs[v] = life
}

func (w *worker) commit() {
	w.l.mu.Lock()
	life := w.l.life
	_, o, ok := w.pick(func(_ place, o *object) bool { return len(o.data.pending) > 0 })
	w.l.mu.Unlock()
	if !ok {
		return
	}
	var res nfs3.COMMIT3res
	if w.do(nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: fh(o.handle)}, &res, func() int32 { return int32(res.Status) }) {
		w.verifier(res.Resok.Verf, life)
		o.data.commit(res.Resok.Verf)
		o.mtime.is(res.Resok.FileWcc.After.Attributes.Mtime)
		w.l.mu.Unlock()
	}
}

// lookup finds an object that was there before the server.
func (w *worker) lookup() {
	w.l.mu.Lock()
	var p place
	var o *object
	for k := range crashFound {
		name := fmt.Sprintf("found-%d-%d", w.n, k)
		if v := w.l.names[w.l.root][name]; v != nil && v.v[0] != nil && v.v[0].handle == nil {
			p, o = place{w.l.root, name}, v.v[0]
			break
		}
	}
	if o != nil {
		o.tried = true
	}
	w.l.mu.Unlock()
	if o == nil {
		return
	}
	var res nfs3.LOOKUP3res
	if w.do(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: at(p.dir.handle, p.name)}, &res, func() int32 { return int32(res.Status) }) {
		o.handle, o.id = bytes.Clone(res.Resok.Object.Data), res.Resok.ObjAttributes.Attributes.Fileid
		o.knows(&res.Resok.ObjAttributes.Attributes)
		o.owner = w.n
		w.l.mu.Unlock()
	}
}

// setACL lets a further user in.
func (w *worker) setACL() {
	if !w.super {
		return
	}
	perm, mask := w.r.Uint32N(8), w.r.Uint32N(8)
	list := []nfsacl3.Aclent{
		{Type: nfsacl3.NA_USER_OBJ, Perm: 6}, {Type: nfsacl3.NA_USER, Id: 1000, Perm: perm},
		{Type: nfsacl3.NA_GROUP_OBJ, Perm: 4}, {Type: nfsacl3.NA_CLASS_OBJ, Perm: mask}, {Type: nfsacl3.NA_OTHER_OBJ, Perm: 0},
	}
	text, m := aclText(list), 0o600|mask<<3
	w.l.mu.Lock()
	_, o, ok := w.pick(func(_ place, o *object) bool { return o.typ == nfs3.NF3REG && o.uid.v[0] != 77777 })
	if ok {
		if !o.hasACL {
			o.acl.is("")
		}
		o.hasACL = true
		o.acl.may(text)
		o.mode.may(m)
		o.exclusive = false
	}
	w.l.mu.Unlock()
	if !ok {
		return
	}
	args := &nfsacl3.SETACL3args{Fh: nfsacl3.NfsFh3{Data: o.handle},
		Acl: nfsacl3.Secattr{Mask: nfsacl3.NA_ACL | nfsacl3.NA_ACLCNT, Aclcnt: int32(len(list)), Aclent: list}}
	var res nfsacl3.SETACL3res
	if w.do(nfsacl3.ACLPROC3_SETACL, args, &res, func() int32 { return int32(res.Status) }) {
		o.acl.is(text)
		o.mode.is(m)
		w.l.mu.Unlock()
	}
}

func aclText(list []nfsacl3.Aclent) string {
	var out []string
	for _, e := range list {
		if e.Type != nfsacl3.NA_USER && e.Type != nfsacl3.NA_GROUP {
			e.Id = 0
		}
		out = append(out, fmt.Sprintf("%d:%d:%d", e.Type, e.Id, e.Perm))
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}
