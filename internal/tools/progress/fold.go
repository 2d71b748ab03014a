package progress

import "strings"

// Fold breaks a line at spaces into lines of at most width columns, of which all but the first begin
// with indent spaces. A word that is wider stands whole on a line of its own: a URL, a path. The
// line has no end of line, and holds what [Clean] lets through. A width of 0 is any.
func Fold(line string, width, indent int) string {
	if width <= 0 || Columns(line) <= width {
		return line
	}
	var out strings.Builder
	now, used, begun := "", 0, false // the line under way, its columns, whether it has a word
	for i, word := range strings.Split(line, " ") {
		n := Columns(word)
		switch {
		case i == 0:
			now, used = word, n
		case begun && used+1+n > width && n > 0:
			out.WriteString(strings.TrimRight(now, " ") + "\n")
			now, used = strings.Repeat(" ", indent)+word, indent+n
		default:
			now, used = now+" "+word, used+1+n
		}
		begun = begun || n > 0
	}
	out.WriteString(strings.TrimRight(now, " "))
	return out.String()
}
