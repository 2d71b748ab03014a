package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// load finds out what is in the store: by the index, or after a crash by listing it. From then on there is
// no index until Close, so that one that is there is always true.
func (s *Store) load() error {
	s.loadStats()
	if err := s.emptyTrash(); err != nil {
		return err
	}
	name, old := filepath.Join(s.dir, indexName), filepath.Join(s.dir, oldName)
	x, err := readIndex(name)
	if err != nil {
		if x, err = readIndex(old); err != nil {
			x = newIndex(0)
		}
		if err := scan(s.dir, x); err != nil {
			return err
		}
	}
	s.index = x
	switch err := s.o.Disk.Rename(name, old); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return s.o.Disk.SyncDir(s.dir)
}

// saveIndex writes the index for the next time.
func (s *Store) saveIndex() error {
	s.mu.Lock()
	b := s.index.append(nil)
	s.mu.Unlock()
	return replace(s.o.Disk, filepath.Join(s.dir, indexName), b, true)
}

func readIndex(name string) (*index, error) {
	b, err := readFile(name, maxIndex)
	if err != nil {
		return nil, err
	}
	return parseIndex(b)
}

// emptyTrash removes what a run has left there.
func (s *Store) emptyTrash() error {
	dir := filepath.Join(s.dir, trashDir)
	names, err := os.ReadDir(dir)
	for _, n := range names {
		name := filepath.Join(dir, n.Name())
		if s.o.Disk.Remove(name) != nil {
			err = errors.Join(err, os.RemoveAll(name)) // it is none of ours
		}
	}
	return err
}

// found is an entry that a scan has met.
type found struct {
	id     uint64
	blocks uint32
}

// scan lists the entries in dir, and makes x, the index of an earlier time, that of what is there. What it did not have is newer
// than the rest.
func scan(dir string, x *index) error {
	all, err := list(dir, true)
	if err != nil {
		return err
	}
	there := make([]bool, len(x.records))
	for _, f := range all {
		if i, ok := x.at[f.id]; ok {
			there[i] = true
			x.resize(&x.records[i], f.blocks)
		}
	}
	for i := range there {
		if !there[i] {
			x.remove(x.records[i].id)
		}
	}
	for _, f := range all {
		if x.get(f.id) == nil {
			x.resize(x.use(f.id), f.blocks)
		}
	}
	return nil
}

// list returns the entries in dir, of all 256 directories. With tidy, whatever is no entry is removed.
func list(dir string, tidy bool) ([]found, error) {
	var mu sync.Mutex
	var all []found
	var failed error
	var work sync.WaitGroup
	next := make(chan int, 256)
	for i := range 256 {
		next <- i
	}
	close(next)
	for range scanners {
		work.Go(func() {
			for i := range next {
				some, err := listOne(filepath.Join(dir, dataDir, hex2(i)), uint64(i)<<56, tidy)
				mu.Lock()
				all = append(all, some...)
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	if len(all) > maxEntries {
		return nil, errors.New("cache: more entries than a cache may have; remove " + dir)
	}
	return all, failed
}

func hex2(i int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[i>>4], digits[i&15]})
}

// listBatch is how many names are read at once.
const listBatch = 1024

// listOne lists one directory of entries.
func listOne(dir string, high uint64, tidy bool) (some []found, err error) {
	d, err := os.Open(dir) //nolint:gosec // The directory is this user's alone.
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for {
		names, err := d.Readdirnames(listBatch)
		for _, name := range names {
			id, ok := parseID(name)
			regular, blocks, err := lookAt(d, name)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return nil, err
			case (!ok || !regular) && !tidy:
			case !ok || !regular:
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					return nil, err
				}
			default:
				some = append(some, found{high | id, blocks + 1})
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return some, nil
		case err != nil && !errors.Is(err, syscall.EINTR):
			return nil, err
		}
	}
}

// parseID reads the name of an entry's file.
func parseID(name string) (uint64, bool) {
	id, err := strconv.ParseUint(name, 16, 56)
	return id, err == nil && len(name) == 14 && name == hex14(id)
}

func hex14(id uint64) string {
	s := strconv.FormatUint(id|1<<56, 16)
	return s[1:]
}
