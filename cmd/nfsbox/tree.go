package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/tools/glob"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// treeFlags are those of commands that look through trees, and print what they find.
type treeFlags struct {
	OneFileSystem bool   `name:"one-file-system" short:"x" help:"Leave out what is in directories that are on another file system than PLACE, or that something of this host is mounted on, and count those."`
	Parallel      int    `placeholder:"N" help:"Directories to look at once, 1 to 256; over a network further ones are listed ahead. With more than one they come in any order (default: 1, of scan 8)."`
	ErrorsTo      string `type:"path" placeholder:"FILE" help:"Write every failure to FILE, as lines of JSON; in text three of each cause are shown, and the others counted."`
	JSON          bool   `help:"Print one line of JSON for each, then a summary."`
	ruleFlags
	clientFlags
}

// looker is such a command under way.
type looker struct {
	*treeFlags
	*output
	e     *env
	po    place.Options
	fails *progress.Tracker
	rpcs  uint64
	other atomic.Uint64 // directories that elsewhere leaves out

	chosen *filter.Filter // nil until choose
}

// choose reads what the flags choose of trees; files is nil if the command has no such flags.
func (l *looker) choose(from0 bool, files *fileFlags) (err error) {
	l.chosen, err = l.filter(from0, files)
	return err
}

// look begins a command. follow says whether a place that is a link is what that leads to; how it shows its progress, if
// it does.
func (f *treeFlags) look(e *env, follow bool, how *progressFlags) (*looker, error) {
	if f.Parallel < 0 || f.Parallel > walk.MaxParallel {
		return nil, refused(fmt.Errorf("--parallel takes 1 to %d", walk.MaxParallel))
	}
	po, err := f.place(follow)
	if err != nil {
		return nil, err
	}
	l := &looker{treeFlags: f, output: newOutput(e, f.JSON), e: e}
	l.po = l.watch(e, po)
	l.po.OneFileSystem = f.OneFileSystem
	r := how.renderer(e, hasAll(f.ErrorsTo))
	if f.JSON {
		r = unsummed{progress.JSON(lineWriter{l.output})}
		if how.none() {
			r = quiet{r}
		}
	}
	if f.ErrorsTo != "" {
		file, err := os.Create(f.ErrorsTo)
		if err != nil {
			return nil, refused(fmt.Errorf("--errors-to: %w", err))
		}
		all := errorFile{progress.JSON(file), file}
		r = progress.Both(r, all)
		l.also = func(x *progress.Event) { _ = all.Event(time.Now(), x) } // closing the file tells of its errors
	}
	l.fails = progress.New(r, time.Now)
	return l, nil
}

// progressFlags say how a command that looks through trees shows how far it has come.
type progressFlags struct {
	Progress   string `enum:"auto,bar,lines,none" default:"auto" placeholder:"auto|bar|lines|none" help:"Show the progress as a line that is rewritten (bar), as a line every ten seconds (lines), or not at all; auto is bar on a terminal, and else lines."`
	NoProgress bool   `help:"The same as --progress=none."`
	Quiet      bool   `short:"q" help:"Print failures alone."`
}

func (f *progressFlags) none() bool {
	return f == nil || f.NoProgress || f.Quiet || f.Progress == "none"
}

// renderer shows the progress, and failures, to people; all says where all of these are.
func (f *progressFlags) renderer(e *env, all string) progress.Renderer {
	switch {
	case f.none():
		return progress.Grouped(failures{progress.Line(e.stderr)}, all)
	case f.Progress == "bar" || e.tty && f.Progress != "lines":
		return progress.Grouped(progress.OfItems(progress.Bar(e.stderr, e.width)), all)
	}
	return progress.Grouped(progress.OfItems(progress.Line(e.stderr)), all)
}

// unsummed leaves the summary to the command.
type unsummed struct{ progress.Renderer }

func (unsummed) Summary(*progress.Snapshot, any) error { return nil }

// lineWriter writes whole lines of JSON between those of an output.
type lineWriter struct{ *output }

func (w lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(line), errors.Join(w.anew(line), w.w.Flush())
}

// places opens what the arguments stand for, one after the other, and calls do with what each names.
func (l *looker) places(args []string, do func(p *place.Place, r *vfs.Resolved) error) error {
	return l.each(l.e, glob.Each(l.e.ctx, args, l.po), func(arg string) error {
		return onePlace(l.e.ctx, arg, l.po, place.Open, func(p *place.Place) error {
			defer l.counted(p)
			r, err := p.Resolve(l.e.ctx, l.po.Follow)
			if err == nil && r.Attr.Type != vfs.TypeDir && l.FilesFrom != "" {
				err = refused(fmt.Errorf("%s: %w: --files-from lists paths in one", p.Text, vfs.ErrNotDir))
			}
			if err != nil {
				return err
			}
			return do(p, &r)
		})
	})
}

// counted takes over what a place has counted, before it is closed.
func (l *looker) counted(p *place.Place) {
	l.count(p)
	l.other.Add(p.Mounts())
	if s, ok := p.Stats(); ok {
		l.rpcs += s.RPCs
	}
}

// walk walks a tree.
func (l *looker) walk(p *place.Place, root vfs.Handle, o walk.Options, v walk.Visitor) error {
	if o.Parallel = l.Parallel; o.Parallel == 0 {
		o.Parallel = 1
	}
	o.Choose = l.chosen.Choose
	also := o.LeftOut
	o.LeftOut = func(d *walk.Dir, e *vfs.Entry) {
		l.chosen.LeftOut(e)
		if also != nil {
			also(d, e)
		}
	}
	err := about(p, walk.Tree(l.e.ctx, p.FS, root, o, v))
	if err == nil {
		l.missing(spell(p))
	}
	return err
}

// tellLeft tells people of directories of snapshots, and of other file systems, that were left out. What rules leave out they know.
func (l *looker) tellLeft() leftOut {
	left := l.left()
	if left.Snapshots+left.Elsewhere > 0 && !l.json {
		l.note("left out: " + left.words())
	}
	return left
}

// left is what was left out.
func (l *looker) left() leftOut {
	left := leftOutOf(l.chosen)
	left.Elsewhere = l.other.Load()
	return left
}

// missing reports what --files-from lists and the walk has not met.
func (l *looker) missing(names *speller) {
	for path := range l.chosen.Missing() {
		l.fault(names.below("/"+path), errNotListed)
	}
}

// elsewhere reports whether a directory is left out, since it is on another file system than the root of its walk, and counts it
// then.
func (l *looker) elsewhere(d *walk.Dir) bool {
	if !l.OneFileSystem || !d.Attr.Has(vfs.MaskFSID) {
		return false
	}
	top := d
	for top.Parent != nil {
		top = top.Parent
	}
	other := top.Attr.Has(vfs.MaskFSID) && top.Attr.FSID != d.Attr.FSID
	if other {
		l.other.Add(1)
	}
	return other
}

// fault counts and reports what could not be looked at, and reports whether something is missing
// therefore. What is gone is not missing.
func (l *looker) fault(path string, err error) bool {
	if errors.Is(err, walk.ErrVanished) {
		return false
	}
	l.mu.Lock()
	l.errors++
	l.mu.Unlock()
	l.fails.Add(progress.Errors, 1)
	l.fails.Report(progress.Event{Type: "error", Path: path, Message: fault.Text(err), Err: err})
	return true
}

// done ends the command with a summary: what more makes of the numbers that all have.
func (l *looker) done(err error, more func(listSummary) any) error {
	l.print(l.e)
	var sum any = listSummary{l.entries, l.errors}
	if more != nil {
		sum = more(listSummary{l.entries, l.errors})
	}
	if ferr := l.fails.Finish(sum); ferr != nil {
		err = errors.Join(err, fmt.Errorf("output: %w", ferr))
	}
	if l.json {
		if err := l.event("summary", sum); err != nil {
			return err
		}
	}
	if err := l.flush(); err != nil {
		return err
	}
	if err == nil && l.errors > 0 {
		return &exitError{status: exitIncomplete} // each has been reported
	}
	return err
}

// speller spells the paths below a place so that each is a place, too: of a server they are URLs.
type speller struct {
	head  string // without a slash at its end
	tail  string // the arguments of a URL
	path  string // the head's path: of a URL that on the server
	isURL bool
}

func spell(p *place.Place) *speller {
	text := p.Text
	if head, tail, ok := p.InBucket(); ok {
		return &speller{head: trimSlashes(head), tail: tail, path: trimSlashes(strings.TrimPrefix(head, "s3://")), isURL: true}
	}
	u, err := nfsbox.ParseURL(text)
	if _, kept := p.Snapshot(); kept || !place.IsURL(text) || err != nil {
		text = trimSlashes(text)
		return &speller{head: text, path: text}
	}
	head, tail, _ := strings.Cut(u.String(), "?")
	if tail != "" {
		tail = "?" + tail
	}
	return &speller{head: trimSlashes(head), tail: tail, path: trimSlashes(u.Path), isURL: true}
}

// trimSlashes leaves of "/" nothing, to which "/name" can be added.
func trimSlashes(path string) string { return strings.TrimRight(path, "/") }

// place spells the place of name in d, or of d itself if name is empty.
func (s *speller) place(d *walk.Dir, name []byte) string {
	var buf [512]byte
	below := appendBelow(buf[:0], d, name)
	if len(below) == 0 && s.path == "" {
		below = append(below, '/')
	}
	return s.below(string(below))
}

// fault spells the place of what has failed. What has no name has no URL either: of that it is the directory.
func (s *speller) fault(d *walk.Dir, name string, err error) string {
	if s.isURL && errors.Is(err, walk.ErrName) {
		name = ""
	}
	return s.place(d, []byte(name))
}

// below spells the place of a path below the head, which begins with a slash.
func (s *speller) below(path string) string {
	if s.isURL {
		// "::" would divide a snapshot from its store.
		return s.head + strings.ReplaceAll((&url.URL{Path: path}).EscapedPath(), "::", "%3A%3A") + s.tail
	}
	return s.head + path
}

// appendPath appends the path that is tested: as spelled, of a URL that on the server.
func (s *speller) appendPath(buf []byte, d *walk.Dir, name []byte) []byte {
	if buf = appendBelow(append(buf, s.path...), d, name); len(buf) == 0 {
		buf = append(buf, '/')
	}
	return buf
}

// appendBelow appends "/" and a name for each directory on the way from the root of the walk.
func appendBelow(buf []byte, d *walk.Dir, name []byte) []byte {
	var way [64]*walk.Dir
	dirs := way[:0]
	for ; d != nil && d.Parent != nil; d = d.Parent {
		dirs = append(dirs, d)
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		buf = append(append(buf, '/'), dirs[i].Name...)
	}
	if len(name) > 0 {
		buf = append(append(buf, '/'), name...)
	}
	return buf
}

// shown is a name for the output: as it is, but on a terminal without what could steer that.
func (l *looker) shown(path string) string {
	if l.e.size == nil {
		return path
	}
	return progress.Clean(path)
}

// line prints text, at once if a terminal shows it.
func (l *looker) line(text string) error {
	err := l.text(text)
	if err == nil && l.e.size != nil {
		err = l.flush()
	}
	return err
}
