package manual

import (
	"fmt"
	"strings"
)

// Zsh is a completion script for zsh: a file "_nfsbox" in a folder of $fpath.
func Zsh(c *Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# Completion of %[1]s for zsh, made from its own definitions.\n", c.name())
	for _, x := range c.all() {
		x.zsh(&b)
	}
	fmt.Fprintf(&b, zshPlaces+"\n%s \"$@\"\n", c.name(), c.function())
	return b.String()
}

// zshPlaces offers what nfsbox says that a place may become, and files of this host, or names of jobs. zsh quotes
// what it inserts. Nothing here may evaluate the word: _call_program does.
const zshPlaces = `
_%[1]s_places() {
	local -a found
	found=("${(@f)$(%[1]s complete -- "${(Q)PREFIX}" 2>/dev/null)}")
	found=(${found:#})
	if (( $#found )); then
		compadd -S '' -- ${(M)found:#*[/:]}
		compadd -- ${found:#*[/:]}
	fi
	[[ $PREFIX == *:* ]] || _files
}

_%[1]s_jobs() {
	local -a found
	found=("${(@f)$(%[1]s complete --jobs -- "${(Q)PREFIX}" 2>/dev/null)}")
	compadd -- ${found:#}
}
`

func (c *Command) function() string { return "_" + identifier(c.line()) }

func (c *Command) zsh(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s() {\n", c.function())
	if len(c.Commands) > 0 {
		b.WriteString("\tlocal curcontext=$curcontext state line\n\tlocal -a commands\n\tlocal -A opt_args\n\t_arguments -C")
	} else {
		b.WriteString("\t_arguments -s")
	}
	for i := range c.Flags {
		for _, spec := range c.Flags[i].zsh() {
			b.WriteString(" \\\n\t\t" + word(spec))
		}
	}
	for i := range c.Args {
		a := &c.Args[i]
		place := fmt.Sprint(i + 1)
		if a.Repeated {
			place = "*"
		}
		if a.Optional && !a.Repeated {
			place += ":"
		}
		does := action(a.Value, a.Choices)
		switch a.Value {
		case Place:
			does = "_" + identifier(c.Path[0]) + "_places"
		case Job:
			does = "_" + identifier(c.Path[0]) + "_jobs"
		}
		b.WriteString(" \\\n\t\t" + word(place+":"+colons(a.Name)+":"+does))
	}
	if len(c.Commands) == 0 {
		b.WriteString("\n}\n")
		return
	}
	b.WriteString(" \\\n\t\t'1:command:->command' \\\n\t\t'*::argument:->argument'\n\tcase $state in\n\tcommand)\n\t\tcommands=(\n")
	for i := range c.Commands {
		x := &c.Commands[i]
		fmt.Fprintf(b, "\t\t\t%s\n", word(colons(x.name())+":"+x.summary()))
	}
	b.WriteString("\t\t)\n\t\t_describe command commands\n\t\t;;\n\targument)\n\t\tcase $line[1] in\n")
	for i := range c.Commands {
		fmt.Fprintf(b, "\t\t%s) %s ;;\n", word(c.Commands[i].name()), c.Commands[i].function())
	}
	b.WriteString("\t\tesac\n\t\t;;\n\tesac\n}\n")
}

// zsh are the specifications of a flag.
func (f *Flag) zsh() []string {
	help := "[" + strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(f.Help) + "]"
	repeat, value, sign := "", "", ""
	if f.Repeated {
		repeat = "*"
	}
	if f.Value != None {
		value, sign = ":"+colons(f.Holder)+":"+action(f.Value, f.Choices), "="
	}
	specs := []string{repeat + "--" + f.Name + sign + help + value}
	if f.Negatable {
		specs = append(specs, "--no-"+f.Name+help)
	}
	if f.Short != "" {
		specs = append(specs, repeat+"-"+f.Short+strings.Replace(sign, "=", "+", 1)+help+value)
	}
	return specs
}

// action says how a value is completed.
func action(v Value, choices []string) string {
	switch v {
	case Choices:
		return "(" + strings.Join(choices, " ") + ")"
	case File:
		return "_files"
	case Dir:
		return "_files -/"
	}
	return " "
}

// colons escapes colons, which end a part of a specification.
func colons(s string) string { return strings.ReplaceAll(s, ":", `\:`) }
