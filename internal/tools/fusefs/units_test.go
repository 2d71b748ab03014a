//go:build linux

package fusefs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/vfs/memfs"
)

func aclOf(uid uint32) []vfs.ACLEntry {
	return []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 6}, {Tag: vfs.ACLUser, ID: uid, Perm: 4}, {Tag: vfs.ACLGroupObj, Perm: 4},
		{Tag: vfs.ACLMask, Perm: 4}, {Tag: vfs.ACLOther, Perm: 0},
	}
}

func handleOf(n uint64) vfs.Handle {
	h, _ := vfs.MakeHandle(binary.BigEndian.AppendUint64(nil, n))
	return h
}

// TestNodes: a node keeps its number as long as the kernel knows it, and no other object ever gets it. Nodes that were
// looked up and forgotten leave no memory: a million in a soak.
func TestNodes(t *testing.T) {
	count := uint64(20_000)
	if os.Getenv("NFSBOX_SOAK") != "" {
		count = 1_000_000
	}
	table := newNodes(handleOf(0))
	before := heap()
	root := table.get(rootID)
	for n := range count {
		name := strconv.FormatUint(n, 10)
		a := table.look(handleOf(n+1), root, name)
		if b := table.look(handleOf(n+1), root, name); a != b {
			t.Fatal("one handle has two nodes")
		}
	}
	if got := table.len(); uint64(got) != count+1 {
		t.Fatalf("%d nodes", got)
	}
	last := table.look(handleOf(count), root, "last").id
	for n := range count {
		table.forget(n+2, 1)
		if table.get(n+2) == nil {
			t.Fatal("a node has gone of which the kernel knows")
		}
		table.forget(n+2, 5)
	}
	table.forget(rootID, 1<<40)
	if got := table.len(); got != 1 {
		t.Errorf("%d nodes are left, want the root", got)
	}
	if len(table.at) != 0 {
		t.Errorf("%d names are left", len(table.at))
	}
	if again := table.look(handleOf(count), root, "last").id; again <= last {
		t.Errorf("number %d was given again", again)
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d bytes are left of %d nodes", grown, count)
	}
	runtime.KeepAlive(table)
}

// TestPaths: a node's path is the one by which it was last seen, also after it or a directory above was renamed, or another
// object has taken its name.
func TestPaths(t *testing.T) {
	table := newNodes(handleOf(0))
	root := table.get(rootID)
	path := func(n *node, want string) {
		t.Helper()
		if got := table.path(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	path(root, "")
	a := table.look(handleOf(1), root, "a")
	b := table.look(handleOf(2), a, "b")
	f := table.look(handleOf(3), b, "f")
	path(f, "a/b/f")
	table.rename(root, "a", root, "c")
	table.rename(b, "f", a, "g")
	path(f, "c/g")
	table.rename(b, "f", a, "nothing") // which is not there any more
	path(f, "c/g")
	table.look(handleOf(3), b, "link") // another of its names
	path(f, "c/b/link")
	table.rename(a, "g", a, "h")
	path(f, "c/b/link")
	over := table.look(handleOf(4), b, "over")
	table.rename(b, "over", b, "link")
	path(over, "c/b/link")
	path(f, "c/b/link") // as last known
	table.forget(f.id, 2)
	table.rename(b, "link", root, "moved")
	path(over, "moved")
	table.look(handleOf(1), b, "circle") // by another host, and seen here bit by bit
	if got := table.path(b); !strings.HasPrefix(got, ".../") {
		t.Errorf("in circles: %q", got)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestTimes: attributes are kept for the least time when they have changed, and twice as long each time they have not.
func TestTimes(t *testing.T) {
	n, now := new(node), time.Unix(1e9, 0)
	a := vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg, Size: 1, Mtime: now, Ctime: now}
	for i, want := range []time.Duration{3, 6, 12, 24, 48, 60, 60} {
		if got := n.tell(&a, now, &DefaultTimes); got != want*time.Second {
			t.Errorf("the %dth time %v, want %v s", i, got, want)
		}
		now = now.Add(want * time.Second)
	}
	if got := n.tell(&a, now.Add(-time.Second), &DefaultTimes); got != 60*time.Second {
		t.Errorf("asked early: %v", got)
	}
	a.Size = 2
	if got := n.tell(&a, now, &DefaultTimes); got != 3*time.Second {
		t.Errorf("changed: %v", got)
	}
	if got := new(node).tell(&a, now, &Times{}); got != 0 {
		t.Errorf("noac: %v", got)
	}
}

// TestOpened: pages stay if an open finds what the one before has found, and not what the kernel was told since.
func TestOpened(t *testing.T) {
	n, now := new(node), time.Unix(1e9, 0)
	a := vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg, Size: 1, Mtime: now, Ctime: now}
	opened := func(what string, pages, told bool) {
		t.Helper()
		if p, k := n.opened(&a); p != pages || k != told {
			t.Errorf("%s: pages stay %v, known %v", what, p, k)
		}
	}
	opened("the first", false, false)
	n.tell(&a, now, &DefaultTimes)
	opened("again", true, true)
	a.Ctime = now.Add(1)
	n.tell(&a, now, &DefaultTimes)
	opened("another time of change", false, true)
	opened("again", true, true)
	a.Size = 2
	opened("another size", false, false)
	opened("again", true, false)
	a.Valid = 0
	opened("not known", false, false)
	opened("not known again", false, false)
}

// TestEntryTimes: entries are kept for a moment, or not at all, where the kernel would let everybody through.
func TestEntryTimes(t *testing.T) {
	for _, c := range []struct {
		mode  uint32
		opt   Options
		found bool
		want  time.Duration
	}{
		{0o755, Options{AllowOther: true}, true, sharedEntry},
		{0o755, Options{AllowOther: true}, false, sharedEntry},
		{0o750, Options{AllowOther: true}, true, 0},
		{0o700, Options{AllowOther: true}, false, 0},
		{0o700, Options{}, true, 30 * time.Second},
		{0o755, Options{Entries: EntriesNone}, true, 0},
		{0o755, Options{Entries: EntriesPositive}, true, 30 * time.Second},
		{0o755, Options{Entries: EntriesPositive}, false, 0},
	} {
		n := new(node)
		c.opt.Times = DefaultTimes
		n.tell(&vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeDir, Mode: c.mode}, time.Unix(1, 0), &c.opt.Times)
		if got := n.entryTime(&c.opt, c.found); got != c.want {
			t.Errorf("%o, %+v, %t: %v, want %v", c.mode, c.opt, c.found, got, c.want)
		}
	}
}

// TestInodes: numbers are the server's, and those of other file systems differ from them and among each other.
func TestInodes(t *testing.T) {
	root := [2]uint64{1, 2}
	seen := make(map[uint64]string)
	for _, fsid := range [][2]uint64{root, {1, 3}, {2, 1}} {
		for id := range uint64(1000) {
			a := vfs.Attr{Valid: vfs.MaskV3, FileID: id, FSID: fsid}
			got := inode(&a, root)
			if fsid == root && id != 0 && got != id {
				t.Errorf("file %d has number %d", id, got)
			}
			what := fmt.Sprint(fsid, id)
			if other, ok := seen[got]; ok || got == 0 {
				t.Errorf("%s and %s have number %d", what, other, got)
			}
			seen[got] = what
		}
	}
}

// TestDevices: numbers of devices survive the kernel's form.
func TestDevices(t *testing.T) {
	for _, d := range []uint64{0, 1<<32 | 3, 8<<32 | 1, 4095<<32 | 1<<20 - 1, 259<<32 | 300} {
		if got := unpackDev(packDev(d)); got != d {
			t.Errorf("%x becomes %x", d, got)
		}
	}
}

// TestCookies: offsets are distinct, positive to the kernel, and lead back to their cookies, also those above 2^63.
func TestCookies(t *testing.T) {
	var f farCookies
	if _, ok := f.cookie(farOffsets); ok {
		t.Error("a cookie that was never told is known")
	}
	if c, ok := f.cookie(behindDotDot); !ok || c != 0 {
		t.Errorf("the beginning is %d, %t", c, ok)
	}
	all := []uint64{1, 2, 3, 1 << 40, farOffsets - 3, farOffsets - 2, farOffsets, 1<<63 - 1, 1 << 63, 1<<64 - 1}
	offs := make(map[uint64]bool)
	for _, c := range all {
		off := f.offset(c)
		if off <= behindDotDot || off >= 1<<63 || offs[off] || f.offset(c) != off {
			t.Errorf("cookie %x has offset %x", c, off)
		}
		offs[off] = true
		if back, ok := f.cookie(off); !ok || back != c {
			t.Errorf("offset %x of %x leads to %x, %t", off, c, back, ok)
		}
	}
	first := f.offset(1 << 63)
	for n := range uint64(2 * maxFarCookies) {
		f.offset(1<<63 + 1 + n)
	}
	if len(f.list) > maxFarCookies || len(f.index) > maxFarCookies {
		t.Errorf("%d cookies are kept", len(f.list))
	}
	if _, ok := f.cookie(first); ok {
		t.Error("the oldest cookie was not forgotten")
	}
	last := uint64(1<<63 + 2*maxFarCookies)
	if c, ok := f.cookie(f.offset(last)); !ok || c != last {
		t.Errorf("the last cookie leads to %x, %t", c, ok)
	}
}

// TestErrnos: what programs see of the contract's errors.
func TestErrnos(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want syscall.Errno
	}{
		{t.Context(), nil, 0},
		{t.Context(), vfs.ErrNoEnt, syscall.ENOENT},
		{t.Context(), fmt.Errorf("deep: %w", vfs.ErrStale), syscall.ESTALE},
		{t.Context(), vfs.ErrBadHandle, syscall.ESTALE},
		{t.Context(), vfs.ErrBusy, syscall.EBUSY},
		{t.Context(), vfs.ErrNoXattr, syscall.ENODATA},
		{t.Context(), vfs.ErrXattr2Big, syscall.E2BIG},
		{t.Context(), vfs.ErrLocked, syscall.EAGAIN},
		{t.Context(), vfs.ErrBadCookie, syscall.EINVAL},
		{t.Context(), vfs.ErrServerFault, syscall.EIO},
		{t.Context(), vfs.Status(4711), syscall.EIO},
		{t.Context(), errors.New("odd"), syscall.EIO},
		{t.Context(), fmt.Errorf("silent: %w", syscall.ETIMEDOUT), syscall.ETIMEDOUT},
		{over, fmt.Errorf("given up: %w", context.Canceled), syscall.EINTR},
		{over, vfs.ErrNoEnt, syscall.ENOENT},
	} {
		if got := errno(c.ctx, c.err); got != fuse.Status(c.want) {
			t.Errorf("%v is %v, want %v", c.err, got, c.want)
		}
	}
}

// TestLists of bytes: lists survive Linux' form, and what is none is refused.
func TestListForm(t *testing.T) {
	list := aclOf(1000)
	got, err := decodeACL(encodeACL(list))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(list) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"\x02", "\x01\x00\x00\x00", "\x02\x00\x00\x00abc", "\x02\x00\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00", "\x02\x00\x00\x00\x01\x00\x08\x00\x00\x00\x00\x00"} {
		if _, err := decodeACL([]byte(bad)); !errors.Is(err, vfs.ErrInval) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if got := minimal(list); len(got) != 3 || got[1].Perm != 4 {
		t.Errorf("without the mask %v", got)
	}
}

func FuzzACL(f *testing.F) {
	f.Add(encodeACL(aclOf(5)))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decodeACL(b)
		if err != nil {
			return
		}
		again, err := decodeACL(encodeACL(list))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
			t.Errorf("%v becomes %v, %v", list, again, err)
		}
	})
}

// TestExit: what proc_pid_stat(5) says of a process on its way out.
func TestExit(t *testing.T) {
	line := func(flags, code string) string {
		fields := strings.Fields("R 1 1 1 0 -1 FLAGS " + strings.Repeat("0 ", 42) + "CODE")
		return "77 (a ) b) " + strings.NewReplacer("FLAGS", flags, "CODE", code).Replace(strings.Join(fields, " "))
	}
	for _, c := range []struct {
		text          string
		out, bySignal bool
	}{
		{line("4194304", "0"), false, false},
		{line("4194308", "0"), true, false},
		{line("4194308", "256"), true, false},
		{line("4194308", "9"), true, true},
		{"", false, false},
		{"77 (x) R", false, false},
	} {
		if out, bySignal := parseExit(c.text); out != c.out || bySignal != c.bySignal {
			t.Errorf("%q: %t, %t", c.text, out, bySignal)
		}
	}
	if out, _ := exiting(uint32(os.Getpid())); out {
		t.Error("this process is not on its way out")
	}
	if killed(uint32(os.Getpid())) {
		t.Error("this process was not killed")
	}
	if out, _ := exiting(0); out || !killed(0) {
		t.Error("a process that is not to be seen")
	}
}

// TestInterruptible: a call that the kernel interrupts ends when that is seen if its process has gone, and after grace if it
// may survive: for a wait (Done), for a question (Err), and for what was made of its context. The clock stands when there are no calls.
func TestInterruptible(t *testing.T) {
	for _, c := range []struct {
		what string
		pid  uint32
		want time.Duration
	}{
		{"of a process that lives", uint32(os.Getpid()), grace},
		{"of nobody who is to be seen", 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var all flights
			begin := func(interrupt chan struct{}) *call {
				one := &call{now: time.Now(), base: t.Context(), flights: &all, cancel: interrupt, pid: c.pid}
				all.add(one)
				return one
			}
			interrupt, later := make(chan struct{}), make(chan struct{})
			over, asked, waited := begin(later), begin(interrupt), begin(interrupt)
			below, stop := context.WithCancel(waited)
			defer stop()
			over.end()
			if over.Err() == nil || len(all.calls) != 2 {
				t.Errorf("%s: what was ended is not over", c.what)
			}
			<-over.Done()
			close(later) // the next request's: over has to leave it alone
			time.Sleep(time.Minute)
			if asked.Err() != nil || below.Err() != nil {
				t.Errorf("%s: a call that nobody has interrupted is over", c.what)
			}
			begun := time.Now()
			close(interrupt)
			<-below.Done()
			synctest.Wait()
			if took := time.Since(begun); took < c.want || took > c.want+watchEvery {
				t.Errorf("%s: over after %v, want %v", c.what, took, c.want)
			}
			for _, one := range []*call{asked, waited} {
				if got := errno(one, one.Err()); got != fuse.EINTR {
					t.Errorf("%s: the answer is %v, want EINTR", c.what, got)
				}
				one.end()
			}
			time.Sleep(watchEvery)
			synctest.Wait()
			if all.ticking || len(all.calls) != 0 {
				t.Errorf("%s: the clock runs, for %d calls", c.what, len(all.calls))
			}
		})
	}
}

// TestRootEntries: in a mount that users share, entries of the root are kept as those of other directories are, and no
// longer once not everybody may search it. Nothing but the answers to look-ups and opens says so.
func TestRootEntries(t *testing.T) {
	tree := memfs.New(memfs.Options{Mode: 0o755})
	root, a, err := tree.Root(t.Context())
	expect.OK(t, err)
	_, _, _, err = tree.Create(t.Context(), root, "d", &vfs.CreateHow{Type: vfs.TypeDir, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o755}})
	expect.OK(t, err)
	m := &Mount{
		opt: Options{AllowOther: true, Times: DefaultTimes}, base: t.Context(), fsid: a.FSID, nodes: newNodes(root),
		callers: callers{fs: tree, fixed: true},
	}
	kept := func(name string) time.Duration {
		var out fuse.EntryOut
		if got := m.Lookup(nil, &fuse.InHeader{NodeId: rootID}, name, &out); !got.Ok() && got != fuse.ENOENT {
			t.Errorf("%s: %v", name, got)
		}
		return out.EntryTimeout()
	}
	for _, c := range []struct {
		mode uint32
		want time.Duration
	}{{0o755, sharedEntry}, {0o750, 0}, {0o711, sharedEntry}} {
		_, err := tree.SetAttr(t.Context(), root, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: c.mode}, nil)
		expect.OK(t, err)
		for _, name := range []string{"d", "none"} {
			if got := kept(name); got != c.want {
				t.Errorf("mode %o: %s is kept for %v, want %v", c.mode, name, got, c.want)
			}
		}
	}
}

// TestGroupsOf: a process has its own groups, and none where its number belongs to another user by now.
func TestGroupsOf(t *testing.T) {
	uid := uint32(os.Getuid())
	who := fuse.Caller{Owner: fuse.Owner{Uid: uid}, Pid: uint32(os.Getpid())}
	own, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if got := groupsOf(who); len(got) != len(own) {
		t.Errorf("groups %v, want %v", got, own)
	}
	who.Uid++
	if got := groupsOf(who); got != nil {
		t.Errorf("another user has the groups %v", got)
	}
}

// TestCallers: a process' groups are asked for once in a while, and few processes are remembered.
func TestCallers(t *testing.T) {
	asked := 0
	root := &asFS{}
	c := &callers{fs: root, seen: make(map[fuse.Caller]view), groups: func(who fuse.Caller) []uint32 { asked++; return []uint32{who.Pid} }}
	now := time.Unix(1e9, 0)
	who := fuse.Caller{Owner: fuse.Owner{Uid: 1, Gid: 2}, Pid: 3}
	for range 5 {
		v := c.view(who, now).(*asFS)
		if !v.who.Equal(&vfs.Caller{UID: 1, GID: 2, Groups: []uint32{3}}) {
			t.Errorf("seen as %+v", v.who)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	c.view(who, now.Add(callerAge))
	if asked != 2 {
		t.Errorf("asked %d times, want once more", asked)
	}
	other := who
	other.Uid = 9
	if c.view(other, now).(*asFS).who.UID != 9 {
		t.Error("two users of one process are one")
	}
	for pid := range uint32(3 * maxCallers) {
		c.view(fuse.Caller{Pid: pid}, now)
	}
	if len(c.seen) > maxCallers {
		t.Errorf("%d are remembered", len(c.seen))
	}
	c.fixed = true
	if c.view(who, now) != vfs.FS(root) {
		t.Error("a fixed user is not the file system's own")
	}
}

// asFS is a file system that knows who looks at it.
type asFS struct {
	vfs.FS
	who *vfs.Caller
}

func (f *asFS) As(c *vfs.Caller) vfs.FS { return &asFS{who: c} }

// TestSettling: what removes names waits for files that were announced, and not for ever.
func TestSettling(t *testing.T) {
	var s settling
	s.init()
	f, now := new(openFile), time.Unix(1e9, 0)
	if n, _ := s.pending(now); n != 0 {
		t.Fatal("something is pending")
	}
	s.announce(f, now)
	if n, _ := s.pending(now); n != 1 {
		t.Error("an announced file is not waited for")
	}
	if n, _ := s.pending(now.Add(2 * settleAge)); n != 0 {
		t.Error("an old announcement is waited for")
	}
	s.begin(f)
	n, changed := s.pending(now)
	if n != 1 {
		t.Error("a file that is being closed is not waited for")
	}
	s.end(io.ErrUnexpectedEOF)
	<-changed
	if all, n := s.errors(); s.drain(t.Context()) != 0 || len(all) != 1 || n != 1 {
		t.Errorf("left: %v, %d", all, n)
	}
	for range 2 * maxTold {
		s.begin(f)
		s.end(io.EOF)
	}
	if all, n := s.errors(); len(all) != maxTold || n != 1+2*maxTold {
		t.Errorf("%d errors are kept of %d", len(all), n)
	}
}

// TestLostNames: what is lost is named in one line.
func TestLostNames(t *testing.T) {
	err := &lostError{"/mnt/a\nb", vfs.ErrNoSpace}
	if got := err.Error(); got != `/mnt/a\nb: no space left on the server` {
		t.Errorf("%q", got)
	}
}

// TestUse: what opens use, and the rights that they take.
func TestUse(t *testing.T) {
	for _, c := range []struct {
		flags uint32
		share vfs.Share
		want  vfs.Access
	}{
		{syscall.O_RDONLY, vfs.ShareRead, vfs.AccessRead},
		{syscall.O_WRONLY | syscall.O_APPEND, vfs.ShareWrite, vfs.AccessModify},
		{syscall.O_RDWR, vfs.ShareRead | vfs.ShareWrite, vfs.AccessRead | vfs.AccessModify},
		{syscall.O_RDONLY | fmodeExec, vfs.ShareRead, vfs.AccessExecute},
	} {
		if share, want := use(c.flags); share != c.share || want != c.want {
			t.Errorf("%x: %v, %v", c.flags, share, want)
		}
	}
	if rights(fuse.R_OK|fuse.W_OK|fuse.X_OK, true)&vfs.AccessLookup == 0 || rights(fuse.X_OK, false) != vfs.AccessExecute {
		t.Error("rights of access(2)")
	}
}
