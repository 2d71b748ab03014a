package config

import (
	"fmt"
	"os"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
)

// User is a user as the command line and the file name one: "1000:1000,27".
type User struct {
	UID, GID uint32
	Groups   []uint32
	// Only lets programs of this user and of root call as this user, and no others. It is
	// set for the user who has started a server by hand. The text does not have it.
	Only bool
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *User) UnmarshalText(b []byte) error {
	c, err := fileapi.ParseIDs(string(b))
	if err != nil {
		return err
	}
	*u = User{UID: c.UID, GID: c.GID, Groups: c.Groups}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (u User) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// String implements fmt.Stringer.
func (u User) String() string {
	s := fmt.Sprintf("%d:%d", u.UID, u.GID)
	for _, g := range u.Groups {
		s += fmt.Sprintf(",%d", g)
	}
	return s
}

// thisUser is the user that runs the process; nil for root: no caller is root by default.
func thisUser() *User {
	if os.Geteuid() <= 0 {
		return nil
	}
	u := &User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Only: true}
	groups, err := os.Getgroups()
	if err != nil {
		groups = nil // the user without them may less, and not more
	}
	for _, g := range groups {
		u.Groups = append(u.Groups, uint32(g))
	}
	return u
}
