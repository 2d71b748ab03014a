//go:build linux

package localio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

const readWrite = vfs.ShareRead | vfs.ShareWrite

// traffic is what has gone over the network.
func (r *rig) traffic() [3]int64 {
	s := r.below.s
	return [3]int64{s.reads.Load(), s.writes.Load(), s.commits.Load()}
}

// wantTraffic fails the test if it is not that.
func (r *rig) wantTraffic(reads, writes, commits int64) {
	r.t.Helper()
	if got, want := r.traffic(), [...]int64{reads, writes, commits}; got != want {
		r.t.Errorf("reads, writes and commits over the network: %v, want %v", got, want)
	}
}

// TestLocal reads, writes and commits, and looks for how that was done.
func TestLocal(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, h := open(t, f, "file", readWrite)
	w := write(t, file, "content", 0, vfs.Unstable)
	if c := commit(t, file); c.Verf != w.Verf || c.Committed != vfs.FileSync {
		t.Errorf("committed %+v after %+v", c, w)
	}
	for _, how := range []vfs.Stability{vfs.DataSync, vfs.FileSync} {
		if w := write(t, file, "CON", 0, how); w.Committed != how {
			t.Errorf("stability %d, want %d", w.Committed, how)
		}
	}
	wantBytes(t, file, 0, "CONtent")
	a, err := f.GetAttr(t.Context(), h, vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	a.Valid, a.Btime = vfs.MaskV3, time.Time{}
	var post vfs.Attr
	if _, _, err := file.ReadAt(t.Context(), make([]byte, 3), 0, &post); err != nil {
		t.Fatal(err)
	}
	a.Atime = post.Atime // which reading may have set
	if post != a {
		t.Errorf("a read tells\n%+v, getattr\n%+v", post, a)
	}
	w = write(t, file, "X", 9, vfs.Unstable)
	if w.WCC.After.Size != 10 || w.WCC.Before.Valid != 0 || w.WCC.Atomic {
		t.Errorf("a write tells %+v", w.WCC)
	}
	r.wantTraffic(0, 0, 0)
	st := f.Stats()
	if st.State != "local" || st.Why != "" || !strings.HasPrefix(st.Socket, r.dir) || st.Files != 2 || st.Opens != 2 ||
		st.Reads == 0 || st.Writes != 4 || st.Commits != 1 || st.BytesWritten != 14 || st.BytesRead < 10 || st.Fallbacks != 0 || st.Handshakes != 1 {
		t.Errorf("stats %+v", st)
	}
	if near, ok := vfs.As[vfs.Near](file); !ok || !near.Near() {
		t.Error("the file is not near")
	}
	if _, ok := file.(vfs.HostFiler); ok {
		t.Error("the descriptor can be had, and nobody is trusted with it")
	}
	if s, ok := vfs.As[vfs.HoleSeeker](file); !ok {
		t.Error("the holes of the file below are out of reach")
	} else if end, err := s.NextHole(t.Context(), 0); err != nil || end != 10 {
		t.Errorf("the first hole is at %d, %v", end, err)
	}
}

// TestEnd reads around the end of a file that others change.
func TestEnd(t *testing.T) {
	for _, dir := range []string{t.TempDir(), inMemory(t)} {
		r := newRig(t, dir)
		f := r.ready(Options{})
		file, _ := open(t, f, "file", readWrite)
		write(t, file, "0123456789", 0, vfs.Unstable)
		path := dir + "/file"
		for _, step := range []struct {
			size int64 // set by others before; -1: nothing
			len  int
			off  uint64
			n    int
			eof  bool
		}{
			{-1, 10, 0, 10, true},
			{-1, 5, 0, 5, false},
			{-1, 5, 5, 5, true},
			{-1, 6, 5, 5, true},
			{-1, 5, 10, 0, true},
			{-1, 5, 1 << 40, 0, true},
			{20, 10, 0, 10, false}, // grown
			{-1, 10, 10, 10, true},
			{4, 5, 0, 4, true}, // cut
			{-1, 4, 4, 0, true},
		} {
			if step.size >= 0 {
				if err := os.Truncate(path, step.size); err != nil {
					t.Fatal(err)
				}
			}
			n, eof, err := file.ReadAt(t.Context(), make([]byte, step.len), step.off, nil)
			if n != step.n || eof != step.eof || err != nil {
				t.Errorf("%+v: %d bytes, eof %t, %v", step, n, eof, err)
			}
		}
		if _, err := file.Truncate(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		if n, eof, err := file.ReadAt(t.Context(), make([]byte, 3), 0, nil); n != 3 || !eof || err != nil {
			t.Errorf("after truncate: %d bytes, eof %t, %v", n, eof, err)
		}
		r.wantTraffic(0, 0, 0)
	}
}

// TestLarge reads and writes what does not fit a call, in pieces.
func TestLarge(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	p := make([]byte, maxIO+5)
	for i := range p {
		p[i] = byte(i * 7 >> 3)
	}
	write(t, file, string(p), 1, vfs.Unstable)
	wantBytes(t, file, 1, string(p))
	r.wantTraffic(0, 0, 0)
}

// TestReopen opens a file again and again, and has it open many times at once.
func TestReopen(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	for range 10 {
		a, _ := open(t, f, "file", readWrite)
		b, _ := open(t, f, "file", readWrite)
		write(t, a, "content", 0, vfs.Unstable)
		wantBytes(t, b, 0, "content")
		for _, file := range []vfs.File{a, b} {
			if err := file.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(t.Context()); !errors.Is(err, vfs.ErrInval) {
				t.Errorf("second close: %v", err)
			}
			if _, _, err := file.ReadAt(t.Context(), make([]byte, 1), 0, nil); !errors.Is(err, vfs.ErrInval) {
				t.Errorf("read of a closed file: %v", err)
			}
		}
	}
	if n := r.asked.Load(); n != 2 {
		t.Errorf("the server was asked %d times, want once for each access", n)
	}
	r.wantTraffic(0, 0, 0)
}

// TestIdle has more files than may be held: those that are not in use go.
func TestIdle(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{MaxFiles: 8})
	for i := range 50 {
		file, _ := open(t, f, fmt.Sprint("file", i), readWrite)
		write(t, file, "content", 0, vfs.Unstable)
		commit(t, file)
		wantBytes(t, file, 0, "content")
		if err := file.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.wantTraffic(0, 0, 0)
	eventually(t, "few files", func() bool { return f.Stats().Files <= 8/idleShare })
	eventually(t, "closes", func() bool { return r.closes.Load() >= 100-8/idleShare })

	// Those that are in use stay, and further ones are remote.
	for i := range 12 {
		file, _ := open(t, f, fmt.Sprint("file", i), vfs.ShareRead)
		wantBytes(t, file, 0, "content")
	}
	if reads := r.traffic()[0]; reads == 0 {
		t.Error("more files are local than may be")
	}
	wantWhy(t, f, "as many files as are allowed")
	f.s.sweep()
	eventually(t, "the last closes", func() bool { return f.Stats().Files <= 8 })
}

// TestClosing has a disk that does not sync: files that wait for it to be closed are
// not more than as many again as may be held.
func TestClosing(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{MaxFiles: 4})
	for range maxSyncs {
		f.s.gate.syncs <- struct{}{}
	}
	most := 0
	for i := range 50 {
		file, _ := open(t, f, fmt.Sprint("file", i), vfs.ShareWrite)
		write(t, file, "content", 0, vfs.Unstable)
		if err := file.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		most = max(most, f.Stats().Files)
	}
	if most > 2*4+1 {
		t.Errorf("%d descriptors were open at once", most)
	}
	for range maxSyncs {
		<-f.s.gate.syncs
	}
	eventually(t, "few files", func() bool { return f.Stats().Files <= 4/idleShare })
}

// TestSweep gives back what nobody has used for a while.
func TestSweep(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", vfs.ShareWrite)
	write(t, file, "content", 0, vfs.Unstable)
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.s.mu.Lock()
	if f.s.oldest == nil || f.s.sweeper == nil {
		t.Fatal("nothing is idle")
	}
	f.s.oldest.since = f.s.oldest.since.Add(-idleTime)
	f.s.mu.Unlock()
	f.s.sweep()
	eventually(t, "the close", func() bool { return r.closes.Load() == 1 && f.Stats().Files == 0 })
}

// TestRevoked takes descriptors back under a file in use.
func TestRevoked(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, h := open(t, f, "file", readWrite)
	w := write(t, file, "content", 0, vfs.Unstable)
	wantBytes(t, file, 0, "content")
	r.revoke(all)
	wantBytes(t, file, 0, "content")
	write(t, file, "CON", 0, vfs.Unstable)
	if c := commit(t, file); c.Verf != w.Verf {
		t.Error("the verifier has changed though nothing was lost")
	}
	r.wantTraffic(0, 0, 0)
	eventually(t, "the closes", func() bool { return r.closes.Load() == 2 })
	if st := f.Stats(); st.Opens != 4 || st.Revoked != 2 {
		t.Errorf("stats %+v", st)
	}

	// What is removed by others is stale, and the server has the word.
	root, _, err := r.tree.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.below.Remove(t.Context(), root, "file", false); err != nil {
		t.Fatal(err)
	}
	if _, err := f.GetAttr(t.Context(), h, vfs.MaskV3); !errors.Is(err, vfs.ErrStale) {
		t.Errorf("getattr: %v", err)
	}
	r.refuses(localio.SESSION_REFUSED, vfs.ErrStale)
	// The tree keeps it readable for this very File; what matters is who is asked.
	before := r.traffic()[0]
	wantBytes(t, file, 0, "CONtent")
	if r.traffic()[0] == before {
		t.Error("the server was not asked")
	}
	wantWhy(t, f, "stale")
}

// TestRefused has the server refuse, for each reason.
func TestRefused(t *testing.T) {
	for why, words := range map[localio.SessionWhy]string{
		localio.SESSION_REFUSED:     "permission denied",
		localio.SESSION_IDENTITY:    "does not believe this process",
		localio.SESSION_NOT_TO_PASS: "keeps its files to itself",
		localio.SESSION_NO_FILE:     "no files of this host",
		localio.SESSION_CROWDED:     "no room for more files",
	} {
		t.Run(why.String(), func(t *testing.T) {
			r := newRig(t, inMemory(t))
			r.refuses(why, vfs.ErrAccess)
			f := r.ready(Options{})
			file, _ := open(t, f, "file", readWrite)
			for range 5 {
				write(t, file, "content", 0, vfs.Unstable)
				commit(t, file)
				wantBytes(t, file, 0, "content")
			}
			again, _ := open(t, f, "file", readWrite)
			wantBytes(t, again, 0, "content")
			other, _ := open(t, f, "other", readWrite)
			wantBytes(t, other, 0, "")
			wantWhy(t, f, words)
			most := int64(3)
			if why == localio.SESSION_IDENTITY {
				most = 1 // the same for all files, until the session ends
			}
			if n := r.asked.Load(); n > most {
				t.Errorf("the server was asked %d times, want %d", n, most)
			}
			if near, _ := vfs.As[vfs.Near](file); near.Near() {
				t.Error("a file that was refused is near")
			}
			if n := f.Stats().Fallbacks; n < 15 {
				t.Errorf("%d calls over the network", n)
			}
		})
	}
}

// TestCrowdedAgain asks again when there may be room.
func TestCrowdedAgain(t *testing.T) {
	r := newRig(t, inMemory(t))
	r.set(func(k *knobs) { k.slots = 1 })
	f := r.ready(Options{})
	a, _ := open(t, f, "a", vfs.ShareRead)
	b, _ := open(t, f, "b", vfs.ShareRead)
	wantBytes(t, a, 0, "")
	wantBytes(t, b, 0, "")
	if reads := r.traffic()[0]; reads != 1 {
		t.Errorf("%d reads over the network, want one", reads)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "room", func() bool {
		b.(*file).expire()
		wantBytes(t, b, 0, "")
		return b.(*file).read.grant.Load() != nil
	})
}

// expire has the time end for which f's refusal to be read holds.
func (f *file) expire() {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	if r := f.read.refusal.Load(); r != nil {
		early := *r
		early.until = time.Now()
		f.read.refusal.Store(&early)
		f.n.refusals[key{f.fs.who, vfs.ShareRead}] = &early
	}
}

// TestSlow has the server take its time to open.
func TestSlow(t *testing.T) {
	r := newRig(t, inMemory(t))
	delay := make(chan struct{})
	r.set(func(k *knobs) { k.delay = delay })
	f := r.ready(Options{})
	const wait = time.Second // longer than openWait, so that a busy machine is not taken for it
	f.s.wait = wait
	file, _ := open(t, f, "file", vfs.ShareRead)
	wantBytes(t, file, 0, "") // waits so long
	start := time.Now()
	for range 20 {
		wantBytes(t, file, 0, "")
	}
	if d := time.Since(start); d > 10*wait {
		t.Errorf("20 reads have waited %v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other, _ := open(t, f, "other", vfs.ShareRead)
	if _, _, err := other.ReadAt(ctx, make([]byte, 1), 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	close(delay)
	eventually(t, "the descriptor", func() bool {
		wantBytes(t, file, 0, "")
		return file.(vfs.Near).Near() && f.Stats().Reads > 0
	})
}

// TestBatch has many files opened at once.
func TestBatch(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	var files []vfs.File
	for i := range rigSlots {
		file, _ := open(t, f, fmt.Sprint("file", i), vfs.ShareRead)
		files = append(files, file)
	}
	var wg sync.WaitGroup
	for range 4 {
		for _, file := range files {
			wg.Go(func() {
				if _, _, err := file.ReadAt(t.Context(), make([]byte, 1), 0, nil); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if st := f.Stats(); st.Opens != rigSlots {
		t.Errorf("%d descriptors for %d files", st.Opens, rigSlots)
	}
}

// TestTrusted hands the descriptor out.
func TestTrusted(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{Mode: Trusted})
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	h, ok := vfs.As[vfs.HostFiler](file)
	if !ok {
		t.Fatal("no vfs.HostFiler")
	}
	hf, release, ok := h.HostFile()
	if !ok {
		t.Fatal("no descriptor")
	}
	r.revoke(all)
	wantBytes(t, file, 0, "content")
	p := make([]byte, 8)
	if n, err := hf.ReadAt(p, 0); string(p[:n]) != "content" || err != io.EOF {
		t.Errorf("read %q, %v, while it is lent", p[:n], err)
	}
	release()
	release()
	eventually(t, "the close", func() bool { return r.closes.Load() >= 1 })
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := h.HostFile(); ok {
		t.Error("a closed file has a descriptor")
	}
}

// TestRequire keeps data from the network.
func TestRequire(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{Mode: Require})
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	commit(t, file)
	wantBytes(t, file, 0, "content")
	if n, eof, err := file.ReadAt(t.Context(), nil, 0, nil); n != 0 || eof || err != nil {
		t.Errorf("reading nothing: %d, %t, %v", n, eof, err)
	}
	r.refuses(localio.SESSION_REFUSED, vfs.ErrStale)
	r.revoke(all)
	_, _, err := file.ReadAt(t.Context(), make([]byte, 1), 0, nil)
	if !errors.Is(err, ErrNotLocal) || !errors.Is(err, vfs.ErrStale) || !strings.Contains(err.Error(), "stale") {
		t.Errorf("read: %v", err)
	}
	r.mute.Store(true)
	r.kill()
	eventually(t, "the end", func() bool { return f.Stats().State == "remote" })
	_, err = file.WriteAt(t.Context(), []byte{1}, 0, vfs.Unstable, new(vfs.Written))
	if !errors.Is(err, ErrNotLocal) {
		t.Errorf("write: %v", err)
	}
	r.wantTraffic(0, 0, 0)
}

// TestRequireWaits has a server take back what it hands out, or have no room for a while:
// where the network is not allowed it is asked again.
func TestRequireWaits(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{Mode: Require})
	file, _ := open(t, f, "file", readWrite)
	r.set(func(k *knobs) { k.takes = 5 })
	write(t, file, "content", 0, vfs.Unstable)
	r.set(func(k *knobs) { k.takes = 5 })
	wantBytes(t, file, 0, "content")

	other, _ := open(t, f, "other", vfs.ShareRead)
	var refused atomic.Int32
	refuse := refuser(func(*localio.SessionOpenFile) (localio.SessionWhy, vfs.Status) {
		if refused.Add(1) == 1 {
			return localio.SESSION_CROWDED, 0
		}
		return localio.SESSION_OK, 0
	})
	r.refuse.Store(&refuse)
	wantBytes(t, other, 0, "")
	r.wantTraffic(0, 0, 0)
}

// TestRequireLate: a server that opens nothing is waited for, and the error says so.
func TestRequireLate(t *testing.T) {
	r := newRig(t, inMemory(t))
	delay := make(chan struct{})
	defer close(delay)
	r.set(func(k *knobs) { k.delay = delay })
	f := r.ready(Options{Mode: Require})
	f.s.wait = openWait
	file, _ := open(t, f, "file", readWrite)
	_, _, err := file.ReadAt(t.Context(), make([]byte, 1), 0, nil)
	if !errors.Is(err, ErrNotLocal) || !strings.Contains(err.Error(), "has not opened the file in 100ms") {
		t.Errorf("read: %v", err)
	}
}

// TestOddTimes: times that NFSv3 does not have are by descriptor what they are over the
// network.
func TestOddTimes(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, h := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.FileSync)
	for _, at := range []time.Time{time.Unix(-315619200, 5), time.Unix(1<<32+7, 5), time.Unix(1<<32-1, 5)} {
		if _, err := r.tree.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: at}, nil); err != nil {
			t.Fatal(err)
		}
		a, err := r.tree.GetAttr(t.Context(), h, vfs.MaskV3)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Mtime.Equal(at) {
			t.Skipf("the file system has %v for %v", a.Mtime, at)
		}
		wire, _ := nfs3.Time(a.Mtime)
		var post vfs.Attr
		if _, _, err := file.ReadAt(t.Context(), make([]byte, 10), 0, &post); err != nil || !post.Mtime.Equal(wire.Time()) {
			t.Errorf("%v: %v by descriptor, %v over the network; %v", at, post.Mtime, wire.Time(), err)
		}
	}
}

// TestCallers have views, each with descriptors of its own.
func TestCallers(t *testing.T) {
	if !isRoot() {
		t.Skip("only root acts for others")
	}
	r := newRig(t, inMemory(t))
	var mu sync.Mutex
	var claims []localio.SessionOpenFile
	note := refuser(func(f *localio.SessionOpenFile) (localio.SessionWhy, vfs.Status) {
		mu.Lock()
		defer mu.Unlock()
		claims = append(claims, *f)
		return localio.SESSION_OK, 0
	})
	r.refuse.Store(&note)
	f := r.ready(Options{Caller: vfs.Caller{UID: 0, GID: 7}})
	file, h := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
	groups := make([]uint32, 20)
	for i := range groups {
		groups[i] = uint32(i + 100)
	}
	view := f.As(&vfs.Caller{UID: 1000, GID: 1001, Groups: groups})
	theirs, _, err := view.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: readWrite})
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, theirs, 0, "content")
	if _, err := theirs.WriteAt(t.Context(), []byte("X"), 0, vfs.Unstable, new(vfs.Written)); !errors.Is(err, vfs.ErrAccess) {
		t.Errorf("write of another's file: %v", err)
	}
	back, _, err := view.As(nil).Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: readWrite})
	if err != nil {
		t.Fatal(err)
	}
	write(t, back, "CON", 0, vfs.Unstable)
	for _, f := range []vfs.File{theirs, back} {
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(claims) != 3 || claims[0].Gid != 7 || claims[1].Uid != 1000 || len(claims[1].Groups) != 16 {
		t.Errorf("claims %+v", claims)
	}
	r.wantTraffic(0, 1, 0) // the refused write: the server has the last word
}
