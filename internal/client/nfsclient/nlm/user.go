package nlm

import (
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// user is one whose programs hold locks, or ask for some. shared.mu guards it. An owner, and what it locks, is that of
// the user that it came with first.
type user struct {
	uid                    int64 // -1: that of New
	owners, locks, pending int
}

// uid is the user of this view.
func (f *FS) uid() int64 {
	if f.caller == nil {
		return -1
	}
	return int64(f.caller.UID)
}

// userOf is the user that the owner called name has, or would have with this number. s.mu is held.
func (s *shared) userOf(name vfs.Owner, uid int64) *user {
	if o := s.owners[name]; o != nil {
		return o.user
	}
	if u := s.users[uid]; u != nil {
		return u
	}
	return &user{uid: uid}
}

// may reports whether one that has held of something may have more of it: with that, it must not have more than is free
// of most, where all together have taken.
func may(held, more, taken, most int) bool { return held+more <= most-taken }

// full says that the user has its share.
func (u *user) full(held, taken int, what string) error {
	return &FullError{fmt.Sprintf("%d %s, %d of them this user's, which gets no more than is left for others", taken, what, held)}
}
