package nsm

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	stateFile  = "nsm-state"
	hostPrefix = "nsm-host-"
	newSuffix  = ".new" // of a file that is being written
	fileMode   = 0o600
)

// store is the state directory. The zero store, of a server that keeps nothing,
// forgets everything.
type store struct{ dir string }

// state reads the state number; ok is false if there is none yet.
func (s store) state() (n uint32, ok bool, err error) {
	b, err := s.read(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err == nil {
		n, err = decodeState(b)
	}
	return n, err == nil, err
}

func (s store) setState(n uint32) error { return s.write(stateFile, encodeState(n)) }

// hosts reads the files of all hosts, maxHosts at most. It calls bad for a file that cannot
// be read, and removes those that are damaged or were never finished.
func (s store) hosts(bad func(name string, err error)) ([]Host, error) {
	if s.dir == "" {
		return nil, nil
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return nil, err
	}
	var all []Host
	for {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), hostPrefix) || !e.Type().IsRegular() || len(all) >= maxHosts {
				continue
			}
			h, err := s.host(e.Name())
			if errors.Is(err, ErrVersion) {
				return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Join(s.dir, e.Name()), err), d.Close())
			}
			if err != nil {
				bad(filepath.Join(s.dir, e.Name()), err)
				continue
			}
			all = append(all, h)
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, errors.Join(err, d.Close())
		}
	}
}

// host reads a host's file. The file must have the name that its host gets: so no two
// files are about the same host, and a half-written one does not count.
func (s store) host(name string) (Host, error) {
	b, err := s.read(name)
	if err != nil {
		return Host{}, err
	}
	h, err := decodeHost(b)
	if err == nil && hostFile(h.key()) != name {
		err = errDamaged
	}
	if errors.Is(err, errDamaged) {
		err = errors.Join(err, os.Remove(filepath.Join(s.dir, name)))
	}
	return h, err
}

func (s store) put(h *Host) error { return s.write(hostFile(h.key()), encodeHost(h)) }

// drop removes a host's file. That need not be durable: a host that is told of a restart
// without need has no locks to reclaim.
func (s store) drop(k key) error {
	if s.dir == "" {
		return nil
	}
	err := os.Remove(filepath.Join(s.dir, hostFile(k)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// hostFile is the name of a host's file. Names of hosts come from the wire, and cannot be
// used as file names.
func hostFile(k key) string {
	sum := sha256.Sum256([]byte(text(k.addr) + " " + k.name))
	return hostPrefix + hex.EncodeToString(sum[:16])
}

func (s store) read(name string) ([]byte, error) {
	if s.dir == "" {
		return nil, fs.ErrNotExist
	}
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = errDamaged
	}
	return b, errors.Join(err, f.Close())
}

// write replaces a file: after a crash it is the old one or the new one.
func (s store) write(name string, b []byte) error {
	if s.dir == "" {
		return nil
	}
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path+newSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+newSuffix, path); err != nil {
		return err
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
