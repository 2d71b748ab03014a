package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxMatches bounds what one pattern stands for. More is an error: a script would run out of
// room for the arguments, and a tree is better named by its directory.
const maxMatches = 10000

var errMatches = fmt.Errorf("it stands for more than %d names: name their directory instead", maxMatches)

// eachMatch yields the places that arguments stand for, or an argument with what is wrong with
// its pattern.
func eachMatch(ctx context.Context, args []string, po place.Options) iter.Seq2[string, error] {
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

// matches are the places that an argument stands for. The patterns are those of path.Match, in
// the path of a URL: patterns of local paths are the shell's. A pattern that
// matches nothing stands for itself.
func matches(ctx context.Context, arg string, po place.Options) ([]string, error) {
	u, err := nfsbox.ParseURL(arg)
	if !place.IsURL(arg) || err != nil || !isPattern(u.Path) {
		return []string{arg}, nil // what is wrong with it, opening it says
	}
	at := *u
	dir, parts := patternOf(u.Path)
	at.Path = dir
	found, err := matchesBelow(ctx, at.String(), dir, parts, po)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: %w", arg, vfs.ErrNoEnt)
	}
	for i := range found {
		at.Path = found[i]
		found[i] = at.String()
	}
	return found, nil
}

// matchesBelow are the paths that parts stand for in the directory of a URL, whose path is dir.
func matchesBelow(ctx context.Context, url, dir string, parts []string, po place.Options) (found []string, err error) {
	p, err := place.Open(ctx, url, po)
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

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// patternOf divides a path into the directory without a pattern, and what follows.
func patternOf(whole string) (dir string, parts []string) {
	parts = strings.Split(strings.TrimPrefix(whole, "/"), "/")
	i := slices.IndexFunc(parts, isPattern)
	return "/" + strings.Join(parts[:i], "/"), parts[i:]
}

// globber finds the names that a pattern stands for.
type globber struct {
	ctx   context.Context
	fs    vfs.FS
	found []string // paths
}

// below finds what parts stand for in the directory dir, which at names.
func (g *globber) below(dir vfs.Handle, at string, parts []string) error {
	names, err := g.names(dir, parts[0])
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	for _, name := range names {
		full := path.Join(at, name)
		if len(parts) == 1 || len(parts) == 2 && parts[1] == "" {
			if len(g.found) == maxMatches {
				return errMatches
			}
			g.found = append(g.found, full)
			continue
		}
		h, attr, _, err := g.fs.Lookup(g.ctx, dir, name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && attr.Has(vfs.MaskType) && attr.Type != vfs.TypeDir {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", full, err)
		}
		if err := g.below(h, full, parts[1:]); err != nil {
			return err
		}
	}
	return nil
}

// names are the names in dir that a pattern stands for, sorted. As for a shell, what is no
// pattern, or matches nothing, stands for itself. Names that begin with a dot match only a pattern that does.
func (g *globber) names(dir vfs.Handle, pattern string) (names []string, err error) {
	shape := strings.ReplaceAll(pattern, "[!", "[^") // as shells write it, and package path
	if _, bad := path.Match(shape, ""); !isPattern(pattern) || bad != nil {
		return g.itself(dir, pattern)
	}
	for entry, err := range walk.List(g.ctx, g.fs, dir, 0) {
		if err != nil {
			return nil, err
		}
		name := string(entry.Name)
		ok, _ := path.Match(shape, name) // the pattern has no error: it was tried
		if !ok || walk.CheckName(entry.Name) != nil || ls.Hidden(name) && !ls.Hidden(pattern) {
			continue
		}
		if len(names) == maxMatches {
			return nil, errMatches
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return g.itself(dir, pattern)
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
