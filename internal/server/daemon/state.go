package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/way"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
)

// locksName is the folder, in the server's own, with the clients that hold locks.
const locksName = "locks"

// state makes the server's own folder in the state directory, and the key in it, unless
// they are there.
func (d *daemon) state() (own string, key export.Key, err error) {
	base, own, err := d.folders()
	if err != nil {
		return "", key, err
	}
	if err := d.unshared(base); err != nil {
		return "", key, err
	}
	if err := paths.MakePrivate(own); err != nil {
		return "", key, d.notMade(err)
	}
	// Another user may have made it meanwhile.
	if err := d.unshared(base); err != nil {
		return "", key, err
	}
	d.own = own
	if err := d.regularState(); err != nil {
		return "", key, err
	}
	key, err = loadKey(filepath.Join(own, keyName), d.w.Rand)
	return own, key, err
}

// notMade says that the state directory cannot be made or written, and where another one is named.
func (d *daemon) notMade(err error) error {
	hint := "name another one with --state-dir"
	if d.c.StateDir == "" && os.Geteuid() != 0 {
		hint += ", or set XDG_STATE_HOME to a directory that can be written"
	}
	return fmt.Errorf("state directory: %w: %s", err, hint)
}

// regularState refuses other things where files of the state are to be: a pipe would be
// waited for without end.
func (d *daemon) regularState() error {
	for _, name := range []string{lockName, filepath.Join(locksName, "nsm-state")} {
		switch info, err := os.Lstat(filepath.Join(d.own, name)); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("state directory: %w", err)
		case !info.Mode().IsRegular():
			return fmt.Errorf("state directory: %s is no regular file: move it away", filepath.Join(d.own, name))
		}
	}
	return nil
}

// folders are the state directory, and the server's own in it.
func (d *daemon) folders() (base, own string, err error) {
	name, err := d.identity()
	if err != nil {
		return "", "", err
	}
	base, err = d.stateBase()
	return base, filepath.Join(base, folder(name)), err
}

// stateBase is the state directory, which several servers may share.
func (d *daemon) stateBase() (base string, err error) {
	base = d.c.StateDir
	if base == "" {
		if base, err = config.DefaultStateDir(); err != nil {
			return "", err
		}
	}
	if base, err = filepath.Abs(base); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return base, nil
}

// unshared refuses a state directory in which other users could replace the server's
// folder: by one with a key that they know, and links to follow. It also refuses one that
// they could move away, by a directory or link on the way to it, unless the configuration
// trusts them. A directory that is not there will be made for the server alone.
func (d *daemon) unshared(base string) error {
	steps, err := way.Of(base)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	there, err := os.Stat(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, at := range steps {
		if os.SameFile(at.Info, there) || d.c.TrustStatePath {
			continue
		}
		if who, mend := way.ReplacedBy(at, steps[0].Info); who != "" {
			return fmt.Errorf("state directory: %s, on the way to %s, %s, who could put another one in its place: "+
				"name another one with --state-dir, %s, or trust them with --trust-state-path", at.Path, base, who, mend)
		}
	}
	if there == nil {
		return nil
	}
	if !there.IsDir() {
		return fmt.Errorf("state directory: %s is no directory", base)
	}
	if who := way.SharedWith(base, there); who != "" {
		return fmt.Errorf("state directory: %s %s, or name another one with --state-dir", base, who)
	}
	return nil
}

// folder is the name of the folder for what has that path.
func folder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// identity is the path by which the server's own folder is named.
func (d *daemon) identity() (string, error) {
	if d.w.File != "" {
		return filepath.Abs(d.w.File)
	}
	if from := d.c.Exports[0].From; from != "" {
		return from, nil
	}
	return realDir(d.c.Exports[0].Dir)
}
