// Package conf reads cachefilesd.conf(5): where a cache is, and how much of its disk it may take. All
// lines that cachefilesd takes mean the same here, or are noted as being of no use. What cachefilesd or
// the kernel would refuse is an error that names the file and the line.
//
// Further lines are our own: size, granule, checksum, pin, statsfile. cachefilesd refuses a file that has
// them.
//
// Whoever checks a file may be another one than its owner, and the file anything: no message has more of it than the
// first word of a line, bounded and only if it looks like a command.
package conf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/base/near"
	"github.com/nfsbox/nfsbox/internal/client/cache/store"
)

// File is where cachefilesd has its configuration.
const File = "/etc/cachefilesd.conf"

const (
	// maxLine bounds a line, in bytes, and maxLines their number. Beyond that it is an error.
	maxLine  = 4096
	maxLines = 10_000
	// maxErrors bounds the errors that are told of one file.
	maxErrors = 20

	// minTable and maxTable bound culltable, the logarithm of how many entries cachefilesd sorts.
	minTable, maxTable = 12, 20
	// minSize is the least size, in bytes.
	minSize = 1 << 20
	// maxPins bounds the patterns: each is compared with each name that is opened. Beyond that it is an error.
	maxPins = 64
	// maxKey bounds the first word of a line in a message, in bytes. Longer ones are no command, and not shown.
	maxKey = 24
)

// Config is what a file says.
type Config struct {
	Dir    string
	Tag    string // "": the default
	Limits store.Limits
	NoCull bool

	Size       int64    // most that is kept, in bytes; 0: as much as the limits leave
	Granule    int      // bytes; 0: the default
	NoChecksum bool     //
	Pin        []string // patterns of names that are not culled
	StatsFile  string   // where the figures are written; "": nowhere

	// Notes are lines that are taken and do nothing here, each with the reason.
	Notes []string
}

// Error is what is wrong with a line. Line is 0 if it is the whole file.
type Error struct {
	File string
	Line int
	Why  string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Why
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why)
}

// Read reads a file. The error has all [Error]s.
func Read(name string) (*Config, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // The user named it.
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // a pipe would be waited for
		return nil, errors.Join(&Error{File: name, Why: "it is not a regular file"}, err, f.Close())
	}
	c, err := Parse(f, name)
	return c, errors.Join(err, f.Close())
}

// parser is a file that is being read.
type parser struct {
	c      Config
	name   string
	line   int
	seen   map[string]int // the line of each command
	errs   []error
	limits map[string]int
}

// Parse reads what is in the file called name.
func Parse(r io.Reader, name string) (*Config, error) {
	d := store.DefaultLimits
	p := &parser{name: name, seen: make(map[string]int), limits: map[string]int{
		"brun": d.Brun, "bcull": d.Bcull, "bstop": d.Bstop, "frun": d.Frun, "fcull": d.Fcull, "fstop": d.Fstop,
	}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for lines.Scan() {
		if p.line++; p.line > maxLines {
			p.wrong("more than %d lines", maxLines)
			break
		}
		p.take(lines.Text())
	}
	if err := lines.Err(); err != nil {
		p.line++
		p.wrong("the line cannot be read: %v", err)
	}
	p.finish()
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return &p.c, nil
}

func (p *parser) wrong(format string, args ...any) { p.wrongAt(p.line, format, args...) }

func (p *parser) wrongAt(line int, format string, args ...any) {
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, &Error{File: p.name, Line: line, Why: fmt.Sprintf(format, args...)})
	}
}

func (p *parser) note(format string, args ...any) {
	p.c.Notes = append(p.c.Notes, fmt.Sprintf("%s:%d: %s", p.name, p.line, fmt.Sprintf(format, args...)))
}

// command is what a line may begin with.
type command struct {
	name  string
	once  bool
	empty bool // has no value
	take  func(p *parser, value string)
}

// commands are all that there are.
func commands() []command {
	limit := func(name string) command {
		return command{name: name, take: func(p *parser, v string) { p.limit(name, v) }}
	}
	return []command{
		{name: "dir", once: true, take: (*parser).dir},
		{name: "tag", once: true, take: (*parser).tag},
		limit("brun"), limit("bcull"), limit("bstop"), limit("frun"), limit("fcull"), limit("fstop"),
		{name: "culltable", take: (*parser).cullTable},
		{name: "nocull", empty: true, take: func(p *parser, _ string) { p.c.NoCull = true }},
		{name: "resume_thresholds", take: (*parser).resume},
		{name: "debug", take: (*parser).debug},
		{name: "secctx", once: true, take: (*parser).secctx},
		{name: "size", once: true, take: (*parser).size},
		{name: "granule", once: true, take: (*parser).granule},
		{name: "checksum", once: true, take: (*parser).checksum},
		{name: "pin", take: (*parser).pin},
		{name: "statsfile", once: true, take: (*parser).statsFile},
	}
}

// take reads a line.
func (p *parser) take(line string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return
	}
	if strings.ContainsRune(line, 0) {
		p.wrong("a NUL in the line")
		return
	}
	name, value, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	value = strings.TrimSpace(value)
	all := commands()
	at := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if at < 0 {
		p.unknown(name, all)
		return
	}
	c := all[at]
	first := p.seen[name]
	p.seen[name] = p.line
	switch {
	case c.once && first > 0:
		p.wrong("%s stands in line %d already", name, first)
	case c.empty && value != "":
		p.wrong("%s takes no value", name)
	case !c.empty && value == "":
		p.wrong("%s needs a value", name)
	default:
		c.take(p, value)
	}
}

func (p *parser) unknown(name string, all []command) {
	if name == "bind" {
		p.wrong("bind is not for this file: cachefilesd itself says it to the kernel")
		return
	}
	if name == "prefetch" {
		p.wrong("there is no prefetch: the client reads ahead as far as it pays, and what it reads is kept (readahead=BYTES in a URL bounds it)")
		return
	}
	if len(name) > maxKey || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		p.wrong("this is no line of cachefilesd.conf(5)")
		return
	}
	proposal := ""
	if meant := near.Of(name, func(yield func(string) bool) {
		for _, c := range all {
			if !yield(c.name) {
				return
			}
		}
	}); meant != "" {
		proposal = "; did you mean " + meant + "?"
	}
	p.wrong("there is no command %q%s", name, proposal)
}

func (p *parser) dir(v string) {
	if !filepath.IsAbs(v) {
		p.wrong("dir: an absolute path is wanted")
	}
	p.c.Dir = filepath.Clean(v)
}

// defaultTag is the one that a cache has in cachefilesd.conf(5) if none is given.
const defaultTag = "CacheFiles"

func (p *parser) tag(v string) {
	if len(v) > 64 || strings.ContainsAny(v, "/ \\") || v[0] == '.' {
		p.wrong("tag: a name of up to 64 bytes, without slashes and blanks, is wanted")
		return
	}
	if v != defaultTag {
		p.c.Tag = v
	}
}

func (p *parser) limit(name, v string) {
	digits, ok := strings.CutSuffix(v, "%")
	n, err := strconv.ParseUint(digits, 10, 8)
	if !ok || err != nil || n > 99 {
		p.wrong("%s: a percentage from 0%% to 99%% is wanted", name)
		return
	}
	p.limits[name] = int(n)
}

func (p *parser) cullTable(v string) {
	if n, err := strconv.Atoi(v); err != nil || n < minTable || n > maxTable {
		p.wrong("culltable: a number from %d to %d is wanted", minTable, maxTable)
		return
	}
	p.note("culltable is not needed: the order of use is kept in memory")
}

func (p *parser) resume(v string) {
	fields := strings.Fields(v)
	if len(fields) != 2 {
		p.wrong("resume_thresholds wants two numbers, of blocks and of files; - is none")
		return
	}
	for _, n := range fields {
		if _, err := strconv.ParseUint(n, 10, 64); err != nil && n != "-" {
			p.wrong("resume_thresholds: numbers, or -, are wanted")
			return
		}
	}
	p.note("resume_thresholds is not needed: culling looks for itself when there is something to cull")
}

func (p *parser) debug(v string) {
	if n, err := strconv.ParseUint(v, 0, 8); err != nil || n > 7 {
		p.wrong("debug: a mask from 0 to 7 is wanted")
		return
	}
	p.note("debug is for the kernel's cache")
}

func (p *parser) secctx(string) {
	p.note("secctx is for the kernel's cache; here the rights are those of this process")
}

func (p *parser) size(v string) {
	n, ok := parseSize(v)
	if !ok || n < minSize {
		p.wrong("size: bytes are wanted, at least 1M: a number, and K, M, G or T")
	}
	p.c.Size = n
}

func (p *parser) granule(v string) {
	n, ok := parseSize(v)
	if !ok || n < store.MinGranule || n > store.MaxGranule || n&(n-1) != 0 {
		p.wrong("granule: 64K, 128K, 256K, 512K or 1M is wanted")
		return
	}
	p.c.Granule = int(n)
}

func (p *parser) checksum(v string) {
	switch v {
	case "crc32c":
	case "off":
		p.c.NoChecksum = true
	default:
		p.wrong("checksum: crc32c or off is wanted")
	}
}

func (p *parser) pin(v string) {
	if _, err := path.Match(v, ""); err != nil {
		p.wrong("pin: %v", err)
		return
	}
	if len(p.c.Pin) == maxPins {
		p.wrong("pin: more than %d patterns", maxPins)
		return
	}
	p.c.Pin = append(p.c.Pin, v)
}

func (p *parser) statsFile(v string) {
	if !filepath.IsAbs(v) {
		p.wrong("statsfile: an absolute path is wanted")
	}
	p.c.StatsFile = filepath.Clean(v)
}

// parseSize reads bytes: a number, and K, M, G or T, which are powers of 1024.
func parseSize(v string) (int64, bool) {
	shift := 0
	if v != "" {
		if at := strings.IndexByte("KMGT", v[len(v)-1]&^0x20); at >= 0 {
			shift, v = 10*(at+1), v[:len(v)-1]
		}
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || v[0] == '+' || n > 1<<62>>shift {
		return 0, false
	}
	return n << shift, true
}

// finish checks what no line alone can be wrong in.
func (p *parser) finish() {
	if p.seen["dir"] == 0 {
		p.wrongAt(0, "there is no dir: the directory of the cache is missing")
	}
	l := p.limits
	p.c.Limits = store.Limits{Brun: l["brun"], Bcull: l["bcull"], Bstop: l["bstop"], Frun: l["frun"], Fcull: l["fcull"], Fstop: l["fstop"]}
	for _, k := range [...]string{"b", "f"} {
		if stop, cull, run := l[k+"stop"], l[k+"cull"], l[k+"run"]; stop >= cull || cull >= run {
			line := max(p.seen[k+"stop"], p.seen[k+"cull"], p.seen[k+"run"])
			p.wrongAt(line, "%sstop (%d%%) has to be less than %scull (%d%%), and that less than %srun (%d%%)", k, stop, k, cull, k, run)
		}
	}
}

// Options are those of the store that the file describes.
func (c *Config) Options() store.Options {
	return store.Options{
		Dir: c.Dir, Tag: c.Tag, Size: c.Size, Granule: c.Granule, NoChecksum: c.NoChecksum, NoCull: c.NoCull, Limits: c.Limits,
		Pin: c.Pin, StatsFile: c.StatsFile,
	}
}
