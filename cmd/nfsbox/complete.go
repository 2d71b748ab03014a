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
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
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

// special are the characters of which one, unquoted, means something to a shell.
const special = " \t\n!\"#$&'()*;<>?[\\]^`{|}~=,@"

// completeCmd is for the scripts of completion: it prints what a place that is being typed may
// become, a line each. It prints no error, which would end up in the line that is being typed.
type completeCmd struct {
	Jobs  bool   `help:"Print names of jobs."`
	Plain bool   `help:"Leave out words that mean something to a shell, for shells that insert them as they are."`
	Word  string `arg:"" optional:"" name:"WORD" help:"What was typed."`
}

func (c *completeCmd) Run(e *env) error {
	ctx, cancel := context.WithTimeout(e.ctx, completeTime)
	defer cancel()
	found := make(chan []string, 1)
	if c.Jobs {
		go func() { found <- jobsNamed(c.Word) }()
	} else {
		go e.complete(ctx, c.Word, found)
	}
	select {
	case words := <-found:
		slices.Sort(words)
		for _, word := range words {
			if progress.Clean(word) != word || c.Plain && strings.ContainsAny(word, special) {
				continue // it would be another one when it is typed, or a command of whoever made the name
			}
			if _, err := fmt.Fprintln(e.stdout, word); err != nil {
				return &outputError{err}
			}
		}
	case <-ctx.Done():
	}
	return nil
}

// jobsNamed are the names of jobs that begin so.
func jobsNamed(begun string) (found []string) {
	all, err := jobStore()
	if err != nil {
		return nil
	}
	_ = all.List(func(r jobs.Record, err error) { // what was found is offered
		if err == nil && strings.HasPrefix(r.Name, begun) && len(found) < maxCompletions {
			found = append(found, r.Name)
		}
	})
	return found
}

// complete sends what word may become, and closes what it has opened.
func (e *env) complete(ctx context.Context, word string, found chan<- []string) {
	if !strings.Contains(word, ":") {
		found <- e.aliases(word)
		return
	}
	if at := strings.LastIndex(word, "::"); at > 0 && !strings.Contains(word[at:], "/") {
		found <- e.snapshotsNamed(ctx, word[:at], word[at+len("::"):])
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
		escape = escapeName
	}
	p, oerr := place.Open(ctx, dir, place.Options{Follow: true, Dial: []nfsbox.Option{nfsbox.WithStop(ctx)}})
	switch none, is := errors.AsType[*place.NoExport](oerr); {
	case is && err == nil:
		found <- exportsBelow(none, base, begun, escape)
	case oerr != nil || err != nil:
		found <- nil
	default:
		found <- namesIn(ctx, p, base, begun, escape)
		_ = p.Close() // nothing was written
	}
}

// snapshotsNamed are the names of snapshots in a store that begin so, and behind "@" their ids.
func (e *env) snapshotsNamed(ctx context.Context, store, begun string) (found []string) {
	at, err := e.meant(store)
	if err != nil {
		return nil
	}
	s, err := place.OpenStore(ctx, at, place.StoreOptions{Dial: []nfsbox.Option{nfsbox.WithStop(ctx)}})
	if err != nil {
		return nil
	}
	names, _ := s.Snapshots(ctx, begun) // what was found is offered
	_ = s.Close()                       // nothing was written
	for _, name := range names[:min(len(names), maxCompletions)] {
		found = append(found, store+"::"+name)
	}
	return found
}

// escapeName is a name in the path of a URL. All is escaped that means something to a shell: the
// line that is being typed is the user's, and the name may be an enemy's.
func escapeName(name string) string {
	var b strings.Builder
	for _, c := range []byte(url.PathEscape(name)) {
		if strings.IndexByte(special, c) < 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
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
func exportsBelow(none *place.NoExport, base, begun string, escape func(string) string) (found []string) {
	for _, path := range none.Below() {
		rest := strings.TrimPrefix(strings.TrimPrefix(path, strings.TrimSuffix(none.URL.Path, "/")), "/")
		part, _, _ := strings.Cut(rest, "/")
		word := base + escape(part) + "/"
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
