package v3_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// tens answers with pages of ten entries, without end.
func tens(_ int, c *oncrpc.Call) xdr.Appender {
	var args nfs3.READDIR3args
	if args.DecodeXDR(&c.Args) != nil {
		return nil
	}
	var cookies []uint64
	for i := range uint64(10) {
		cookies = append(cookies, args.Cookie+i+1)
	}
	return pageOf(false, cookies...)
}

// TestLookAhead counts the pages that were asked for when each entry is
// delivered.
func TestLookAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{nfs3.NFSPROC3_READDIR: tens}, v3.Options{})
		n := 0
		for _, err := range st.fs.ReadDir(t.Context(), handle(t, "dir"), vfs.Pos{}, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			want := 1 + n/10
			if n%10 > 0 {
				want++
			}
			if asked := st.called(nfs3.NFSPROC3_READDIR); asked != want {
				t.Errorf("%d pages at entry %d, want %d", asked, n, want)
			}
			if n++; n == 35 { // with a page on its way, or rather arrived
				break
			}
		}
	})
}

// TestLookAheadNot: a directory of one page needs no second goroutine.
func TestLookAheadNot(t *testing.T) {
	st := play(t, script{nfs3.NFSPROC3_READDIR: always(pageOf(true, 1, 2, 3))}, v3.Options{})
	n := 0
	for _, err := range st.fs.ReadDir(t.Context(), handle(t, "dir"), vfs.Pos{}, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1<<20)
		if strings.Contains(string(buf[:runtime.Stack(buf, true)]), "(*listing).work") {
			t.Error("there is one")
		}
		n++
	}
	if asked := st.called(nfs3.NFSPROC3_READDIR); n != 3 || asked != 1 {
		t.Errorf("%d entries, %d calls", n, asked)
	}
}

// TestLookAheadStops leaves listings whose next page never comes. None of them
// waits for it; the stage sees to it that none leaves anything behind.
func TestLookAheadStops(t *testing.T) {
	silent := script{nfs3.NFSPROC3_READDIR: func(n int, c *oncrpc.Call) xdr.Appender {
		if n == 1 {
			return tens(n, c)
		}
		return nil
	}}
	for name, leave := range map[string]func(n int, cancel func()) bool{
		"break": func(n int, _ func()) bool { return n < 5 },
		"the context ends": func(n int, cancel func()) bool {
			if n == 5 {
				cancel()
			}
			return true
		},
		"panic": func(n int, _ func()) bool {
			if n == 5 {
				panic("enough")
			}
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := play(t, silent, v3.Options{})
				start := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n, err := 0, error(nil)
				func() {
					defer func() {
						if name == "panic" && recover() == nil {
							t.Error("no panic")
						}
					}()
					for _, err = range st.fs.ReadDir(ctx, handle(t, "dir"), vfs.Pos{}, 0, 0) {
						if err != nil {
							break
						}
						synctest.Wait()
						if n++; !leave(n, cancel) {
							break
						}
					}
				}()
				if name == "the context ends" {
					if n != 10 || !errors.Is(err, context.Canceled) {
						t.Errorf("%d entries, %v", n, err)
					}
				} else if n != 5 || err != nil {
					t.Errorf("%d entries, %v", n, err)
				}
				if took := time.Since(start); took > 100*time.Millisecond {
					t.Errorf("it took %v to leave", took)
				}
			})
		})
	}
}

// TestLookAheadError comes behind all entries that came before it.
func TestLookAheadError(t *testing.T) {
	for name, second := range map[string]xdr.Appender{
		"status": &nfs3.READDIR3res{Status: nfs3.NFS3ERR_IO},
		"circle": pageOf(false, 11, 10),
		"cut":    raw([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1}),
	} {
		st := play(t, script{nfs3.NFSPROC3_READDIR: func(n int, c *oncrpc.Call) xdr.Appender {
			if n == 1 {
				return tens(n, c)
			}
			return second
		}}, v3.Options{})
		names, last, err := st.list(t, vfs.Pos{}, 0, 0)
		if err == nil || fmt.Sprint(names) != "[n1 n2 n3 n4 n5 n6 n7 n8 n9 n10]" || last.Cookie != 10 {
			t.Errorf("%s: %q, %v", name, names, err)
		}
	}
}
