package manual

import (
	"fmt"
	"strings"
)

// Bash is a completion script for bash 3.2 and later. Where it has nothing to offer, the
// shell completes file names.
func Bash(c *Command) string {
	var b strings.Builder
	fn := "_" + identifier(c.name())
	fmt.Fprintf(&b, "# Completion of %s for bash, made from its own definitions.\n%s() {\n%s", c.name(), fn, bashStart)
	fmt.Fprintf(&b, "\tpath=%s\n\tfor ((i = 1; i < at; i++)); do\n\t\tcase \"$path ${COMP_WORDS[i]}\" in\n", word(c.name()))
	for _, x := range c.all()[1:] {
		fmt.Fprintf(&b, "\t\t%s) path=%[1]s ;;\n", word(x.line()))
	}
	b.WriteString("\t\tesac\n\tdone\n\tcase \"$path $prev\" in\n")
	for _, x := range c.all() {
		for i := range x.Flags {
			f := &x.Flags[i]
			if f.Value == None {
				continue
			}
			names := []string{word(x.line() + " --" + f.Name)}
			if f.Short != "" {
				names = append(names, word(x.line()+" -"+f.Short))
			}
			fmt.Fprintf(&b, "\t%s) %s ;;\n", strings.Join(names, " | "), offer(f.Choices))
		}
	}
	b.WriteString("\t*)\n\t\tcase $path in\n")
	for _, x := range c.all() {
		fmt.Fprintf(&b, "\t\t%s)\n\t\t\tcase $cur in\n\t\t\t-*) %s ;;\n\t\t\t*) %s ;;\n\t\t\tesac\n\t\t\t;;\n",
			word(x.line()), offer(x.flagWords()), x.bashArgs())
	}
	b.WriteString("\t\tesac\n\t\t;;\n\tesac\n" + bashEnd + bashPlaces + "}\n")
	fmt.Fprintf(&b, "complete -o bashdefault -o default -F %s %s\n", fn, word(c.name()))
	return b.String()
}

// bashStart finds the word that is being typed, and the one before it: bash
// divides --flag=value into three.
const bashStart = `	local at=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path words= ask= line i
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]] && ((at > 1)); then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
`

// bashPlaces offers what nfsbox says that a place, or the name of a job, may become. What bash inserts as it is must mean
// nothing to it: the names may be an enemy's. bash divides words at colons, and
// replaces what stands behind the last one.
const bashPlaces = `	[[ -n $ask ]] || return
	local full=${COMP_LINE:0:COMP_POINT}
	full=${full##*[[:space:]]}
	while IFS= read -r line; do
		COMPREPLY+=("${line#"${full%"${full##*:}"}"}")
	done < <("${COMP_WORDS[0]}" complete "$ask" -- "$full" 2>/dev/null)
	if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:] ]]; then
		compopt -o nospace 2>/dev/null
	fi
	if [[ $ask == --plain && $full != *:* && ${#COMPREPLY[@]} != 0 ]]; then
		compopt -o filenames 2>/dev/null
		while IFS= read -r line; do
			COMPREPLY+=("$line")
		done < <(compgen -f -- "$cur")
	fi
`

// bashArgs is what is offered for arguments.
func (c *Command) bashArgs() string {
	switch {
	case c.places():
		return "ask=--plain"
	case c.jobs():
		return "ask=--jobs"
	}
	return offer(c.argWords())
}

const bashEnd = `	COMPREPLY=()
	while IFS= read -r line; do
		[[ -n $line ]] && COMPREPLY+=("$line")
	done < <(compgen -W "$words" -- "$cur")
`

func offer(words []string) string {
	if len(words) == 0 {
		return ":" // the default: files
	}
	return "words=" + word(strings.Join(words, " "))
}

func (c *Command) flagWords() (words []string) {
	for i := range c.Flags {
		f := &c.Flags[i]
		words = append(words, "--"+f.Name)
		if f.Negatable {
			words = append(words, "--no-"+f.Name)
		}
	}
	return words
}

func (c *Command) argWords() (words []string) {
	for i := range c.Commands {
		words = append(words, c.Commands[i].name())
	}
	for i := range c.Args {
		words = append(words, c.Args[i].Choices...)
	}
	return words
}

func identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' || r == '.' {
			return '_'
		}
		return r
	}, s)
}

// word is s as one word for any POSIX shell.
func word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
