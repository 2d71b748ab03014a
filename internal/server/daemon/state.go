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
	"strconv"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/way"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/ops"
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
		return "", key, fmt.Errorf("state directory: %w", err)
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

// lockName is the file whose lock says that a server runs with the folder. It holds the
// server's process number, for the message of another one that finds it locked.
const lockName = "lock"

// holdState locks the server's folder for as long as it runs. If another server has it,
// holdState says so and waits for its end, for DrainTimeout and handoverTime: it may have
// yet to leave its replies.
func (d *daemon) holdState(ctx context.Context) (err error) {
	if d.held, err = os.OpenFile(filepath.Join(d.own, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	most := time.Duration(d.c.DrainTimeout) + handoverTime
	limit, stop := context.WithTimeout(ctx, most)
	defer stop()
	tick := time.NewTicker(handoverTick)
	defer tick.Stop()
	begun := d.w.Now()
	for told := false; ; told = true {
		free, err := paths.Hold(d.held)
		if err != nil {
			return fmt.Errorf("state directory: lock %s: %w", d.own, err)
		}
		if free {
			// On a full disk the number is missing, and the server runs all the same.
			if d.held.Truncate(0) == nil {
				_, _ = d.held.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
			}
			if told {
				d.log.Info("the other server has ended: its state is taken over", slog.Duration("waited", d.w.Now().Sub(begun)))
			}
			return nil
		}
		if !told {
			d.tellHeld(most)
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			err := fmt.Errorf("state directory: another server runs with %s%s: end it, or give this one a --state-dir and ports of its own", d.own, d.holder())
			if ctx.Err() == nil {
				err = fmt.Errorf("%w; it was waited for, for %v", err, most)
			}
			return err
		}
	}
}

// tellHeld says that another server has the state, where the user who starts this one
// looks: on stderr, and in the file of the log if there is one.
func (d *daemon) tellHeld(most time.Duration) {
	logs := []*slog.Logger{d.log}
	if d.c.Log.File != "" {
		logs = append(logs, ops.NewLogs(&d.c.Log, d.w.Log, d.w.Now).Logger())
	}
	for _, log := range logs {
		log.Warn("another server"+d.holder()+" has this state; waiting for its end", slog.String("state", d.own), slog.Duration("most", most))
	}
}

// holder is the process that has locked the folder, as far as it has said so.
func (d *daemon) holder() string {
	var b [20]byte
	n, _ := d.held.ReadAt(b[:], 0) // fewer bytes than those are an error, too
	if pid, err := strconv.ParseUint(string(b[:n]), 10, 32); err == nil {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
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
