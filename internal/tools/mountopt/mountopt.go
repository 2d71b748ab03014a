// Package mountopt reads what stands in fstab(5) and behind mount's -o: the options of nfs(5), those of mount(8),
// and the arguments of our own URLs. Those of a snapshot are read by [Snapshot].
//
// An option is honoured, or ignored with a note that says why, or refused in words. What is refused has no like here,
// and to go on without it would break a promise. An option that nobody knows is refused, too, unless sloppy is among
// them. The last of several that speak of the same thing counts, as mount(8) has it where it merges fstab with the
// command line; but options that contradict each other in one line of nfs(5) are refused.
package mountopt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/base/near"
	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// Mount is what is to be mounted, and how.
type Mount struct {
	URL   string // with all arguments; of a snapshot its place
	FS    fusefs.Options
	FSC   bool // the disk cache is asked for as in fstab: without it the mount goes on
	Retry time.Duration
	// Background has a server that does not answer tried again behind mount's back (bg).
	Background bool
	Notes      []string // of what was ignored

	Snapshot bool   // URL is STORE::NAME[@ID][/PATH]
	Refused  error  // why it cannot be mounted so after all; nil: it can
	Else     *Mount // the snapshot that is meant where the server has nothing by the name of URL; nil: none
}

// The defaults of retry= (nfs(5)).
const (
	retryForeground = 2 * time.Minute
	retryBackground = 10000 * time.Minute
	maxRetry        = 1 << 20 // minutes
	maxTime         = 1 << 20 // seconds, of attributes
	minTransfer     = 8 << 10 // of rsize and wsize, as in URLs
	maxMeant        = 3       // options that are proposed for an unknown one
)

// parser collects what options say.
type parser struct {
	m      Mount
	args   []string // of the URL, "name=value", in the order in which they are given
	said   map[string]string
	sloppy bool
	retry  time.Duration
	times  map[string]time.Duration
	kernel map[string]string // which option of the kernel holds, by what it speaks of
}

// Parse reads SPEC and the lists behind -o. nfs://HOST/PATH, HOST:/PATH and [ADDRESS]:/PATH are specs.
func Parse(spec string, lists ...string) (*Mount, error) {
	p, short, err := read(spec, lists)
	if err != nil {
		return nil, err
	}
	if err := p.settle(); err != nil {
		return nil, err
	}
	if err := p.finish(short); err != nil {
		return nil, err
	}
	p.m.FS.Source = spec
	return &p.m, nil
}

// read reads the lists, and what a URL says of the keeping of attributes: short is the URL without.
func read(spec string, lists []string) (p *parser, short string, err error) {
	p = &parser{said: make(map[string]string), times: make(map[string]time.Duration), kernel: make(map[string]string), retry: -1}
	var words []string
	for _, list := range lists {
		words = append(words, divide(list)...)
	}
	if slices.Contains(words, "remount") { // mount(8) adds what the kernel says of the mount, which may be no option here
		words = []string{"remount"}
	}
	p.sloppy = slices.Contains(words, "sloppy")
	for _, w := range words {
		if err := p.option(w); err != nil {
			return nil, "", fmt.Errorf("option %s: %w", w, err)
		}
	}
	if short, err = p.attributes(spec); err != nil {
		return nil, "", err
	}
	return p, short, p.conflicts()
}

// divide divides a list at its commas, but for those in quotes (context="a,b").
func divide(list string) []string {
	quoted := false
	return strings.FieldsFunc(list, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
}

var errNoValue = errors.New("takes no value")

// option takes over one.
func (p *parser) option(word string) error {
	name, val, has := strings.Cut(word, "=")
	if strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "X-") || slices.Contains(ignored[:], name) {
		return nil
	}
	if group, ok := kernelOptions[name]; ok {
		if has {
			return errNoValue
		}
		p.kernel[group] = name
		return nil
	}
	if o, ok := options[name]; ok {
		if has && o.value == valueNone {
			return errNoValue
		}
		if !has && o.value == valueSome {
			return fmt.Errorf("needs a value: %s=VALUE", name)
		}
		p.said[name] = val
		return o.do(p, name, val)
	}
	for _, a := range nfsbox.URLArgs() {
		if a.Name == name {
			p.said[name] = val
			p.arg(word)
			return nil
		}
	}
	if p.sloppy {
		p.note("%s is not known, and ignored (sloppy)", word)
		return nil
	}
	return errors.New("unknown" + meant(name) + "; nfsbox mount --help lists those that there are, and with sloppy unknown ones are ignored")
}

// meant proposes the options that are near to an unknown one.
func meant(name string) string {
	var list []string
	for known := range names {
		if near.Distance(name, known) < near.Far && !slices.Contains(list, known) {
			list = append(list, known)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(near.Distance(name, a), near.Distance(name, b)), strings.Compare(a, b))
	})
	if len(list) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(list[:min(len(list), maxMeant)], " or ") + "?"
}

// Known are all options but arguments of URLs, sorted. Those that need a value end in "=".
func Known() []string {
	list := slices.Collect(maps.Keys(kernelOptions))
	for name, o := range options {
		if o.value == valueSome {
			name += "="
		}
		list = append(list, name)
	}
	list = append(list, ignored[:]...)
	slices.Sort(list)
	return list
}

// names yields all names of options, for proposals.
func names(yield func(string) bool) {
	for name := range options {
		if !yield(name) {
			return
		}
	}
	for name := range kernelOptions {
		if !yield(name) {
			return
		}
	}
	for _, a := range nfsbox.URLArgs() {
		if !yield(a.Name) {
			return
		}
	}
}

func (p *parser) note(format string, a ...any) {
	p.m.Notes = append(p.m.Notes, fmt.Sprintf(format, a...))
}

// arg gives the URL an argument, in the place of an earlier one of that name.
func (p *parser) arg(word string) {
	name, val, has := strings.Cut(word, "=")
	p.args = slices.DeleteFunc(p.args, func(a string) bool { return argName(a) == name })
	if has {
		name += "=" + strings.ReplaceAll(url.QueryEscape(val), "+", "%20")
	}
	p.args = append(p.args, name)
}

// Uncached is the URL without the disk cache.
func (m *Mount) Uncached() string {
	at, query, _ := strings.Cut(m.URL, "?")
	if args := without(strings.Split(query, "&"), "fsc"); query != "" && len(args) > 0 {
		at += "?" + strings.Join(args, "&")
	}
	return at
}

// without are the arguments but for those of that name.
func without(args []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return argName(a) == name })
}

func argName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}

// contradictions are options of which one line may have one.
var contradictions = [...][]string{
	{"hard", "soft", "softerr"},
	{"bg", "fg"},
	{"ac", "noac"},
	{"noac", "actimeo"},
	{"noac", "acregmin"}, {"noac", "acregmax"}, {"noac", "acdirmin"}, {"noac", "acdirmax"},
	{"lock", "nolock"},
	{"acl", "noacl"},
	{"cto", "nocto"},
	{"resvport", "noresvport"},
	{"rdirplus", "nordirplus"},
	{"sharecache", "nosharecache"},
}

func (p *parser) conflicts() error {
	for _, group := range contradictions {
		first := ""
		for _, name := range group {
			_, said := p.said[name]
			switch {
			case !said:
			case first == "":
				first = name
			default:
				return fmt.Errorf("options %s and %s contradict each other", first, name)
			}
		}
	}
	return nil
}

// settle makes the times, and what the kernel is told.
func (p *parser) settle() error {
	if err := p.attributeTimes(); err != nil {
		return err
	}
	for _, group := range kernelOrder {
		switch o := p.kernel[group]; o {
		case "", "rw", "suid", "dev", "exec", "atime", "diratime", "async": // the kernel's defaults
		default:
			p.m.FS.Kernel = append(p.m.FS.Kernel, o)
		}
	}
	p.m.FS.Sync = p.kernel["sync"] == "sync"
	switch {
	case p.retry >= 0:
		p.m.Retry = p.retry
	case p.m.Background:
		p.m.Retry = retryBackground
	default:
		p.m.Retry = retryForeground
	}
	return nil
}

// finish makes the URL.
func (p *parser) finish(spec string) error {
	if p.kernel["write"] == "ro" {
		p.arg("readonly")
	}
	if _, soft := p.said["soft"]; !soft {
		if _, soft = p.said["softerr"]; !soft && !has(spec, "soft", "softerr", "hard") {
			p.arg("hard") // the default of mounts, though not of URLs
		}
	}
	var err error
	p.m.URL, err = address(spec, p.args)
	if bad, is := errors.AsType[*nfsbox.URLError](err); is && p.m.FSC && bad.Arg == "fsc" {
		// A cache that cannot be had must not keep a host from starting.
		p.note("%v; it is mounted without", err)
		p.m.URL, err = address(spec, without(p.args, "fsc"))
	}
	return err
}

// attributeTimes are those of nfs(5), with what was said of them.
func (p *parser) attributeTimes() error {
	t := fusefs.DefaultTimes
	if _, off := p.said["noac"]; off {
		p.m.FS.Times, p.m.FS.Entries, p.m.FS.Sync = fusefs.Times{}, fusefs.EntriesNone, true
		p.kernel["sync"] = "sync"
		return nil
	}
	for name, to := range map[string]*time.Duration{"acregmin": &t.FileMin, "acregmax": &t.FileMax, "acdirmin": &t.DirMin, "acdirmax": &t.DirMax} {
		if d, ok := p.times[name]; ok {
			*to = d
		} else if d, ok := p.times["actimeo"]; ok {
			*to = d
		}
	}
	// A bound that was not said gives way to one that was.
	for _, pair := range []struct {
		least, most string
		lo, hi      *time.Duration
	}{{"acregmin", "acregmax", &t.FileMin, &t.FileMax}, {"acdirmin", "acdirmax", &t.DirMin, &t.DirMax}} {
		_, lo := p.times[pair.least]
		_, hi := p.times[pair.most]
		switch {
		case *pair.lo <= *pair.hi:
		case lo && hi:
			return fmt.Errorf("options %s and %s contradict each other: %v is more than %v", pair.least, pair.most, *pair.lo, *pair.hi)
		case lo:
			*pair.hi = *pair.lo
		default:
			*pair.lo = *pair.hi
		}
	}
	p.m.FS.Times = t
	return nil
}

func parseNumber(val string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(val, 10, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("value %q; a number up to %d is wanted", val, most)
	}
	return n, nil
}

// HasUser reports whether the URL says as which user the mount acts: then it does so for everybody.
func (m *Mount) HasUser() bool {
	_, query, _ := strings.Cut(m.URL, "?")
	for arg := range strings.SplitSeq(query, "&") {
		if name := argName(arg); name == "uid" || name == "gid" {
			return true
		}
	}
	return false
}
