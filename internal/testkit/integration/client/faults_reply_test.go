package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	replyFile    = 64 << 10
	replyEntries = 60

	// In memory a try waits for 10 s, and there are three; over TCP for 1 s,
	// and there are two. Whatever happens, a call has ended soon after.
	memoryPatience, memoryBound = "timeo=100&retrans=2", time.Minute
	tcpPatience, tcpBound       = "timeo=10&retrans=1", 20 * time.Second
	// maxNewConns is how many connections one call may have cost by then.
	maxNewConns = 40
)

// victim is an operation whose reply is tampered with.
type victim struct {
	proc *xdr.Proc
	// do does it and checks what came: an errWrong is what must not be.
	do   func(v *victims, ctx context.Context) error
	lies []lie // that only this procedure's reply can tell
}

// victims are what the operations work on.
type victims struct {
	*faulty
	file, dir vfs.Handle
	version   uint64 // of the file
	entries   []string
}

// lie is something that may be wrong with a reply.
type lie struct {
	name  string
	fault rpcfault.Fault
	fatal bool // if every reply tells it the call must fail
	blind bool // nobody can see it: a wrong result is no fault of the client's
}

func edit(name string, fatal bool, e rpcfault.Edit) lie {
	return lie{name: name, fault: rpcfault.Fault{Kind: rpcfault.EditReply, Edit: e}, fatal: fatal}
}

// lies that every reply can tell.
var lies = []lie{
	{name: "lost", fault: rpcfault.Fault{Kind: rpcfault.DropReply}, fatal: true},
	{name: "held", fault: rpcfault.Fault{Kind: rpcfault.Hold}, fatal: true},
	{name: "cut before", fault: rpcfault.Fault{Kind: rpcfault.CutInReply}, fatal: true},
	{name: "cut in the mark", fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: 2}, fatal: true},
	{name: "cut in the head", fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: 17}, fatal: true},
	{name: "cut in the results", fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: 70, Reset: true}, fatal: true},
	{name: "cut anywhere", fault: rpcfault.Fault{Kind: rpcfault.CutInReply, At: rpcfault.Anywhere}, fatal: true},
	{name: "fragments of a byte", fault: rpcfault.Fault{Kind: rpcfault.Fragment, Count: 1}, fatal: false},
	edit("misnumbered", true, rpcfault.WrongXID),
	edit("empty", true, func(m *rpcfault.Message, _ *sim.Rand) { m.Record = nil }),
	edit("number alone", true, func(m *rpcfault.Message, _ *sim.Rand) { m.Record = m.Record[:4] }),
	edit("without results", true, rpcfault.Truncate(0)),
	edit("truncated", true, rpcfault.Truncate(20)),
	edit("truncated anywhere", true, rpcfault.Truncate(-1)),
	edit("extended", true, rpcfault.Extend(64)),
	edit("mark too large", true, rpcfault.Overstate(1000)),
	edit("mark far too large", true, rpcfault.Overstate(1<<30)),
	edit("mark too small", true, rpcfault.Overstate(-20)),
	edit("bit in the head", false, rpcfault.FlipHead),
	edit("unknown status", true, rpcfault.SetWord(0, 987654)),
	{name: "bit anywhere", fault: rpcfault.Fault{Kind: rpcfault.EditReply, Edit: rpcfault.FlipAny}, blind: true},
	{name: "bit in the results", fault: rpcfault.Fault{Kind: rpcfault.EditReply, Edit: rpcfault.FlipBody}, blind: true},
}

// behindAttr is where what follows a post_op_attr at off begins, in the results.
func behindAttr(m *rpcfault.Message, off int) int { return behind(m, off, 84) }

// behindPre is the same for a pre_op_attr.
func behindPre(m *rpcfault.Message, off int) int { return behind(m, off, 24) }

func behind(m *rpcfault.Message, off, size int) int {
	if at := m.Body + off; at+4 <= len(m.Record) && binary.BigEndian.Uint32(m.Record[at:]) == 1 {
		return off + 4 + size
	}
	return off + 4
}

// setRead writes v at off behind the attributes of a READ: count 0, eof 4,
// length of the data 8.
func setRead(off int, v uint32) rpcfault.Edit {
	return func(m *rpcfault.Message, r *sim.Rand) { rpcfault.SetWord(behindAttr(m, 4)+off, v)(m, r) }
}

// setWrite writes v at off behind the attributes of a WRITE: count 0, committed 4.
func setWrite(off int, v uint32) rpcfault.Edit {
	return func(m *rpcfault.Message, r *sim.Rand) {
		rpcfault.SetWord(behindAttr(m, behindPre(m, 4))+off, v)(m, r)
	}
}

// entryAt are places in an entryplus3, from the start of the results.
type entryAt struct{ follows, name, cookie, handle int }

// entriesOf finds the entries of a READDIRPLUS, and what follows the last.
func entriesOf(m *rpcfault.Message) (list []entryAt, end int) {
	word := func(off int) int { return int(binary.BigEndian.Uint32(m.Record[m.Body+off:])) }
	off := behindAttr(m, 4) + 8
	for word(off) == 1 {
		e := entryAt{follows: off, name: off + 12}
		e.cookie = e.name + 4 + (word(e.name)+3)&^3
		e.handle = behindAttr(m, e.cookie+8) + 4
		list = append(list, e)
		off = e.handle
		if word(e.handle-4) == 1 {
			off += 4 + (word(e.handle)+3)&^3
		}
	}
	return list, off
}

// setEntry writes v into the middle entry of a listing.
func setEntry(where func(e entryAt) int, v uint32) rpcfault.Edit {
	return func(m *rpcfault.Message, r *sim.Rand) {
		if list, _ := entriesOf(m); len(list) > 0 {
			rpcfault.SetWord(where(list[len(list)/2]), v)(m, r)
		}
	}
}

// victimsOf are the procedures, and what their replies can lie about.
var victimsOf = []victim{
	{proc: nfs3.NFSPROC3_GETATTR, do: (*victims).getattr},
	{proc: nfs3.NFSPROC3_LOOKUP, do: (*victims).lookup, lies: []lie{
		edit("handle of 0", true, rpcfault.SetWord(4, 0)),
		edit("handle of 65", true, rpcfault.SetWord(4, 65)),
		edit("handle of 4 GiB", true, rpcfault.SetWord(4, 0xffffffff)),
	}},
	{proc: nfs3.NFSPROC3_READ, do: (*victims).read, lies: []lie{
		edit("count above the data", true, setRead(0, replyFile+1)),
		edit("count below the data", true, setRead(0, 1)),
		edit("count of 4 GiB", true, setRead(0, 0xffffffff)),
		edit("data above what was asked for", true, func(m *rpcfault.Message, r *sim.Rand) {
			setRead(0, replyFile+4)(m, r)
			setRead(8, replyFile+4)(m, r)
			rpcfault.Extend(4)(m, r)
		}),
		edit("data of 4 GiB", true, setRead(8, 0xffffffff)),
		edit("data longer than the record", true, setRead(8, replyFile+4)),
		edit("data shorter than the record", true, setRead(8, 100)),
		edit("no data and no end", true, func(m *rpcfault.Message, _ *sim.Rand) {
			at := m.Body + behindAttr(m, 4)
			m.Record = append(m.Record[:at], make([]byte, 12)...)
		}),
		edit("eof of 2", true, setRead(4, 2)),
		edit("eof too early", false, func(m *rpcfault.Message, _ *sim.Rand) {
			at := m.Body + behindAttr(m, 4)
			for i, v := range []uint32{4096, 1, 4096} {
				binary.BigEndian.PutUint32(m.Record[at+4*i:], v)
			}
			m.Record = m.Record[:at+12+4096]
		}),
	}},
	{proc: nfs3.NFSPROC3_WRITE, do: (*victims).write, lies: []lie{
		edit("count above what was sent", true, setWrite(0, replyFile+1)),
		edit("count of 4 GiB", true, setWrite(0, 0xffffffff)),
		edit("count of 0", true, setWrite(0, 0)),
		edit("count too small", false, setWrite(0, replyFile/2)),
		edit("less stable than asked for", true, setWrite(4, 0)),
		edit("no such stability", true, setWrite(4, 3)),
	}},
	{proc: nfs3.NFSPROC3_READDIRPLUS, do: (*victims).list, lies: []lie{
		edit("name of 4 GiB", true, setEntry(func(e entryAt) int { return e.name }, 0xffffffff)),
		edit("name longer than the record", true, setEntry(func(e entryAt) int { return e.name }, 4000)),
		edit("handle of 65", true, setEntry(func(e entryAt) int { return e.handle }, 65)),
		edit("handle of 4 GiB", true, setEntry(func(e entryAt) int { return e.handle }, 0xffffffff)),
		edit("entry that is not there", true, func(m *rpcfault.Message, r *sim.Rand) {
			_, end := entriesOf(m)
			rpcfault.SetWord(end, 1)(m, r)
		}),
		edit("entry that is left out", true, setEntry(func(e entryAt) int { return e.follows }, 0)),
		edit("follows of 2", true, setEntry(func(e entryAt) int { return e.follows }, 2)),
		edit("eof of 2", true, func(m *rpcfault.Message, r *sim.Rand) {
			_, end := entriesOf(m)
			rpcfault.SetWord(end+4, 2)(m, r)
		}),
	}},
}

func (v *victims) getattr(ctx context.Context) error {
	a, err := v.fs.GetAttr(ctx, v.file, vfs.MaskV3)
	if err == nil && (a.Size != replyFile || a.Type != vfs.TypeReg) {
		return wrong(nil, "%+v", a)
	}
	return err
}

func (v *victims) lookup(ctx context.Context) error {
	h, _, _, err := v.fs.Lookup(ctx, v.root, "file")
	if err == nil && h != v.file {
		return wrong(nil, "handle %v", h)
	}
	return err
}

func (v *victims) read(ctx context.Context) error {
	data, err := read(ctx, v.fs, v.file, 0, replyFile)
	if err == nil && !bytes.Equal(data, pattern(1, v.version, 0, replyFile)) {
		return wrong(nil, "data")
	}
	return err
}

// write writes a new version, and looks at the server's own file if that went
// well.
func (v *victims) write(ctx context.Context) (err error) {
	data := pattern(1, v.version+1, 0, replyFile)
	file, _, err := v.fs.Open(ctx, vfs.At{H: v.file}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		return err
	}
	_, err = vfs.WriteFull(ctx, file, data, 0, vfs.FileSync, new(vfs.Written))
	if err = errors.Join(err, file.Close(ctx)); err != nil {
		return err
	}
	v.version++
	if !bytes.Equal(get(v.t, v.at, "file"), data) {
		return wrong(nil, "the file at the server")
	}
	return nil
}

func (v *victims) list(ctx context.Context) error {
	list, err := names(ctx, v.fs, v.dir)
	if err == nil && !slices.Equal(list, v.entries) {
		return wrong(nil, "%d entries of %d", len(list), len(v.entries))
	}
	return err
}

// suffer has every reply of the procedure, or only the first, tell the lie.
func suffer(t *testing.T, f *faulty, v *victim, l lie, always bool, bound time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*bound)
	defer cancel()
	vs := &victims{faulty: f}
	vs.prepare(ctx)
	rule := rpcfault.Rule{Procs: []*xdr.Proc{v.proc}, Fault: l.fault, Budget: 1}
	if always {
		rule.Budget = 0
	}
	before := f.p.Stats()
	f.p.SetRules(rule)
	start := time.Now()
	err := v.do(vs, ctx)
	took := time.Since(start)
	after := f.p.Stats()
	switch {
	case after.Injected[l.fault.Kind] == before.Injected[l.fault.Kind]:
		t.Error("nothing was injected")
	case errors.Is(err, errWrong) && !l.blind:
		t.Error(err)
	case err == nil && always && l.fatal:
		t.Error("no error")
	}
	if took > bound {
		t.Errorf("took %v: %v", took, err)
	}
	if n := after.Conns - before.Conns; n > maxNewConns {
		t.Errorf("cost %d connections: %v", n, err)
	}
	t.Logf("after %v and %d connections: %v", took, after.Conns-before.Conns, err)
	f.p.SetRules()
	if v.proc == nfs3.NFSPROC3_WRITE {
		vs.version++ // the one that failed may be there
	}
	if err := v.do(vs, ctx); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// prepare makes what the operations need, at the server.
func (v *victims) prepare(ctx context.Context) {
	v.t.Helper()
	v.version = 1
	put(v.t, v.at, "file", pattern(1, 1, 0, replyFile))
	for i := range replyEntries {
		v.entries = append(v.entries, fmt.Sprintf("entry%04d", i))
		put(v.t, v.at, "dir/"+v.entries[i], nil)
	}
	for name, h := range map[string]*vfs.Handle{"file": &v.file, "dir": &v.dir} {
		var err error
		if *h, _, _, err = v.fs.Lookup(ctx, v.root, name); err != nil {
			v.t.Fatal(err)
		}
	}
}

// forLies runs a test for each procedure, lie, and number of times that it is
// told.
func forLies(t *testing.T, victims []victim, test func(t *testing.T, v *victim, l lie, always bool)) {
	for i := range victims {
		v := &victims[i]
		for _, l := range append(slices.Clone(lies), v.lies...) {
			for _, often := range []string{"once", "always"} {
				t.Run(fmt.Sprintf("%s/%s/%s", v.proc.Name, l.name, often), func(t *testing.T) { test(t, v, l, often == "always") })
			}
		}
	}
}

// TestHostileReplies lets replies be what no honest server sends: the call ends,
// in the right result or an error, within the patience of the client.
func TestHostileReplies(t *testing.T) {
	forLies(t, victimsOf, func(t *testing.T, v *victim, l lie, always bool) {
		for _, seed := range seeds(t, 2) {
			synctest.Test(t, func(t *testing.T) {
				f := inMemory(t, memfs.New(memfs.Options{Mode: 0o777}), seed, memoryPatience)
				suffer(t, f, v, l, always, memoryBound)
			})
		}
	})
}

// TestHostileRepliesTCP does the same over plain sockets, where READ's data goes
// straight to the caller.
func TestHostileRepliesTCP(t *testing.T) {
	need.Time(t, "forged replies over TCP; in memory they are tried")
	reads := slices.DeleteFunc(slices.Clone(victimsOf), func(v victim) bool { return v.proc != nfs3.NFSPROC3_READ })
	forLies(t, reads, func(t *testing.T, v *victim, l lie, always bool) {
		t.Parallel() // it waits for time-outs
		f := overTCP(t, memfs.New(memfs.Options{Mode: 0o777}), seeds(t, 1)[0], tcpPatience)
		suffer(t, f, v, l, always, tcpBound)
	})
}
