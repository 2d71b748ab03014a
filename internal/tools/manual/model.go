package manual

import (
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Command is a command, or the program itself, with its subcommands.
type Command struct {
	Path     []string // "nfsbox", "bench", "read"
	Help     string   // one sentence; the program's has paragraphs
	Detail   string   // paragraphs; indented lines keep their breaks, and one of capitals is a heading
	Flags    []Flag   // those of the commands above come last
	Args     []Arg
	Commands []Command
}

// Value says what a flag or an argument takes.
type Value int

// The values.
const (
	None    Value = iota // a flag without a value
	Text                 // nothing can be offered
	File                 // a file's name
	Dir                  // a directory's name
	Choices              // one of a list
	Place                // a path of this host, or a URL, an alias or HOST:/PATH
	Job                  // the name of a job
)

// Flag is an option.
type Flag struct {
	Name      string // "squash"
	Short     string // "s"; "" is none
	Help      string
	Holder    string // placeholder of the value: "WHOM"
	Group     string // its heading; "" is the first
	Value     Value
	Choices   []string
	Negatable bool // there is --no-NAME
	Repeated  bool
}

// Arg is an argument.
type Arg struct {
	Name     string
	Help     string
	Optional bool
	Repeated bool
	Value    Value
	Choices  []string
}

// Of returns what a parser's model defines, without hidden parts.
func Of(app *kong.Application) Command { return command(app.Node, nil, nil) }

func command(n *kong.Node, path []string, above []Flag) Command {
	c := Command{Path: append(path[:len(path):len(path)], n.Name), Help: n.Help, Detail: n.Detail}
	for _, f := range n.Flags {
		if !f.Hidden {
			c.Flags = append(c.Flags, flagOf(f))
		}
	}
	c.Flags = append(c.Flags, above...)
	for _, p := range n.Positional {
		a := Arg{Name: p.Name, Help: p.Help, Optional: !p.Required, Repeated: p.IsSlice()}
		a.Value, a.Choices = valueOf(p, p.Name)
		switch {
		case p.Tag.Has("place"):
			a.Value = Place
		case p.Tag.Has("job"):
			a.Value = Job
		case a.Value == Text:
			a.Value = File
		}
		c.Args = append(c.Args, a)
	}
	for _, child := range n.Children {
		if !child.Hidden {
			c.Commands = append(c.Commands, command(child, c.Path, c.Flags))
		}
	}
	return c
}

func flagOf(f *kong.Flag) Flag {
	x := Flag{Name: f.Name, Help: f.Help, Repeated: f.IsSlice() || f.IsCounter()}
	if f.Short != 0 {
		x.Short = string(f.Short)
	}
	if f.Group != nil {
		x.Group = strings.TrimSuffix(f.Group.Title, ":")
	}
	if f.IsBool() || f.IsCounter() {
		x.Negatable = f.Tag.Negatable != ""
		return x
	}
	x.Value, x.Choices = valueOf(f.Value, f.PlaceHolder)
	if x.Holder = strings.ReplaceAll(f.FormatPlaceHolder(), `"`, ""); f.PlaceHolder == "" && x.Value == Choices {
		x.Holder = strings.Join(x.Choices, "|")
	}
	return x
}

// listed is a placeholder that lists the values; a word in capitals in it stands for others.
var listed = regexp.MustCompile(`^[A-Za-z0-9-]+(\|[A-Za-z0-9-]+)+$`)

// valueOf returns the values that a definition allows, as far as it says.
func valueOf(v *kong.Value, holder string) (Value, []string) {
	var choices []string
	switch {
	case v.Enum != "":
		for c := range strings.SplitSeq(v.Enum, ",") {
			if c = strings.TrimSpace(c); c != "" {
				choices = append(choices, c)
			}
		}
	case listed.MatchString(holder):
		for c := range strings.SplitSeq(holder, "|") {
			if c != strings.ToUpper(c) {
				choices = append(choices, c)
			}
		}
	}
	if len(choices) > 0 {
		return Choices, choices
	}
	switch v.Tag.Type {
	case "existingdir":
		return Dir, nil
	case "existingfile", "path", "filecontent":
		return File, nil
	}
	switch holder {
	case "DIR":
		return Dir, nil
	case "FILE":
		return File, nil
	}
	return Text, nil
}

// places reports whether an argument of the command is a place.
func (c *Command) places() bool { return c.takes(Place) }

// jobs reports whether an argument of the command is the name of a job.
func (c *Command) jobs() bool { return c.takes(Job) }

func (c *Command) takes(v Value) bool {
	return slices.ContainsFunc(c.Args, func(a Arg) bool { return a.Value == v })
}

// summary is the help of a command in one sentence, without the full stop.
func (c *Command) summary() string {
	line, _, _ := strings.Cut(c.Help, "\n")
	return strings.TrimSuffix(strings.TrimSpace(line), ".")
}

// all returns the command and all below it, each before its own subcommands.
func (c *Command) all() []*Command {
	out := []*Command{c}
	for i := range c.Commands {
		out = append(out, c.Commands[i].all()...)
	}
	return out
}

func (c *Command) name() string { return c.Path[len(c.Path)-1] }

// line is the command as it is typed.
func (c *Command) line() string { return strings.Join(c.Path, " ") }
