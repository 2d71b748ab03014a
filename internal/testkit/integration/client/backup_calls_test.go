package client

import (
	"fmt"
	"maps"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/export"
	store "github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/backup"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestBackupCalls counts, at the server, what a second backup costs of a tree in which nothing has changed: no call for a
// file, and at most three for a directory beyond further pages of its listing. NFSBOX_BACKUP_FILES says how many files
// there are.
func TestBackupCalls(t *testing.T) {
	files := 2000
	if n, err := strconv.Atoi(os.Getenv("NFSBOX_BACKUP_FILES")); err == nil {
		files = n
	}
	const each, lists = 20, 5 // files of a directory; each fifth one has a list of its own
	dirs := files / each
	at := time.Unix(1_700_000_000, 0)
	mem := memfs.New(memfs.Options{Mode: 0o777, Now: func() time.Time { return at }})
	root, _, err := mem.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	acl := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 6}, {Tag: vfs.ACLUser, ID: 7, Perm: 4}, {Tag: vfs.ACLGroupObj, Perm: 4}, {Tag: vfs.ACLMask, Perm: 4}, {Tag: vfs.ACLOther, Perm: 4},
	}}
	create := func(dir vfs.Handle, name string, typ vfs.Type) vfs.Handle {
		h, _, _, err := mem.Create(t.Context(), dir, name, &vfs.CreateHow{Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	write := func(h vfs.Handle, content string) {
		f, _, err := mem.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareWrite})
		if err != nil {
			t.Fatal(err)
		}
		var w vfs.Written
		if _, err := vfs.WriteFull(t.Context(), f, []byte(content), 0, vfs.FileSync, &w); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for d := range dirs {
		dir := create(root, fmt.Sprint("dir", d), vfs.TypeDir)
		for f := range each {
			h := create(dir, fmt.Sprint("file", f), vfs.TypeReg)
			write(h, fmt.Sprint("content of ", d, f))
			if f%lists == 0 {
				if err := mem.SetACL(t.Context(), h, acl); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s := start(t, export.Export{Path: "/", FS: mem})
	fs := dial(t, "nfs://"+s.addr+"/").FS()
	top, _, err := fs.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kept := store.NewMemory(store.MemoryOptions{})
	run := func() (backup.Summary, map[string]uint64, time.Duration) {
		t.Helper()
		before := maps.Clone(s.srv.Stats().Calls)
		o := backup.Options{FS: fs, Root: top, Store: kept, Meta: snapshot.Meta{Name: "t"}, Now: time.Now}
		if o.Base, err = backup.Latest(t.Context(), kept, "t", nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		sum, err := backup.Run(t.Context(), o)
		if err != nil || !sum.Complete || sum.Files != uint64(dirs*each) {
			t.Fatalf("%+v, %v", sum, err)
		}
		after := maps.Clone(s.srv.Stats().Calls)
		for name := range after {
			after[name] -= before[name]
		}
		return sum, after, time.Since(began)
	}
	_, first, took := run()
	sum, second, again := run()
	t.Logf("first %v %v, second %v %v", took, first, again, second)
	const ends = 10 // of the tree
	var all uint64
	for name, n := range second {
		all += n
		most := uint64(0)
		switch name {
		case "READDIRPLUS":
			most = uint64(dirs + dirs/each + ends) // the top directory has pages
		case "GETATTR":
			most = uint64(dirs + ends)
		case "FSINFO", "PATHCONF", "FSSTAT", "NULL", "GETACL", "LOOKUP", "ACCESS":
			most = ends
		}
		if n > most {
			t.Errorf("%s: %d calls", name, n)
		}
	}
	if sum.Read != 0 || all > uint64(3*dirs+ends) {
		t.Errorf("%d calls for %d directories: %+v", all, dirs, sum)
	}
	if os.Getenv("NFSBOX_SOAK") != "" && again > took/5 {
		t.Errorf("the second backup took %v, the first %v", again, took)
	}
}
