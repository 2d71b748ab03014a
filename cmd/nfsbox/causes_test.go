package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestNamesNow: one name is one.
func TestNamesNow(t *testing.T) {
	one, two := &snapshot.Entry{Attr: vfs.Attr{Nlink: 1}}, &snapshot.Entry{Attr: vfs.Attr{Nlink: 2}}
	for want, x := range map[string]snapshot.Difference{"1 name, now 2": {A: one, B: two}, "2 names, now 1": {A: two, B: one}} {
		if x.What = []string{snapshot.DiffLinks}; diffText(&x) != want {
			t.Errorf("%s, want %s", diffText(&x), want)
		}
	}
}

// TestCauses: of failures alone it is noted that something may not be read, or is damaged.
func TestCauses(t *testing.T) {
	denied, damaged := fmt.Errorf("open: %w", vfs.ErrAccess), &snapshot.DamagedError{Key: "k", Err: vfs.ErrIO}
	for _, x := range []struct {
		e    progress.Event
		want causes
	}{
		{progress.Event{Type: "error", Err: denied}, causes{denied: true}},
		{progress.Event{Type: "error", Err: damaged}, causes{damaged: true}},
		{progress.Event{Type: "note", Err: denied}, causes{}},
		{progress.Event{Type: "error", Err: vfs.ErrNoEnt}, causes{}},
	} {
		var c causes
		if err := c.Event(time.Time{}, &x.e); err != nil || c != x.want {
			t.Errorf("%+v is %+v, %v", x.e, c, err)
		}
	}
}
