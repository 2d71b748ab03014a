package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/settings"
)

// userSettings reads what the user has set, when it is asked for: help and the version are shown
// however wrong the file is.
func userSettings() func() (*settings.Settings, error) {
	return sync.OnceValues(func() (*settings.Settings, error) {
		file, named := settings.File(os.LookupEnv)
		return settings.Read(file, named, os.Getenv)
	})
}

// resolver gives flags that the command line does not name what the user has set.
type resolver struct {
	read func() (*settings.Settings, error)
	from map[string]string // where the flags that it has given stand
	err  error             // what is wrong with the file; kong would blame a flag for it
	good bool              // the file has been checked
}

// Validate is called by kong before anything is parsed; the file is checked when it is used.
func (r *resolver) Validate(*kong.Application) error { return nil }

// Resolve is called by kong for each flag that the command line does not name.
func (r *resolver) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	node := ctx.Selected()
	if r.read == nil || r.err != nil || flag.Name == "help" || node == nil || !settable(node) {
		return nil, nil
	}
	set, err := r.read()
	if err == nil && !r.good {
		err = set.Check(settableFlags)
		r.good = true
	}
	if r.err = err; err != nil {
		return nil, nil
	}
	value, from, list, ok := set.Flag(commandOf(node), flag.Name)
	if !ok {
		return nil, nil
	}
	if list && !flag.IsSlice() {
		r.err = fmt.Errorf("%s: --%s takes one value, and no list", from, flag.Name)
		return nil, nil
	}
	r.from[flag.Name] = from
	return value, nil
}

// source says where flags that an error names were set, if not on the command line.
func (r *resolver) source(err error) string {
	for name, from := range r.from {
		if strings.Contains(err.Error(), "--"+name) {
			return " (set by " + from + ")"
		}
	}
	return ""
}

// sourced is an error of a command that has begun; where it refuses a flag, with where that was set.
func (r *resolver) sourced(err error) error {
	if exit, is := errors.AsType[*exitError](err); is && len(joined(err)) == 1 && exit.status == exitUsage && exit.err != nil {
		if from := r.source(exit.err); from != "" {
			return &exitError{exitUsage, fmt.Errorf("%w%s", exit.err, from)}
		}
	}
	return err
}

// settable reports whether settings of the user are for this command. A server has a file of its
// own.
func settable(node *kong.Node) bool { return commandOf(node) != "serve" }

// commandOf is a command as it is typed behind the program's name.
func commandOf(node *kong.Node) string {
	_, command, _ := strings.Cut(node.FullPath(), " ")
	return command
}

// settableFlags are the commands for which settings are, with the names of their flags.
func settableFlags() (map[string][]string, error) {
	app, err := whole()
	if err != nil {
		return nil, err
	}
	known := make(map[string][]string)
	for _, node := range app.Leaves(true) {
		if !settable(node) {
			continue
		}
		names := []string{}
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				if f.Name != "help" {
					names = append(names, f.Name)
				}
			}
		}
		known[commandOf(node)] = names
	}
	return known, nil
}

// strays tells of variables that set nothing, and were meant for another one.
func (e *env) strays() error {
	all, err := settings.Stray(e.environ, settableFlags)
	for _, told := range all {
		e.note(told)
	}
	return err
}

// note tells people something that is no failure.
func (e *env) note(text string) {
	// There is nowhere to report an error of stderr.
	_, _ = io.WriteString(e.stderr, "nfsbox: "+progress.Clean(text)+"\n")
}

// nearAlias is the alias that was meant where a name is none; "" if none was.
func (e *env) nearAlias(name string) string {
	if e.set == nil {
		return ""
	}
	set, err := e.set()
	if err != nil {
		return "" // it has been told
	}
	return set.NearAlias(name)
}

// aliasFor is what to do about err where an unknown host was to be an alias; else advice.
func (e *env) aliasFor(err error, advice string) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	if !ok || !dns.IsNotFound {
		return advice
	}
	if alias := e.nearAlias(dns.Name); alias != "" {
		return "did you mean the alias " + alias + ":? " + advice
	}
	return advice
}

// misspelt tells of a path of this host that is not there, and looks like an alias.
func (e *env) misspelt(arg string) {
	name, path, ok := strings.Cut(arg, ":")
	if !ok || strings.HasPrefix(path, "/") || strings.Contains(name, "/") {
		return
	}
	alias := e.nearAlias(name)
	if _, err := os.Lstat(arg); alias != "" && err != nil {
		e.note(fmt.Sprintf("%s is taken for a path of this host; did you mean %s:%s?", arg, alias, path))
	}
}

// meantAll puts into a command's arguments that are places what their user means by them.
func (e *env) meantAll(command *kong.Node) (err error) {
	for _, arg := range command.Positional {
		if !arg.Tag.Has("place") {
			continue
		}
		switch to := arg.Target.Addr().Interface().(type) {
		case *string:
			e.misspelt(*to)
			*to, err = e.meant(*to)
		case *[]string:
			for i := range *to {
				e.misspelt((*to)[i])
				if (*to)[i], err = e.meant((*to)[i]); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// meant is what a user means by a place: what an alias stands for, else what package place knows,
// with what is set for the server. Of a place in a snapshot that is the store.
func (e *env) meant(arg string) (string, error) {
	if err := place.CheckStore(arg); err != nil {
		return "", err
	}
	if store, _, _, ok := place.Divide(arg); ok {
		meant, err := e.meant(store)
		return meant + arg[len(store):], err
	}
	if e.set == nil {
		return place.Meant(arg), nil
	}
	set, err := e.set()
	if err != nil {
		return "", err
	}
	url, ok := set.Alias(arg)
	if !ok {
		url = place.Meant(arg)
	}
	return set.Server(url), nil
}
