package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/export/exporttest"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestLocalIORevoked takes descriptors back: reads and writes after another client's change
// have the result that they would have over the network.
func TestLocalIORevoked(t *testing.T) {
	need.Root(t, "the callers are others than this process")
	someone := vfs.Caller{UID: 1000, GID: 1000}
	for name, change := range map[string]func(n *neighbour, fs vfs.FS, root, h vfs.Handle) error{
		"chmod": func(_ *neighbour, fs vfs.FS, _, h vfs.Handle) error {
			_, err := fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}, nil)
			return err
		},
		"chown": func(_ *neighbour, fs vfs.FS, _, h vfs.Handle) error {
			_, err := fs.SetAttr(t.Context(), h, &vfs.SetAttr{Valid: vfs.MaskMode | vfs.MaskUID, Mode: 0o600, UID: 7}, nil)
			return err
		},
		"unlink": func(_ *neighbour, fs vfs.FS, root, _ vfs.Handle) error {
			_, err := fs.Remove(t.Context(), root, "file", false)
			return err
		},
		"rename over": func(_ *neighbour, fs vfs.FS, root, _ vfs.Handle) error {
			_, _, err := fs.Rename(t.Context(), root, "other", root, "file")
			return err
		},
		"read-only": func(n *neighbour, _ vfs.FS, _, _ vfs.Handle) error {
			n.rule.ReadOnly = true
			return n.opt.Exports.Replace(n.exports())
		},
		"squashed": func(n *neighbour, _ vfs.FS, _, h vfs.Handle) error {
			if err := os.Chmod(filepath.Join(n.tree, "file"), 0o600); err != nil { // past all, which nobody is told of
				return err
			}
			n.rule.Squash = export.SquashAll
			return n.opt.Exports.Replace(n.exports())
		},
		"nothing": func(*neighbour, vfs.FS, vfs.Handle, vfs.Handle) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbour(t, localfs.HandlesKernel, export.Rule{})
			n.onDisk("file", bytes.Repeat([]byte("a"), 100))
			n.onDisk("other", bytes.Repeat([]byte("b"), 100))
			if err := os.Chmod(filepath.Join(n.tree, "file"), 0o666); err != nil {
				t.Fatal(err)
			}
			over := nfsbox.WithLocalIO(nfsbox.LocalIOOff)
			local, remote, other := n.local(t), n.dial(over), n.dial(over)
			root := rootOf(t, remote.FS())
			files := make([]vfs.File, 2) // of one caller, by either way
			var h vfs.Handle
			for i, c := range []*nfsbox.Client{local, remote} {
				f, opened, err := c.FS().As(&someone).Open(t.Context(), vfs.At{Dir: root, Name: "file"},
					&vfs.OpenHow{Access: vfs.ShareRead | vfs.ShareWrite})
				if err != nil {
					t.Fatal(err)
				}
				files[i], h = f, opened.H
				if _, err := f.WriteAt(t.Context(), []byte("c"), 50, vfs.FileSync, new(vfs.Written)); err != nil {
					t.Fatal(err)
				}
				eventually(t, func() bool {
					if _, _, err := f.ReadAt(t.Context(), make([]byte, 10), 0, nil); err != nil {
						t.Fatal(err)
					}
					s := c.Stats().LocalIO
					return c != local || s.Reads > 0 && s.Opens > 0
				}, func() string { return fmt.Sprintf("nothing is local: %+v", c.Stats().LocalIO) })
			}
			before := local.Stats().LocalIO
			if err := change(n, other.FS(), root, h); err != nil {
				t.Fatal(err)
			}
			outcome := func(f vfs.File) string {
				p := make([]byte, 100)
				k, eof, readErr := f.ReadAt(t.Context(), p, 0, nil)
				_, writeErr := f.WriteAt(t.Context(), []byte("c"), 50, vfs.FileSync, new(vfs.Written))
				return fmt.Sprintf("read %q, eof %t, %v; write %v", p[:k], eof, status(readErr), status(writeErr))
			}
			got, want := outcome(files[0]), outcome(files[1])
			if got != want {
				t.Errorf("local %s\nremote %s", got, want)
			}
			s := local.Stats().LocalIO
			if gone := s.Revoked > before.Revoked; gone == (name == "nothing") || !gone && (s.Reads == before.Reads || s.Fallbacks > before.Fallbacks) {
				t.Errorf("%s: %+v, before %+v", got, s, before)
			}
			for _, f := range files {
				if err := f.Close(t.Context()); err != nil && name == "nothing" {
					t.Error(err)
				}
			}
		})
	}
}

// status is the status in an error, if there is one.
func status(err error) error {
	if s, ok := errors.AsType[vfs.Status](err); ok {
		return s
	}
	return err
}

// TestLocalIOReadOnly has root try to change a file of a read-only export by the
// descriptor that it was handed.
func TestLocalIOReadOnly(t *testing.T) {
	need.Root(t, "only root seals what it hands out")
	n := newNeighbour(t, localfs.HandlesKernel, export.Rule{ReadOnly: true})
	n.onDisk("file", []byte("kept"))
	c := n.local(t, nfsbox.WithLocalIO(nfsbox.LocalIOTrusted))
	root := rootOf(t, c.FS())
	if f, _, err := c.FS().Open(t.Context(), vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareWrite}); err == nil {
		if _, err = f.WriteAt(t.Context(), []byte("x"), 0, vfs.FileSync, new(vfs.Written)); !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("write: %v", err)
		}
		if err := f.Close(t.Context()); err != nil && !errors.Is(err, vfs.ErrROFS) {
			t.Error(err)
		}
	}
	// A program uses descriptors below what buffers, which has none of its own.
	below, ok := c.FS().(vfs.Unwrapper).Unwrap().(vfs.FS)
	if !ok {
		t.Fatal("nothing is below the buffers")
	}
	f, _, err := below.Open(t.Context(), vfs.At{Dir: root, Name: "file"}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		t.Fatal(err)
	}
	power, ok := vfs.As[vfs.HostFiler](f)
	if !ok {
		t.Fatal("a trusted client's file does not tell its descriptor")
	}
	host, release, ok := power.HostFile()
	if !ok {
		t.Fatalf("it has none: %+v", c.Stats().LocalIO)
	}
	fd := int(host.Fd())
	again := fmt.Sprintf("/proc/self/fd/%d", fd)
	for what, try := range map[string]func() error{
		"write":       func() error { _, err := unix.Pwrite(fd, []byte("x"), 0); return err },
		"opened anew": func() error { return closed(unix.Open(again, unix.O_RDWR|unix.O_CLOEXEC, 0)) },
		"truncated":   func() error { return unix.Truncate(again, 0) },
		"chmod":       func() error { return unix.Fchmod(fd, 0o6777) },
		"times":       func() error { return unix.Utimes(again, make([]unix.Timeval, 2)) },
		"link": func() error {
			return unix.Linkat(unix.AT_FDCWD, again, unix.AT_FDCWD, filepath.Join(n.tree, "link"), unix.AT_SYMLINK_FOLLOW)
		},
	} {
		if err := try(); err == nil {
			t.Errorf("%s was possible", what)
		}
	}
	release()
	if err := f.Close(t.Context()); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(filepath.Join(n.tree, "file"))
	if err != nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
}

func closed(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// TestLocalIORights is the matrix of rights past the network: the same as over it.
func TestLocalIORights(t *testing.T) {
	need.Root(t, "the callers are others than this process")
	exporttest.Rights(t, exporttest.Config{Override: true, Every: 13, New: func(t *testing.T, rule export.Rule) exporttest.Place {
		n := newNeighbour(t, localfs.HandlesKernel, rule)
		c := n.local(t)
		t.Cleanup(func() {
			if s := c.Stats().LocalIO; s.State != "local" || s.Opens == 0 {
				t.Errorf("nothing was local: %+v", s)
			}
		})
		return exporttest.Place{Below: n.fs, Dir: n.tree, As: func(who *vfs.Caller) vfs.FS {
			return opening{c.FS().As(who), rule.ReadOnly}
		}}
	}})
}

// opening refuses to open for both reading and writing what is read-only, as the
// matrix expects it: NFSv3 opens nothing, and tells at the first write.
type opening struct {
	vfs.FS
	readOnly bool
}

func (o opening) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	if o.readOnly && how.Access == vfs.ShareRead|vfs.ShareWrite {
		return nil, vfs.Opened{}, vfs.ErrROFS
	}
	return o.FS.Open(ctx, at, how)
}
