package server

import (
	"bytes"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/oncrpc/replycache"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
	"github.com/nfsbox/nfsbox/proto/nlm4"
	"github.com/nfsbox/nfsbox/xdr"
)

// onceWorld is a server with what the calls of onceOps work on. Its own client is the second
// one: it changes things while the first has lost its reply.
type onceWorld struct {
	*rig
	file, other []byte // "file" and "old", which hold "first"
	gate        *gate
	replies     *replycache.Cache
}

func newOnceWorld(t testing.TB) *onceWorld {
	t.Helper()
	w := &onceWorld{gate: newGate(), replies: replycache.New(replycache.Options{})}
	fs := memfs.New(memfs.Options{Mode: 0o777, Fault: w.gate.pass})
	w.rig = serve(t, fs, nfsserver.Options{Replies: w.replies, Locks: true})
	w.rig.fs = fs
	w.file = w.rig.file(w.root, "file", 0o644, "first")
	w.other = w.rig.file(w.root, "old", 0o644, "first")
	w.dir(w.root, "sub", 0o755)
	return w
}

// content is what a file holds, of at most 64 bytes.
func (w *onceWorld) content(h []byte) string {
	w.t.Helper()
	res := w.read(h, 0, 64)
	w.status(res.Status, nfs3.NFS3_OK)
	return string(res.Resok.Data[:res.Resok.Count])
}

func (w *onceWorld) gone(name string) {
	w.t.Helper()
	if st := w.lookup(w.root, name).Status; st != nfs3.NFS3ERR_NOENT {
		w.t.Errorf("%q, which was removed meanwhile: %v", name, st)
	}
}

func (w *onceWorld) ok(st nfs3.Nfsstat3) {
	w.t.Helper()
	w.status(st, nfs3.NFS3_OK)
}

// lockOf is a range of the file, locked by the process of that number.
func (w *onceWorld) lockOf(svid int32) nlm4.Nlm4Lock {
	return nlm4.Nlm4Lock{CallerName: []byte("host"), Fh: w.file, Oh: []byte{byte(svid)}, Svid: svid, LOffset: 10, LLen: 10}
}

func (w *onceWorld) lockArgs(svid int32) *nlm4.Nlm4Lockargs {
	return &nlm4.Nlm4Lockargs{Cookie: []byte{1}, Exclusive: true, Alock: w.lockOf(svid)}
}

func (w *onceWorld) lock(svid int32) {
	w.t.Helper()
	var res nlm4.Nlm4Res
	w.call(nlm4.NLMPROC4_LOCK, w.lockArgs(svid), &res)
	if res.Stat.Stat != nlm4.NLM4_GRANTED {
		w.t.Errorf("process %d locks: %v", svid, res.Stat.Stat)
	}
}

func (w *onceWorld) unlock(svid int32) {
	w.t.Helper()
	var res nlm4.Nlm4Res
	w.call(nlm4.NLMPROC4_UNLOCK, &nlm4.Nlm4Unlockargs{Alock: w.lockOf(svid)}, &res)
	if res.Stat.Stat != nlm4.NLM4_GRANTED {
		w.t.Errorf("process %d unlocks: %v", svid, res.Stat.Stat)
	}
}

// held checks who holds the lock.
func (w *onceWorld) held(svid int32) {
	w.t.Helper()
	var res nlm4.Nlm4Testres
	w.call(nlm4.NLMPROC4_TEST, &nlm4.Nlm4Testargs{Exclusive: true, Alock: w.lockOf(99)}, &res)
	if s := res.TestStat; s.Stat != nlm4.NLM4_DENIED || s.Holder.Svid != svid {
		w.t.Errorf("the lock is held by %d (%v), not %d", s.Holder.Svid, s.Stat, svid)
	}
}

// aclOf are rights for the owner alone, as a list.
func (w *onceWorld) aclOf(perm uint32) *nfsacl3.SETACL3args {
	return &nfsacl3.SETACL3args{Fh: nfsacl3.NfsFh3{Data: w.file}, Acl: nfsacl3.Secattr{
		Mask: nfsacl3.NA_ACL | nfsacl3.NA_ACLCNT, Aclcnt: 4,
		Aclent: []nfsacl3.Aclent{
			{Type: nfsacl3.NA_USER_OBJ, Perm: perm}, {Type: nfsacl3.NA_GROUP_OBJ},
			{Type: nfsacl3.NA_CLASS_OBJ}, {Type: nfsacl3.NA_OTHER_OBJ},
		},
	}}
}

// onceOp is a call that must not be executed twice.
type onceOp struct {
	name string
	proc *xdr.Proc
	does string                          // the file system's name for it
	args func(w *onceWorld) xdr.Appender // looked at before the first try
	then func(w *onceWorld)              // what somebody else does before the second
	look func(w *onceWorld)              // whether that stands
	held func(w *onceWorld)              // what has to be before the first; nil: nothing
}

func guarded(perm uint32) nfs3.Createhow3 {
	return nfs3.Createhow3{Mode: nfs3.GUARDED, ObjAttributes: mode(perm)}
}

func sized(n uint64) nfs3.Sattr3 { return nfs3.Sattr3{Size: nfs3.SetSize3{SetIt: true, Size: n}} }

// creations are calls that make "new". Another client then removes it.
func creations() []onceOp {
	then := func(w *onceWorld) { w.ok(w.remove(w.root, "new").Status) }
	look := func(w *onceWorld) { w.gone("new") }
	create := func(how nfs3.Createhow3) func(w *onceWorld) xdr.Appender {
		return func(w *onceWorld) xdr.Appender { return &nfs3.CREATE3args{Where: at(w.root, "new"), How: how} }
	}
	return []onceOp{
		{name: "CREATE guarded", proc: nfs3.NFSPROC3_CREATE, does: "create", then: then, look: look, args: create(guarded(0o600))},
		{name: "CREATE exclusive", proc: nfs3.NFSPROC3_CREATE, does: "create", then: then, look: look,
			args: create(nfs3.Createhow3{Mode: nfs3.EXCLUSIVE, Verf: [8]byte{1, 2, 3}})},
		{name: "CREATE truncating", proc: nfs3.NFSPROC3_CREATE, does: "create",
			args: create(nfs3.Createhow3{Mode: nfs3.UNCHECKED, ObjAttributes: sized(0)}),
			then: func(w *onceWorld) {
				w.ok(w.write(w.find(w.root, "new"), 0, []byte("theirs"), nfs3.FILE_SYNC).Status)
			},
			look: func(w *onceWorld) {
				if s := w.content(w.find(w.root, "new")); s != "theirs" {
					w.t.Errorf("new holds %q", s)
				}
			}},
		{name: "SYMLINK", proc: nfs3.NFSPROC3_SYMLINK, does: "create", then: then, look: look, args: func(w *onceWorld) xdr.Appender {
			return &nfs3.SYMLINK3args{Where: at(w.root, "new"), Symlink: nfs3.Symlinkdata3{SymlinkData: []byte("file")}}
		}},
		{name: "MKNOD", proc: nfs3.NFSPROC3_MKNOD, does: "create", then: then, look: look, args: func(w *onceWorld) xdr.Appender {
			return &nfs3.MKNOD3args{Where: at(w.root, "new"), What: nfs3.Mknoddata3{Type: nfs3.NF3FIFO, PipeAttributes: mode(0o600)}}
		}},
		{name: "LINK", proc: nfs3.NFSPROC3_LINK, does: "link", then: then, look: look, args: func(w *onceWorld) xdr.Appender {
			return &nfs3.LINK3args{File: fh(w.file), Link: at(w.root, "new")}
		}},
		{name: "MKDIR", proc: nfs3.NFSPROC3_MKDIR, does: "create", look: look,
			args: func(w *onceWorld) xdr.Appender {
				return &nfs3.MKDIR3args{Where: at(w.root, "new"), Attributes: mode(0o700)}
			},
			then: func(w *onceWorld) { w.ok(w.rmdir(w.root, "new").Status) }},
	}
}

// removals are calls that take a name away. Another client then gives it to another object.
func removals() []onceOp {
	again := func(w *onceWorld) { w.other = w.rig.file(w.root, "old", 0o600, "theirs") }
	there := func(w *onceWorld) {
		if s := w.content(w.find(w.root, "old")); s != "theirs" {
			w.t.Errorf("old holds %q", s)
		}
	}
	return []onceOp{
		{name: "REMOVE", proc: nfs3.NFSPROC3_REMOVE, does: "remove", then: again, look: there, args: func(w *onceWorld) xdr.Appender {
			return &nfs3.REMOVE3args{Object: at(w.root, "old")}
		}},
		{name: "RMDIR", proc: nfs3.NFSPROC3_RMDIR, does: "remove",
			args: func(w *onceWorld) xdr.Appender { return &nfs3.RMDIR3args{Object: at(w.root, "sub")} },
			then: func(w *onceWorld) { w.ok(w.mkdir(w.root, "sub", 0o711).Status) },
			look: func(w *onceWorld) { w.find(w.root, "sub") }},
		{name: "RENAME", proc: nfs3.NFSPROC3_RENAME, does: "rename", then: again,
			args: func(w *onceWorld) xdr.Appender {
				return &nfs3.RENAME3args{From: at(w.root, "old"), To: at(w.root, "moved")}
			},
			look: func(w *onceWorld) {
				there(w)
				if s := w.content(w.find(w.root, "moved")); s != "first" {
					w.t.Errorf("moved holds %q", s)
				}
			}},
	}
}

// changes are calls that change a file or a lock. Another client then changes it again.
func changes() []onceOp {
	perm := func(want uint32) func(w *onceWorld) {
		return func(w *onceWorld) {
			if m := w.attr(w.file).Mode; m != want {
				w.t.Errorf("mode %#o, want %#o", m, want)
			}
		}
	}
	theirs := func(w *onceWorld) { w.ok(w.write(w.file, 0, []byte("their"), nfs3.FILE_SYNC).Status) }
	stands := func(w *onceWorld) {
		if s := w.content(w.file); s != "their" {
			w.t.Errorf("file holds %q", s)
		}
	}
	return []onceOp{
		{name: "SETATTR guarded", proc: nfs3.NFSPROC3_SETATTR, does: "setattr", look: perm(0o640),
			args: func(w *onceWorld) xdr.Appender {
				guard := nfs3.Sattrguard3{Check: true, ObjCtime: w.attr(w.file).Ctime}
				return &nfs3.SETATTR3args{Object: fh(w.file), NewAttributes: mode(0o600), Guard: guard}
			},
			then: func(w *onceWorld) { w.ok(w.setattr(w.file, mode(0o640)).Status) }},
		{name: "SETATTR size", proc: nfs3.NFSPROC3_SETATTR, does: "setattr", then: theirs, look: stands, args: func(w *onceWorld) xdr.Appender {
			return &nfs3.SETATTR3args{Object: fh(w.file), NewAttributes: sized(0)}
		}},
		{name: "WRITE", proc: nfs3.NFSPROC3_WRITE, does: "write", then: theirs, look: stands, args: func(w *onceWorld) xdr.Appender {
			return &nfs3.WRITE3args{File: fh(w.file), Count: 4, Stable: nfs3.FILE_SYNC, Data: []byte("mine")}
		}},
		{name: "SETACL", proc: nfsacl3.ACLPROC3_SETACL, does: "setacl", look: perm(0o400),
			args: func(w *onceWorld) xdr.Appender { return w.aclOf(nfsacl3.NA_READ | nfsacl3.NA_WRITE) },
			then: func(w *onceWorld) { w.ok(w.setattr(w.file, mode(0o400)).Status) }},
		{name: "LOCK", proc: nlm4.NLMPROC4_LOCK, does: "lock",
			args: func(w *onceWorld) xdr.Appender { return w.lockArgs(1) },
			then: func(w *onceWorld) { w.unlock(1); w.lock(2) },
			look: func(w *onceWorld) { w.held(2) }},
		{name: "UNLOCK", proc: nlm4.NLMPROC4_UNLOCK, does: "unlock", held: func(w *onceWorld) { w.lock(1) },
			args: func(w *onceWorld) xdr.Appender { return &nlm4.Nlm4Unlockargs{Cookie: []byte{2}, Alock: w.lockOf(1)} },
			then: func(w *onceWorld) { w.lock(1) },
			look: func(w *onceWorld) { w.held(1) }},
	}
}

func onceOps() []onceOp { return append(append(creations(), removals()...), changes()...) }

// begin makes what has to be and answers the call's arguments.
func (op *onceOp) begin(w *onceWorld) xdr.Appender {
	w.t.Helper()
	if op.held != nil {
		op.held(w)
	}
	return op.args(w)
}

// anyResult is the reply of any of them.
type anyResult struct{ body []byte }

func (r *anyResult) DecodeXDR(d *xdr.Decoder) error {
	r.body = bytes.Clone(d.Fixed(len(d.Rest())))
	return d.Finish()
}

// good checks that a result says that all is well.
func (op *onceOp) good(t testing.TB, body []byte) {
	t.Helper()
	d := xdr.NewDecoder(body)
	if op.proc.Program == nlm4.NLM_V4.Number {
		d.Opaque("cookie", 1024)
	}
	if st := d.Uint32(); st != 0 || d.Err() != nil {
		t.Errorf("status %d (%v)", st, d.Err())
	}
}

// cred is a credential that must be one.
func cred(t testing.TB, a oncrpc.AuthSys) oncrpc.Auth {
	t.Helper()
	auth, err := a.Auth()
	if err != nil {
		t.Fatal(err)
	}
	return auth
}
