package worker

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/remove"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestSyncAndVerify: a sync by workers finds by contents what has changed, and copies it; a comparison by workers
// finds what differs, and nothing else. A file that has vanished is a note.
func TestSyncAndVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(4, 30)
		x.worker(srcURL, dstURL)
		x.finish(x.coordinate(nil), 120)

		x.overwrite("dst/copy/d1", "f1", "longer")
		x.overwrite("dst/copy/d2", "f2", "x")
		verify := func() job.VerifySummary {
			c := x.coordinate(nil)
			s, err := job.Verify(t.Context(), job.VerifyOptions{
				Source: job.Place{FS: x.fs, Handle: x.mkdir("src")}, Dest: job.Place{FS: x.fs, Handle: x.mkdir("dst/copy")},
				Pool: new(bufpool.Pool), Now: time.Now, Progress: progress.New(nil, time.Now), Hands: c,
			})
			if err != nil {
				t.Error(err)
			}
			if here := c.Standing().Here; here != 0 {
				t.Errorf("%d files were compared here", here)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			return s
		}
		if s := verify(); s.Differences != 2 || s.Errors != 0 || s.Files != 120 {
			t.Errorf("%+v", s)
		}
		c := x.coordinate(nil)
		s, err := x.copy(t.Context(), c, func(o *job.CopyOptions) {
			o.Sync, o.Record = &job.SyncOptions{Checksum: true}, nil
		})
		if s.ExitCode(err) != job.ExitDone || s.Files != 2 {
			t.Errorf("%v, %+v", err, s)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if s := verify(); s.Differences != 0 || s.Errors != 0 || s.Files != 120 {
			t.Errorf("%+v", s)
		}
	})
}

// overwrite writes over the beginning of a file, and gives it the time of its source again.
func (x *rig) overwrite(dir, name, with string) {
	x.t.Helper()
	ctx := context.Background()
	h, was, _, err := x.fs.Lookup(ctx, x.mkdir(dir), name)
	if err != nil {
		x.t.Fatal(err)
	}
	f, _, err := x.fs.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
	if err != nil {
		x.t.Fatal(err)
	}
	var w vfs.Written
	_, err = vfs.WriteFull(ctx, f, []byte(with)[:min(uint64(len(with)), was.Size)], 0, vfs.FileSync, &w)
	if cerr := f.Close(ctx); err == nil {
		err = cerr
	}
	set := vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: was.Mtime}
	if err == nil {
		_, err = x.fs.SetAttr(ctx, h, &set, nil)
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// TestRemove: workers remove what lies in a tree, and nothing beside it.
func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.fill(4, 30)
		x.write("src2/precious", "stays")
		x.worker("nfs://mem/src?uid=0&gid=0", "nfs://mem/dst?uid=0&gid=0")
		c := x.coordinateAs(func(s *hands.Spec) { s.Dest, s.Source = *s.Source, nil })
		r := remove.New(t.Context(), x.fs, remove.Options{
			Ask:     func(string, vfs.Type) (bool, error) { return true, nil },
			Removed: func(string, vfs.Type) {},
			Failed:  func(path string, err error) error { t.Errorf("%s: %v", path, err); return nil },
			Unlink: func(ctx context.Context, d *walk.Dir, name string) error {
				return c.Remove(ctx, &hands.Dir{Dest: &d.Attr, Path: func() (names []string) {
					for up := d; up.Parent != nil; up = up.Parent {
						names = slices.Insert(names, 0, up.Name)
					}
					return names
				}}, x.fs, d.Handle, name)
			},
		})
		if err := r.Remove(remove.Target{Dir: x.root, Name: "src"}); err != nil {
			t.Error(err)
		}
		if err := r.Wait(); err != nil {
			t.Error(err)
		}
		if here := c.Standing().Here; here != 0 {
			t.Errorf("%d files were removed here", here)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := x.names("."); !slices.Equal(got, []string{"dst", "other", "src2", "src2/precious"}) {
			t.Errorf("left: %q", got)
		}
	})
}
