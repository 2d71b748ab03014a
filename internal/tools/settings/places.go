package settings

import (
	"errors"
	"fmt"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/near"
)

// aliasName has two letters at least: one is a drive of Windows.
var aliasName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]+$`)

func checkAlias(name, value string) error {
	if !aliasName.MatchString(name) {
		return fmt.Errorf("alias.%s: a name has two or more letters, digits, '.', '-' and '_'", name)
	}
	if _, err := nfsbox.ParseURL(value); err != nil {
		return fmt.Errorf("alias.%s: %w", name, err)
	}
	return nil
}

// argOf is an argument of a URL.
func argOf(key, value string) string {
	if value == "true" { // of those that are flags
		return key
	}
	return key + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

func checkArg(key, value string) error {
	if value == "false" {
		return fmt.Errorf("%s: what is not set is left out", key)
	}
	if _, err := nfsbox.ParseURL("nfs://host/?" + argOf(key, value)); err != nil {
		if u := new(nfsbox.URLError); errors.As(err, &u) {
			err = fmt.Errorf("%s: %w", u.Arg, u.Err)
		}
		return fmt.Errorf("as an argument of a URL: %w", err)
	}
	return nil
}

// Aliases are the names of places, sorted, with what they stand for.
func (s *Settings) Aliases() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, a := range s.aliases {
			if !yield(a.key, a.value) {
				return
			}
		}
	}
}

// Alias is the URL that NAME:PATH stands for: that of the alias, with the path below it. A PATH is
// meant as it is typed, but for the patterns *, [ and ?. ok is false if there is no such alias.
func (s *Settings) Alias(arg string) (url string, ok bool) {
	name, path, _ := strings.Cut(arg, ":")
	i, ok := slices.BinarySearchFunc(s.aliases, name, func(a entry, name string) int { return strings.Compare(a.key, name) })
	if !ok || len(name) == len(arg) {
		return "", false
	}
	return below(s.aliases[i].value, path), true
}

// NearAlias is the alias that was meant where a name is none; "" if all are far from it, or it is one.
func (s *Settings) NearAlias(name string) string {
	return near.Of(name, func(yield func(string) bool) {
		for alias := range s.Aliases() {
			if !yield(alias) {
				return
			}
		}
	})
}

// Server is a URL with the arguments that are set for its server, unless it has them. All else is
// returned as it is.
func (s *Settings) Server(url string) string {
	u, err := nfsbox.ParseURL(url)
	if err != nil {
		return url // what is wrong with it, opening it says
	}
	for _, host := range []string{strings.ToLower(u.Host), "*"} {
		for _, e := range s.servers[host] {
			url = withArg(url, argOf(e.key, e.value))
		}
	}
	return url
}

// below is the URL of a path below another URL. '%' and '?' mean something in a URL.
func below(base, path string) string {
	base, args, has := strings.Cut(base, "?")
	if path = strings.TrimLeft(path, "/"); path != "" {
		base = strings.TrimSuffix(base, "/") + "/" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(path)
	}
	if has {
		base += "?" + args
	}
	return base
}

// withArg is a URL with one argument more, unless it has that, or one that contradicts it.
func withArg(whole, arg string) string {
	sep := "?"
	if strings.Contains(whole, "?") {
		sep = "&"
	}
	if _, err := nfsbox.ParseURL(whole + sep + arg); err != nil {
		return whole
	}
	return whole + sep + arg
}
