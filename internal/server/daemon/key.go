package daemon

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
)

// The key's file:
//
//	bytes  0-7   magic, of which the last byte is the version
//	bytes  8-23  the key
//	bytes 24-31  the first bytes of the SHA-256 of all before
//
// A damaged file is an error, and never replaced: a new key would make every
// handle that clients hold stale.
const (
	keyName  = "handles.key"
	keyMagic = "nfsboxK\x01"
	keyCheck = 8
	keySize  = len(keyMagic) + len(export.Key{}) + keyCheck
)

// loadKey reads the key in the file at path, or makes one.
func loadKey(path string, random func([]byte)) (export.Key, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path, random); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return export.Key{}, fmt.Errorf("key of the handles: %w", err)
	}
	return key, nil
}

func readKey(path string) (key export.Key, err error) {
	// What is no regular file is not opened: a pipe would never answer.
	info, err := os.Lstat(path)
	if err != nil {
		return key, err
	}
	switch {
	case !info.Mode().IsRegular():
		return key, fmt.Errorf("%s is no regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return key, fmt.Errorf("%s is open to others (mode %04o), who may have read it; make it 0600 or remove it, which makes all handles stale", path, info.Mode().Perm())
	case !paths.Owned(info):
		return key, fmt.Errorf("%s belongs to another user", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return key, err
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(keySize)+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return key, err
	}
	return parseKey(path, b)
}

func parseKey(path string, b []byte) (key export.Key, err error) {
	magic := len(keyMagic)
	switch {
	case len(b) >= magic && string(b[:magic-1]) == keyMagic[:magic-1] && b[magic-1] != keyMagic[magic-1]:
		return key, fmt.Errorf("%s has version %d, this program knows %d", path, b[magic-1], keyMagic[magic-1])
	case len(b) != keySize || string(b[:magic]) != keyMagic || !bytes.Equal(b[keySize-keyCheck:], check(b[:keySize-keyCheck])):
		return key, fmt.Errorf("%s is damaged; remove it to begin anew, which makes all handles stale", path)
	}
	copy(key[:], b[magic:])
	return key, nil
}

func check(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:keyCheck]
}

// makeKey puts a new key in place, whole and on the disk, or none at all. It
// links the file to its name instead of renaming it, so that of two that do this
// at once one wins and the other finds the winner's.
func makeKey(path string, random func([]byte)) (err error) {
	b := append([]byte(keyMagic), make([]byte, len(export.Key{}))...)
	random(b[len(keyMagic):])
	b = append(b, check(b)...)
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, keyName+".tmp*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return paths.SyncDir(dir)
}
