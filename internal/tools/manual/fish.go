package manual

import (
	"fmt"
	"strings"
)

// Fish is a completion script for fish 3 and later.
func Fish(c *Command) string {
	var b strings.Builder
	fn := "__" + identifier(c.name()) + "_is"
	fmt.Fprintf(&b, "# Completion of %s for fish, made from its own definitions.\n", c.name())
	fmt.Fprintf(&b, "function %s --description 'the command line is one of this command'\n", fn)
	fmt.Fprintf(&b, "\tset -l path %s\n\tfor word in (commandline -opc)[2..-1]\n\t\tswitch \"$path $word\"\n\t\t\tcase", fishWord(c.name()))
	for _, x := range c.all()[1:] {
		b.WriteString(" " + fishWord(x.line()))
	}
	b.WriteString("\n\t\t\t\tset path \"$path $word\"\n\t\tend\n\tend\n\ttest \"$path\" = \"$argv\"\nend\n")
	for _, x := range c.all() {
		is := fmt.Sprintf("complete -c %s -n %s", fishWord(c.name()), fishWord(fn+" "+x.line()))
		for i := range x.Commands {
			sub := &x.Commands[i]
			fmt.Fprintf(&b, "%s -f -a %s -d %s\n", is, fishWord(sub.name()), fishWord(sub.summary()))
		}
		for i := range x.Flags {
			x.Flags[i].fish(&b, is)
		}
		if x.places() {
			// Behind a colon fish would offer files of this host.
			far := fmt.Sprintf("complete -c %s -n %s -f", fishWord(c.name()), fishWord(fn+" "+x.line()+"; and string match -q '*:*' -- (commandline -ct)"))
			for _, how := range []string{is, far} {
				fmt.Fprintf(&b, "%s -a '(type -q %[2]s; and %[2]s complete -- (commandline -ct) 2>/dev/null)'\n", how, c.name())
			}
		}
		if x.jobs() {
			fmt.Fprintf(&b, "%s -f -a '(type -q %[2]s; and %[2]s complete --jobs -- (commandline -ct) 2>/dev/null)'\n", is, c.name())
		}
		if words := x.argWords(); len(x.Args) > 0 && len(words) > 0 {
			fmt.Fprintf(&b, "%s -f -a %s\n", is, fishWord(strings.Join(words, " ")))
		}
	}
	return b.String()
}

func (f *Flag) fish(b *strings.Builder, is string) {
	b.WriteString(is)
	if f.Short != "" {
		b.WriteString(" -s " + fishWord(f.Short))
	}
	b.WriteString(" -l " + fishWord(f.Name))
	switch f.Value {
	case Text:
		b.WriteString(" -x")
	case File:
		b.WriteString(" -r -F")
	case Dir:
		b.WriteString(" -x -a '(__fish_complete_directories)'")
	case Choices:
		b.WriteString(" -x -a " + fishWord(strings.Join(f.Choices, " ")))
	}
	fmt.Fprintf(b, " -d %s\n", fishWord(f.Help))
	if f.Negatable {
		fmt.Fprintf(b, "%s -l %s -d %s\n", is, fishWord("no-"+f.Name), fishWord(f.Help))
	}
}

// fishWord is s as one word for fish, whose single quotes know two escapes.
func fishWord(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
