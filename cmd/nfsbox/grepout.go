package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/nfsbox/nfsbox/internal/base/lines"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/search"
)

// grepStatus is grep's exit status for one of ours: 1 says that nothing was found, and 2 that something is wrong.
func grepStatus(status int) int {
	switch status {
	case exitNothing:
		return 1
	case exitUsage, exitIncomplete, exitDiffers, exitUnreachable:
		return 2
	}
	return status
}

// grepEndings are the statuses of grep(1).
func grepEndings() []ending {
	return []ending{
		{exitOK, "a line was selected"}, {grepStatus(exitNothing), "none was, and all was searched"},
		{grepStatus(exitUsage), "the arguments are wrong, a server cannot be reached, or something could not be searched; with -q: and no line was selected"},
		{exitInterrupted, whySignal},
	}
}

// exitNothing is within this program what grep's status 1 is outside.
const exitNothing = 256

// errFound ends grep -q.
var errFound = errors.New("it was found")

// grepCounts are counted by all workers.
type grepCounts struct {
	began                                            time.Time
	files, matched, selected, bytes, binary, tooLong atomic.Uint64
	shown                                            atomic.Uint64
}

// grepSummary is the last event of grep.
type grepSummary struct {
	listSummary
	leftOut
	Files    uint64  `json:"files"`          // that were searched
	Matched  uint64  `json:"matched"`        // of them, those with a line that was selected
	Selected uint64  `json:"selected"`       // lines
	Bytes    uint64  `json:"bytes"`          // that were read
	Binary   uint64  `json:"binary"`         // files that are
	TooLong  uint64  `json:"lines_too_long"` // that were not searched
	Engine   string  `json:"engine"`         // that was asked for
	ByRE2    uint64  `json:"re2_lines"`      // that RE2 was asked about
	ByGo     uint64  `json:"go_lines"`       // that Go's regexp was asked about since RE2 was given up
	GivenUp  string  `json:"re2_given_up,omitempty"`
	Seconds  float64 `json:"seconds"`
	RPCs     uint64  `json:"rpcs"`
}

func (g *grepper) summary(sum listSummary, left leftOut) *grepSummary {
	c := &g.counts
	x := &grepSummary{
		listSummary: sum, leftOut: left, Files: c.files.Load(), Matched: c.matched.Load(), Selected: c.selected.Load(), Bytes: c.bytes.Load(),
		Binary: c.binary.Load(), TooLong: c.tooLong.Load(), Engine: g.cmd.Engine, Seconds: time.Since(c.began).Seconds(), RPCs: g.rpcs,
	}
	x.ByRE2, x.ByGo, x.GivenUp = g.engines()
	return x
}

// engines says what RE2 was asked, and why it was given up.
func (g *grepper) engines() (byRE2, byGo uint64, why string) {
	if g.re2 == nil {
		return 0, 0, ""
	}
	return g.re2.Used()
}

// matchEvent is a line, or with -o a match.
type matchEvent struct {
	Path      string `json:"path"`
	PathBytes string `json:"path_base64,omitempty"` // if the path is not UTF-8
	Line      uint64 `json:"line"`                  // its number, from 1
	Offset    uint64 `json:"offset"`                // of its first byte, with -o of the match
	Text      string `json:"text"`                  // without what ends the line
	TextBytes string `json:"text_base64,omitempty"` // if it is not UTF-8
}

// fileEvent is a file as a whole.
type fileEvent struct {
	Path      string  `json:"path"`
	PathBytes string  `json:"path_base64,omitempty"` // if the path is not UTF-8
	Count     *uint64 `json:"count,omitempty"`       // with -c: lines
}

// grepStyle says how lines look.
type grepStyle struct {
	names   bool
	groups  bool // what stands between others is told apart by --
	colour  bool
	escapes bool // what could steer a terminal is escaped
}

// The colours are grep's own.
const (
	colourName  = "35"
	colourPlace = "32"
	colourSep   = "36"
	colourMatch = "01;31"
)

func (c *grepCmd) style(e *env) grepStyle {
	return grepStyle{
		colour:  c.Color == "always" || c.Color == "auto" && e.size != nil && e.colour,
		escapes: e.size != nil,
	}
}

// contextOr is how many lines of context own asks for, or else both; 0 without either.
func contextOr(own, both *int) int {
	switch {
	case own != nil:
		return *own
	case both != nil:
		return *both
	}
	return 0
}

// paint is s in a colour.
func (s *grepStyle) paint(text, colour string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m\x1b[K" + text + "\x1b[m\x1b[K"
}

// clean is text as the output may show it. Tabs are no harm.
func (s *grepStyle) clean(text []byte) string {
	if !s.escapes {
		return string(text)
	}
	parts := strings.Split(string(text), "\t")
	for i := range parts {
		parts[i] = progress.Clean(parts[i])
	}
	return strings.Join(parts, "\t")
}

func (s *grepStyle) separator() string { return s.paint("--", colourSep) + "\n" }

// grepOut is where the Printer writes: the output of the command, which others write to as well.
type grepOut struct{ *looker }

func (w grepOut) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	if w.json {
		err = w.anew(b)
	} else {
		_, err = w.w.Write(b)
	}
	if err == nil && w.e.size != nil {
		err = w.w.Flush()
	}
	if err != nil {
		return 0, fmt.Errorf("standard output: %w", err)
	}
	return len(b), nil
}

// show prints a line, at once if a terminal shows it.
func (g *grepper) show(o *search.Output, f *search.File, l *lines.Line) error {
	show := g.showLine
	if g.cmd.Only {
		show = g.showMatches
	}
	err := show(o, f, l)
	if err == nil && g.e.size != nil {
		err = o.Flush()
	}
	return err
}

// showMatches prints what matches in a line.
func (g *grepper) showMatches(o *search.Output, f *search.File, l *lines.Line) error {
	if l.Gap && g.style.groups {
		if _, err := io.WriteString(o, g.style.separator()); err != nil {
			return err
		}
	}
	if g.cmd.Invert || l.Context {
		return nil
	}
	return g.options.Pattern.Each(l.Text, func(start, end int) error {
		one := lines.Line{Number: l.Number, Offset: l.Offset + uint64(start), Text: l.Text[start:end]}
		if g.json {
			return g.fileLine(o, "match", g.match(f, &one))
		}
		g.counts.shown.Add(1)
		_, err := io.WriteString(o, g.prefix(f, &one)+g.style.paint(g.style.clean(one.Text), colourMatch)+"\n")
		return err
	})
}

// showLine prints a whole line.
func (g *grepper) showLine(o *search.Output, f *search.File, l *lines.Line) error {
	if g.json {
		kind := "match"
		if l.Context {
			kind = "context"
		}
		return g.fileLine(o, kind, g.match(f, l))
	}
	g.counts.shown.Add(1)
	var b strings.Builder
	if l.Gap && g.style.groups {
		b.WriteString(g.style.separator())
	}
	b.WriteString(g.prefix(f, l))
	if err := g.writeText(&b, l); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := io.WriteString(o, b.String())
	return err
}

// writeText writes the text of a line, with what matches in it in colour.
func (g *grepper) writeText(b *strings.Builder, l *lines.Line) error {
	rest := 0
	if g.style.colour && l.Context == g.cmd.Invert {
		if err := g.options.Pattern.Each(l.Text, func(start, end int) error {
			b.WriteString(g.style.clean(l.Text[rest:start]))
			b.WriteString(g.style.paint(g.style.clean(l.Text[start:end]), colourMatch))
			rest = end
			return nil
		}); err != nil {
			return err
		}
	}
	b.WriteString(g.style.clean(l.Text[rest:]))
	return nil
}

// prefix is what stands before the text of a line.
func (g *grepper) prefix(f *search.File, l *lines.Line) string {
	sep := ":"
	if l.Context {
		sep = "-"
	}
	sep = g.style.paint(sep, colourSep)
	var b strings.Builder
	if g.style.names {
		b.WriteString(g.style.paint(g.name(f), colourName) + sep)
	}
	if g.cmd.Number {
		b.WriteString(g.style.paint(strconv.FormatUint(l.Number, 10), colourPlace) + sep)
	}
	if g.cmd.Offset {
		b.WriteString(g.style.paint(strconv.FormatUint(l.Offset, 10), colourPlace) + sep)
	}
	return b.String()
}

// name is that of a file for the output.
func (g *grepper) name(f *search.File) string { return g.shown(f.Name) }

func (g *grepper) match(f *search.File, l *lines.Line) *matchEvent {
	x := &matchEvent{Path: f.Name, PathBytes: notUTF8(f.Name), Line: l.Number, Offset: l.Offset, Text: string(l.Text)}
	if !utf8.Valid(l.Text) {
		x.TextBytes = base64.StdEncoding.EncodeToString(l.Text)
	}
	return x
}

// fileLine prints an event among those of its file.
func (g *grepper) fileLine(o *search.Output, kind string, v any) error {
	line, err := progress.AppendObject(nil, time.Now(), kind, v)
	if err != nil {
		return err
	}
	g.counts.shown.Add(1)
	_, err = o.Write(line)
	return err
}

// finished says of a file what is to be said in its end.
func (g *grepper) finished(o *search.Output, f *search.File, r *lines.Result, err error) error {
	c := &g.counts
	c.files.Add(1)
	c.bytes.Add(r.Bytes)
	c.selected.Add(r.Selected)
	c.tooLong.Add(r.TooLong)
	if r.Selected > 0 {
		c.matched.Add(1)
	}
	if r.Binary {
		c.binary.Add(1)
	}
	if f.Read != nil {
		g.stream = *r // one is read at a time
	}
	if err != nil {
		g.fault(f.Name, err)
	}
	if r.TooLong > 0 {
		g.fault(f.Name, fmt.Errorf("%d lines of more than %s were not searched, the first of them line %d", r.TooLong, progress.Size(lines.MaxLine), r.FirstTooLong))
	}
	if r.Selected > 0 && g.cmd.Quiet {
		return errFound
	}
	return g.verdict(o, f, r)
}

// verdict prints what -c, -l and -L ask for, or that a binary file matches.
func (g *grepper) verdict(o *search.Output, f *search.File, r *lines.Result) (err error) {
	x := &fileEvent{Path: f.Name, PathBytes: notUTF8(f.Name)}
	switch {
	case g.cmd.Quiet:
		return nil
	case g.options.Search.First:
		if g.cmd.List.after(g.cmd.ListNot) != (r.Selected > 0) {
			return nil
		}
		if g.json {
			return g.fileLine(o, "file", x)
		}
		g.counts.shown.Add(1)
		_, err = io.WriteString(o, g.style.paint(g.name(f), colourName)+"\n")
		return err
	case g.cmd.Count:
		return g.counted(o, f, r, x)
	case !r.BinarySelected:
		return nil
	case g.json:
		return g.fileLine(o, "binary", x)
	}
	g.note(f.Name + ": binary file matches")
	return nil
}

// counted prints what -c asks for.
func (g *grepper) counted(o *search.Output, f *search.File, r *lines.Result, x *fileEvent) error {
	if g.json {
		x.Count = &r.Selected
		return g.fileLine(o, "count", x)
	}
	name := ""
	if g.style.names {
		name = g.style.paint(g.name(f), colourName) + g.style.paint(":", colourSep)
	}
	g.counts.shown.Add(1)
	_, err := io.WriteString(o, name+strconv.FormatUint(r.Selected, 10)+"\n")
	return err
}

// end ends the command with its summary.
func (g *grepper) end(err error) error {
	found := g.counts.selected.Load() > 0
	if g.cmd.Quiet && found {
		g.errors = 0
		err = nil
	}
	left := g.tellLeft()
	if _, byGo, why := g.engines(); why != "" && !g.json && !g.cmd.Quiet {
		g.note(fmt.Sprintf("RE2 was given up: %s; Go's regexp has matched %s lines", why, progress.Count(byGo)))
	}
	g.entries = g.counts.shown.Load()
	err = g.looker.done(err, func(sum listSummary) any { return g.summary(sum, left) })
	if err == nil && !found {
		return &exitError{status: exitNothing}
	}
	return err
}
