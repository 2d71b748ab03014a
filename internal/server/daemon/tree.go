package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
)

// errNoneMounted says that every export is left out.
var errNoneMounted = errors.New("nothing can be exported: no directory that must be a mount point (mountpoint) is one")

// unmounted reports whether an export is to be left out, since nothing is mounted where a
// mount point is required. The log says so.
func (d *daemon) unmounted(e *config.Export) (bool, error) {
	if !e.MountPoint {
		return false, nil
	}
	_, isMount, err := paths.PlaceOf(e.Dir)
	if err != nil || isMount {
		return false, err
	}
	d.log.Error("the export is left out, since nothing is mounted there (mountpoint); a reload looks again",
		slog.String("export", e.Path), slog.String("dir", e.Dir))
	return true, nil
}

// siteFolder is the folder for the map of handles of one directory: the server's own if
// that is named by the directory, else one in it. While another directory that was at the
// same path still has that folder, the name also has the directory's inode.
func (d *daemon) siteFolder(s *site) (string, error) {
	own := filepath.Join(d.own, folder(s.dir))
	if filepath.Base(d.own) == folder(s.dir) {
		own = d.own
	}
	itself := filepath.Join(d.own, folder(s.dir+"\x00"+s.at.Inode()))
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

// siteState makes that folder, unless it is there.
func (d *daemon) siteState(s *site) (string, error) {
	own, err := d.siteFolder(s)
	if err != nil || own == d.own {
		return own, err
	}
	if err := paths.MakePrivate(own); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return own, nil
}
