package manual

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Page is a manual page of section 1.
type Page struct {
	File string // "nfsbox-serve.1"
	Text string // roff
}

// Pages returns the program's page first, then one for each of its commands. date stands at the foot of each; "" is none.
func Pages(c *Command, version, date string) []Page {
	all := c.all()
	pages := make([]Page, len(all))
	for i, x := range all {
		pages[i] = Page{File: x.page() + ".1", Text: x.man(c, version, date)}
	}
	return pages
}

func (c *Command) page() string { return strings.Join(c.Path, "-") }

func (c *Command) man(program *Command, version, date string) string {
	var b roff
	b.printf(".TH %s 1 \"%s\" %s %s\n", quote(strings.ToUpper(c.page())), date, quote(program.name()+" "+version), quote(program.name()+" manual"))
	b.printf(".SH NAME\n%s \\- %s\n", escape(c.page()), escape(c.summary()))
	b.WriteString(".SH SYNOPSIS\n")
	b.synopsis(c)
	b.WriteString(".SH DESCRIPTION\n")
	text, examples := divide(strings.TrimSpace(c.Help+"\n\n"+c.Detail), program.name())
	b.paragraphs(text)
	if len(c.Args) > 0 {
		b.WriteString(".SH ARGUMENTS\n")
		for i := range c.Args {
			b.printf(".TP\n.I %s\n%s\n", escape(c.Args[i].Name), escape(c.Args[i].Help))
		}
	}
	if len(c.Commands) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for i := range c.Commands {
			x := &c.Commands[i]
			b.printf(".TP\n.BR %s (1)\n%s\n", escape(x.page()), escape(x.summary()+"."))
		}
	}
	b.options(c.Flags)
	if examples != "" {
		b.WriteString(".SH EXAMPLES\n")
		b.paragraphs(examples)
	}
	b.seeAlso(c, program)
	return b.String()
}

// roff is a page that is being written.
type roff struct{ strings.Builder }

func (b *roff) printf(format string, args ...any) { fmt.Fprintf(&b.Builder, format, args...) }

func (b *roff) synopsis(c *Command) {
	b.printf(".B %s\n", escape(c.line()))
	if len(c.Flags) > 0 {
		b.WriteString("[\\fIoptions\\fR]\n")
	}
	if len(c.Commands) > 0 {
		b.WriteString("\\fIcommand\\fR ...\n")
	}
	for i := range c.Args {
		a := &c.Args[i]
		s := `\fI` + escape(a.Name) + `\fR`
		if a.Repeated {
			s += " ..."
		}
		if a.Optional {
			s = "[" + s + "]"
		}
		b.WriteString(s + "\n")
	}
}

// status is a line of a table of exit statuses.
var status = regexp.MustCompile(`^ +([0-9]+) {2,}(.+)$`)

// paragraphs writes texts. Indented lines keep their breaks, but for tables of exit statuses, and a
// paragraph of capitals begins a section.
func (b *roff) paragraphs(texts ...string) {
	literal, gap, begun := false, false, true // gap: a paragraph has ended, and another may follow; begun: a section has
	for line := range strings.Lines(strings.Trim(strings.Join(texts, "\n\n"), "\n")) {
		line = strings.TrimRight(line, " \n")
		indented := strings.HasPrefix(line, "  ")
		if literal && !indented {
			b.WriteString(".fi\n.RE\n")
			literal, gap = false, true
		}
		if line == "" {
			gap = !begun // man(7) has no .PP after .SH
			continue
		}
		if m := status.FindStringSubmatch(line); m != nil && !literal {
			b.printf(".TP 6\n%s\n%s\n", m[1], escape(m[2]))
			gap, begun = false, false
			continue
		}
		if gap && isHeading(line) {
			b.printf(".SH %s\n", escape(line))
			gap, begun = false, true
			continue
		}
		if gap || indented && !literal && !begun {
			b.WriteString(".PP\n")
		}
		if indented && !literal {
			b.WriteString(".RS 4\n.nf\n")
		}
		literal, gap, begun = indented, false, false
		b.WriteString(escape(strings.TrimPrefix(line, "  ")) + "\n")
	}
	if literal {
		b.WriteString(".fi\n.RE\n")
	}
}

// divide divides a help's text into what a page describes and its examples: indented paragraphs that begin with a
// command of the program, unless the paragraph before ends in a colon, which needs them where they are.
func divide(text, program string) (rest, examples string) {
	var kept, moved []string
	for p := range strings.SplitSeq(text, "\n\n") {
		line := strings.TrimLeft(p, " ")
		needed := len(kept) > 0 && strings.HasSuffix(kept[len(kept)-1], ":")
		if len(p)-len(line) >= 2 && strings.HasPrefix(line, program+" ") && !needed {
			moved = append(moved, p)
		} else {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n\n"), strings.Join(moved, "\n\n")
}

// isHeading reports whether a line is a heading, as a manual page has them: of capitals and
// spaces alone.
func isHeading(line string) bool {
	return !strings.ContainsFunc(line, func(r rune) bool { return r != ' ' && (r < 'A' || r > 'Z') })
}

func (b *roff) options(flags []Flag) {
	if len(flags) == 0 {
		return
	}
	b.WriteString(".SH OPTIONS\n")
	var groups []string
	for i := range flags {
		if !slices.Contains(groups, flags[i].Group) {
			groups = append(groups, flags[i].Group)
		}
	}
	for i, g := range groups {
		switch {
		case g != "":
			b.printf(".SS %s\n", quote(g))
		case i > 0:
			b.WriteString(".SS Others\n")
		}
		for j := range flags {
			if flags[j].Group == g {
				b.option(&flags[j])
			}
		}
	}
}

func (b *roff) option(f *Flag) {
	b.WriteString(".TP\n")
	if f.Short != "" {
		b.printf("\\fB\\-%s\\fR, ", escape(f.Short))
	}
	name := escape(f.Name)
	if f.Negatable {
		name = `[no\-]` + name
	}
	b.WriteString(`\fB\-\-` + name + `\fR`)
	if f.Value != None {
		b.WriteString(`=\fI` + escape(f.Holder) + `\fR`)
	}
	b.WriteString("\n" + escape(f.Help) + "\n")
}

func (b *roff) seeAlso(c, program *Command) {
	var pages []string
	switch {
	case c == program:
		for i := range c.Commands {
			pages = append(pages, c.Commands[i].page())
		}
	case len(c.Path) > 2:
		pages = append(pages, program.page(), strings.Join(c.Path[:len(c.Path)-1], "-"))
	default:
		pages = append(pages, program.page())
	}
	if len(pages) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, p := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		b.printf(".BR %s (1)%s\n", escape(p), comma)
	}
}

// escape escapes what roff would interpret: backslashes, hyphens, which must be copied as
// they are, and a control character at the beginning.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// quote makes one argument of a macro.
func quote(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }
