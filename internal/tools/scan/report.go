package scan

import (
	"fmt"
	"os/user"
	"strconv"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// Report is what was counted, in tables.
type Report struct {
	Totals
	Complete bool // false: something could not be looked at, and all is at least so much
	Tables   []Table
}

// Table is a table of a Report.
type Table struct {
	Name  string // for programs: "size"
	Title string // for people
	Note  string // what there is to know of the rows; "" is nothing
	Count string // what Row.Count is, for people; "": the table has none
	Bytes string // what Row.Bytes are
	Chart bool   // the rows are the steps of a histogram: all are there, in their order
	Rows  []Row
}

// Row is a row of a table.
type Row struct {
	Label string    // what it is about, as a terminal may show it; "" if that is a path
	Path  string    // as Spell has spelled it
	Count uint64    // how many
	Bytes uint64    // what they have
	Time  time.Time // zero: the table has none
}

// Example reports whether the row is an example of the row before, and has no numbers.
func (r *Row) Example() bool { return r.Path != "" && r.Label != "" }

// Report adds up what was counted. It is called when no walk is under way.
func (s *Scan) Report() *Report {
	sum := new(tally)
	sum.init(s.o.Top)
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		sum.add(&p.tally)
		p.mu.Unlock()
	}
	sum.totals.Over = s.links.Over()
	r := &Report{Totals: sum.totals, Complete: !s.short.Load()}
	r.Tables = append(r.Tables,
		cells("type", "Kinds", "objects", "on disk", sum.types[1:], typeLabels()),
		cells("size", "Files by size", "files", "bytes", sum.sizes[:], sizeNames[:]),
		cells("mtime", "Files by time since they were modified", "files", "bytes", sum.mtimes[:], ageNames[:]),
		cells("atime", "Files by time since they were read", "files", "bytes", sum.atimes[:], ageNames[:]),
		numbers("depth", "Names by depth", "names", depths(&sum.depths), nil),
		numbers("entries", "Directories by names in them", "directories", sum.fills[:], fillNames[:]),
		numbers("name_length", "Names by length", "names", sum.names[:], nameNames[:]),
		s.owners("owner", "Owners", &sum.owners, userName),
		s.owners("group", "Groups", &sum.groups, groupName),
		s.extensions(&sum.exts),
	)
	r.Tables = append(r.Tables, sum.lists()...)
	r.Tables = append(r.Tables, sum.findingsTable())
	if s.o.Depth >= 0 {
		r.Tables = append(r.Tables, s.directories())
	}
	return r
}

// typeLabels are the names of the types, from files on.
func typeLabels() (labels []string) {
	for t := vfs.TypeReg; t <= vfs.TypeFIFO; t++ {
		labels = append(labels, t.String())
	}
	return labels
}

// depths are the levels down to the deepest that something is on.
func depths(all *[maxDepths + 1]uint64) []uint64 {
	n := len(all)
	for n > 1 && all[n-1] == 0 {
		n--
	}
	return all[:n]
}

func cells(name, title, count, bytes string, all []Cell, labels []string) Table {
	t := Table{Name: name, Title: title, Count: count, Bytes: bytes, Chart: true}
	for i, c := range all {
		t.Rows = append(t.Rows, Row{Label: labels[i], Count: c.Count, Bytes: c.Bytes})
	}
	return t
}

// numbers is a histogram without bytes. Without labels the rows are numbered from 0 on.
func numbers(name, title, count string, all []uint64, labels []string) Table {
	t := Table{Name: name, Title: title, Count: count, Chart: true}
	for i, n := range all {
		label := strconv.Itoa(i)
		switch {
		case labels != nil:
			label = labels[i]
		case i == maxDepths:
			label += " and more"
		}
		t.Rows = append(t.Rows, Row{Label: label, Count: n})
	}
	return t
}

// others is the label of a row for what has none of its own.
const others = "(others)"

// lossy says how far counts may be off.
func lossy(short uint64) string {
	if short == 0 {
		return ""
	}
	return fmt.Sprintf("There are too many to tell all apart: each may have up to %d more, which are among the others.", short)
}

func (s *Scan) owners(name, title string, h *hitters[uint32], called func(id string) string) Table {
	rows, rest := largest(h, s.o.Top)
	t := Table{Name: name, Title: title, Count: "objects", Bytes: "bytes", Note: lossy(h.short)}
	for _, r := range rows {
		id := strconv.FormatUint(uint64(r.key), 10)
		label := id
		if n := called(id); n != "" {
			label += " (" + progress.Clean(n) + " here)"
		}
		t.Rows = append(t.Rows, Row{Label: label, Count: r.Count, Bytes: r.Cell.Bytes})
	}
	return t.with(rest)
}

// with adds a row for the rest, if there is one.
func (t Table) with(rest Cell) Table {
	if rest.Count > 0 {
		t.Rows = append(t.Rows, Row{Label: others, Count: rest.Count, Bytes: rest.Bytes})
	}
	return t
}

// userName is the name of a user on this host; "": there is none.
func userName(id string) string {
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return ""
}

func groupName(id string) string {
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return ""
}

func (s *Scan) extensions(h *hitters[string]) Table {
	rows, rest := largest(h, s.o.Top)
	t := Table{Name: "extension", Title: "Files by extension", Count: "files", Bytes: "bytes", Note: lossy(h.short)}
	for _, r := range rows {
		label := progress.Clean(r.key)
		if label == "" {
			label = "(none)"
		}
		t.Rows = append(t.Rows, Row{Label: label, Count: r.Count, Bytes: r.Cell.Bytes})
	}
	return t.with(rest)
}

// lists are the lists of the largest.
func (t *tally) lists() (all []Table) {
	for what, l := range [numTops]Table{
		largestFiles: {Name: "largest_files", Title: "Largest files", Bytes: "bytes"},
		newest:       {Name: "newest", Title: "Files modified last", Bytes: "bytes"},
		oldest:       {Name: "oldest", Title: "Files modified longest ago", Bytes: "bytes"},
		mostEntries:  {Name: "most_entries", Title: "Directories with the most names", Count: "names", Bytes: "bytes of files in it"},
		mostBytes:    {Name: "most_bytes", Title: "Directories with the most bytes, without those below", Count: "names", Bytes: "bytes of files in it"},
		deepest:      {Name: "deepest", Title: "Deepest directories", Count: "levels"},
	} {
		for _, x := range t.tops[what].sorted() {
			r := Row{Path: x.path, Bytes: x.cell.Bytes, Count: x.cell.Count}
			switch what {
			case largestFiles:
				r.Count = 0
			case newest:
				r.Count, r.Time = 0, time.Unix(x.value, 0).UTC()
			case oldest:
				r.Count, r.Time = 0, time.Unix(-x.value, 0).UTC()
			case deepest:
				r.Count, r.Bytes = uint64(x.value), 0
			}
			l.Rows = append(l.Rows, r)
		}
		all = append(all, l)
	}
	return all
}

// findingsTable is the table of findings, each with the first paths at which it was found.
func (t *tally) findingsTable() Table {
	all := Table{
		Name: "findings", Title: "What other systems may not take", Count: "found",
		Note: "With each are up to three examples; names equal but for case are counted in their directory, the second and each further one.",
	}
	for what, label := range [numFindings]string{
		caseOnly:    "names equal but for case (Windows and macOS take them for one)",
		badWindows:  `names that Windows refuses (< > : " \ | ? *, control characters, a dot or a space at the end, CON, NUL, COM1 and the like)`,
		longWindows: "paths below PLACE longer than 259 bytes (MAX_PATH of Windows)",
		badS3:       "paths below PLACE that cannot be keys of S3 (not UTF-8, or longer than 1,024 bytes)",
		avoidS3:     "names with characters that are better avoided in keys of S3",
		controls:    "names with control characters, such as a line feed",
		noUTF8:      "names that are not UTF-8",
		tooLong:     "names longer than 255 bytes, which were not looked at",
		setUID:      "files with set-user-ID",
		setGID:      "files with set-group-ID",
	} {
		f := &t.findings[what]
		all.Rows = append(all.Rows, Row{Label: label, Count: f.count})
		for _, path := range f.paths {
			all.Rows = append(all.Rows, Row{Label: "for example", Path: path})
		}
	}
	return all
}

// directories is the table of directories at a depth.
func (s *Scan) directories() Table {
	t := Table{
		Name: "directories", Title: fmt.Sprintf("Directories at depth %d, with all below", s.o.Depth), Count: "names", Bytes: "bytes",
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.table.sorted() {
		t.Rows = append(t.Rows, Row{Path: x.path, Count: x.cell.Count, Bytes: x.cell.Bytes})
	}
	return t.with(s.rest)
}
