package manual

import (
	godoc "go/doc/comment"
	"regexp"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// narrowHelp is the width, in columns, below which what a flag does stands below it, and not beside.
const narrowHelp = 72

// LaidOut is a text at a width, in columns, laid out as kong has help laid out: by go/doc.
func LaidOut(text string, width int) string {
	p := godoc.Printer{TextWidth: width, TextCodePrefix: "    "}
	return FoldHelp(string(p.Text(new(godoc.Parser).Parse(text))), width)
}

var (
	// helpRow is a row of two columns as kong prints it: an argument, a flag or a command, and behind
	// a gap what it does. helpGoesOn is a further line of that.
	helpRow    = regexp.MustCompile(`^( {2,6}\S.*?)(?: {4,}(\S.*))?$`)
	helpGoesOn = regexp.MustCompile(`^ {8,}(\S.*)$`)
	// listRow is a row of a list in a text: a status, or an argument of a URL, and what it means. A
	// comment behind an example is none. listGoesOn is a further line.
	listRow    = regexp.MustCompile(`^( {4,6}\S+)(?: {2,}([^#\s].*))?$`)
	listGoesOn = regexp.MustCompile(`^ {20,}(\S.*)$`)
)

// FoldHelp breaks the lines of help that kong does not: that of the usage, long rows of lists and, where
// it is narrow, its two columns, of which the second then stands below the first. Examples stay as
// they are. Headings lose the mark that go/doc gives them.
func FoldHelp(text string, width int) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\n# ", "\n"), "\n"), "\n")
	row, goesOn := listRow, listGoesOn
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		cells := row.FindStringSubmatch(line)
		first := i
		for narrow := width < narrowHelp; narrow && cells != nil && i+1 < len(lines); i++ {
			on := goesOn.FindStringSubmatch(lines[i+1])
			if on == nil {
				break
			}
			cells[2] += " " + on[1]
		}
		switch {
		case width < narrowHelp && cells != nil && (cells[2] != "" || row == helpRow):
			out.WriteString(progress.Fold("  "+strings.TrimLeft(cells[1], " "), width, 4) + "\n")
			line = progress.Fold("    "+strings.TrimLeft(cells[2], " "), width, 4)
		case cells != nil && i == first && cells[2] != "" && row == listRow:
			line = progress.Fold(line, width, strings.LastIndex(line, cells[2]))
		case !strings.HasPrefix(line, " "):
			if strings.HasSuffix(line, ":") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
				row, goesOn = helpRow, helpGoesOn
			}
			line = progress.Fold(line, width, 2)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}
