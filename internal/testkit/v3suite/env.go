package v3suite

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// patience bounds one test. Behind it every call fails, and so does the test.
	patience = time.Minute

	// maxJukebox is how often a call is made again that is answered
	// NFS3ERR_JUKEBOX, after pauses that begin with jukeboxPause and double. The
	// last answer counts.
	maxJukebox   = 6
	jukeboxPause = 20 * time.Millisecond

	// maxFailed is how many faults one test reports.
	maxFailed = 20
)

// The callers of the tests.
var (
	superuser = oncrpc.AuthSys{Machine: "v3suite"}
	alice     = oncrpc.AuthSys{Machine: "v3suite", UID: 1000, GID: 1000, GIDs: []uint32{1000, 1050}}
	bob       = oncrpc.AuthSys{Machine: "v3suite", UID: 2000, GID: 2000}
)

// handle is a file handle.
type handle []byte

// suite is one run.
type suite struct {
	target  Target
	nfs     *oncrpc.Client
	mountd  *oncrpc.Client
	owner   oncrpc.AuthSys // sets the stage
	export  handle
	dir     handle // of this run, in the export
	runName string // its name there
	seen    map[pair]bool
	partial bool // a test was skipped
}

// newSuite mounts the export and makes the run's directory, or returns why it
// cannot.
func newSuite(t *testing.T, target Target) (s *suite, failed []string) {
	t.Helper()
	if target.DialMount == nil {
		target.DialMount = target.Dial
	}
	s = &suite{target: target, owner: target.Caller, seen: make(map[pair]bool)}
	if target.Identities {
		s.owner = superuser
	}
	// The tests want each call executed once, whatever the wire does.
	s.nfs = oncrpc.NewClient(oncrpc.ClientOptions{Dial: target.Dial, FirstXID: firstXID(), Retries: -1})
	s.mountd = oncrpc.NewClient(oncrpc.ClientOptions{Dial: target.DialMount, FirstXID: firstXID(), Retries: -1})
	t.Cleanup(func() {
		for _, c := range []*oncrpc.Client{s.nfs, s.mountd} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return s, s.newEnv(t).protect(s.makeDir)
}

// firstXID differs from run to run, for servers remember replies by it.
func firstXID() uint32 { return uint32(time.Now().UnixNano()) }

func (s *suite) makeDir(e *env) {
	s.export = e.mount(s.target.Export)
	s.runName = "v3suite-" + strconv.FormatInt(time.Now().UnixNano(), 36) // earlier runs have left theirs
	res := e.mkdir(s.export, s.runName, mode(0o777))
	e.ok(res.Status)
	s.dir = bytes.Clone(res.Resok.Obj.Handle.Data)
	e.setattr(s.dir, mode(0o777)) // past the server's umask
}

// run runs one test in a directory of its own, and returns what it found wrong.
func (s *suite) run(t *testing.T, name string, test *test) []string {
	t.Helper()
	e := s.newEnv(t)
	return e.protect(func(e *env) {
		e.dir = e.mustMkdir(s.dir, strings.ReplaceAll(name, "/", "-"))
		test.run(e)
	})
}

// env is what one test works with: a caller, a directory, and a list of what was
// found wrong. It is for the test's own goroutine.
type env struct {
	*suite
	ctx    context.Context
	auth   oncrpc.Auth
	dir    handle // the test's own, empty, mode 0777
	failed []string
	keep   []oncrpc.Reply // what results borrow from
	last   string         // the procedure that was called last
}

func (s *suite) newEnv(t *testing.T) *env {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	e := &env{suite: s, ctx: ctx}
	t.Cleanup(cancel)
	return e.as(s.owner)
}

// stop is what Fatalf panics with.
type stop struct{}

// protect runs f to its end or to its first fatal finding.
func (e *env) protect(f func(*env)) []string {
	defer func() {
		for _, r := range e.keep {
			r.Release()
		}
		e.keep = nil
	}()
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(stop{}) {
				panic(p)
			}
		}()
		f(e)
	}()
	return e.failed
}

// Errorf notes something that is wrong. Behind maxFailed the test ends.
func (e *env) Errorf(format string, args ...any) {
	if len(e.failed) == maxFailed {
		panic(stop{})
	}
	e.failed = append(e.failed, fmt.Sprintf(format, args...))
}

// Fatalf notes something that is wrong and ends the test.
func (e *env) Fatalf(format string, args ...any) {
	e.Errorf(format, args...)
	panic(stop{})
}

func (e *env) as(a oncrpc.AuthSys) *env {
	auth, err := a.Auth()
	if err != nil {
		e.Fatalf("a credential: %v", err)
	}
	e.auth = auth
	return e
}

func (e *env) asOwner() { e.as(e.owner) }

// garbageArgs is GARBAGE_ARGS in place of a status: servers refuse some arguments
// while they decode them, others afterwards.
const garbageArgs nfs3.Nfsstat3 = -1

// call makes a call that must be answered. What res borrows is good until the
// end of the test.
func (e *env) call(p *xdr.Proc, args xdr.Appender, res nfs3.Result) {
	pause := jukeboxPause
	for range maxJukebox {
		if accepted, answer := e.raw(p, args, res); garbage(answer) {
			*res.Stat() = garbageArgs
		} else if !accepted {
			e.Fatalf("%s: %v", procName(p), answer)
		}
		if *res.Stat() != nfs3.NFS3ERR_JUKEBOX {
			break
		}
		select {
		case <-time.After(pause):
		case <-e.ctx.Done():
		}
		pause *= 2
	}
}

func (e *env) mount(path string) handle {
	res := e.mnt(path)
	if res.FhsStatus != mount3.MNT3_OK {
		e.Fatalf("MNT %q: %v", path, res.FhsStatus)
	}
	return bytes.Clone(res.Mountinfo.Fhandle)
}

func (e *env) mnt(path string) (res mount3.Mountres3) {
	e.mountCall(mount3.MOUNTPROC3_MNT, &mount3.Mountargs{Path: []byte(path)}, &res)
	return res
}

func (e *env) mountCall(p *xdr.Proc, args xdr.Appender, res xdr.Unmarshaler) {
	reply, err := e.mountd.Call(e.ctx, p, e.auth, args, res)
	if err != nil {
		e.Fatalf("%s: %v", p.Name, err)
	}
	e.keep = append(e.keep, reply)
}
