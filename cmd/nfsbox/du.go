package main

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/scan"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

type duCmd struct {
	Places     []string `arg:"" place:"" name:"PLACE" help:"Directories or files: paths or nfs://host/export/path, in whose last parts *, ? (as %3F) and [ stand for names."`
	Summarize  bool     `short:"s" help:"Print one sum for each PLACE."`
	MaxDepth   int      `short:"d" default:"-1" placeholder:"N" help:"Print directories down to N levels below PLACE alone; 0 is -s."`
	All        bool     `short:"a" help:"Print other objects as well, and not directories alone."`
	Human      bool     `name:"human-readable" short:"h" help:"Print sizes as 1.5K, 12M."`
	Apparent   bool     `name:"apparent-size" help:"Count the bytes of files and links, and not what they take on the disk."`
	Bytes      bool     `short:"b" help:"The same as --apparent-size, in bytes."`
	Total      bool     `short:"c" help:"Print the sum of all in the end."`
	CountLinks bool     `short:"l" help:"Count each name of an object with several."`
	Null       bool     `short:"0" help:"End each line with a NUL, for xargs -0."`
	From0      bool     `name:"from0" help:"A NUL ends each path of --files-from, and no line."`
	fileFlags
	treeFlags
}

func (*duCmd) Help() string {
	return `Sums up what directories take on the disk, in KiB, rounded up: each with all that lies below it, which
stands above it. An object with several names counts once, also for several PLACEs; beyond 1,048,576 of such objects, each
name of a further one counts, and a note says how many. A link is not followed. PLACEs that overlap are summed up each for itself: a
directory that lies in two of them counts in both, and twice in the total of -c.

A sum in which something is missing, as it could not be looked at, is what there is at least: the exit status is 2, and with
--json "complete" is false. Of a server each line has a URL, which other commands take. Attributes come with
the listings: nothing is asked for a single file.

--include, --exclude and --filter-from are rsync's: of all, the first that matches an entry decides. A directory that
is left out is not listed.

  nfsbox du -h -d 1 nfs://filer/export/home
  nfsbox du -sc 'nfs://filer/export/projects/*'
  nfsbox du -ab ./tree`
}

// Validate is called by kong.
func (c *duCmd) Validate() error {
	if c.MaxDepth < -1 {
		return errors.New("--max-depth is at least 0")
	}
	if c.Summarize && c.All {
		return errors.New("-s and -a do not go together")
	}
	if c.Summarize && c.MaxDepth > 0 {
		return errors.New("-s and -d do not go together")
	}
	return c.onlyOne(c.Places)
}

// usageEvent is a sum of du in JSON.
type usageEvent struct {
	Path      string `json:"path,omitempty"`
	PathBytes string `json:"path_base64,omitempty"` // if the path is not UTF-8
	Entries   uint64 `json:"entries"`
	Size      uint64 `json:"size"`
	Used      uint64 `json:"used"`
	Complete  bool   `json:"complete"`
}

// duSummary is the last event of du.
type duSummary struct {
	listSummary
	Links uint64 `json:"hardlinks"`      // further names of objects, which were not counted
	Over  uint64 `json:"hardlinks_over"` // names that were counted, and may be further ones
	leftOut
}

// summer is du under way.
type summer struct {
	*looker
	cmd   *duCmd
	links *scan.Links
	total scan.Sum
}

func (c *duCmd) Run(e *env) error {
	l, err := c.look(e, false, nil)
	if err != nil {
		return err
	}
	if c.Summarize {
		c.MaxDepth = 0
	}
	s := &summer{looker: l, cmd: c}
	if !c.CountLinks {
		s.links = scan.NewLinks()
	}
	if err = l.choose(c.From0, &c.fileFlags); err == nil {
		err = l.places(c.Places, s.one)
	}
	if c.Total {
		err = errors.Join(err, s.row("total", "", s.total))
	}
	if over := s.links.Over(); over > 0 {
		l.note(fmt.Sprintf("of objects with several names %d were remembered; %s names of others are counted each", scan.MaxLinks, progress.Count(over)))
	}
	left := l.tellLeft()
	return l.done(err, func(sum listSummary) any { return &duSummary{sum, s.links.Names(), s.links.Over(), left} })
}

// one sums up a place.
func (s *summer) one(p *place.Place, r *vfs.Resolved) error {
	if r.Attr.Type != vfs.TypeDir {
		if s.links.Again(&r.Attr) {
			return nil
		}
		return s.add(p.Spelled(), scan.SumOf(&r.Attr))
	}
	names := spell(p)
	u := &scan.Usage{Links: s.links}
	u.Dir = func(d *walk.Dir, sum scan.Sum) error {
		if d.Parent == nil {
			return s.add(p.Spelled(), sum)
		}
		return s.below(names, d, d.Depth(), nil, sum)
	}
	if s.cmd.All {
		u.File = func(d *walk.Dir, name []byte, sum scan.Sum) error { return s.below(names, d, d.Depth()+1, name, sum) }
	}
	u.Failed = func(d *walk.Dir, name string, err error) bool { return s.fault(names.fault(d, name, err), err) }
	o := walk.Options{Descend: func(child *walk.Dir) bool { return !s.elsewhere(child) }}
	return s.walk(p, r.Handle, o, u)
}

// add prints the sum of a whole place.
func (s *summer) add(path string, sum scan.Sum) error {
	s.total.Entries += sum.Entries
	s.total.Size += sum.Size
	s.total.Used += sum.Used
	s.total.Short = s.total.Short || sum.Short
	return s.row("usage", path, sum)
}

// below prints the sum of what lies at a depth below a place, unless that is too deep.
func (s *summer) below(names *speller, d *walk.Dir, depth int, name []byte, sum scan.Sum) error {
	if s.cmd.MaxDepth >= 0 && depth > s.cmd.MaxDepth {
		return nil
	}
	return s.row("usage", names.place(d, name), sum)
}

// row prints a sum: in JSON with a type, in text "total" for a path if there is none.
func (s *summer) row(kind, path string, sum scan.Sum) error {
	if s.json {
		return s.event(kind, &usageEvent{path, notUTF8(path), sum.Entries, sum.Size, sum.Used, !sum.Short})
	}
	n, size := sum.Used, ""
	if s.cmd.Apparent || s.cmd.Bytes {
		n = sum.Size
	}
	switch {
	case s.cmd.Human:
		size = ls.Size(n)
	case s.cmd.Bytes:
		size = fmt.Sprint(n)
	default:
		size = fmt.Sprint(kib(n))
	}
	if kind == "total" {
		path = kind
	}
	if s.cmd.Null {
		return s.line(size + "\t" + path + "\x00")
	}
	return s.line(size + "\t" + s.shown(path) + "\n")
}
