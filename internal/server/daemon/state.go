package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nfsbox/nfsbox/export"
)

// DefaultStateDir is where state lives if nobody says otherwise:
// /var/lib/nfsbox for root, else nfsbox in $XDG_STATE_HOME or in ~/.local/state
// (the XDG base directory specification).
func DefaultStateDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/nfsbox", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nfsbox"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the state: name a state directory: %w", err)
	}
	return filepath.Join(home, ".local", "state", "nfsbox"), nil
}

// state makes sure of the server's own folder in the state directory, and of the
// key in it.
func (d *daemon) state() (own string, key export.Key, err error) {
	base, own, err := d.folders()
	if err != nil {
		return "", key, err
	}
	if err := d.unshared(base); err != nil {
		return "", key, err
	}
	if err := makePrivate(own); err != nil {
		return "", key, fmt.Errorf("state directory: %w", err)
	}
	// It may have been made by somebody else meanwhile.
	if err := d.unshared(base); err != nil {
		return "", key, err
	}
	key, err = loadKey(filepath.Join(own, keyName), d.w.Rand)
	return own, key, err
}

// checkState finds what a start would find wrong with what lies in the state directory,
// and makes nothing there.
func (d *daemon) checkState() error {
	base, own, err := d.folders()
	if err != nil {
		return err
	}
	if err := d.unshared(base); err != nil {
		return err
	}
	d.own = own
	folders := []string{own, filepath.Join(own, locksName)}
	for i := range d.c.Exports {
		s, err := siteOf(&d.c.Exports[i])
		if err != nil {
			return err
		}
		of, err := d.siteFolder(&s)
		if err != nil {
			return err
		}
		folders = append(folders, of)
	}
	for _, dir := range folders {
		if err := private(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("state directory: %w", err)
		}
	}
	if _, err := readKey(filepath.Join(own, keyName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("key of the handles: %w", err)
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

// lockName is the file whose lock says that a server runs with the folder.
const lockName = "lock"

// holdState makes the server's folder its own for as long as it runs. One that is
// at its end already is waited for: it has yet to leave what it remembers.
func (d *daemon) holdState(ctx context.Context) (err error) {
	if d.held, err = os.OpenFile(filepath.Join(d.own, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	limit, stop := context.WithTimeout(ctx, time.Duration(d.c.DrainTimeout)+handoverTime)
	defer stop()
	tick := time.NewTicker(handoverTick)
	defer tick.Stop()
	for told := false; ; told = true {
		free, err := hold(d.held)
		if err != nil {
			return fmt.Errorf("state directory: lock %s: %w", d.own, err)
		}
		if free {
			return nil
		}
		if !told {
			d.log.Warn("another server has this state; waiting for its end", slog.String("state", d.own))
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			return fmt.Errorf("state directory: another server runs with %s: end it, or name another one with --state-dir", d.own)
		}
	}
}

// stateBase is the state directory, which several servers may share.
func (d *daemon) stateBase() (base string, err error) {
	base = d.c.StateDir
	if base == "" {
		if base, err = DefaultStateDir(); err != nil {
			return "", err
		}
	}
	if base, err = filepath.Abs(base); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return base, nil
}

// unshared refuses a state directory in which others could put a folder of theirs in
// the place of the server's: with a key that they know, and links to follow. It refuses one
// that others could move away, too, by what lies on the way to it, unless the configuration
// trusts them. One that is not there is made for the server alone.
func (d *daemon) unshared(base string) error {
	way, err := wayTo(base)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	there, err := os.Stat(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, at := range way {
		if os.SameFile(at.info, there) || d.c.TrustStatePath {
			continue
		}
		if who, mend := replacedBy(at, way[0].info); who != "" {
			return fmt.Errorf("state directory: %s, on the way to %s, %s, who could put another one in its place: "+
				"name another one with --state-dir, %s, or trust them with --trust-state-path", at.path, base, who, mend)
		}
	}
	if there == nil {
		return nil
	}
	if !there.IsDir() {
		return fmt.Errorf("state directory: %s is no directory", base)
	}
	if who := sharedWith(base, there); who != "" {
		return fmt.Errorf("state directory: %s %s, or name another one with --state-dir", base, who)
	}
	return nil
}

// folder is the name of the folder of what has that path.
func folder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// existing is the part of path that is there, without symbolic links.
func existing(path string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
			return real, err
		}
		path = filepath.Dir(path)
	}
}

// makePrivate makes dir, stably, or makes sure that it is nobody else's.
func makePrivate(dir string) error {
	there, err := existing(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := private(dir); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	// A folder that a crash takes away takes the key along.
	for real != there && filepath.Dir(real) != real {
		real = filepath.Dir(real)
		if err := syncDir(real); err != nil {
			return err
		}
	}
	return nil
}

// private refuses a folder that is not ours alone.
func private(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %04o); make it 0700", dir, info.Mode().Perm())
	case !owned(info):
		return fmt.Errorf("%s belongs to another user: chown it, or name another state directory with --state-dir", dir)
	}
	return nil
}
