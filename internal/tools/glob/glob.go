// Package glob finds what patterns in the path of a URL stand for, as a shell does for local paths: those are the shell's.
//
// A pattern is of one part of a path. It is looked for by listing the directory above. What is
// escaped in the URL stands for itself. docs/urls.md has the rules.
package glob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/find"
	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxMatches bounds what one pattern stands for. More is an error: a script would run out of
// room for the arguments, and a tree is better named by its directory.
const maxMatches = 10000

var errMatches = fmt.Errorf("it stands for more than %d names: name their directory instead", maxMatches)

// Each yields the places that arguments stand for, or an argument with what is wrong with
// its pattern. It opens each argument with a pattern by po, and closes it before it yields.
func Each(ctx context.Context, args []string, po place.Options) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			each, err := matches(ctx, arg, po)
			if err != nil {
				each = []string{arg}
			}
			for _, one := range each {
				if !yield(one, err) {
					return
				}
			}
		}
	}
}

// Given yields arguments as they are: names of what is to be made, and what patterns stand for, which
// is no pattern again.
func Given(args []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			if !yield(arg, nil) {
				return
			}
		}
	}
}

// OrItself yields, where nothing is there that a pattern stands for, the pattern: as the name of what
// may be made.
func OrItself(each iter.Seq2[string, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for arg, err := range each {
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			if !yield(arg, err) {
				return
			}
		}
	}
}

// matches are the places that an argument stands for. The patterns are those of find, in
// the path of a URL: patterns of local paths are the shell's, and a path in a snapshot has none. One with a slash behind it stands for
// directories. It is an error if nothing is there that it stands for.
func matches(ctx context.Context, arg string, po place.Options) ([]string, error) {
	u, err := nfsbox.ParseURL(arg)
	if _, _, _, kept := place.Divide(arg); kept || !place.IsURL(arg) || err != nil {
		return []string{arg}, nil // what is wrong with it, opening it says
	}
	dir, parts := patternOf(arg)
	if len(parts) == 0 {
		return []string{arg}, nil
	}
	at := *u
	at.Path = dir
	found, err := matchesBelow(ctx, at.String(), dir, parts, po)
	if err == nil && len(found) == 0 {
		err = vfs.ErrNoEnt
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	for i := range found {
		at.Path = found[i]
		found[i] = at.String()
	}
	return found, nil
}

// matchesBelow are the paths that parts stand for in the directory of a URL, whose path is dir.
func matchesBelow(ctx context.Context, at, dir string, parts []segment, po place.Options) (found []string, err error) {
	p, err := place.Open(ctx, at, po)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	r, err := p.Resolve(ctx, true)
	if err != nil {
		return nil, err
	}
	g := &globber{ctx: ctx, fs: p.FS}
	err = g.below(r.Handle, dir, parts)
	return g.found, err
}

// segment is a part of a URL's path.
type segment struct {
	name    string
	pattern *find.Glob // nil: it is none
}

// patternOf divides a URL's path into the directory without a pattern, and what follows, with an
// empty part in the end if the path ends in a slash. Without a pattern nothing follows.
func patternOf(arg string) (dir string, parts []segment) {
	_, arg, _ = strings.Cut(arg, "://")
	arg, _, _ = strings.Cut(arg, "?")
	_, raw, _ := strings.Cut(strings.NewReplacer("%2F", "/", "%2f", "/").Replace(arg), "/")
	dir = "/"
	for text := range strings.SplitSeq(raw, "/") {
		switch p := segmentOf(text); {
		case p.name == "":
		case p.pattern == nil && len(parts) == 0:
			dir = Inside(dir, p.name)
		default:
			parts = append(parts, p)
		}
	}
	if len(parts) > 0 && strings.HasSuffix(raw, "/") {
		parts = append(parts, segment{})
	}
	return dir, parts
}

// segmentOf reads a part as a URL has it. What is escaped stands for itself, but %3F, which without that
// would end the path.
func segmentOf(raw string) segment {
	name, err := url.PathUnescape(raw)
	if err != nil || !strings.ContainsAny(raw, "*[") && !strings.Contains(name, "?") {
		return segment{name: name}
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			one, _ := url.PathUnescape(raw[i : i+3]) // the whole could be
			c, i = one[0], i+2
			if strings.IndexByte(`*[]\!^:-`, c) >= 0 {
				b.WriteByte('\\')
			}
		}
		b.WriteByte(c)
	}
	pattern, err := find.ParseGlob(b.String(), false)
	if err != nil || pattern.Literal() {
		return segment{name: name} // as for a shell
	}
	return segment{name, pattern}
}

// Inside is the path of a name in a directory. Nothing is cleaned: behind a link, ".." is what the
// server has there.
func Inside(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// globber finds the names that a pattern stands for.
type globber struct {
	ctx   context.Context
	fs    vfs.FS
	found []string // paths
}

// below finds what parts stand for in the directory dir, which at names.
func (g *globber) below(dir vfs.Handle, at string, parts []segment) error {
	names, err := g.names(dir, parts[0])
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for _, name := range names {
		full := Inside(at, name)
		if len(parts) == 1 {
			if err := g.add(full); err != nil {
				return err
			}
			continue
		}
		h, isDir, err := g.directory(dir, name)
		switch {
		case err != nil:
			err = fmt.Errorf("%s: %w", full, err)
		case isDir && parts[1].name == "":
			err = g.add(full)
		case isDir:
			err = g.below(h, full, parts[1:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *globber) add(found string) error {
	if len(g.found) == maxMatches {
		return errMatches
	}
	g.found = append(g.found, found)
	return nil
}

// directory finds what has a name, and whether that is a directory. A link is none.
func (g *globber) directory(dir vfs.Handle, name string) (h vfs.Handle, isDir bool, err error) {
	h, attr, _, err := g.fs.Lookup(g.ctx, dir, name)
	if err == nil && !attr.Has(vfs.MaskType) {
		attr, err = g.fs.GetAttr(g.ctx, h, vfs.MaskV3)
	}
	return h, err == nil && attr.Type == vfs.TypeDir, notThere(err)
}

// names are the names in dir that a part stands for, sorted. As for a shell, what is no
// pattern, or matches nothing, stands for itself. Names that begin with a dot match only a pattern that does.
func (g *globber) names(dir vfs.Handle, p segment) (names []string, err error) {
	if p.pattern == nil {
		return g.itself(dir, p.name)
	}
	for entry, err := range walk.List(g.ctx, g.fs, dir, 0) {
		if err != nil {
			return nil, err
		}
		name := string(entry.Name)
		if !p.pattern.Match(entry.Name) || walk.CheckName(entry.Name) != nil || ls.Hidden(name) && !ls.Hidden(p.name) {
			continue
		}
		if len(names) == maxMatches {
			return nil, errMatches
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return g.itself(dir, p.name)
	}
	slices.Sort(names)
	return names, nil
}

// itself is the name, if it is there.
func (g *globber) itself(dir vfs.Handle, name string) ([]string, error) {
	_, _, _, err := g.fs.Lookup(g.ctx, dir, name)
	if err != nil {
		return nil, notThere(err)
	}
	return []string{name}, nil
}

// notThere is err, unless it says that a name is not there.
func notThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
