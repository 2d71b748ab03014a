package worker

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/hands"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// MaxAllowed is how many places a worker may be told to touch. More are refused.
const MaxAllowed = 64

// ErrLocal refuses a path of this host, which is another directory on each machine.
var ErrLocal = errors.New("it is a path of this host, which other machines do not have: workers take nfs://HOST/EXPORT/PATH or HOST:/EXPORT/PATH")

// errNotAllowed says that a job works where this worker must not.
var errNotAllowed = errors.New("not allowed here")

// Allowed is a place that a worker may touch, with all that lies below it.
type Allowed struct {
	arg string
	at  hands.Place
}

// Allow reads a place that a worker may touch.
func Allow(arg string) (Allowed, error) {
	at, err := PlaceOf(arg)
	return Allowed{arg, at}, err
}

// nobody is the caller where the system has no user numbers, as for nfsbox.Dial.
const nobody = 65534

// PlaceOf is the place on a server that arg names, or, with further names, one below it: as coordinators
// and workers speak of it.
func PlaceOf(arg string, names ...string) (at hands.Place, err error) {
	if !place.IsURL(arg) {
		return at, fmt.Errorf("%s: %w", arg, ErrLocal)
	}
	u, err := nfsbox.ParseURL(arg)
	if err != nil {
		return at, err
	}
	at = hands.Place{
		Host: strings.ToLower(u.Host), Port: u.Port, NFSPort: u.NFSPort, MountPort: u.MountPort, Export: u.Export,
		UID: own(u.UID, os.Getuid()), GID: own(u.GID, os.Getgid()),
	}
	parts := slices.DeleteFunc(strings.Split(u.Path, "/"), func(name string) bool { return name == "" || name == "." })
	parts = append(parts, names...)
	if at.Path = "/" + strings.Join(parts, "/"); len(at.Path) > vfs.MaxPath {
		return at, fmt.Errorf("%s: %w", arg, vfs.ErrNameTooLong)
	}
	if _, err := namesOf(at.Path); err != nil {
		return at, fmt.Errorf("%s: workers resolve no %w", arg, err)
	}
	return at, nil
}

// own is the number in a URL, or else that of the process.
func own(given *uint32, process int) uint32 {
	switch {
	case given != nil:
		return *given
	case process < 0:
		return nobody
	}
	return uint32(process)
}

// namesOf takes an absolute path apart. It has no empty name, and none that is not a file's.
func namesOf(path string) (names []string, err error) {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok || len(path) > vfs.MaxPath {
		return nil, fmt.Errorf("path that is not absolute, or too long: %w", vfs.ErrInval)
	}
	if rest == "" {
		return nil, nil
	}
	names = strings.Split(rest, "/")
	for _, name := range names {
		if err := vfs.CheckName(name); err != nil {
			return nil, fmt.Errorf("name %q in a path: %w", name, err)
		}
	}
	return names, nil
}

// below returns the names that lead to p from the place. An error says why p is not allowed.
func (a *Allowed) below(p *hands.Place) ([]string, error) {
	to, err := namesOf(p.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	from, err := namesOf(a.at.Path)
	if err != nil {
		return nil, err
	}
	mine, its := a.at, *p
	mine.Path, its.Path = "", ""
	mine.UID, mine.GID, its.UID, its.GID = 0, 0, 0, 0
	if mine != its || len(to) < len(from) || !slices.Equal(to[:len(from)], from) {
		return nil, errNotAllowed
	}
	if a.at.UID != p.UID || a.at.GID != p.GID {
		return nil, fmt.Errorf("%w: the job works there with uid=%d and gid=%d, and --allow has uid=%d and gid=%d", errNotAllowed, p.UID, p.GID, a.at.UID, a.at.GID)
	}
	return to[len(from):], nil
}

// find returns which of the allowed places has p, and the names that lead to it from there.
func find(all []Allowed, p *hands.Place) (a *Allowed, names []string, err error) {
	for i := range all {
		names, berr := all[i].below(p)
		if berr == nil {
			return &all[i], names, nil
		}
		if err == nil || len(berr.Error()) > len(err.Error()) {
			err = berr // the one that says more
		}
	}
	return nil, nil, fmt.Errorf("%s: %w", Text(p), err)
}

// Text is a place as a user writes it.
func Text(p *hands.Place) string {
	u := nfsbox.URL{Host: p.Host, Port: p.Port, Path: p.Path}
	text := fmt.Sprintf("%s?uid=%d&gid=%d", u.String(), p.UID, p.GID)
	for _, port := range [...]struct {
		name string
		n    uint16
	}{{"nfsport", p.NFSPort}, {"mountport", p.MountPort}} {
		if port.n != 0 {
			text += fmt.Sprintf("&%s=%d", port.name, port.n)
		}
	}
	if p.Export != "" {
		text += "&export=" + url.QueryEscape(p.Export)
	}
	return text
}
