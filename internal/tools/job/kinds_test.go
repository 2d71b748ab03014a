package job

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestKindsOfTrouble: a file that vanished is a note, one that grew is a note and kept, one that changes each time is an error of that kind, and
// one that cannot be read an error. Those that are errors are what another run copies.
func TestKindsOfTrouble(t *testing.T) {
	var trouble atomic.Pointer[func(op string, h vfs.Handle) error]
	src, dst := mem(t, memfs.Options{Fault: func(_ context.Context, op string, h vfs.Handle) error {
		if do := trouble.Load(); do != nil {
			return (*do)(op, h)
		}
		return nil
	}}), mem(t, memfs.Options{})
	at := make(map[vfs.Handle]string)
	for _, name := range []string{"d/gone", "grows", "changes", "bad", "good"} {
		at[src.file(name, 0o644, []byte("ten bytes."))] = name
	}
	src.settle()
	dir := src.at("d") // it is listed again, and the root is not
	var n atomic.Int64
	do := func(op string, h vfs.Handle) error {
		switch name := at[h]; {
		case op == "open" && name == "d/gone":
			_, _ = src.fs.Remove(context.Background(), dir, "gone", false) // once
		case op == "read" && name == "grows":
			src.write(h, 10+uint64(n.Add(1)), []byte("x"))
		case op == "read" && name == "changes":
			src.write(h, 0, []byte{byte(n.Add(1))})
		case op == "read" && name == "bad":
			return vfs.ErrIO
		}
		return nil
	}
	trouble.Store(&do)
	o, v := options(t, src, dst, "copy")
	s, err := Copy(t.Context(), o)
	if err != nil || s.ExitCode(err) != ExitIncomplete || s.Files != 2 || s.Errors != 2 || s.Vanished != 1 || s.Grew != 1 || s.Changed != 1 {
		t.Errorf("%v, %+v\n%s", err, s, v)
	}
	for _, want := range []string{`note vanished "d/gone"`, `note grew "grows"`, `error changed "changes"`, `error  "bad"`} {
		if strings.Count(v.String(), want) != 1 {
			t.Errorf("%s is not told of once:\n%s", want, v)
		}
	}
	if strings.Contains(v.String(), `"good"`) || string(dst.read(dst.at("copy/grows"), 10)) != "ten bytes." {
		t.Errorf("%s", v)
	}
}
