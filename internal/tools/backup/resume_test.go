package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestStopped stops a backup at each read, and wants the next to go on from what was done, and to end up the same.
func TestStopped(t *testing.T) {
	const files = 12
	for stop := 1; ; stop++ {
		b := newBed(t)
		for i := range files {
			d := b.create(b.root, fmt.Sprint("d", i%3, i), vfs.CreateHow{Type: vfs.TypeDir})
			b.file(d, "f", strings.Repeat(fmt.Sprint(i), 3000))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var reads atomic.Int64
		b.fault = func(_ context.Context, op string, _ vfs.Handle) error {
			if op == "read" && reads.Add(1) == int64(stop) {
				cancel()
			}
			return nil
		}
		sum, err := Run(ctx, b.options())
		cancel()
		if err == nil {
			if stop < files {
				t.Fatalf("it was done after %d reads", stop)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || !sum.Partial || sum.Snapshot != "" {
			t.Fatalf("%v: %+v", err, sum)
		}
		if _, err := snapshot.Find(t.Context(), b.store, "t"); !errors.Is(err, snapshot.ErrNoSnapshot) {
			t.Errorf("there is a snapshot: %v", err)
		}
		b.fault = nil
		was := sum.Files
		sum, s := b.backup()
		b.wantSame(s)
		if sum.Resumed != was || sum.Read != files-was || !sum.Complete || sum.Partial {
			t.Errorf("stopped at read %d with %d files: %+v", stop, was, sum)
		}
		if p, err := snapshot.OpenPartial(t.Context(), b.store, "t"); p != nil || err != nil {
			t.Errorf("the checkpoint is there: %v, %v", p, err)
		}
	}
}

// failing is a store whose calls fail from some number on.
type failing struct {
	object.Store
	calls, from atomic.Int64
}

var errStore = errors.New("the store fails")

func (f *failing) next() error {
	if f.calls.Add(1) >= f.from.Load() {
		return errStore
	}
	return nil
}

func (f *failing) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if err := f.next(); err != nil {
		return object.Info{}, err
	}
	return f.Store.Put(ctx, key, r, o)
}

func (f *failing) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	if err := f.next(); err != nil {
		return nil, object.Info{}, err
	}
	return f.Store.Get(ctx, key, off, n)
}

func (f *failing) Stat(ctx context.Context, key string) (object.Info, error) {
	if err := f.next(); err != nil {
		return object.Info{}, err
	}
	return f.Store.Stat(ctx, key)
}

func (f *failing) List(ctx context.Context, prefix, after string, limit int) (object.Page, error) {
	if err := f.next(); err != nil {
		return object.Page{}, err
	}
	return f.Store.List(ctx, prefix, after, limit)
}

// TestStoreFails has the store fail from each call on, and wants an error, no snapshot, and the next backup to be whole.
func TestStoreFails(t *testing.T) {
	for from := int64(1); ; from++ {
		b := newBed(t)
		for i := range 3 {
			d := b.create(b.root, fmt.Sprint("d", i), vfs.CreateHow{Type: vfs.TypeDir})
			b.file(d, "small", fmt.Sprint("small", i))
			b.file(d, "large", strings.Repeat(fmt.Sprint(i), 257<<10))
		}
		f := &failing{Store: b.store}
		f.from.Store(from)
		o := b.options()
		o.Store, o.Plain = f, true
		sum, err := Run(t.Context(), o)
		if err == nil {
			if from < 15 {
				t.Fatalf("it was done with %d calls", from)
			}
			break
		}
		if !errors.Is(err, errStore) || sum.Snapshot != "" {
			t.Fatalf("call %d: %v: %+v", from, err, sum)
		}
		sum, s := b.backup()
		b.wantSame(s)
		if !sum.Complete {
			t.Errorf("call %d: %+v", from, sum)
		}
	}
}

// TestPartialDamaged wants a checkpoint that is damaged to be told and passed over.
func TestPartialDamaged(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "f", "content")
	bad := b.file(b.root, "g", "content of g")
	b.fault = func(_ context.Context, op string, h vfs.Handle) error {
		if op == "read" && h == bad {
			return vfs.ErrIO
		}
		return nil
	}
	if sum, _ := b.backup(); !sum.Partial {
		t.Fatalf("%+v", sum)
	}
	b.fault = nil
	for _, text := range []string{"", "junk\n", "{}\n"} {
		if _, err := b.store.Put(t.Context(), "partial/t", strings.NewReader(text), object.PutOptions{Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		sum, s := b.backup()
		b.wantSame(s)
		if sum.Resumed != 0 || !sum.Complete || sum.Partial {
			t.Errorf("%+v", sum)
		}
	}
}

// TestLargeStopped stops a backup within a large file, and wants the next to read it from there on.
func TestLargeStopped(t *testing.T) {
	b := newBed(t)
	h := b.file(b.root, "large", "begin")
	for _, at := range []uint64{1 << 20, 12 << 20} { // with holes before
		b.write(h, at, noise(10<<20))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reads atomic.Int64
	b.fault = func(_ context.Context, op string, _ vfs.Handle) error {
		if op == "read" && reads.Add(1) == 18 {
			cancel()
		}
		return nil
	}
	o := b.options()
	o.FS = blindly{b.fs}
	if sum, err := Run(ctx, o); !errors.Is(err, context.Canceled) || !sum.Partial {
		t.Fatalf("%+v, %v", sum, err)
	}
	b.fault = nil
	o = b.options()
	o.FS = blindly{b.fs}
	sum, s := b.run(o)
	b.wantSame(s)
	t.Logf("%d bytes were read again", sum.ReadBytes)
	if sum.Read != 1 || sum.ReadBytes >= 18<<20 || sum.ReadBytes < 3<<20 {
		t.Errorf("%+v", sum)
	}
}

// noise is text that is not repeated.
func noise(n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b) //nolint:errcheck // it does not fail
	return string(b)
}

// blindly is a file system whose files take less than they are long, and do not tell where.
type blindly struct{ vfs.FS }

func (f blindly) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	file, o, err := f.FS.Open(ctx, at, how)
	return blind{file}, o, err
}
