package v3_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// twice is a server's way to execute a call of which only the second sending is
// answered: the first is lost with its connection.
func twice(t *testing.T, st **stage, answers ...xdr.Appender) func(int, *oncrpc.Call) xdr.Appender {
	return func(n int, _ *oncrpc.Call) xdr.Appender {
		if n == 1 {
			(*st).cut(t)
			return nil
		}
		return answers[min(n-2, len(answers)-1)]
	}
}

// found is a LOOKUP that finds the object with a handle and a number.
func found(h string, fileid uint64) *nfs3.LOOKUP3res {
	return &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte(h)}, ObjAttributes: numbered(fileid)}}
}

func numbered(fileid uint64) nfs3.PostOpAttr {
	return nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Type: nfs3.NF3REG, Fsid: 7, Fileid: fileid}}
}

// What the operations of these tests do.
var (
	judgedRemove = func(ctx context.Context, fs *v3.FS, dir vfs.Handle) error {
		_, err := fs.Remove(ctx, dir, "x", false)
		return err
	}
	judgedRmdir = func(ctx context.Context, fs *v3.FS, dir vfs.Handle) error {
		_, err := fs.Remove(ctx, dir, "x", true)
		return err
	}
	judgedRename = func(ctx context.Context, fs *v3.FS, dir vfs.Handle) error {
		_, _, err := fs.Rename(ctx, dir, "x", dir, "y")
		return err
	}
	judgedLink = func(ctx context.Context, fs *v3.FS, dir vfs.Handle) error {
		h, err := vfs.MakeHandle([]byte("object"))
		if err != nil {
			return err
		}
		_, _, err = fs.Link(ctx, h, dir, "y")
		return err
	}
	judgedSetattr = func(ctx context.Context, fs *v3.FS, dir vfs.Handle) error {
		guard := time.Unix(1, 0)
		_, err := fs.SetAttr(ctx, dir, &vfs.SetAttr{Valid: vfs.MaskMode}, &guard)
		return err
	}
	judgedWrite = func(ctx context.Context, fs *v3.FS, h vfs.Handle) error {
		f, _, err := fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err != nil {
			return err
		}
		_, err = f.WriteAt(ctx, []byte("x"), 0, vfs.Unstable, new(vfs.Written))
		return errors.Join(err, f.Close(ctx))
	}
)

func judgedCreate(how vfs.CreateHow) func(context.Context, *v3.FS, vfs.Handle) error {
	return func(ctx context.Context, fs *v3.FS, dir vfs.Handle) error {
		_, _, _, err := fs.Create(ctx, dir, "x", &how)
		return err
	}
}

// TestJudge sends every procedure that changes something twice, and looks at
// what becomes of the answer: never a success that is not known, and never an
// error that claims that nothing was done.
func TestJudge(t *testing.T) {
	reg := func(mode vfs.CreateMode) vfs.CreateHow { return vfs.CreateHow{Type: vfs.TypeReg, Mode: mode} }
	made := nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: []byte("new")}}
	linkFails := func(a nfs3.PostOpAttr) *nfs3.LINK3res {
		return &nfs3.LINK3res{Status: nfs3.NFS3ERR_EXIST, Resfail: nfs3.LINK3resfail{FileAttributes: a}}
	}
	missing := &nfs3.LOOKUP3res{Status: nfs3.NFS3ERR_NOENT}
	for name, tc := range map[string]struct {
		do      func(context.Context, *v3.FS, vfs.Handle) error
		proc    *xdr.Proc
		answer  xdr.Appender
		known   *nfs3.LOOKUP3res // what a LOOKUP before has found; nil: there was none
		lookup  *nfs3.LOOKUP3res // what one after finds
		lookups int              // how many there are after
		unknown bool
		err     error
	}{
		"remove":            {do: judgedRemove, proc: nfs3.NFSPROC3_REMOVE, answer: &nfs3.REMOVE3res{}},
		"remove, gone":      {do: judgedRemove, proc: nfs3.NFSPROC3_REMOVE, answer: &nfs3.REMOVE3res{Status: nfs3.NFS3ERR_NOENT}, known: found("object", 1), unknown: true, err: vfs.ErrNoEnt},
		"remove, denied":    {do: judgedRemove, proc: nfs3.NFSPROC3_REMOVE, answer: &nfs3.REMOVE3res{Status: nfs3.NFS3ERR_ACCES}, unknown: true, err: vfs.ErrAccess},
		"remove, senseless": {do: judgedRemove, proc: nfs3.NFSPROC3_REMOVE, answer: &nfs3.REMOVE3res{Status: nfs3.NFS3ERR_INVAL}, err: vfs.ErrInval},
		"rmdir, gone":       {do: judgedRmdir, proc: nfs3.NFSPROC3_RMDIR, answer: &nfs3.RMDIR3res{Status: nfs3.NFS3ERR_NOENT}, unknown: true, err: vfs.ErrNoEnt},

		"rename":                    {do: judgedRename, proc: nfs3.NFSPROC3_RENAME, answer: &nfs3.RENAME3res{}, known: found("object", 1)},
		"rename, nothing known":     {do: judgedRename, proc: nfs3.NFSPROC3_RENAME, answer: &nfs3.RENAME3res{Status: nfs3.NFS3ERR_NOENT}, unknown: true, err: vfs.ErrNoEnt},
		"rename, arrived":           {do: judgedRename, proc: nfs3.NFSPROC3_RENAME, answer: &nfs3.RENAME3res{Status: nfs3.NFS3ERR_NOENT}, known: found("object", 1), lookup: found("object", 1), lookups: 1},
		"rename, other arrived":     {do: judgedRename, proc: nfs3.NFSPROC3_RENAME, answer: &nfs3.RENAME3res{Status: nfs3.NFS3ERR_NOENT}, known: found("object", 1), lookup: found("other", 1), lookups: 1, unknown: true, err: vfs.ErrNoEnt},
		"rename, nowhere":           {do: judgedRename, proc: nfs3.NFSPROC3_RENAME, answer: &nfs3.RENAME3res{Status: nfs3.NFS3ERR_NOENT}, known: found("object", 1), lookup: missing, lookups: 1, unknown: true, err: vfs.ErrNoEnt},
		"rename, another status":    {do: judgedRename, proc: nfs3.NFSPROC3_RENAME, answer: &nfs3.RENAME3res{Status: nfs3.NFS3ERR_NOTEMPTY}, known: found("object", 1), unknown: true, err: vfs.ErrNotEmpty},
		"link, there":               {do: judgedLink, proc: nfs3.NFSPROC3_LINK, answer: linkFails(nfs3.PostOpAttr{}), lookup: found("object", 1), lookups: 1},
		"link, by another handle":   {do: judgedLink, proc: nfs3.NFSPROC3_LINK, answer: linkFails(numbered(1)), lookup: found("same", 1), lookups: 1},
		"link, by GETATTR":          {do: judgedLink, proc: nfs3.NFSPROC3_LINK, answer: linkFails(nfs3.PostOpAttr{}), lookup: found("same", 1), lookups: 1},
		"link, another file":        {do: judgedLink, proc: nfs3.NFSPROC3_LINK, answer: linkFails(numbered(1)), lookup: found("other", 2), lookups: 1, unknown: true, err: vfs.ErrExist},
		"link, gone again":          {do: judgedLink, proc: nfs3.NFSPROC3_LINK, answer: linkFails(numbered(1)), lookup: missing, lookups: 1, unknown: true, err: vfs.ErrExist},
		"create, guarded":           {do: judgedCreate(reg(vfs.CreateGuarded)), proc: nfs3.NFSPROC3_CREATE, answer: &nfs3.CREATE3res{Status: nfs3.NFS3ERR_EXIST}, unknown: true, err: vfs.ErrExist},
		"create, unchecked":         {do: judgedCreate(reg(vfs.CreateUnchecked)), proc: nfs3.NFSPROC3_CREATE, answer: &nfs3.CREATE3res{Resok: nfs3.CREATE3resok{Obj: made}}},
		"create, exclusive":         {do: judgedCreate(reg(vfs.CreateExclusive)), proc: nfs3.NFSPROC3_CREATE, answer: &nfs3.CREATE3res{Status: nfs3.NFS3ERR_EXIST}, err: vfs.ErrExist},
		"create, exclusive, denied": {do: judgedCreate(reg(vfs.CreateExclusive)), proc: nfs3.NFSPROC3_CREATE, answer: &nfs3.CREATE3res{Status: nfs3.NFS3ERR_ACCES}, unknown: true, err: vfs.ErrAccess},
		"mkdir":                     {do: judgedCreate(vfs.CreateHow{Type: vfs.TypeDir}), proc: nfs3.NFSPROC3_MKDIR, answer: &nfs3.MKDIR3res{Status: nfs3.NFS3ERR_EXIST}, unknown: true, err: vfs.ErrExist},
		"symlink":                   {do: judgedCreate(vfs.CreateHow{Type: vfs.TypeSymlink, Target: "t"}), proc: nfs3.NFSPROC3_SYMLINK, answer: &nfs3.SYMLINK3res{Status: nfs3.NFS3ERR_EXIST}, unknown: true, err: vfs.ErrExist},
		"mknod":                     {do: judgedCreate(vfs.CreateHow{Type: vfs.TypeFIFO}), proc: nfs3.NFSPROC3_MKNOD, answer: &nfs3.MKNOD3res{Status: nfs3.NFS3ERR_EXIST}, unknown: true, err: vfs.ErrExist},
		"setattr, guarded":          {do: judgedSetattr, proc: nfs3.NFSPROC3_SETATTR, answer: &nfs3.SETATTR3res{Status: nfs3.NFS3ERR_NOT_SYNC}, unknown: true, err: vfs.ErrNotSync},
		"write, no space":           {do: judgedWrite, proc: nfs3.NFSPROC3_WRITE, answer: &nfs3.WRITE3res{Status: nfs3.NFS3ERR_NOSPC}, unknown: true, err: vfs.ErrNoSpace},
	} {
		inBubble(t, name, func(t *testing.T) {
			var st *stage
			before := 0
			st = play(t, script{
				tc.proc: twice(t, &st, tc.answer),
				nfs3.NFSPROC3_LOOKUP: func(n int, _ *oncrpc.Call) xdr.Appender {
					if tc.known != nil && n == 1 {
						return tc.known
					}
					return tc.lookup
				},
				nfs3.NFSPROC3_GETATTR: always(&nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: numbered(1).Attributes}}),
			}, v3.Options{})
			if tc.known != nil {
				if _, _, _, err := st.fs.Lookup(t.Context(), handle(t, "dir"), "x"); err != nil {
					t.Fatal(err)
				}
				before = 1
			}
			err := tc.do(t.Context(), st.fs, handle(t, "dir"))
			if !errors.Is(err, tc.err) || errors.Is(err, vfs.ErrUnknownOutcome) != tc.unknown {
				t.Errorf("%v; want %v, unknown outcome %v", err, tc.err, tc.unknown)
			}
			if n := st.called(tc.proc); n != 2 {
				t.Errorf("the server was called %d times", n)
			}
			if n := st.called(nfs3.NFSPROC3_LOOKUP) - before; n != tc.lookups {
				t.Errorf("%d LOOKUPs afterwards, want %d", n, tc.lookups)
			}
		})
	}
}

// TestJudgeOnce makes sure that a call which was sent once is answered as the
// server says, and costs nothing more.
func TestJudgeOnce(t *testing.T) {
	st := play(t, script{
		nfs3.NFSPROC3_RENAME: always(&nfs3.RENAME3res{Status: nfs3.NFS3ERR_NOENT}),
		nfs3.NFSPROC3_LINK:   always(&nfs3.LINK3res{Status: nfs3.NFS3ERR_EXIST}),
		nfs3.NFSPROC3_REMOVE: always(&nfs3.REMOVE3res{Status: nfs3.NFS3ERR_NOENT}),
	}, v3.Options{})
	for want, do := range map[vfs.Status]func(context.Context, *v3.FS, vfs.Handle) error{vfs.ErrNoEnt: judgedRename, vfs.ErrExist: judgedLink} {
		if err := do(t.Context(), st.fs, handle(t, "dir")); !errors.Is(err, want) || errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := judgedRemove(t.Context(), st.fs, handle(t, "dir")); !errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrUnknownOutcome) {
		t.Error(err)
	}
	if n := st.rpc.Stats().Calls; n != 3 {
		t.Errorf("%d calls", n)
	}
}

// TestJudgeOld does not judge a RENAME by what is known of its names no more:
// each case leads the client to know of "x", or of where it goes, something that
// would prove the wrong thing.
func TestJudgeOld(t *testing.T) {
	lookup := func(name string) func(context.Context, *v3.FS, vfs.Handle) error {
		return func(ctx context.Context, fs *v3.FS, dir vfs.Handle) error {
			_, _, _, err := fs.Lookup(ctx, dir, name)
			return err
		}
	}
	for name, tc := range map[string]struct {
		before  []func(context.Context, *v3.FS, vfs.Handle) error
		renames int // of before
	}{
		"renamed before":                 {before: []func(context.Context, *v3.FS, vfs.Handle) error{lookup("x"), judgedRename}, renames: 1},
		"removed":                        {before: []func(context.Context, *v3.FS, vfs.Handle) error{lookup("x"), judgedRemove}},
		"removed as a directory":         {before: []func(context.Context, *v3.FS, vfs.Handle) error{lookup("x"), judgedRmdir}},
		"the target was that very thing": {before: []func(context.Context, *v3.FS, vfs.Handle) error{lookup("x"), lookup("y")}},
	} {
		inBubble(t, name, func(t *testing.T) {
			var st *stage
			again := twice(t, &st, &nfs3.RENAME3res{Status: nfs3.NFS3ERR_NOENT})
			st = play(t, script{
				nfs3.NFSPROC3_LOOKUP: always(found("object", 1)),
				nfs3.NFSPROC3_REMOVE: always(&nfs3.REMOVE3res{}),
				nfs3.NFSPROC3_RMDIR:  always(&nfs3.RMDIR3res{}),
				nfs3.NFSPROC3_RENAME: func(n int, c *oncrpc.Call) xdr.Appender {
					if n <= tc.renames {
						return &nfs3.RENAME3res{}
					}
					return again(n-tc.renames, c)
				},
			}, v3.Options{})
			for _, do := range tc.before {
				if err := do(t.Context(), st.fs, handle(t, "dir")); err != nil {
					t.Fatal(err)
				}
			}
			if err := judgedRename(t.Context(), st.fs, handle(t, "dir")); !errors.Is(err, vfs.ErrNoEnt) || !errors.Is(err, vfs.ErrUnknownOutcome) {
				t.Errorf("%v; want ErrNoEnt of unknown outcome", err)
			}
		})
	}
}

// TestJudgeBusy does not forget, over an answer of JUKEBOX, that an earlier call
// may have been executed.
func TestJudgeBusy(t *testing.T) {
	busy := &nfs3.REMOVE3res{Status: nfs3.NFS3ERR_JUKEBOX}
	for name, tc := range map[string]struct {
		answers []xdr.Appender
		err     error
	}{
		"then gone": {[]xdr.Appender{busy, &nfs3.REMOVE3res{Status: nfs3.NFS3ERR_NOENT}}, vfs.ErrNoEnt},
		"for ever":  {[]xdr.Appender{busy}, vfs.ErrBusy},
		"given up":  {[]xdr.Appender{busy}, context.DeadlineExceeded},
	} {
		inBubble(t, name, func(t *testing.T) {
			var st *stage
			st = play(t, script{nfs3.NFSPROC3_REMOVE: twice(t, &st, tc.answers...)}, v3.Options{})
			ctx := t.Context()
			if tc.err == context.DeadlineExceeded { //nolint:errorlint // the table's own value
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
			}
			if err := judgedRemove(ctx, st.fs, handle(t, "dir")); !errors.Is(err, tc.err) || !errors.Is(err, vfs.ErrUnknownOutcome) {
				t.Errorf("%v, want %v and an unknown outcome", err, tc.err)
			}
		})
	}
}

// TestHard waits for a busy server until the context ends.
func TestHard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{nfs3.NFSPROC3_GETATTR: busyFor(100, &nfs3.GETATTR3res{})}, v3.Options{Hard: true})
		if _, err := st.fs.GetAttr(t.Context(), handle(t, "file"), vfs.MaskV3); err != nil {
			t.Error(err)
		}
		if n := st.called(nfs3.NFSPROC3_GETATTR); n != 101 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestSillyDoubt removes an open file whose hiding was given up half-way: as
// long as nobody knows of a hidden name, the file's last name is not removed.
func TestSillyDoubt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hides := 0
	st := play(t, script{
		nfs3.NFSPROC3_LOOKUP: func(_ int, c *oncrpc.Call) xdr.Appender {
			var args nfs3.LOOKUP3args
			if args.DecodeXDR(&c.Args) != nil || string(args.What.Name) != "x" {
				return &nfs3.LOOKUP3res{Status: nfs3.NFS3ERR_NOENT} // a hidden name
			}
			return found("file", 1)
		},
		nfs3.NFSPROC3_GETATTR: always(&nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: nfs3.Fattr3{Type: nfs3.NF3REG, Nlink: 1}}}),
		nfs3.NFSPROC3_RENAME: func(int, *oncrpc.Call) xdr.Appender {
			if hides++; hides == 1 {
				cancel()
				return nil
			}
			return &nfs3.RENAME3res{}
		},
		nfs3.NFSPROC3_REMOVE: always(&nfs3.REMOVE3res{}),
	}, v3.Options{})
	st.open(t)
	if err := judgedRemove(ctx, st.fs, handle(t, "dir")); !errors.Is(err, vfs.ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	if err := judgedRemove(t.Context(), st.fs, handle(t, "dir")); err != nil {
		t.Error(err)
	}
	if n, removes := st.called(nfs3.NFSPROC3_RENAME), st.called(nfs3.NFSPROC3_REMOVE); n != 2 || removes != 0 {
		t.Errorf("%d RENAMEs, %d REMOVEs", n, removes)
	}
}

// fails is a result that does not encode: the server answers in RPC, as err says.
type fails struct{ err error }

func (f fails) AppendXDR([]byte) ([]byte, error) { return nil, f.err }

// TestRefused gives what a server answers below NFS a status, and keeps what it
// was. A server's failure is no promise that nothing was done; that it has no
// such procedure, or does not take the call, is one.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  xdr.Appender // nil: the procedure does not exist
		status  vfs.Status
		unknown bool // of a change
		is      func(error) bool
	}{
		"SYSTEM_ERR":   {fails{errors.New("broken")}, vfs.ErrServerFault, true, accepted(oncrpc.SystemErr)},
		"GARBAGE_ARGS": {fails{oncrpc.ErrGarbageArgs}, vfs.ErrInval, false, accepted(oncrpc.GarbageArgs)},
		"PROC_UNAVAIL": {nil, vfs.ErrNotSupp, false, accepted(oncrpc.ProcUnavail)},
		"AUTH_ERROR": {fails{&oncrpc.AuthError{Stat: oncrpc.AuthTooWeak}}, vfs.ErrAccess, false, func(err error) bool {
			d, ok := errors.AsType[*oncrpc.DeniedError](err)
			return ok && d.Auth == oncrpc.AuthTooWeak
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := script{}
			if tc.answer != nil {
				s[nfs3.NFSPROC3_REMOVE], s[nfs3.NFSPROC3_GETATTR] = always(tc.answer), always(tc.answer)
			}
			st := play(t, s, v3.Options{})
			_, read := st.fs.GetAttr(t.Context(), handle(t, "dir"), vfs.MaskV3)
			change := judgedRemove(t.Context(), st.fs, handle(t, "dir"))
			for _, err := range []error{read, change} {
				if status, ok := vfs.StatusOf(err); !ok || status != tc.status || !tc.is(err) {
					t.Errorf("%v has status %v, %v; want %v", err, status, ok, tc.status)
				}
			}
			if errors.Is(read, vfs.ErrUnknownOutcome) || errors.Is(change, vfs.ErrUnknownOutcome) != tc.unknown {
				t.Errorf("%v, %v; want unknown outcome %v of the second", read, change, tc.unknown)
			}
		})
	}
}

// accepted finds an AcceptError.
func accepted(stat oncrpc.AcceptStat) func(error) bool {
	return func(err error) bool {
		a, ok := errors.AsType[*oncrpc.AcceptError](err)
		return ok && a.Stat == stat
	}
}

// TestRefusedAfterBusy does not take a refusal for a promise if the call may have
// been executed in a try before.
func TestRefusedAfterBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var st *stage
		st = play(t, script{nfs3.NFSPROC3_REMOVE: twice(t, &st, &nfs3.REMOVE3res{Status: nfs3.NFS3ERR_JUKEBOX}, fails{oncrpc.ErrGarbageArgs})}, v3.Options{})
		err := judgedRemove(t.Context(), st.fs, handle(t, "dir"))
		if !errors.Is(err, vfs.ErrInval) || !errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("%v; want ErrInval of unknown outcome", err)
		}
	})
}
