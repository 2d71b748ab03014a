package manual

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/testkit/need"
)

var update = flag.Bool("update", false, "write the golden files anew")

// grammar has one of everything that a command line may have, and the
// punctuation that shells and roff take for their own.
type grammar struct {
	Serve struct {
		Dir    string        `arg:"" optional:"" name:"DIR" help:"The directory." type:"existingdir"`
		Config string        `short:"c" placeholder:"FILE" help:"Read nfsbox.toml." type:"existingfile"`
		Locks  bool          `default:"true" negatable:"" help:"Serve locks; it's [the] default: yes."`
		Allow  []string      `sep:"none" placeholder:"CLIENT" group:"Exports:" help:"Who may mount (10.0.0.0/8, *.example.org)."`
		Squash string        `enum:"none,root,all" default:"root" group:"Exports:" help:"Who becomes nobody."`
		Grace  time.Duration `placeholder:"TIME" help:".5s is a start; \"quoted\" and back\\slash and $HOME and 'so'."`
		Secret bool          `hidden:"" help:"Not to be seen."`
	} `cmd:"" help:"Serve a directory."`
	Bench struct {
		Read struct {
			URL  []string `arg:"" place:"" name:"URL" help:"What to read."`
			Load string   `placeholder:"auto|N|off" help:"Calls at once."`
		} `cmd:"" help:"Measure READ."`
		Null struct{} `cmd:"" help:"Measure NULL."`
		Size int      `placeholder:"BYTES" help:"Of one operation."`
	} `cmd:"" help:"Measure a server: any."`
	Job struct {
		Name []string `arg:"" job:"" name:"NAME" help:"Of a job."`
	} `cmd:"" help:"Show a job."`
	Completion struct {
		Shell string `arg:"" enum:"bash,zsh,fish" help:"Of which shell."`
	} `cmd:"" help:"Print a completion."`
	Hidden struct{} `cmd:"" hidden:"" help:"Not to be seen."`
}

// about is the program's description.
const about = `NFS without a mount.

A PLACE is a path or a URL:

  nfs://HOST[:PORT]/PATH
    'quoted' \and more

.Exit status: 0 done.

WHAT ELSE

A paragraph of a section.

NFS 3 is no heading.

ONE MORE

  of code`

func program(t *testing.T) *Command {
	t.Helper()
	p, err := kong.New(new(grammar), kong.Name("nfsbox"), kong.Description(about), kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	c := Of(p.Model)
	return &c
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nbut %s has\n%s", got, path, want)
	}
}

// TestGolden makes all there is.
func TestGolden(t *testing.T) {
	c := program(t)
	var files []string
	for _, p := range Pages(c, "1.2.3", "2026-11-28") {
		files = append(files, p.File)
		golden(t, p.File, p.Text)
	}
	if want := []string{"nfsbox.1", "nfsbox-serve.1", "nfsbox-bench.1", "nfsbox-bench-read.1", "nfsbox-bench-null.1", "nfsbox-job.1", "nfsbox-completion.1"}; !slices.Equal(files, want) {
		t.Errorf("%q", files)
	}
	golden(t, "nfsbox.bash", Bash(c))
	golden(t, "_nfsbox", Zsh(c))
	golden(t, "nfsbox.fish", Fish(c))
	golden(t, "nfsbox.ps1", PowerShell(c))
}

// TestRead has every file read by whom it is for, as far as they are installed.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		tool string
		args []string
		glob string
	}{
		{"bash", []string{"-n"}, "nfsbox.bash"},
		{"zsh", []string{"-n"}, "_nfsbox"},
		{"fish", []string{"-n"}, "nfsbox.fish"},
		{"mandoc", []string{"-T", "lint", "-W", "warning"}, "*.1"},
		{"groff", []string{"-k", "-man", "-ww", "-z"}, "*.1"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			tool := need.Tool(t, c.tool, c.tool)
			files, err := filepath.Glob(filepath.Join("testdata", c.glob))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				out, err := exec.Command(tool, append(slices.Clone(c.args), f)...).CombinedOutput()
				for line := range strings.Lines(string(out)) {
					if !strings.Contains(line, "missing date") { // which is on purpose
						t.Errorf("%s: %v: %s", f, err, line)
					}
				}
				if err != nil && len(out) == 0 {
					t.Errorf("%s: %v", f, err)
				}
			}
		})
	}
}

// completions are what is offered at the end of a command line; its words are as
// bash divides them.
var completions = []struct {
	words []string
	want  string
}{
	{[]string{"nfsbox", ""}, "serve bench job completion"},
	{[]string{"nfsbox", "b"}, "bench"},
	{[]string{"nfsbox", "-"}, "--help"},
	{[]string{"nfsbox", "bench", ""}, "read null"},
	{[]string{"nfsbox", "bench", "--size", "3", "r"}, "read"},
	{[]string{"nfsbox", "bench", "read", "--l"}, "--load"},
	{[]string{"nfsbox", "bench", "read", "--s"}, "--size"},
	{[]string{"nfsbox", "serve", "--squash", ""}, "none root all"},
	{[]string{"nfsbox", "serve", "--squash", "=", "r"}, "root"},
	{[]string{"nfsbox", "serve", "--squash", "="}, "none root all"},
	{[]string{"nfsbox", "serve", "--config", "x"}, ""},
	{[]string{"nfsbox", "serve", "-c", "x"}, ""},
	{[]string{"nfsbox", "serve", "--no"}, "--no-locks"},
	{[]string{"nfsbox", "serve", "--secr"}, ""},
	{[]string{"nfsbox", "completion", "f"}, "fish"},
	{[]string{"nfsbox", "hid"}, ""},
}

// TestBash completes command lines.
func TestBash(t *testing.T) {
	bash := need.Tool(t, "bash", "bash")
	script := Bash(program(t)) + `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nfsbox; echo "${COMPREPLY[*]}"`
	for _, c := range completions {
		out, err := exec.Command(bash, append([]string{"--norc", "-c", script, "bash"}, c.words...)...).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%q: %q, want %q; %v", c.words, got, c.want, err)
		}
	}
}

// TestFish completes command lines.
func TestFish(t *testing.T) {
	fish := need.Tool(t, "fish", "fish")
	script := Fish(program(t)) + "\ncomplete -C $line\n"
	for _, c := range completions {
		line := strings.ReplaceAll(strings.Join(c.words, " "), " = ", "=")
		cmd := exec.Command(fish, "--no-config", "-c", "set line "+fishWord(line)+"\n"+script)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		var got []string
		for l := range strings.Lines(string(out)) {
			w, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
			got = append(got, w[strings.LastIndex(w, "=")+1:])
		}
		want := strings.Fields(c.want)
		slices.Sort(want)
		slices.Sort(got)
		if last := c.words[len(c.words)-1]; last == "-" || last == "=" || c.want == "" {
			continue // fish offers short flags, too, and files
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q; %v", line, got, want, err)
		}
	}
}

// TestStatuses: a table of exit statuses is filled to the page's width, and what follows it is a paragraph.
func TestStatuses(t *testing.T) {
	var b roff
	b.paragraphs("Lists.", "EXIT STATUS", "    0    done\n    130  a signal has ended it", "More.\n\n    nfsbox 1  # an example")
	const want = "Lists.\n.SH EXIT STATUS\n.TP 6\n0\ndone\n.TP 6\n130\na signal has ended it\n.PP\nMore.\n.PP\n.RS 4\n.nf\n  nfsbox 1  # an example\n.fi\n.RE\n"
	if got := b.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
