package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/ls"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// completeTime bounds how long a shell waits for the names of a server. What was found by
	// then is offered.
	completeTime = time.Second
	// maxCompletions bounds what is offered. Of more names the first are; another letter helps.
	maxCompletions = 500
)

// completeCmd is for the scripts of completion: it prints what a place that is being typed may
// become, a line each. It prints no error, which would end up in the line that is being typed.
type completeCmd struct {
	Word string `arg:"" optional:"" name:"WORD" help:"What was typed."`
}

func (c *completeCmd) Run(e *env) error {
	ctx, cancel := context.WithTimeout(e.ctx, completeTime)
	defer cancel()
	found := make(chan []string, 1)
	go e.complete(ctx, c.Word, found)
	select {
	case words := <-found:
		slices.Sort(words)
		for _, word := range words {
			if progress.Clean(word) != word {
				continue // it would be another one when it is typed
			}
			if _, err := fmt.Fprintln(e.stdout, word); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
		}
	case <-ctx.Done():
	}
	return nil
}

// complete sends what word may become, and closes what it has opened.
func (e *env) complete(ctx context.Context, word string, found chan<- []string) {
	if !strings.Contains(word, ":") {
		found <- e.aliases(word)
		return
	}
	at := strings.LastIndexAny(word, ":/") + 1
	base, begun := word[:at], word[at:]
	dir, err := e.meant(base)
	if err != nil || !place.IsURL(dir) || strings.HasSuffix(base, "//") || strings.Contains(base, "?") {
		found <- nil
		return
	}
	escape := func(name string) string { return name }
	if place.IsURL(base) {
		begun, err = url.PathUnescape(begun)
		escape = func(name string) string { return strings.TrimPrefix((&url.URL{Path: "/" + name}).EscapedPath(), "/") }
	}
	p, oerr := place.Open(ctx, dir, place.Options{Follow: true, Dial: []nfsbox.Option{nfsbox.WithStop(ctx)}})
	switch none, is := errors.AsType[*place.NoExport](oerr); {
	case is && err == nil:
		found <- exportsBelow(none, base, begun)
	case oerr != nil || err != nil:
		found <- nil
	default:
		found <- namesIn(ctx, p, base, begun, escape)
		_ = p.Close() // nothing was written
	}
}

// aliases are the aliases that begin so.
func (e *env) aliases(begun string) (found []string) {
	if e.set == nil {
		return nil
	}
	set, err := e.set()
	if err != nil {
		return nil
	}
	for name := range set.Aliases() {
		if strings.HasPrefix(name, begun) {
			found = append(found, name+":")
		}
	}
	return found
}

// exportsBelow are the next parts of the paths of exports.
func exportsBelow(none *place.NoExport, base, begun string) (found []string) {
	for _, path := range none.Below() {
		rest := strings.TrimPrefix(strings.TrimPrefix(path, strings.TrimSuffix(none.URL.Path, "/")), "/")
		part, _, _ := strings.Cut(rest, "/")
		word := base + part + "/"
		if part != "" && strings.HasPrefix(part, begun) && !slices.Contains(found, word) && len(found) < maxCompletions {
			found = append(found, word)
		}
	}
	return found
}

// namesIn are the names in a directory that begin so. One that begins with a dot is offered to
// those who have typed one.
func namesIn(ctx context.Context, p *place.Place, base, begun string, escape func(string) string) (found []string) {
	r, err := p.Resolve(ctx, true)
	if err != nil {
		return nil
	}
	for entry, err := range walk.List(ctx, p.FS, r.Handle, vfs.MaskType) {
		if err != nil || len(found) == maxCompletions {
			break // what was found is offered
		}
		name := string(entry.Name)
		if !strings.HasPrefix(name, begun) || walk.CheckName(entry.Name) != nil || ls.Hidden(name) && !ls.Hidden(begun) {
			continue
		}
		word := base + escape(name)
		if entry.Attr.Type == vfs.TypeDir {
			word += "/"
		}
		found = append(found, word)
	}
	return found
}
