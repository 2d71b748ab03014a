package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/testkit/sim"
	"github.com/nfsbox/nfsbox/internal/testkit/sim/rpcfault"
	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// These tests put a proxy between our client and our server that loses, delays,
// repeats and forges what they say to each other. NFSBOX_SEED repeats what a
// failing one has printed.

// seeds are n of them, or the one that NFSBOX_SEED names.
func seeds(t testing.TB, n int) []uint64 {
	t.Helper()
	if s := os.Getenv("NFSBOX_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("NFSBOX_SEED: %v", err)
		}
		return []uint64{seed}
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(i + 1)
	}
	return all
}

// inMemory puts everything on networks in memory, for bubbles of time.
func inMemory(t *testing.T, at vfs.FS, seed uint64, query string, opts ...nfsbox.Option) *faulty {
	t.Helper()
	table, err := export.NewTable(export.Key{1, 2, 3}, export.Export{Path: "/", FS: at})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := nfsserver.New(nfsserver.Options{Exports: table})
	if err != nil {
		t.Fatal(err)
	}
	n := sim.NewNetwork(seed)
	l, err := n.Listen(":2049")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, nfsserver.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	p := rpcfault.New(rpcfault.Options{Seed: seed, Upstream: func(ctx context.Context) (net.Conn, error) {
		return n.DialContext(ctx, "tcp", ":2049")
	}})
	t.Cleanup(func() { closeProxy(t, p) })
	opts = append(opts, nfsbox.WithDialer(p.Dial), nfsbox.WithRand(sim.NewRand(seed).Fill))
	return mountFaulty(t, p, at, "nfs://127.0.0.1:2049/?"+query, opts...)
}

// pattern is content in which every 16 bytes name their file, its version and their offset.
func pattern(file, version uint64, off, n int) []byte {
	b := make([]byte, 0, n+16)
	for at := off &^ 15; at < off+n; at += 16 {
		b = binary.BigEndian.AppendUint64(b, file<<32|version)
		b = binary.BigEndian.AppendUint64(b, uint64(at)^0x5a5a5a5a5a5a5a5a)
	}
	return b[off&15:][:n]
}

// write makes or overwrites a file, whole, and closes it: what it holds then is
// stable.
func write(ctx context.Context, f vfs.FS, dir vfs.Handle, name string, data []byte) (err error) {
	file, _, err := f.Open(ctx, vfs.At{Dir: dir, Name: name}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	_, err = vfs.WriteFull(ctx, file, data, 0, vfs.Unstable, new(vfs.Written))
	if err == nil {
		err = file.Commit(ctx, 0, 0, new(vfs.Written))
	}
	return errors.Join(err, file.Close(ctx))
}

// read reads n bytes at off of a file; fewer are an error.
func read(ctx context.Context, f vfs.FS, h vfs.Handle, off, n int) (data []byte, err error) {
	file, _, err := f.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return nil, err
	}
	data = make([]byte, n)
	got, _, err := vfs.ReadFull(ctx, file, data, uint64(off))
	if err == nil && got != n {
		err = fmt.Errorf("%d bytes of %d", got, n)
	}
	return data, errors.Join(err, file.Close(ctx))
}

// names lists a directory by READDIRPLUS.
func names(ctx context.Context, f vfs.FS, dir vfs.Handle) (list []string, err error) {
	for e, err := range f.ReadDir(ctx, dir, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 2048) {
		if err != nil {
			return nil, err
		}
		list = append(list, string(e.Name))
	}
	slices.Sort(list)
	return list, nil
}

// wrong is a result that is not as it must be, and the error with it, if any.
func wrong(err error, format string, args ...any) error {
	return errors.Join(errWrong, fmt.Errorf(format, args...), err)
}

// errWrong is a result that was delivered as good and is not.
var errWrong = errors.New("WRONG")

// failures gathers what goes wrong in many goroutines; only the first few are
// told.
type failures struct {
	mu   sync.Mutex
	list []string
	more int
}

func (f *failures) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.list) == 20 {
		f.more++
		return
	}
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

func (f *failures) report(t *testing.T) {
	for _, s := range f.list {
		t.Error(s)
	}
	if f.more > 0 {
		t.Errorf("and %d more", f.more)
	}
}
