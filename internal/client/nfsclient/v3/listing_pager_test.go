package v3_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// paced is a server that fills the pages asked for, and takes its time.
type paced struct {
	took func(size uint32) time.Duration

	mu    sync.Mutex
	sizes []uint32 // that were asked for
}

func (s *paced) asked() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sizes)
}

func (s *paced) answer(_ int, c *oncrpc.Call) xdr.Appender {
	var args nfs3.READDIR3args
	if args.DecodeXDR(&c.Args) != nil {
		return nil
	}
	s.mu.Lock()
	s.sizes = append(s.sizes, args.Count)
	s.mu.Unlock()
	time.Sleep(s.took(args.Count))
	res := &nfs3.READDIR3res{}
	const room, each = 200, 32
	for i := range uint64(max(args.Count, room+each)-room) / each {
		res.Resok.Reply.Entries = append(res.Resok.Reply.Entries, nfs3.Entry3{
			Name: fmt.Appendf(nil, "%08d", i), Cookie: args.Cookie + i + 1,
		})
	}
	return res
}

// TestPageSize: pages grow while the server is quick and shrink when it is slow.
func TestPageSize(t *testing.T) {
	const k = 1 << 10
	perKiB := func(d time.Duration) func(uint32) time.Duration {
		return func(size uint32) time.Duration { return d * time.Duration(size/k) }
	}
	always := func(d time.Duration) func(uint32) time.Duration {
		return func(uint32) time.Duration { return d }
	}
	for _, tc := range []struct {
		name     string
		took     func(uint32) time.Duration
		maxBytes uint32
		want     []uint32 // in bytes
	}{
		{"quick", always(time.Millisecond), 0, []uint32{63 * k, 126 * k, 252 * k, 504 * k, 1008 * k, 1008 * k}},
		{"quick, bounded", always(time.Millisecond), 100 * k, []uint32{63 * k, 100 * k, 100 * k}},
		{"quick, small", always(time.Millisecond), 2 * k, []uint32{2 * k, 2 * k, 2 * k}},
		{"quick up to a size", perKiB(5 * time.Millisecond), 0, []uint32{63 * k, 126 * k, 126 * k, 126 * k}},
		{"slow by entries", perKiB(100 * time.Millisecond), 0, []uint32{63 * k, 63 * k / 2, 63 * k / 4, 63 * k / 4}},
		{"slow by pages", always(5 * time.Second), 0, []uint32{63 * k, 63 * k / 2, 63 * k / 2, 63 * k / 2}},
		{"minutes", perKiB(3 * time.Second), 0, []uint32{63 * k, 63 * k / 8, 63 * k / 8, 63 * k / 8}},
		{"minutes, at times", func(size uint32) time.Duration {
			if size > 400*k {
				return 3 * time.Minute
			}
			return time.Millisecond
		}, 0, []uint32{63 * k, 126 * k, 252 * k, 504 * k, 63 * k / 8, 63 * k / 4, 63 * k / 2, 63 * k, 126 * k, 252 * k, 252 * k}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &paced{took: tc.took}
				st := play(t, script{nfs3.NFSPROC3_READDIR: s.answer}, v3.Options{})
				for _, err := range st.fs.ReadDir(t.Context(), handle(t, "dir"), vfs.Pos{}, 0, tc.maxBytes) {
					if err != nil {
						t.Fatal(err)
					}
					if len(s.asked()) >= len(tc.want) {
						break
					}
				}
				if sizes := s.asked(); !slices.Equal(sizes, tc.want) {
					t.Errorf("pages of %d bytes, want %d", sizes, tc.want)
				}
			})
		})
	}
}

// TestPageNever: a server that answers no listing at all is an error, in a time
// that has a bound.
func TestPageNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{nfs3.NFSPROC3_READDIR: always(nil)}, v3.Options{})
		start := time.Now()
		_, _, err := st.list(t, vfs.Pos{}, 0, 0)
		if !errors.Is(err, oncrpc.ErrTimeout) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took > 5*time.Minute {
			t.Errorf("after %v", took)
		}
	})
}

// TestReadDirPlusRefused goes on with names alone where the attributes cannot be
// had, in this directory and this time.
func TestReadDirPlusRefused(t *testing.T) {
	for status, plusCalls := range map[nfs3.Nfsstat3]int{
		nfs3.NFS3ERR_TOOSMALL:    5, // each larger than the one before
		nfs3.NFS3ERR_SERVERFAULT: 1,
		nfs3.NFS3ERR_JUKEBOX:     9, // in plusBusy
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := false
				st := play(t, script{
					nfs3.NFSPROC3_READDIRPLUS: func(int, *oncrpc.Call) xdr.Appender {
						if refused {
							return &nfs3.READDIRPLUS3res{Status: status}
						}
						return plusOf(true, "a", "b")
					},
					nfs3.NFSPROC3_READDIR: always(pageOf(true, 1, 2, 3)),
				}, v3.Options{Rand: func(p []byte) { clear(p) }})
				for i, want := range []int{3, 2} {
					refused = i == 0
					names, _, err := st.list(t, vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0)
					if len(names) != want || err != nil {
						t.Errorf("listing %d: %q, %v", i, names, err)
					}
				}
				if n := st.called(nfs3.NFSPROC3_READDIRPLUS); n != plusCalls+1 {
					t.Errorf("READDIRPLUS was called %d times, want %d", n, plusCalls+1)
				}
			})
		})
	}
	t.Run("and for good", func(t *testing.T) {
		no := &nfs3.READDIRPLUS3res{Status: nfs3.NFS3ERR_ACCES}
		st := play(t, script{nfs3.NFSPROC3_READDIRPLUS: always(no)}, v3.Options{})
		if _, _, err := st.list(t, vfs.Pos{}, vfs.MaskV3, 0); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%v", err)
		}
	})
}
