package search

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/nfsbox/nfsbox/internal/base/lines"
	"github.com/nfsbox/nfsbox/vfs"
)

// MaxWorkers is the most that Options can ask for.
const MaxWorkers = 256

// Options say how files are searched.
type Options struct {
	Pattern *lines.Pattern
	Search  lines.Search
	Workers int // files that are read at once, at least 1

	// Match, if not nil, makes for each worker what tells whether a line matches.
	Match func() func(line []byte) bool

	// Show prints a line of a file. Done prints what is to be said of a file in the end; err says why not all of it was
	// searched. They are called by the worker of that file. An error ends the search.
	Show func(o *Output, f *File, l *lines.Line) error
	Done func(o *Output, f *File, r *lines.Result, err error) error
}

// File is a file to be searched.
type File struct {
	FS     vfs.FS
	Handle vfs.Handle
	Size   uint64 // below which its end is an error; 0: where it ends is its end
	Name   string
	Read   io.Reader // instead of FS and Handle, if not nil
}

// Group searches files. Add and Wait are for one goroutine.
type Group struct {
	o       *Options
	p       *Printer
	ctx     context.Context
	cancel  context.CancelCauseFunc
	files   chan task
	workers sync.WaitGroup
	running int
}

type task struct {
	File
	out *Output
}

// NewGroup begins a search. Wait ends it, and has to be called.
func NewGroup(ctx context.Context, o *Options, p *Printer) *Group {
	g := &Group{o: o, p: p, files: make(chan task)}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Add has a file searched. It waits until a worker takes it. An error is that which has ended the search.
func (g *Group) Add(f File) error {
	out, err := g.p.begin()
	if err != nil {
		g.cancel(err)
		return err
	}
	t := task{f, out}
	select {
	case g.files <- t:
		return nil
	default:
	}
	if g.running < min(g.o.Workers, MaxWorkers) {
		g.running++
		g.workers.Go(func() { g.work(t) })
		return nil
	}
	select {
	case g.files <- t:
		return nil
	case <-g.ctx.Done():
		return errors.Join(context.Cause(g.ctx), out.end())
	}
}

// Wait waits until all files are searched. It returns what has ended the search early.
func (g *Group) Wait() error {
	close(g.files)
	g.workers.Wait()
	defer g.cancel(nil)
	return context.Cause(g.ctx)
}

// work searches files.
func (g *Group) work(t task) {
	var match func([]byte) bool
	if g.o.Match != nil {
		match = g.o.Match()
	}
	s := lines.NewSearcher(g.o.Pattern, g.o.Search, match)
	for ok := true; ok; t, ok = <-g.files {
		err := g.ctx.Err()
		if err == nil {
			err = g.one(s, &t)
		}
		if oerr := t.out.end(); err == nil {
			err = oerr
		}
		if err != nil {
			g.cancel(err)
		}
	}
}

// errShow is an error of Show.
type errShow struct{ error }

func (e errShow) Unwrap() error { return e.error }

// one searches a file. An error ends the search.
func (g *Group) one(s *lines.Searcher, t *task) (err error) {
	from := t.Read
	if from == nil {
		f, _, err := t.FS.Open(g.ctx, vfs.At{H: t.Handle, Label: t.Name}, &vfs.OpenHow{Access: vfs.ShareRead})
		if err != nil {
			return g.o.Done(t.out, &t.File, new(lines.Result), err)
		}
		defer func() { _ = f.Close(context.WithoutCancel(g.ctx)) }() // nothing was written
		from = lines.NewReader(g.ctx, t.FS, t.Handle, f, t.Size)
	}
	r, err := s.Search(from, func(l *lines.Line) error {
		if err := g.o.Show(t.out, &t.File, l); err != nil {
			return errShow{err}
		}
		return nil
	})
	if shown, ok := errors.AsType[errShow](err); ok {
		return shown.error
	}
	if err != nil && g.ctx.Err() != nil {
		return g.ctx.Err()
	}
	return g.o.Done(t.out, &t.File, &r, err)
}
