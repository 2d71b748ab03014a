package loopdisk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// Fill has workers write files to fs, which is over the disk, and cuts the power in the midst of it, when
// enough are safe by what fs says. It returns the names of these.
func (d *Disk) Fill(fs vfs.FS, workers, enough int) (safe []string) {
	d.t.Helper()
	root, _, err := fs.Root(d.t.Context())
	d.must(err)
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d", i, n)
				if Put(d.t.Context(), fs, root, name) != nil {
					return // the power is off
				}
				mu.Lock()
				if safe = append(safe, name); len(safe) == enough {
					d.PowerOff()
				}
				done := len(safe) >= enough
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	all.Wait()
	if len(safe) < enough {
		d.t.Fatalf("only %d files were written", len(safe))
	}
	return safe[:enough]
}

// Put is what a copy does: a temporary name, the bytes and a commit, the name and a sync of the directory.
func Put(ctx context.Context, fs vfs.FS, root vfs.Handle, name string) error {
	file, _, err := fs.Open(ctx, vfs.At{Dir: root, Name: name + ".tmp"},
		&vfs.OpenHow{Access: vfs.ShareWrite, Create: &vfs.CreateHow{Type: vfs.TypeReg}})
	if err != nil {
		return err
	}
	var w vfs.Written
	_, err = vfs.WriteFull(ctx, file, bytesOf(name), 0, vfs.Unstable, &w)
	if err == nil {
		err = file.Commit(ctx, 0, 0, &w)
	}
	if err = errors.Join(err, file.Close(ctx)); err != nil {
		return err
	}
	if _, _, err = fs.Rename(ctx, root, name+".tmp", root, name); err != nil {
		return err
	}
	s, ok := vfs.As[vfs.Syncer](fs)
	if !ok {
		return errors.New("loopdisk: this file system does not sync")
	}
	return s.Sync(ctx, root)
}

// bytesOf is what is in the file of that name.
func bytesOf(name string) []byte { return bytes.Repeat([]byte(name), 1000) }

// Lost says what is not as it should be, once the disk is mounted again: of the names that were safe,
// and of all others but temporaries.
func (d *Disk) Lost(safe []string) (lost error) {
	d.t.Helper()
	for _, name := range safe {
		if _, err := os.Lstat(filepath.Join(d.At, name)); err != nil {
			lost = errors.Join(lost, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(d.At, "*[0-9]"))
	d.must(err)
	for _, path := range found {
		got, err := os.ReadFile(path)
		d.must(err)
		if name := filepath.Base(path); !bytes.Equal(got, bytesOf(name)) {
			lost = errors.Join(lost, fmt.Errorf("%s has %d bytes", name, len(got)))
		}
	}
	return lost
}
