package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestLeftBehind interrupts a copy whose temporaries cannot be removed: it says which
// they are, some by their names and the others by their number.
func TestLeftBehind(t *testing.T) {
	const files = maxLeft + 3
	var out hooks
	src, dst := mem(t, memfs.Options{}), newTree(t, memfs.New(memfs.Options{Fault: out.fault}))
	for i := range files {
		src.file(fmt.Sprintf("d/%d", i), 0o600, pattern(10, byte(i)))
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var writing atomic.Int32
	out.set(func(_ int, op string, _ vfs.Handle) error {
		switch op {
		case "remove":
			if ctx.Err() != nil {
				return vfs.ErrIO
			}
		case "write":
			if writing.Add(1) == files {
				interrupt()
			}
			<-ctx.Done()
		}
		return nil
	})
	o, v := options(t, src, dst, "copy")
	s, err := Copy(ctx, o)
	out.set(nil)
	temps := dst.temps()
	if err == nil || s.Left != files || len(temps) != files {
		t.Errorf("%v; %d temporaries are told of, and %d are there", err, s.Left, len(temps))
	}
	var named []string
	for _, e := range v.list {
		if e.Kind == KindTemporary && e.Path != "" {
			named = append(named, "copy/"+e.Path)
		}
	}
	slices.Sort(named)
	for _, name := range named {
		if !slices.Contains(temps, name) {
			t.Errorf("%s is named, and is not there: %q", name, temps)
		}
	}
	if n := len(slices.Compact(named)); n != maxLeft || !strings.Contains(v.String(), "3 more could not be removed") {
		t.Errorf("%d are named, want %d\n%s", n, maxLeft, v)
	}
}
