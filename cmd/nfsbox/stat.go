package main

import (
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

type statCmd struct {
	Places []string `arg:"" place:"" name:"PLACE" help:"What to show: a path or nfs://host/export/path."`
	JSON   bool     `help:"Print one line of JSON for each, then a summary."`
	Deref  bool     `short:"L" name:"dereference" help:"Show what a symbolic link leads to, not the link."`
	clientFlags
}

func (*statCmd) Help() string {
	return `Shows every attribute that the file system sent: type, mode, links, owner, sizes, inode and
times. A symbolic link is shown itself unless -L is given.

  nfsbox stat nfs://filer/export/home/ann/report.txt
  nfsbox stat --json ./report.txt`
}

func (c *statCmd) Run(e *env) error {
	po, err := c.place(c.Deref)
	if err != nil {
		return err
	}
	defer c.print(e)
	return eachPlace(e, c.Places, c.JSON, po, func(out *output, p *place.Place) error {
		defer c.count(p)
		r, err := p.Resolve(e.ctx, c.Deref)
		if err != nil {
			return err
		}
		row := newRow(p.Spelled(), r.Attr)
		if r.Attr.Type == vfs.TypeSymlink {
			if row.Target, _, err = p.FS.Readlink(e.ctx, r.Handle); err != nil {
				return fmt.Errorf("%s: readlink: %w", p.Text, err)
			}
			row.TargetBytes = notUTF8(row.Target)
		}
		if c.JSON {
			return out.event("entry", row)
		}
		return out.text(statText(row, &r))
	})
}

// statText shows the attributes in the layout of stat(1).
func statText(row *row, r *vfs.Resolved) string {
	a := &r.Attr
	name := progress.Clean(row.Path)
	if row.Target != "" {
		name += " -> " + progress.Clean(row.Target)
	}
	text := fmt.Sprintf("  File: %s\n  Type: %s\n  Size: %d\tUsed: %d\tLinks: %d\n Inode: %d\tDevice: %x:%x\n  Mode: %04o (%s)\tUid: %d\tGid: %d\n",
		name, a.Type, a.Size, a.Used, a.Nlink, a.FileID, a.FSID[0], a.FSID[1], a.Mode, ls.Mode(a), a.UID, a.GID)
	if a.Type == vfs.TypeBlock || a.Type == vfs.TypeChar {
		text += fmt.Sprintf("Device: %d, %d\n", a.Rdev>>32, uint32(a.Rdev))
	}
	for _, t := range []struct {
		name string
		mask vfs.Mask
		at   time.Time
	}{{"Access", vfs.MaskAtime, a.Atime}, {"Modify", vfs.MaskMtime, a.Mtime}, {"Change", vfs.MaskCtime, a.Ctime}, {" Birth", vfs.MaskBtime, a.Btime}} {
		if a.Has(t.mask) {
			text += fmt.Sprintf("%s: %s\n", t.name, t.at.Format("2006-01-02 15:04:05.000000000 -0700"))
		}
	}
	return text + fmt.Sprintf("Handle: %s\n", r.Handle)
}
