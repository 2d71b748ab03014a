package fileapi

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/vfs"
)

// tagOf is the entity tag of a file: another file, another size or another change is
// another tag. The file system's clock may not tell two changes apart that follow each
// other at once: see recent.
func tagOf(h vfs.Handle, a *vfs.Attr) string {
	if !a.Has(vfs.MaskSize | vfs.MaskChange) {
		return ""
	}
	b := append(make([]byte, 0, 128), h.Bytes()...)
	b = binary.BigEndian.AppendUint64(b, a.Size)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, a.Change))
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// A file's clock may stand still for tick, or for coarseTick where it counts seconds. A
// file that was changed less long ago may change again without a new tag, so the tag is
// then a weak one.
const (
	tick       = 20 * time.Millisecond
	coarseTick = 2 * time.Second
)

func (s *Server) recent(a *vfs.Attr) bool {
	step := tick
	if a.Ctime.Nanosecond() == 0 {
		step = coarseTick
	}
	return s.o.Now().Sub(a.Ctime) < step
}

// conditions are those under which a request may change a name (RFC 9110, section 13).
type conditions struct {
	match, noneMatch []string  // the fields; nil: none
	since            time.Time // If-Unmodified-Since; zero: none
}

func conditionsOf(h http.Header) *conditions {
	c := &conditions{match: h["If-Match"], noneMatch: h["If-None-Match"]}
	if c.match == nil {
		// A date that cannot be read is none (section 13.1.4).
		c.since, _ = http.ParseTime(h.Get("If-Unmodified-Since"))
	}
	return c
}

// malformed is the error of a condition that is no list of entity tags, and no "*". A slip in
// quoting must not turn "only if it is new" into "in any case".
func (c *conditions) malformed() error {
	for _, fields := range [][]string{c.match, c.noneMatch} {
		for part := range strings.SplitSeq(strings.Join(fields, ","), ",") {
			tag := strings.TrimPrefix(strings.TrimSpace(part), "W/")
			quoted := len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"'
			if tag != "" && !quoted && tag != "*" {
				return refuse(connect.CodeInvalidArgument, "%.40q is no entity tag: want \"*\", or tags in quotation marks, as ETag has them", part)
			}
		}
	}
	return nil
}

// none reports whether the request is for any case.
func (c *conditions) none() bool {
	return c == nil || c.match == nil && c.noneMatch == nil && c.since.IsZero()
}

// onlyNew reports whether there must not be anything of the name.
func (c *conditions) onlyNew() bool {
	return c != nil && len(c.noneMatch) == 1 && strings.TrimSpace(c.noneMatch[0]) == "*"
}

// errCondition is the error of a condition that does not hold.
var errCondition = withStatus(http.StatusPreconditionFailed, connect.CodeFailedPrecondition,
	"what has the name now is not what the request's conditions want")

// check compares what has the name with the conditions. a is nil if nothing has.
func (c *conditions) check(h vfs.Handle, a *vfs.Attr) error {
	if c.none() {
		return nil
	}
	tag := ""
	if a != nil {
		tag = tagOf(h, a)
	}
	switch {
	case c.match != nil && !listed(c.match, tag, a != nil, false),
		c.noneMatch != nil && listed(c.noneMatch, tag, a != nil, true),
		!c.since.IsZero() && a != nil && a.Mtime.Truncate(time.Second).After(c.since):
		return errCondition
	}
	return nil
}

// listed reports whether a list of entity tags holds tag. A weak one is only compared
// where that is enough. "*" is anything that exists.
func listed(fields []string, tag string, exists, weak bool) bool {
	for _, field := range fields {
		for have := range strings.SplitSeq(field, ",") {
			have = strings.TrimSpace(have)
			if weak {
				have = strings.TrimPrefix(have, "W/")
			}
			if exists && (have == "*" || tag != "" && have == tag) {
				return true
			}
		}
	}
	return false
}

// nameLocks is how many locks there are for all names.
const nameLocks = 256

// names are locks on names. A request with conditions holds its name's alone, from
// looking at what has the name until it is changed; others that change it share it. So
// of two requests that want the same thing replaced one fails. What NFS and ranges in
// place change is not kept away.
type names struct {
	seed  maphash.Seed
	locks [nameLocks]sync.RWMutex
}

// lock locks a name, and returns what unlocks it.
func (n *names) lock(dir vfs.Handle, name string, alone bool) (unlock func()) {
	var h maphash.Hash
	h.SetSeed(n.seed)
	_, _ = h.Write(dir.Bytes()) // a maphash.Hash never fails to write
	_, _ = h.WriteString(name)
	l := &n.locks[h.Sum64()%nameLocks]
	if alone {
		l.Lock()
		return l.Unlock
	}
	l.RLock()
	return l.RUnlock
}
