package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

type snapshotsDiffCmd struct {
	A string `arg:"" place:"" name:"STORE::A" help:"The first snapshot, and a path in it if not all is meant: STORE::NAME[@ID][/PATH]."`
	B string `arg:"" place:"" name:"STORE::B" help:"The second one, of the same store."`
	snapshotsFlags
}

func (*snapshotsDiffCmd) Help() string {
	return `Says what two snapshots of a store have not alike, a line for each object. A sign stands before its path.

    M   changed: type, content, target of a link, or number of a device
    A   attributes alone: mode, owner, mtime, links, acl, xattr
    +   added: only the second one has it
    -   removed: only the first one has it

The time of the last change of a file's content is mtime; links is how many names an object has, acl its access
control list, xattr its extended attributes.

Only the manifests are read, and no file: contents are the same if the same bytes are stored. Where another version of
nfsbox has packed them otherwise, a file that was read again may be listed though it is the same; nfsbox verify of the
two compares the bytes. Access times, times of change and inode numbers are not compared. Memory does not grow with
the trees.

The exit status is 0 if there are no differences, 3 if there are, and 2 if a part of a manifest is damaged: it is named,
and what lies below is not compared.

  nfsbox snapshots diff /backup::home@20261127t230000.000z /backup::home
  nfsbox snapshots diff /backup::a@20261127t230000.000z/ann /backup::a/ann
  nfsbox snapshots diff --json /backup::a /backup::b | jq -r .path`
}

// diffEvent is an object that two snapshots have not alike, in JSON.
type diffEvent struct {
	Path      string   `json:"path"`
	PathBytes string   `json:"path_base64,omitempty"` // if the path is not UTF-8
	Kind      string   `json:"kind"`
	Object    string   `json:"object"` // its type
	What      []string `json:"what"`
	Message   string   `json:"message,omitempty"`
}

// diffSummary is the last event of snapshots diff.
type diffSummary struct {
	Compared   uint64  `json:"compared"` // objects, of either side
	Added      uint64  `json:"added"`
	Removed    uint64  `json:"removed"`
	Changed    uint64  `json:"changed"`
	Attributes uint64  `json:"attributes"` // objects of which nothing else differs
	Errors     uint64  `json:"errors"`
	Seconds    float64 `json:"seconds"`
}

// Kinds of a diffEvent.
const (
	diffChanged    = "changed"
	diffAttributes = "attributes"
)

// differing is snapshots diff under way.
type differing struct {
	*storeRun
	sum diffSummary
}

func (c *snapshotsDiffCmd) Run(e *env) error {
	d := new(differing)
	d.storeRun = summedRun(e, c.JSON, func(errors uint64, seconds float64) any {
		d.sum.Errors, d.sum.Seconds = errors, seconds
		return &d.sum
	})
	var stores, names, paths [2]string
	for i, arg := range [...]string{c.A, c.B} {
		var ok bool
		if stores[i], names[i], paths[i], ok = place.DivideText(arg); !ok {
			return d.refuse(arg, notASnapshot(arg))
		}
	}
	if strings.TrimRight(stores[0], "/") != strings.TrimRight(stores[1], "/") {
		return d.refuse(c.B, refused(fmt.Errorf("%s and %s are of two stores, and diff reads the manifests of one: nfsbox verify compares the files", c.A, c.B)))
	}
	return c.lookWith(d.storeRun, stores[0], place.StoreOptions{}, func(r *storeRun) error {
		var s [2]*snapshot.Snapshot
		var at [2]vfs.Handle
		for i, name := range names {
			ref, err := r.store.Find(e.ctx, name)
			if err != nil {
				return err
			}
			if s[i], err = snapshot.Open(e.ctx, r.store, ref); err != nil {
				return aboutStore(r.store, err)
			}
			if at[i], err = r.within(s[i], paths[i]); err != nil {
				return err
			}
		}
		compared, err := snapshot.Diff(e.ctx, s[0], s[1], at[0], at[1], snapshot.DiffOptions{Found: d.found, Failed: d.fault})
		d.sum.Compared = compared
		if err != nil {
			return aboutStore(r.store, err)
		}
		return d.verdict()
	})
}

// within is what a path names in a snapshot.
func (r *storeRun) within(s *snapshot.Snapshot, path string) (vfs.Handle, error) {
	f := s.FS()
	root, _, err := f.Root(r.e.ctx)
	if err != nil || path == "" {
		return root, err
	}
	found, err := vfs.Resolve(r.e.ctx, f, root, path, false)
	if err != nil {
		ref := s.Ref()
		return root, fmt.Errorf("%s::%s/%s: %w", r.store.Text, ref.Text(), path, err)
	}
	return found.Handle, nil
}

// fault tells of what cannot be read.
func (d *differing) fault(path string, err error) error {
	d.failed(path, fmt.Errorf("%s: %w", cmp.Or(path, "the top directory"), err))
	return nil
}

// found prints a difference.
func (d *differing) found(x *snapshot.Difference) error {
	kind, sign, e := "", "", cmp.Or(x.B, x.A)
	switch what := x.What[0]; what {
	case snapshot.DiffAdded:
		kind, sign = what, "+"
		d.sum.Added++
	case snapshot.DiffRemoved:
		kind, sign = what, "-"
		d.sum.Removed++
	case snapshot.DiffType, snapshot.DiffContent, snapshot.DiffTarget, snapshot.DiffDevice:
		kind, sign = diffChanged, "M"
		d.sum.Changed++
	default:
		kind, sign = diffAttributes, "A"
		d.sum.Attributes++
	}
	message := ""
	if x.A != nil && x.B != nil {
		message = diffText(x)
	}
	if d.json {
		return d.event("difference", diffEvent{Path: x.Path, PathBytes: notUTF8(x.Path), Kind: kind, Object: e.Attr.Type.String(), What: x.What, Message: message})
	}
	path := cmp.Or(x.Path, ".")
	if e.Attr.Type == vfs.TypeDir {
		path += "/"
	}
	if message != "" {
		message = ": " + message
	}
	return d.text(sign + "  " + progress.Clean(path+message) + "\n")
}

// diffText says what differs, for people.
func diffText(x *snapshot.Difference) string {
	a, b := &x.A.Attr, &x.B.Attr
	var parts []string
	for _, what := range x.What {
		switch what {
		case snapshot.DiffType:
			what = fmt.Sprintf("a %v, now a %v", a.Type, b.Type)
		case snapshot.DiffContent:
			what = "content"
			if a.Size != b.Size {
				what = fmt.Sprintf("content: %s, now %s", progress.Size(a.Size), progress.Size(b.Size))
			}
		case snapshot.DiffTarget:
			what = fmt.Sprintf("led to %s, now to %s", x.A.Target, x.B.Target)
		case snapshot.DiffMode:
			what = fmt.Sprintf("mode %04o, now %04o", a.Mode, b.Mode)
		case snapshot.DiffOwner:
			what = fmt.Sprintf("owner %d:%d, now %d:%d", a.UID, a.GID, b.UID, b.GID)
		case snapshot.DiffLinks:
			what = fmt.Sprintf("%s, now %d", text(counted{uint64(a.Nlink), "name|names"}), b.Nlink)
		}
		parts = append(parts, what)
	}
	return strings.Join(parts, "; ")
}

// verdict says what was found, and ends with that.
func (d *differing) verdict() error {
	s := &d.sum
	if !d.json {
		verdict(d.stderr,
			line{"compared: ", text(counted{s.Compared, "object|objects"})},
			line{"different: ", text(counted{s.Added, "added"}, counted{s.Removed, "removed"}, counted{s.Changed, "changed"},
				counted{s.Attributes, "with other attributes"})},
			line{"failed: ", text(counted{d.errors, "item that could not be compared|items that could not be compared"})},
		)
	}
	switch {
	case d.errors > 0:
		return &exitError{status: exitIncomplete} // each has been reported
	case s.Added+s.Removed+s.Changed+s.Attributes > 0:
		return &exitError{status: exitDiffers}
	}
	return nil
}
