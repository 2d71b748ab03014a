package fileapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// ledgerMagic is the first line of a ledger.
	ledgerMagic = "nfsbox uploads 1"
	// maxLedger bounds the directories in a ledger. At the bound it is written anew
	// without those in which no upload is under way; the others are at most
	// Limits.Calls. If there is still no room, because directories cannot be synced,
	// uploads to further ones fail.
	maxLedger = 16384
	// maxRuns bounds the runs in a ledger, which grow with each start that could not
	// sweep all. At the bound the oldest is forgotten, and its temporaries stay.
	maxRuns = 256
	// maxLedgerBytes bounds the bytes of a ledger. With a longer file the server does
	// not start.
	maxLedgerBytes = 64 << 20
)

// ledger is a file with the directories in which uploads have been under way. A directory
// is recorded, and the file synced, before the first temporary is made in it. Further
// uploads to the directory cost a look-up in a map.
//
//	nfsbox uploads 1
//	run 6f1c0d2b9a8e7f35
//	dir 01000000...        a sealed handle, which survives restarts and renames
//
// Temporaries have the number of their run in their names, so a server does not sweep
// those of another server that exports the same directory.
//
// A directory is removed from the ledger only when its names are stable: a crash could
// undo the rename of an upload without sync, and bring its temporary back.
type ledger struct {
	name string
	own  vfs.FS
	mu   sync.Mutex
	file *os.File           // guarded by mu; nil: closed
	runs []string           // of temporaries that may exist, this run's last
	dirs map[vfs.Handle]int // guarded by mu; uploads under way in each
	bad  error              // guarded by mu; the file cannot be written to any more
}

// openLedger sweeps the directories in the ledger, and begins a new one, which keeps those
// that could not be swept.
func openLedger(ctx context.Context, name string, t *temporaries) (*ledger, error) {
	l := &ledger{name: name, own: t.own, dirs: make(map[vfs.Handle]int)}
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("ledger of uploads: %w", err)
	}
	if err := l.read(old); err != nil {
		return nil, fmt.Errorf("ledger of uploads: %s: %w", name, err)
	}
	clean := true
	for dir := range l.dirs {
		if err := sweep(ctx, t.own, dir, l.runs); err != nil {
			t.report(fmt.Errorf("file API: uploads that have ended in a crash: %w", err))
			clean = false
			l.dirs[dir] = 1 // for as long as this run
		} else {
			delete(l.dirs, dir)
		}
	}
	if clean {
		l.runs = nil
	}
	l.runs = append(l.runs[max(0, len(l.runs)-maxRuns+1):], t.run)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l, l.rewrite()
}

// read parses what a former run has written. The last line may be cut short: its
// directory was not yet used.
func (l *ledger) read(old []byte) error {
	if len(old) == 0 {
		return nil
	}
	if len(old) > maxLedgerBytes {
		return fmt.Errorf("more than %d bytes", maxLedgerBytes)
	}
	old = old[:bytes.LastIndexByte(old, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(old))
	if !lines.Scan() || lines.Text() != ledgerMagic {
		return fmt.Errorf("its first line is not %q", ledgerMagic)
	}
	for lines.Scan() {
		kind, value, _ := strings.Cut(lines.Text(), " ")
		raw, err := hex.DecodeString(value)
		if err != nil {
			return fmt.Errorf("%.40q is no line of it", lines.Text())
		}
		switch kind {
		case "run":
			l.runs = append(l.runs, value)
		case "dir":
			h, err := vfs.MakeHandle(raw)
			if err != nil {
				return err
			}
			l.dirs[h] = 0
		default:
			return fmt.Errorf("%.40q is no line of it", lines.Text())
		}
	}
	return lines.Err()
}

func sweep(ctx context.Context, own vfs.FS, dir vfs.Handle, runs []string) error {
	var found []string
	for entry, err := range own.ReadDir(ctx, dir, vfs.Pos{}, 0, pageBytes) {
		if err != nil {
			return unlessGone(err)
		}
		rest, ok := strings.CutPrefix(string(entry.Name), tempPrefix)
		run, _, _ := strings.Cut(rest, "-")
		for i := range runs {
			if ok && runs[i] == run {
				found = append(found, string(entry.Name))
			}
		}
	}
	for _, name := range found {
		if _, err := own.Remove(ctx, dir, name, false); unlessGone(err) != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return settle(ctx, own, dir)
}

// settle makes the names in dir stable, by a change that changes nothing: the view syncs
// the directory after it, as after any change.
func settle(ctx context.Context, own vfs.FS, dir vfs.Handle) error {
	_, err := own.SetAttr(ctx, dir, &vfs.SetAttr{}, nil)
	return unlessGone(err)
}

// enter says that an upload begins in dir. The upload calls leave, unless it has left its
// temporary behind.
func (l *ledger) enter(dir vfs.Handle) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return errClosed
	}
	if l.bad != nil {
		return l.bad
	}
	if n, ok := l.dirs[dir]; ok {
		l.dirs[dir] = n + 1
		return nil
	}
	if len(l.dirs) >= maxLedger {
		if l.bad = l.rewrite(); l.bad == nil && len(l.dirs) >= maxLedger {
			return errUnsettled
		}
	}
	if l.bad == nil {
		_, l.bad = fmt.Fprintf(l.file, "dir %x\n", dir.Bytes())
	}
	if l.bad == nil {
		l.bad = l.file.Sync()
	}
	if l.bad != nil {
		l.bad = fmt.Errorf("ledger of uploads: %w", l.bad)
		return l.bad
	}
	l.dirs[dir] = 1
	return nil
}

// leave says that an upload in dir has ended and left nothing.
func (l *ledger) leave(dir vfs.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs[dir]--
}

// rewrite replaces the file atomically, without the directories in which no upload is
// under way, as far as there is time to sync them.
func (l *ledger) rewrite() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	maps.DeleteFunc(l.dirs, func(dir vfs.Handle, n int) bool {
		return n == 0 && settle(ctx, l.own, dir) == nil // or else the next start tries again
	})
	var b bytes.Buffer
	b.WriteString(ledgerMagic + "\n")
	for _, run := range l.runs {
		b.WriteString("run " + run + "\n")
	}
	for dir := range l.dirs {
		fmt.Fprintf(&b, "dir %x\n", dir.Bytes())
	}
	f, err := os.OpenFile(l.name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b.Bytes()); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(l.name+".new", l.name)
	}
	if err == nil {
		err = syncDir(filepath.Dir(l.name))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := l.file
	l.file = f
	if old != nil {
		return old.Close()
	}
	return nil
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// errUnsettled is the error of uploads to a directory for which the ledger has no room.
const errUnsettled = plainError("ledger of uploads: it is full of directories that cannot be synced")

// close keeps in the file only the directories in which uploads are still under way, or
// have left temporaries.
func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.rewrite()
	err = errors.Join(err, l.file.Close())
	l.file = nil
	return err
}
