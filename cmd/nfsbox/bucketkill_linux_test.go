package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/built"
	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

// TestKilledUpload kills a copy of a large file when some of its parts are in the bucket. The same command sends the others alone.
func TestKilledUpload(t *testing.T) {
	need.Time(t, "the built command uploads 200 MiB, and is killed")
	const size, parts, before = 200 << 20, 13, 5
	dir := t.TempDir()
	bin, err := built.Into(dir)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{1}), size))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "large"), content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	fakes3.Setenv(t)
	s := fakes3.Start(t, 1, fakes3.Faults{})
	for _, job := range [][]string{nil, {"--job", "upload"}} {
		name := fmt.Sprint("copy", len(job))
		args := append([]string{"cp"}, job...)
		args = append(args, filepath.Join(dir, "large"), "s3://"+fakes3.Bucket+"/"+name+"?endpoint="+s.URL)
		command := func() *exec.Cmd {
			cmd := exec.Command(bin, args...)
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "HOME="+dir)
			return cmd
		}
		killed := command()
		var n atomic.Int32
		s.Set(fakes3.Faults{Hook: fakes3.On("PART", func(http.ResponseWriter, *http.Request) bool {
			if n.Add(1) <= before {
				return false
			}
			_ = killed.Process.Kill() // it may have been killed already
			return true
		})})
		if out, err := killed.CombinedOutput(); err == nil {
			t.Fatalf("it was not killed:\n%s", out)
		}
		s.Settle()
		s.Set(fakes3.Faults{})
		if s.Uploads() != 1 {
			t.Fatalf("%d uploads are left", s.Uploads())
		}
		sent := s.Calls("PART")
		if out, err := command().CombinedOutput(); err != nil || !bytes.Contains(out, []byte("that an earlier run has copied")) {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := s.Calls("PART") - sent; got != parts-before || s.Uploads() > 0 {
			t.Errorf("%d parts were sent of %d, and %d were there; %d uploads are left", got, parts, before, s.Uploads())
		}
		if !s.Change(name, func(b []byte) []byte {
			if !bytes.Equal(b, content) {
				t.Error("the copy has other bytes")
			}
			return b
		}) {
			t.Error("there is no copy")
		}
	}
}
