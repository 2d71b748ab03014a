package replycache

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
)

// A saved cache, all integers big-endian:
//
//	magic     8 bytes
//	version   uint32
//	key       64 bytes, of the hash
//	clients   uint32, and for each
//	  name    uint16 length, bytes
//	  replies uint32, and for each, the oldest first
//	    program, version, procedure, xid  uint32
//	    hash  uint64
//	    given uint64, nanoseconds of Unix time
//	    reply uint32 length, bytes
//	sum       32 bytes, SHA-256 of all before
const (
	savedMagic   = "nfsboxDC"
	savedVersion = 1
)

// ErrNotSaved is [Cache.Load]'s error for input that Save has not written, or that is
// cut or changed.
var ErrNotSaved = errors.New("replycache: no saved cache")

// ErrInUse says that the cache knows clients already, and cannot load.
var ErrInUse = errors.New("replycache: the cache is in use")

// Save writes the remembered replies, for the server that comes after a planned restart.
// Calls under way are left out: Shutdown comes first. The output holds replies and the
// key of the hash: the caller keeps it from other users.
func (r *Cache) Save(w io.Writer) error {
	r.mu.Lock()
	clients := make([]*client, 0, len(r.clients))
	for _, name := range slices.Sorted(maps.Keys(r.clients)) {
		if m := r.clients[name]; m.size.Load() > 0 {
			clients = append(clients, m)
		}
	}
	b := binary.BigEndian.AppendUint32([]byte(savedMagic), savedVersion)
	b = r.key.append(b)
	r.mu.Unlock()
	b = binary.BigEndian.AppendUint32(b, uint32(len(clients)))
	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	for _, m := range clients {
		if _, err := both.Write(m.appendSaved(b)); err != nil {
			return fmt.Errorf("replycache: saving: %w", err)
		}
		b = b[:0]
	}
	if _, err := both.Write(b); err != nil {
		return fmt.Errorf("replycache: saving: %w", err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("replycache: saving: %w", err)
	}
	return nil
}

// appendSaved appends what is known of a client.
func (m *client) appendSaved(b []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.name)))
	b = append(b, m.name...)
	b = binary.BigEndian.AppendUint32(b, uint32(m.replies))
	for e := m.oldest; e != nil; e = e.next {
		for _, v := range [...]uint32{e.key.program, e.key.version, e.key.number, e.key.xid} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		b = binary.BigEndian.AppendUint64(b, e.key.hash)
		b = binary.BigEndian.AppendUint64(b, uint64(e.at))
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.reply)))
		b = append(b, e.reply...)
	}
	return b
}

// Load reads what Save has written, as far as there is room: the oldest replies are
// dropped first, and all that are older than MaxAge. It must come before the cache's
// first connection. On an error nothing has changed: [ErrNotSaved] says that in is not
// what Save wrote, [ErrInUse] that Load comes too late, and any other one is in's.
func (r *Cache) Load(in io.Reader) error {
	fresh := New(r.o)
	if err := fresh.read(in); err != nil {
		return fmt.Errorf("replycache: loading: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.clients) > 0 {
		return ErrInUse
	}
	for _, m := range fresh.clients {
		m.cache = r
	}
	r.key, r.clients, r.shares, r.left = fresh.key, fresh.clients, fresh.shares, fresh.left
	r.bytes.Store(fresh.bytes.Load())
	r.evicted.Add(fresh.evicted.Load())
	r.evictedYoung.Add(fresh.evictedYoung.Load())
	return nil
}

// read fills a cache that no other goroutine knows.
func (r *Cache) read(in io.Reader) error {
	buffered := bufio.NewReader(in)
	s := savedReader{in: buffered, sum: sha256.New()}
	if magic := s.bytes(len(savedMagic)); s.err == nil && string(magic) != savedMagic {
		return fmt.Errorf("%w: it begins with something else", ErrNotSaved)
	}
	if v := s.uint32(); s.err == nil && v != savedVersion {
		return fmt.Errorf("%w: version %d, not %d", ErrNotSaved, v, savedVersion)
	}
	if key := s.bytes(hashKeyBytes); s.err == nil {
		r.key.decode(key)
	}
	now := r.o.Now()
	for n := s.uint32(); n > 0 && s.err == nil; n-- {
		r.readClient(&s, now)
	}
	want := s.sum.Sum(nil)
	if got := s.bytes(len(want)); s.err == nil && !bytes.Equal(got, want) {
		return fmt.Errorf("%w: its checksum is wrong", ErrNotSaved)
	}
	if s.err != nil {
		return s.err
	}
	switch _, err := buffered.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: more follows its end", ErrNotSaved)
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// readClient reads one client.
func (r *Cache) readClient(s *savedReader, now time.Time) {
	name := string(s.bounded(uint32(s.uint16()), oncrpc.MaxClientName))
	if s.err == nil && r.clients[name] != nil {
		s.fail("a client is there twice")
	}
	if s.err != nil {
		return
	}
	m := r.enter(name, oncrpc.ShareOfClient(name))
	m.users++
	for n := s.uint32(); n > 0 && s.err == nil; n-- {
		m.read(s, now.UnixNano())
		r.trim()
	}
	m.expire(now)
	m.users--
	r.leave(m, now)
}

// read reads one reply.
func (m *client) read(s *savedReader, now int64) {
	k := callKey{program: s.uint32(), version: s.uint32(), number: s.uint32(), xid: s.uint32(), hash: s.uint64()}
	at := min(int64(s.uint64()), now) // a clock that was put back makes no reply older
	reply := s.bounded(s.uint32(), maxReply)
	if s.err == nil && m.calls[k] != nil {
		s.fail("a call is there twice")
	}
	if s.err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.take()
	e.key, e.at, e.reply = k, max(at, 0), bytes.Clone(reply)
	m.calls[k] = e
	m.append(e)
}

// savedReader reads what Save has written. After an error it returns zeros.
type savedReader struct {
	in  io.Reader
	sum hash.Hash // of all that was read
	buf []byte
	err error
}

func (s *savedReader) fail(what string) { s.err = fmt.Errorf("%w: %s", ErrNotSaved, what) }

// bytes reads n bytes, borrowed until the next read. n is bounded by the caller.
func (s *savedReader) bytes(n int) []byte {
	s.buf = slices.Grow(s.buf[:0], n)[:n]
	if s.err == nil {
		_, s.err = io.ReadFull(s.in, s.buf)
		if errors.Is(s.err, io.EOF) || errors.Is(s.err, io.ErrUnexpectedEOF) {
			s.fail("it ends too early")
		}
		_, _ = s.sum.Write(s.buf) // never fails (package hash)
	}
	if s.err != nil {
		clear(s.buf)
	}
	return s.buf
}

// bounded reads n bytes, if they are not too many.
func (s *savedReader) bounded(n uint32, limit int) []byte {
	if int64(n) > int64(limit) {
		if s.err == nil {
			s.fail(fmt.Sprintf("a length of %d, at most %d", n, limit))
		}
		n = 0
	}
	return s.bytes(int(n))
}

func (s *savedReader) uint16() uint16 { return binary.BigEndian.Uint16(s.bytes(2)) }
func (s *savedReader) uint32() uint32 { return binary.BigEndian.Uint32(s.bytes(4)) }
func (s *savedReader) uint64() uint64 { return binary.BigEndian.Uint64(s.bytes(8)) }
