package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

type dfCmd struct {
	Places []string `arg:"" place:"" name:"PLACE" help:"Any path of a file system: a path or nfs://host/export/path; nfs://host/ is each export of the server."`
	Human  bool     `name:"human-readable" short:"h" help:"Show sizes as 1.5K, 12M."`
	Inodes bool     `short:"i" help:"Show how many files there are, and may be, instead of bytes."`
	JSON   bool     `help:"Print one line of JSON for each, then a summary."`
	clientFlags
}

func (*dfCmd) Help() string {
	return `Shows the space of the file systems that hold PLACEs, in KiB: in all, used, and what is left for the user who
asks, which may be less than what is free. Of what is used or left the percentage is used, rounded up. What a
server says (FSSTAT) may be a quota, or a promise.

  nfsbox df -h nfs://filer/
  nfsbox df -i nfs://filer/export .`
}

// spaceEvent is a file system in JSON.
type spaceEvent struct {
	Path       string `json:"path"`
	PathBytes  string `json:"path_base64,omitempty"` // if the path is not UTF-8
	Total      uint64 `json:"total"`
	Used       uint64 `json:"used"`
	Free       uint64 `json:"free"`
	Avail      uint64 `json:"avail"`
	Files      uint64 `json:"files"`
	FilesUsed  uint64 `json:"files_used"`
	FilesFree  uint64 `json:"files_free"`
	FilesAvail uint64 `json:"files_avail"`
}

func newSpace(path string, i *vfs.Info) *spaceEvent {
	return &spaceEvent{
		Path: path, PathBytes: notUTF8(path),
		Total: i.TotalBytes, Used: i.TotalBytes - min(i.FreeBytes, i.TotalBytes), Free: i.FreeBytes, Avail: i.AvailBytes,
		Files: i.TotalFiles, FilesUsed: i.TotalFiles - min(i.FreeFiles, i.TotalFiles), FilesFree: i.FreeFiles, FilesAvail: i.AvailFiles,
	}
}

func (c *dfCmd) Run(e *env) error {
	po, err := c.place(true)
	if err != nil {
		return err
	}
	defer c.print(e)
	out := newOutput(e, c.JSON)
	po = out.watch(e, po)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 8, 2, ' ', tabwriter.AlignRight)
	c.heading(w)
	shown := 0
	one := func(arg string) error {
		return onePlace(e.ctx, arg, po, place.Open, func(p *place.Place) error {
			x, err := c.space(e, p)
			if err != nil || c.JSON {
				return errors.Join(err, jsonRow(out, x))
			}
			shown++
			c.row(w, x)
			return nil
		})
	}
	err = out.each(e, glob.Each(e.ctx, c.Places, po), func(arg string) error {
		if at, all := exported(e, arg, po); len(all) > 0 {
			return c.exports(e, out, at, "/", all, one)
		}
		err := one(arg)
		if none, ok := errors.AsType[*place.NoExport](err); ok && len(none.Below()) > 0 {
			return c.exports(e, out, none.At, none.URL.Path, none.Below(), one)
		}
		return err
	})
	_ = w.Flush() // a strings.Builder has no errors
	if shown > 0 {
		err = errors.Join(err, out.text(table.String()))
	}
	return out.end(err)
}

// exports shows the exports below a path. One that fails is reported, and the others follow.
func (c *dfCmd) exports(e *env, out *output, at func(path string) string, above string, below []string, one func(string) error) error {
	var worst error
	for _, name := range below {
		arg := at(glob.Inside(above, name))
		err := one(arg)
		if e.ctx.Err() != nil {
			return err
		}
		if err != nil {
			out.failed(arg, err)
			worst = worse(worst, err)
		}
	}
	return worst
}

// exported are the paths of a server's exports if arg is its root, and how they are spelled. There are none if the server
// does not say: then opening the root tells why.
func exported(e *env, arg string, po place.Options) (at func(path string) string, paths []string) {
	u, err := nfsbox.ParseURL(arg)
	if !place.IsURL(arg) || err != nil || u.Path != "/" || u.Export != "" {
		return nil, nil
	}
	list, err := nfsbox.Exports(e.ctx, arg, po.Dial...)
	if err != nil {
		return nil, nil
	}
	for _, x := range list {
		paths = append(paths, strings.Trim(x.Path, "/"))
	}
	return func(path string) string {
		at := *u
		at.Path = path
		return at.String()
	}, paths
}

// jsonRow prints a file system, if there is one.
func jsonRow(out *output, x *spaceEvent) error {
	if x == nil {
		return nil
	}
	return out.event("space", x)
}

// space asks for the file system of a place.
func (c *dfCmd) space(e *env, p *place.Place) (*spaceEvent, error) {
	defer c.count(p)
	r, err := p.Resolve(e.ctx, true)
	if err != nil {
		return nil, err
	}
	if _, _, is := p.InBucket(); is {
		return nil, fmt.Errorf("%s: a bucket has no size: nfsbox du adds up what is in it: %w", p.Text, vfs.ErrNotSupp)
	}
	info, err := p.FS.Info(e.ctx, r.Handle, vfs.InfoSpace)
	if err == nil && info.Valid&vfs.InfoSpace == 0 {
		err = vfs.ErrNotSupp
	}
	if err != nil {
		return nil, fmt.Errorf("%s: space: %w", p.Text, err)
	}
	return newSpace(p.Spelled(), &info), nil
}

// heading is the first line. The writer is that of a strings.Builder, whose errors do not exist.
func (c *dfCmd) heading(w io.Writer) {
	words := [...]string{"1K-blocks", "Used", "Available"}
	switch {
	case c.Inodes:
		words = [...]string{"Inodes", "IUsed", "IFree"}
	case c.Human:
		words[0], words[2] = "Size", "Avail"
	}
	_, _ = fmt.Fprintf(w, "%s\t%s\t%s\tUse%%\t  Place\n", words[0], words[1], words[2])
}

func (c *dfCmd) row(w io.Writer, x *spaceEvent) {
	total, used, avail := x.Total, x.Used, x.Avail
	if c.Inodes {
		total, used, avail = x.Files, x.FilesUsed, x.FilesAvail
	}
	_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t  %s\n", c.number(total), c.number(used), c.number(avail), percent(used, avail), progress.Clean(x.Path))
}

func (c *dfCmd) number(n uint64) string {
	switch {
	case c.Human:
		return ls.Size(n)
	case c.Inodes:
		return fmt.Sprint(n)
	}
	return fmt.Sprint(kib(n))
}

// kib is a number of bytes in KiB, rounded up.
func kib(n uint64) uint64 { return n/1024 + min(n%1024, 1) }

// percent is how much is used of what is used or left, rounded up; "-" if that is nothing.
func percent(used, left uint64) string {
	if used == 0 && left == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", math.Ceil(100*float64(used)/(float64(used)+float64(left))))
}
