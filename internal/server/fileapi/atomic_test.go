package fileapi

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// kills is how many uploads each way to end one gets.
const kills = 30

// TestKilledUploads ends uploads at random moments, in every way that there is: what
// was there stays, whole, and nothing else becomes visible, not even a temporary.
func TestKilledUploads(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		r.make("/dir", aDir, "")
		r.make("/dir/file", aFile, "what was there before")
		before := r.tree()
		rnd := rand.New(rand.NewPCG(2, 6))
		for name, kill := range map[string]func(*rand.Rand) error{
			"connection cut":    r.cut,
			"context cancelled": r.cancelled,
			"checksum wrong":    r.wrong,
		} {
			for i := range kills {
				if err := kill(rnd); err == nil {
					t.Fatalf("%s, %d: the upload has succeeded", name, i)
				}
			}
			r.gone()
			if after := r.tree(); after != before {
				t.Fatalf("%s: there is now\n%.300s\nand was\n%s", name, after, before)
			}
		}
	})
}

// gone waits until the server has done with all connections that were made before.
func (r *rig) gone() {
	r.Helper()
	// It accepts one after the other: when this one is answered, it has them all.
	c := r.raw()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		r.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		r.Fatal(err)
	}
	_ = c.Close()
	for range 10_000 {
		r.http.CloseIdleConnections()
		r.h2.CloseIdleConnections()
		s := r.s.Snapshot()
		if s.Conns == 0 && s.InProgress == 0 && s.Memory == 0 && r.s.buffers.Outstanding() == 0 {
			return
		}
		time.Sleep(time.Millisecond) // a server does not tell when it has noticed that a client is gone
	}
	s := r.s.Snapshot()
	r.Fatalf("%d connections and %d calls are left, %d bytes are held, %d buffers lent", s.Conns, s.InProgress, s.Memory, r.s.buffers.Outstanding())
}

// cut sends the beginning of an upload and closes the connection.
func (r *rig) cut(rnd *rand.Rand) error {
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	body := uploadBody(large)
	raw := fmt.Appendf(nil, "POST /%s/Upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\nContent-Length: %d\r\n\r\n", pb.FileServiceName, len(body))
	raw = append(raw, body...)
	_, err = c.Write(raw[:rnd.IntN(len(raw))])
	if rnd.IntN(2) == 0 {
		_ = c.(*net.TCPConn).SetLinger(0) // a reset and not an end
	}
	return errors.Join(err, errors.New("cut"))
}

// uploadBody is all messages of an upload.
func uploadBody(data []byte) []byte {
	return uploadMessages(&pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/dir/file"}}, data, 50_000)
}

// uploadMessages are those of an upload in parts of size part.
func uploadMessages(head *pb.UploadHeader, data []byte, part int) (body []byte) {
	add := func(q *pb.UploadRequest) {
		b, err := proto.Marshal(q)
		if err != nil {
			panic(err)
		}
		body = append(body, prefixed(b)...)
	}
	size := uint64(len(data))
	add(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: head}})
	for len(data) > 0 {
		n := min(len(data), part)
		add(&pb.UploadRequest{Part: &pb.UploadRequest_Data{Data: data[:n]}})
		data = data[n:]
	}
	add(&pb.UploadRequest{Part: &pb.UploadRequest_Trailer{Trailer: &pb.UploadTrailer{Size: size}}})
	return body
}

// cancelled cancels before some message, or while the last is under way.
func (r *rig) cancelled(rnd *rand.Rand) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stream, err := r.client[encodings[rnd.IntN(len(encodings))]].Upload(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Header{Header: &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/dir/file"}}}})
	for range rnd.IntN(20) {
		if err == nil {
			err = stream.Send(&pb.UploadRequest{Part: &pb.UploadRequest_Data{Data: large[:rnd.IntN(50_000)]}})
		}
	}
	cancel()
	_, done := stream.CloseAndReceive()
	return errors.Join(err, done)
}

// wrong sends other bytes than announced.
func (r *rig) wrong(rnd *rand.Rand) error {
	data := append([]byte(nil), large[:1+rnd.IntN(len(large))]...)
	head := &pb.UploadHeader{File: &pb.UploadHeader_Path{Path: "/dir/file"}, Checksum: sumOf("blake3", data)}
	data[rnd.IntN(len(data))] ^= 1 << rnd.IntN(8)
	_, err := upload(r.Context(), r.client[encodings[rnd.IntN(len(encodings))]], head, data, 1+rnd.IntN(100_000), &pb.UploadTrailer{Size: uint64(len(data))})
	return err
}

// TestFaults fails every operation of the file system in turn, during a Put: there is
// the old file or the new, and no temporary, however the Put has ended.
func TestFaults(t *testing.T) {
	var armed, at atomic.Int64
	fs := memfs.New(memfs.Options{Fault: func(_ context.Context, op string, _ vfs.Handle) error {
		if armed.Load() > 0 && at.Add(1) == armed.Load() {
			return vfs.ErrIO
		}
		return nil
	}})
	r := newRig(t, fs, func(o *Options) { o.Report = func(error) {} })
	r.make("/file", aFile, "before")
	failures := 0
	for n := int64(1); n < 40; n++ {
		at.Store(0)
		armed.Store(n)
		_, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/file"}, Data: fmt.Append(nil, "after ", n), Sync: true})
		armed.Store(0)
		if err != nil {
			failures++
		}
		tree := r.tree()
		if r.s.temps.left.Swap(0) == 0 && strings.Contains(tree, tempPrefix) {
			t.Errorf("operation %d fails: a temporary is left: %s", n, tree)
		}
		if new := strings.Contains(tree, hex.EncodeToString(fmt.Append(nil, "after ", n))); err == nil && !new {
			t.Errorf("operation %d fails: nothing was stored, and no error is returned: %s", n, tree)
		}
	}
	if failures < 6 {
		t.Errorf("%d Puts have failed: too few to have tried all operations", failures)
	}
}

// unsynced is a file system whose next Sync fails if so armed.
type unsynced struct {
	vfs.FS
	armed *atomic.Bool
}

func (u *unsynced) As(c *vfs.Caller) vfs.FS { return &unsynced{u.FS.As(c), u.armed} }

func (u *unsynced) Sync(context.Context, vfs.Handle) error {
	if u.armed.Swap(false) {
		return vfs.ErrIO
	}
	return nil
}

// TestFailedSync makes a name that is not on the disk: an error, and no temporary is
// left. A call that does not ask for it to be there has nothing synced.
func TestFailedSync(t *testing.T) {
	var armed atomic.Bool
	r := newRig(t, &unsynced{newMemory(t), &armed}, func(o *Options) { o.Report = func(error) {} })
	put := func(sync bool) error {
		armed.Store(true)
		_, err := r.client["protobuf"].Put(t.Context(), &pb.PutRequest{File: &pb.PutRequest_Path{Path: "/f"}, Data: []byte("x"), Sync: sync})
		return err
	}
	if err := put(true); err == nil || armed.Load() {
		t.Error("nothing has failed")
	}
	if err := put(false); err != nil || !armed.Load() {
		t.Errorf("it was synced, or failed: %v", err)
	}
	if tree := r.tree(); strings.Contains(tree, tempPrefix) {
		t.Errorf("a temporary is left: %s", tree)
	}
}

// TestSweep leaves temporaries behind as a crash does, and starts anew.
func TestSweep(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		name := filepath.Join(t.TempDir(), "uploads")
		table, err := export.NewTable(export.Key{1}, export.Export{Path: "/", FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		var reported error
		o := Options{Table: table, Ledger: name, Report: func(err error) { reported = err }}
		first, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{TB: t, fs: fs}
		r.make("/dir", aDir, "")
		r.make("/dir/"+tempPrefix+"0123456789abcdef-1", aFile, "another server's")
		before := r.tree()
		view := first.view(loopbackOf(&vfs.Caller{}), netipLoopback)
		dir, _, err := view.Mount(t.Context(), "/dir")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			tmp, err := first.temps.create(t.Context(), view, dir, 0o600, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := tmp.file.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if r.tree() == before {
			t.Fatal("there are no temporaries to be swept")
		}
		// The directory moves: handles find it.
		root, _, err := fs.Root(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := fs.Rename(t.Context(), root, "dir", root, "moved"); err != nil {
			t.Fatal(err)
		}
		// A crash may also cut the ledger's last line short.
		f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(f, "dir 01")
		if err := errors.Join(err, f.Close(), first.temps.ledger.file.Close()); err != nil {
			t.Fatal(err)
		}
		second, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if after := strings.ReplaceAll(r.tree(), "/moved", "/dir"); after != before {
			t.Errorf("there is now\n%s\nwant\n%s", after, before)
		}
		if err := errors.Join(second.Close(), reported); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(name); err != nil || strings.Contains(string(b), "dir") {
			t.Errorf("after a clean end the ledger is %q, %v", b, err)
		}
	})
}

// TestLedgerBounds fills a ledger.
func TestLedgerBounds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "uploads")
	temps := &temporaries{own: newMemory(t), run: "6f1c0d2b9a8e7f35", report: func(err error) { t.Error(err) }}
	l, err := openLedger(t.Context(), name, temps)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxLedger {
		l.dirs[handleOf(t, uint64(i)+1)] = i % 2 // every second one is in use
	}
	if err := l.enter(handleOf(t, 1<<40)); err != nil {
		t.Fatal(err)
	}
	if len(l.dirs) != maxLedger/2+1 {
		t.Errorf("%d directories are left, want those %d in use", len(l.dirs), maxLedger/2+1)
	}
	again := &ledger{dirs: make(map[vfs.Handle]int)}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.read(b); err != nil || len(again.dirs) != len(l.dirs) || len(again.runs) != 1 {
		t.Errorf("%v: %d directories and %d runs are in the file", err, len(again.dirs), len(again.runs))
	}
	for h := range l.dirs {
		l.dirs[h] = 0
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
	if err := l.enter(handleOf(t, 1)); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("an upload when the ledger is closed: %v, want unavailable", err)
	}
}

// unsettled is a file system in which nothing can be made stable.
type unsettled struct{ vfs.FS }

func (unsettled) SetAttr(context.Context, vfs.Handle, *vfs.SetAttr, *time.Time) (vfs.WCC, error) {
	return vfs.WCC{}, vfs.ErrIO
}

// TestLedgerUnsettled forgets no directory whose names a crash might change.
func TestLedgerUnsettled(t *testing.T) {
	name := filepath.Join(t.TempDir(), "uploads")
	temps := &temporaries{own: unsettled{newMemory(t)}, run: "6f1c0d2b9a8e7f35", report: func(err error) { t.Error(err) }}
	l, err := openLedger(t.Context(), name, temps)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxLedger {
		l.dirs[handleOf(t, uint64(i)+1)] = 0
	}
	if err := l.enter(handleOf(t, 1)); err != nil {
		t.Errorf("a directory that is there already: %v", err)
	}
	if err := l.enter(handleOf(t, 1<<40)); !errors.Is(err, errUnsettled) || len(l.dirs) != maxLedger {
		t.Errorf("one too many: %v, and there are %d", err, len(l.dirs))
	}
	temps.own, l.own = newMemory(t), newMemory(t) // the disk is well again
	l.leave(handleOf(t, 1))
	if err := l.enter(handleOf(t, 1<<40)); err != nil || len(l.dirs) != 1 {
		t.Errorf("%v, and there are %d directories", err, len(l.dirs))
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

func handleOf(t *testing.T, n uint64) vfs.Handle {
	h, err := vfs.MakeHandle(binary.BigEndian.AppendUint64(nil, n))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte(ledgerMagic + "\nrun 00\ndir 0102\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := &ledger{dirs: make(map[vfs.Handle]int)}
		if err := l.read(b); err == nil && len(l.dirs)+len(l.runs) > len(b) {
			t.Fatal("more than there is")
		}
	})
}

// TestTemporariesAreNotForeseen: somebody who may write to the directory otherwise sees the
// name of a temporary, and takes the names that a counter would give to the next ones. Others
// store files there all the same.
func TestTemporariesAreNotForeseen(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/dir", aDir, "")
	slow := r.slowly(1) // of /dir/file
	r.inProgress(1)
	name := ""
	for name == "" { // bounded by the test's time
		_, name, _ = strings.Cut(r.tree(), tempPrefix)
		name, _, _ = strings.Cut(name, `"`)
	}
	run, number, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 16, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i := range uint64(2 * maxTries) {
		for _, form := range []string{"%x", "%016x"} {
			if taken := fmt.Sprintf("/dir/"+tempPrefix+"%s-"+form, run, n+1+i); !strings.Contains(r.tree(), taken) {
				r.make(taken, aFile, "")
			}
		}
	}
	r.expect(http.StatusCreated, "PUT", "/dir/other", "x", "Nfsbox-Sync", "true")
	_ = slow[0].Close()
	r.gone()
}

// untrusting is a file system that takes the set-ID bits of a file that is written to, as
// Linux does, and does not give the caller those of lost.
type untrusting struct {
	vfs.FS
	lost uint32
}

func (f untrusting) As(c *vfs.Caller) vfs.FS { return untrusting{f.FS.As(c), f.lost} }

func (f untrusting) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	less := *set
	less.Mode &^= f.lost
	return f.FS.SetAttr(ctx, h, &less, guard)
}

func (f untrusting) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if how.Create != nil {
		less, create := *how, *how.Create
		create.Set.Mode &^= setID
		less.Create = &create
		how = &less
	}
	return f.FS.Open(ctx, at, how)
}

// TestSetIDModes: a file that is put has the mode that was asked for, or is not stored.
func TestSetIDModes(t *testing.T) {
	for lost, want := range map[uint32]map[string]int{
		0:       {"07777": 201, "4755": 201, "2755": 201, "0755": 201, "1777": 201},
		0o4000:  {"07777": 403, "4755": 403, "2755": 201, "0755": 201, "1777": 201},
		setID:   {"07777": 403, "4755": 403, "2755": 403, "0755": 201, "1777": 201},
		0o10000: {"107777": 400},
	} {
		r := newRig(t, untrusting{newMemory(t), lost}, nil)
		r.make("/dir", aDir, "")
		for mode, status := range want {
			for _, sync := range []string{"true", "false"} {
				path := "/dir/" + mode + sync
				r.expect(status, "PUT", path, "text", modeField, mode, syncField, sync)
				line := fmt.Sprintf("%q file %s", path, strings.TrimPrefix(mode, "0"))
				if stored := strings.Contains(r.tree(), line); stored != (status == http.StatusCreated) {
					t.Errorf("mode %s without %o is stored: %v\n%s", mode, lost, stored, r.tree())
				}
			}
		}
		if tree := r.tree(); strings.Contains(tree, tempPrefix) {
			t.Errorf("something is left:\n%s", tree)
		}
	}
}
