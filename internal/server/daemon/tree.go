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

// unmounted reports, and says in the log, that an export is to be left out since
// nothing is mounted where something must be.
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

// siteFolder is the folder for the map of handles of one directory. It is
// the server's own if that is named by the directory, too. A directory that has taken
// the place of another, of which the folder still is, has one that is named by
// itself as well.
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

// siteState makes sure of the folder.
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
