package nfsbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/client/cache/conf"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxMark bounds the mark of a cache, in bytes.
const maxMark = 64

// WithCache keeps what is read in files below dir, and reads it from there later, in other runs too. Before
// an open file is read from there the server is asked whether it has changed, and whether the caller may
// read it. dir has to be there, to belong to the process's user, and nobody else may write to it; else Dial fails.
// "" is a default: the dir of /etc/cachefilesd.conf, or /var/cache/nfsbox, if the process is root's, else nfsbox
// in the user's cache directory. It is made if it is missing. If another client has dir, in this process or
// another one, this one goes without, and WithCacheNotes tells. It is fsc and cache in the URL. Linux only.
func WithCache(dir string) Option {
	return func(o *config) { o.cached, o.cacheDir = true, dir }
}

// WithCacheConfig has a cache's directory, its size and other settings read from a file: cachefilesd.conf(5), of which
// docs/cache.md has more. It does not switch the cache on. A directory that WithCache names comes first.
func WithCacheConfig(file string) Option {
	return func(o *config) { o.cacheConf = file }
}

// WithCacheMark keeps apart what is cached of the same files: clients with another mark do not see it. It has at most 64
// bytes. It is fsc=MARK in the URL.
func WithCacheMark(mark string) Option {
	return func(o *config) { o.cacheMark = mark }
}

// WithCacheNotes calls f with a sentence for what a user should know of the cache: another process has it, or its disk is
// full or broken. Files are then read past it. Each is told once. f is called by any goroutine, and must not
// close the client. Without it the logger is told.
func WithCacheNotes(f func(string)) Option {
	return func(o *config) { o.cacheNote = f }
}

// CacheStats are the figures of the cache. The counters go on from run to run.
type CacheStats struct {
	State   string `json:"state"`         // now: "on", "full", "broken" or "off"
	Why     string `json:"why,omitempty"` // full or broken: why
	Entries int    `json:"entries"`       // now: versions of files that something is kept of
	Bytes   int64  `json:"bytes"`         // now: what they take on the disk
	Size    int64  `json:"size"`          // what they may take; 0: what the disk's limits leave

	Hits         uint64 `json:"hits"`          // reads that were answered from the cache
	Misses       uint64 `json:"misses"`        // reads that went to the server
	BytesHit     uint64 `json:"bytes_hit"`     // read from the cache
	BytesFilled  uint64 `json:"bytes_filled"`  // written to it
	Stale        uint64 `json:"stale"`         // entries that were removed because the server had another version
	Damaged      uint64 `json:"damaged"`       // entries that were removed because they were not whole
	BadChecksums uint64 `json:"bad_checksums"` // pieces that were not what had been written
	Culled       uint64 `json:"culled"`        // entries that were removed to make room
	Refused      uint64 `json:"refused"`       // pieces for which there was no room
	Bypassed     uint64 `json:"bypassed"`      // of the misses, reads that the server answers sooner than the cache's disk
}

// CacheError says that the cache cannot be used as it was asked for: its directory or its configuration is wrong. It is of
// Dial, before any server was asked.
type CacheError struct{ Err error }

// Error implements error.
func (e *CacheError) Error() string { return "nfs: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *CacheError) Unwrap() error { return e.Err }

func (c *Client) cacheStats() CacheStats {
	if c.cache == nil {
		return CacheStats{State: "off"}
	}
	s := c.cache.Stats()
	return CacheStats{
		State: s.State, Why: s.Why, Entries: s.Entries, Bytes: s.Bytes, Size: s.Size, Hits: s.Hits, Misses: s.Misses, BytesHit: s.BytesHit,
		BytesFilled: s.BytesFilled, Stale: s.Stale, Damaged: s.Damaged, BadChecksums: s.BadChecksums, Culled: s.Culled, Refused: s.Refused,
		Bypassed: s.Bypassed,
	}
}

func setFSC(u *URL, v string) error {
	mark, err := url.PathUnescape(v)
	if err != nil {
		return badValue(v, "a mark, with %XX for what cannot stand in a URL,")
	}
	u.Cached, u.CacheMark = true, mark
	return checkMark(mark)
}

func setCacheDir(u *URL, v string) error {
	dir, err := url.PathUnescape(v)
	if err != nil {
		return badValue(v, "a path, with %XX for what cannot stand in a URL,")
	}
	u.Cached, u.CacheDir = true, dir
	return checkCacheDir(dir)
}

func checkMark(mark string) error {
	if len(mark) > maxMark || strings.ContainsRune(mark, 0) {
		return badValue(mark, fmt.Sprintf("a mark of up to %d bytes", maxMark))
	}
	return nil
}

func checkCacheDir(dir string) error {
	switch {
	case !filepath.IsAbs(dir):
		return badValue(dir, "an absolute path")
	case strings.ContainsRune(dir, 0):
		return errors.New("a NUL in the path")
	case len(dir) > vfs.MaxPath:
		return fmt.Errorf("a path of %d bytes, at most %d allowed", len(dir), vfs.MaxPath)
	}
	return nil
}

// checkCache returns an error if what Options say of the cache makes no sense.
func (o *config) checkCache() error {
	if o.cacheDir != "" {
		if err := checkCacheDir(o.cacheDir); err != nil {
			return fmt.Errorf("nfs: directory of the cache: %w", err)
		}
	}
	if err := checkMark(o.cacheMark); err != nil {
		return fmt.Errorf("nfs: mark of the cache: %w", err)
	}
	return nil
}

// server names the server that has the files: the same in every run, and for every way in which they are mounted.
func (o *config) server() string {
	return net.JoinHostPort(strings.ToLower(o.Host), strconv.Itoa(int(cmp.Or(o.NFSPort, o.Port))))
}

// openCache opens the directory of the cache. It returns nil if there is to be none, or another client has it.
func (o *config) openCache(ctx context.Context) (*store.Store, error) {
	if !o.cached {
		return nil, nil
	}
	c, err := conf.Find(o.cacheConf, o.cacheDir)
	if err != nil {
		return nil, &CacheError{err}
	}
	so := c.Options()
	so.Rand = o.Rand
	so.Note = func(what string) {
		switch {
		case o.cacheNote != nil:
			o.cacheNote(what)
		case o.Log != nil:
			o.Log.WarnContext(ctx, what)
		}
	}
	st, err := store.Open(so)
	switch {
	case errors.Is(err, store.ErrInUse):
		so.Note(err.Error() + "; files are read without it")
		return nil, nil
	case err != nil:
		return nil, &CacheError{err}
	}
	return st, nil
}
