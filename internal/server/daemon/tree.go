package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/server/localfs"
)

// errMoved says that a directory was replaced just when it was opened.
var errMoved = errors.New("it has become another directory meanwhile")

// tree tells the directory from others that were, or will be, at the same path, for
// export.Export: by the handle of its root, which survives restarts as all handles do,
// and by its volume.
func (s *site) tree(fs *localfs.FS) ([]byte, error) {
	root, _, err := fs.Root(context.Background())
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", s.dir, err)
	}
	volume, err := volumeOf(s.dir)
	if err != nil {
		return nil, err
	}
	if now, _, err := placeOf(s.dir); err != nil || now != s.at {
		return nil, errors.Join(fmt.Errorf("serve %s: %w", s.dir, errMoved), err)
	}
	return append(root.Bytes(), volume...), nil
}

// unmounted reports, and says in the log, that an export is to be left out since
// nothing is mounted where something must be.
func (d *daemon) unmounted(e *Export) (bool, error) {
	if !e.MountPoint {
		return false, nil
	}
	_, isMount, err := placeOf(e.Dir)
	if err != nil || isMount {
		return false, err
	}
	d.log.Error("the export is left out, since nothing is mounted there (mountpoint); a reload looks again",
		slog.String("export", e.Path), slog.String("dir", e.Dir))
	return true, nil
}

// siteFolder is the folder for the map of handles of one directory. It is
// the server's own if that is named by the directory, too. A directory that has taken
// the place of another, of which the folder still is, has one that is named by
// itself as well.
func (d *daemon) siteFolder(s *site) (string, error) {
	own := filepath.Join(d.own, folder(s.dir))
	if filepath.Base(d.own) == folder(s.dir) {
		own = d.own
	}
	itself := filepath.Join(d.own, folder(fmt.Sprintf("%s\x00%d %d", s.dir, s.at.ino, s.at.born)))
	switch _, err := os.Stat(itself); {
	case err == nil:
		own = itself
	case !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("state directory: %w", err)
	case d.sites.taken(own, s.at):
		own = itself
	}
	return own, nil
}

// siteState makes sure of the folder.
func (d *daemon) siteState(s *site) (string, error) {
	own, err := d.siteFolder(s)
	if err != nil || own == d.own {
		return own, err
	}
	if err := makePrivate(own); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return own, nil
}
