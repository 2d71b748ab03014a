package daemon

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
)

// The file in which a server leaves its remembered replies to the next one:
//
//	bytes  0-7   magic, of which the last byte is the version
//	bytes  8-39  HMAC-SHA-256 over all that follows, under the key of the handles
//	bytes 40-    what replycache's Cache.Save has written
//
// The key ties the file to its state directory: replies of another server would
// answer calls that were never made. It is written at a clean end
// alone, and removed when all is ready for the first call of the next server:
// one that fails to begin leaves it alone, and no server ever finds what is older
// than the end of the one before it. The server's folder is held meanwhile (see
// hold), so that no server reads what another has yet to write.
const (
	repliesName  = "replies"
	repliesMagic = "nfsboxR\x01"
	repliesHead  = len(repliesMagic) + sha256.Size
)

func (d *daemon) repliesPath() string { return filepath.Join(d.own, repliesName) }

// loadReplies takes over what the last server has left. If that is damaged the log says
// so, and the server begins: replies are lost then, and no data.
func (d *daemon) loadReplies() {
	err := d.readReplies(d.repliesPath())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		d.log.Info("replies of before the restart are remembered", slog.Int("replies", d.replies.Stats().Replies))
	} else {
		d.log.Warn("replies of before the restart are lost: a change whose reply was lost may be made twice, if its client asks again", slog.Any("error", err))
	}
}

// dropReplies removes what loadReplies has read. If that fails the server must not serve:
// after a crash the next one would take these replies for answers to other calls.
func (d *daemon) dropReplies() error {
	err := os.Remove(d.repliesPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err = errors.Join(err, paths.SyncDir(d.own)); err != nil {
		return fmt.Errorf("replies of before the restart stay on the disk: %w", err)
	}
	return nil
}

func (d *daemon) readReplies(path string) (err error) {
	if info, err := os.Lstat(path); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, repliesHead)
	if _, err := io.ReadFull(f, head); err != nil {
		return fmt.Errorf("%s is cut short: %w", path, err)
	}
	if string(head[:len(repliesMagic)]) != repliesMagic {
		return fmt.Errorf("%s is of another version, or no such file", path)
	}
	mac := d.mac()
	if _, err := io.Copy(mac, f); err != nil {
		return err
	}
	if !hmac.Equal(mac.Sum(nil), head[len(repliesMagic):]) {
		return fmt.Errorf("%s is damaged, or of another server", path)
	}
	if _, err := f.Seek(int64(repliesHead), io.SeekStart); err != nil {
		return err
	}
	return d.replies.Load(bufio.NewReader(f))
}

func (d *daemon) mac() hash.Hash { return hmac.New(sha256.New, d.key[:]) }

// saveReplies leaves the replies to the next server, all of them or none.
func (d *daemon) saveReplies() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("remembered replies are not kept: %w", err)
		}
	}()
	// A crash may have left one.
	fresh := d.repliesPath() + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(d.writeReplies(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.repliesPath())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err = paths.SyncDir(d.own); err == nil {
		d.log.Info("remembered replies are left to the next server", slog.Int("replies", d.replies.Stats().Replies))
	}
	return err
}

func (d *daemon) writeReplies(f *os.File) error {
	if _, err := f.Write(append([]byte(repliesMagic), make([]byte, sha256.Size)...)); err != nil {
		return err
	}
	mac, out := d.mac(), bufio.NewWriter(f)
	if err := d.replies.Save(io.MultiWriter(out, mac)); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if _, err := f.WriteAt(mac.Sum(nil), int64(len(repliesMagic))); err != nil {
		return err
	}
	return f.Sync()
}
