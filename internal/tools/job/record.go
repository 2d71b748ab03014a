package job

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/tools/job/index"
)

// The record is one file: a header, then entries of equal size. All numbers are
// big endian.
//
//	header: magic (8), version (4), zero (4), SHA-256 of the job's ID (32), CRC (4)
//	entry:  key (16), source's size (8), mtime (12), ctime (12), file id (8),
//	        copy's mtime (12), copy's file id (8), CRC (4)
//
// A record of version 1 lacks the copy's file id. In one of version 1 or 2 the files of a
// directory have keys that are nothing alike (record.fileKey). Both keep their version. The first
// programs made other keys (firstKey) and set the key's lowest bit otherwise.
//
// A CRC is CRC-32C over the bytes before it. Times are seconds (8) and nanoseconds (4). The
// key is the path's. Its lowest bit is zero, or one where an earlier program had read the
// copy back. The highest bits of the nanoseconds of the copy's mtime are flags (listBit,
// xattrBit).
//
// Entries are found by an index in files beside the record, which is made from it (package
// index). Large files that are not complete are in another one (PartsFile).
const (
	// RecordFile is the name of the record in its directory.
	RecordFile = "copied"

	recordName    = RecordFile
	recordMagic   = "NFSBOXCP"
	recordVersion = 3
	headerSize    = 52
	entrySize     = 80
	entrySizeOf1  = 72 // of version 1

	// lazyBlock is how many bytes of entries a lazy record collects before it writes them.
	lazyBlock = 4096

	// loadBlock is how many entries are read at a time.
	loadBlock = 1024

	// maxBad is how many entries in a row may be bad. Behind so many the record ends:
	// somebody has damaged it, or made it a sparse file of any size. What would have
	// followed is copied again.
	maxBad = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Flags in the copy's nanoseconds, whose two highest bits no time uses. A program that does
// not know them sees another time, and copies the file again.
const (
	listBit  = 1 << 31 // the source has an access control list that matters
	xattrBit = 1 << 30 // the source has extended attributes
)

// record is a job's record, open and locked. A nil record records nothing.
type record struct {
	identity [sha256.Size]byte
	resumed  bool // the record was there before this run
	version  uint32
	index    *index.Index // of the entries that earlier runs wrote

	lazy bool // entries are written a block at a time: a kill loses the last ones

	mu      sync.Mutex
	file    *os.File
	lent    bool   // the file is the caller's, who closes it
	err     error  // of the first failed write; the tail may be torn
	pending []byte // entries that are not written yet
}

// LockRecord opens the record in dir, or makes an empty one, and locks it until it is closed. A
// run that does so before it writes anything in dir has the directory for itself. It waits up to
// two seconds for another process. The error then Is ErrRecord, and names the process if it can.
func LockRecord(ctx context.Context, dir *os.Root) (*os.File, error) {
	f, err := openRegular(dir, recordName, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if err := Lock(ctx, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// RecordHeld is Held of the record in dir. Where there is none, no run has it.
func RecordHeld(dir *os.Root) (by string, held bool, err error) {
	f, err := openRegular(dir, recordName, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return Held(f)
}

// openRecord opens or creates the record in dir, and locks it. If locked is not nil, it is that
// file, which the caller has locked, and closes.
func openRecord(ctx context.Context, dir *os.Root, locked *os.File, id string) (*record, error) {
	r := &record{identity: sha256.Sum256([]byte(id)), version: recordVersion, file: locked, lent: locked != nil}
	if locked == nil {
		var err error
		if r.file, err = LockRecord(ctx, dir); err != nil {
			return nil, err
		}
	}
	if err := r.load(ctx, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrRecord, err), r.index.Close(), r.shut())
	}
	return r, nil
}

// TempTag is what the temporaries of a job with a record are marked with (transfer.IsTemp). id is its ID.
func TempTag(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4]) + "-"
}

// shut closes the file, unless it is the caller's.
func (r *record) shut() error {
	if r.lent {
		return nil
	}
	return r.file.Close()
}

// openRegular opens a file of dir, and refuses what is not a regular file: to open a pipe
// would wait for its other end.
func openRegular(dir *os.Root, name string, flags int) (*os.File, error) {
	f, err := dir.OpenFile(name, flags|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// maxSmall bounds a small file beside the record, in bytes. What follows is not read.
const maxSmall = 64 << 10

// ReadSmall reads a small file beside the record, unless may, which gets what was opened, returns an error.
// What is not a regular file is an error.
func ReadSmall(dir *os.Root, name string, may func(fs.FileInfo) error) ([]byte, error) {
	f, err := openRegular(dir, name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = may(info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSmall))
	return b, errors.Join(err, f.Close())
}

// OfAnother reports whether dir has the record of a job with another ID. It says false of a
// file that is no record or cannot be read: Copy refuses that.
func OfAnother(dir *os.Root, id string) bool {
	f, err := openRegular(dir, recordName, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // nothing was written
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(f, head); err != nil || string(head[:len(recordMagic)]) != recordMagic {
		return false
	}
	sum := sha256.Sum256([]byte(id))
	return !bytes.Equal(head[len(recordMagic)+8:headerSize-4], sum[:])
}

// Entries is how many files dir's record has, by its length. One that was copied again counts again.
func Entries(dir *os.Root) uint64 {
	info, err := dir.Lstat(RecordFile)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return uint64(max(info.Size()-headerSize, 0)) / entrySize
}

// Recorded reports whether dir has a record with entries.
func Recorded(dir *os.Root) bool {
	info, err := dir.Lstat(RecordFile)
	return err == nil && info.Size() > headerSize
}

// entry is the size of an entry.
func (r *record) entry() int {
	if r.version == 1 {
		return entrySizeOf1
	}
	return entrySize
}

// header is what the record begins with.
func (r *record) header() []byte {
	b := append(make([]byte, 0, headerSize), recordMagic...)
	b = binary.BigEndian.AppendUint32(b, r.version)
	b = append(b, 0, 0, 0, 0)
	b = append(b, r.identity[:]...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// load opens the record and its index. It truncates the record behind the last good entry: a kill
// may have torn the next one.
func (r *record) load(ctx context.Context, dir *os.Root) error {
	if err := r.loadHeader(); err != nil {
		return err
	}
	var err error
	if r.index, err = index.Open(ctx, dir, r.identity, &entries{r, ctx}); err != nil {
		return err
	}
	return r.file.Truncate(r.offset(r.index.Entries()))
}

// loadHeader checks the header, or writes it to a new record.
func (r *record) loadHeader() error {
	head := make([]byte, headerSize)
	n, err := r.file.ReadAt(head, 0)
	switch {
	case n < headerSize && errors.Is(err, io.EOF):
		// New, or killed before the header was complete.
		if !bytes.HasPrefix(r.header(), head[:n]) {
			return errNoRecord
		}
		if err := r.file.Truncate(0); err != nil {
			return err
		}
		_, err := r.file.Write(r.header())
		return err
	case err != nil:
		return err
	case string(head[:len(recordMagic)]) != recordMagic:
		return errNoRecord
	}
	r.version = binary.BigEndian.Uint32(head[len(recordMagic):])
	switch {
	case r.version == 0 || r.version > recordVersion:
		return unknownVersion(r.version)
	case !bytes.Equal(head, r.header()):
		return errors.New("it is of a job with another source, destination or options")
	}
	r.resumed = true
	return nil
}

// offset is where the n-th entry begins.
func (r *record) offset(n uint64) int64 { return headerSize + int64(n)*int64(r.entry()) }

// entries are a record as the log of its index.
type entries struct {
	*record
	ctx context.Context // of the run: it may end while a long record is read
}

// Keys implements index.Log. Bad entries are passed over, up to maxBad in a row.
func (r *entries) Keys(from, to uint64, yield func(uint64, index.Key) error) error {
	size := r.entry()
	block := make([]byte, loadBlock*size)
	for bad := 0; from < to; {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n, err := r.file.ReadAt(block, r.offset(from))
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for at := 0; at+size <= n && from < to; at += size {
			if e, ok := parseEntry(block[at : at+size]); ok {
				bad = 0
				if err := yield(from, index.Key(e.key)); err != nil {
					return err
				}
			} else if bad++; bad > maxBad {
				return nil
			}
			from++
		}
		if n < len(block) {
			return nil
		}
	}
	return nil
}

// Mark implements index.Log: it is the entry's CRC.
func (r *entries) Mark(n uint64) (uint32, error) {
	b := make([]byte, r.entry())
	if _, err := r.file.ReadAt(b, r.offset(n)); err != nil {
		return 0, err
	}
	if _, ok := parseEntry(b); !ok {
		return 0, errors.New("the entry is damaged")
	}
	return binary.BigEndian.Uint32(b[len(b)-4:]), nil
}

// Sync implements index.Log.
func (r *entries) Sync() error { return r.file.Sync() }

// fileKey is the key of a file in the directory with the key dir. Files of one directory are
// neighbours in the index: their keys begin with half of the directory's.
func (r *record) fileKey(dir pathKey, name string) pathKey {
	key := dir.child(name)
	if r.version > 2 {
		copy(key[:len(key)/2], dir[:])
	}
	return key
}

// find returns the latest entry of key that earlier runs wrote.
func (r *record) find(key pathKey) (e recorded, ok bool, err error) {
	b := make([]byte, r.entry())
	ok, err = r.index.Find(index.Key(key), func(n uint64) (bool, error) {
		if _, err := r.file.ReadAt(b, r.offset(n)); err != nil {
			return false, fmt.Errorf("read the record: %w", err)
		}
		one, ok := parseEntry(b)
		if ok = ok && one.key == key; ok {
			e = one
		}
		return ok, nil
	})
	return e, ok, err
}

// append adds entries. The next load cuts off an entry that a kill has torn. After a failed
// write nothing is added, so that no entry follows a torn one.
func (r *record) append(entries ...recorded) error {
	if r == nil || len(entries) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range entries {
		r.pending = entries[i].append(r.pending, r.entry())
	}
	if r.lazy && len(r.pending) < lazyBlock {
		return r.err
	}
	return r.write()
}

// write writes the pending entries. record.mu is held.
func (r *record) write() error {
	if r.err == nil && len(r.pending) > 0 {
		if _, err := r.file.Write(r.pending); err != nil {
			r.err = fmt.Errorf("write the record: %w", err)
		}
	}
	r.pending = r.pending[:0]
	return r.err
}

func (r *record) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.err
	err := r.write()
	if was != nil {
		err = nil // append has returned it
	}
	if cerr := r.index.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("close the record's index: %w", cerr)
	}
	if cerr := r.shut(); err == nil && cerr != nil {
		err = fmt.Errorf("close the record: %w", cerr)
	}
	return err
}
