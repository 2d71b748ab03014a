package nfsbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/attrcache"
)

// maxTime bounds the times of attributes in a URL, in seconds.
const maxTime = 1 << 20

// AttrTimes bound how long attributes are believed: acregmin, acregmax, acdirmin and acdirmax of
// nfs(5). Zero: not at all.
type AttrTimes struct {
	FileMin, FileMax time.Duration // of everything but directories
	DirMin, DirMax   time.Duration
}

// DefaultAttrTimes are those of nfs(5): 3 to 60 seconds, and 30 to 60 seconds of directories.
func DefaultAttrTimes() AttrTimes { return AttrTimes(attrcache.DefaultTimes()) }

// LookupCache says which results of look-ups are kept.
type LookupCache uint8

// What is kept: lookupcache in the URL.
const (
	LookupCacheAll      LookupCache = iota // names that are there, and that are not
	LookupCachePositive                    // names that are there
	LookupCacheNone
)

// WithAttrCache keeps attributes, names and the rights of callers for a while, as the Linux client
// does (nfs(5), DATA AND METADATA COHERENCE). The zero AttrTimes are [DefaultAttrTimes].
//
// Others' changes are seen when the time is over. The time of an object doubles, from the least to
// the most, as long as nothing changes. The client's own changes are seen at once. What is asked of a
// file after it was opened, or a lock on it taken, is asked of the server (close-to-open). Without
// this option, and without ac, actimeo or their like in the URL, every question goes to the server.
func WithAttrCache(t AttrTimes, names LookupCache) Option {
	return func(o *config) {
		if t == (AttrTimes{}) {
			t = DefaultAttrTimes()
		}
		o.attrs, o.attrTimes, o.lookups = true, t, names
	}
}

// WithoutAttrCache has every question go to the server, whatever the URL says. It is noac in the URL.
func WithoutAttrCache() Option {
	return func(o *config) { o.attrs = false }
}

// keepsAttrs reports whether any attributes are kept.
func (o *config) keepsAttrs() bool { return o.attrs && o.attrTimes != AttrTimes{} }

// checkAttrs returns an error if what Options say of attributes makes no sense.
func (o *config) checkAttrs() error {
	t := &o.attrTimes
	switch {
	case !o.attrs:
	case t.FileMin < 0 || t.DirMin < 0 || t.FileMin > t.FileMax || t.DirMin > t.DirMax:
		return fmt.Errorf("nfs: times of attributes %+v; the least is at least 0, and no more than the most", *t)
	case o.lookups > LookupCacheNone:
		return fmt.Errorf("nfs: there is no LookupCache(%d)", o.lookups)
	}
	return nil
}

// acArgs are the arguments of a URL that say how long attributes are kept.
type acArgs struct {
	on, off                               bool
	all, fileMin, fileMax, dirMin, dirMax *time.Duration
}

// acTime takes over a time.
func acTime(which func(*acArgs) **time.Duration) func(*URL, string) error {
	return func(u *URL, v string) error {
		n, err := parseUint(v, 0, maxTime)
		*ptr(which(&u.ac)) = time.Duration(n) * time.Second
		u.ac.on = true
		return err
	}
}

func setAC(u *URL, v string) error {
	u.ac.on = true
	return noValue(v)
}

func setNoAC(u *URL, v string) error {
	u.ac.off = true
	return noValue(v)
}

func setLookupCache(u *URL, v string) error {
	switch v {
	case "all":
		u.LookupCache = LookupCacheAll
	case "pos", "positive":
		u.LookupCache = LookupCachePositive
	case "none":
		u.LookupCache = LookupCacheNone
		return nil // asks for nothing to be kept
	default:
		return badValue(v, "all, positive or none")
	}
	u.ac.on = true
	return nil
}

// setAttrTimes makes the times of what the arguments said. A bound that was not said gives way to one that was.
func (u *URL) setAttrTimes() error {
	a := &u.ac
	if a.off || !a.on {
		return nil
	}
	t := DefaultAttrTimes()
	pairs := [...]struct {
		least, most *time.Duration
		lo, hi      *time.Duration
		name        string
	}{{a.fileMin, a.fileMax, &t.FileMin, &t.FileMax, "acregmin"}, {a.dirMin, a.dirMax, &t.DirMin, &t.DirMax, "acdirmin"}}
	for _, p := range pairs {
		if a.all != nil {
			*p.lo, *p.hi = *a.all, *a.all
		}
		if p.least != nil {
			*p.lo = *p.least
		}
		if p.most != nil {
			*p.hi = *p.most
		}
		switch {
		case *p.lo <= *p.hi:
		case p.least != nil && p.most != nil:
			return &URLError{Arg: p.name, Err: errors.New("is more than the most, which another argument says")}
		case p.least != nil:
			*p.hi = *p.lo
		default:
			*p.lo = *p.hi
		}
	}
	u.AttrCached, u.AttrTimes = t != AttrTimes{}, t
	return nil
}
