package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/scan"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

type scanCmd struct {
	Places     []string `arg:"" place:"" name:"PLACE" help:"Directories or files: paths or nfs://host/export/path, in whose last parts *, ? (as %3F) and [ stand for names."`
	CSV        string   `name:"csv" type:"path" placeholder:"FILE" help:"Write all tables to FILE, for spreadsheets."`
	Report     string   `type:"path" placeholder:"FILE" help:"Write a page with charts to FILE: HTML, without scripts, which asks for nothing."`
	Top        int      `default:"20" placeholder:"N" help:"Rows of the lists of the largest, 1 to 1000."`
	DepthTable int      `default:"-1" placeholder:"N" help:"Sum up each directory that lies N levels below PLACE; of more than 1000 the smaller ones together."`
	fileFlags
	nulFlag
	treeFlags
	progressFlags
}

func (*scanCmd) Help() string {
	return `Counts what lies in PLACEs, all together: kinds, sizes, ages, depths, owners, extensions; the largest files and
directories, the oldest and the newest files; and names that Windows, macOS or S3 would not take, with examples. Nothing is
changed, and no file is read: attributes come with the listings. Memory does not grow with the trees: of too
many owners or extensions the rare ones are counted together, and the tables say so.

An object with several names counts once; beyond 1,048,576 of such objects, each name of a further one counts. A file is sparse
if it has less on the disk, by 4 KiB or more, than it is long. Names that are equal but for case are found in each directory,
as long as all open directories have no more than 1,048,576 names; others are counted as "case_unchecked".

What could not be looked at is listed, all numbers are then what there is at least, and the exit status is 2. FILEs
are written in the end, whole or not at all; paths in them are shown as on a terminal, and a cell
that a spreadsheet would take for a formula begins with an apostrophe. With --json each row of a table is a line.

--include, --exclude and --filter-from are rsync's: of all, the first that matches an entry decides. A directory that
is left out is not listed.

  nfsbox scan nfs://filer/export --report filer.html
  nfsbox scan --csv home.csv --depth-table 1 nfs://filer/export/home
  nfsbox scan --json ./tree | jq 'select(.table=="findings")'`
}

// Validate is called by kong.
func (c *scanCmd) Validate() error {
	switch {
	case c.Top < 1 || c.Top > scan.MaxTop:
		return fmt.Errorf("--top takes 1 to %d", scan.MaxTop)
	case c.DepthTable < -1:
		return errors.New("--depth-table is at least 0")
	case c.CSV != "" && c.CSV == c.Report:
		return errors.New("--csv and --report take a FILE each: one would replace the other")
	}
	return c.onlyOne(c.Places)
}

// scanRow is a row of a table in JSON.
type scanRow struct {
	Table     string     `json:"table"`
	Label     string     `json:"label,omitempty"`
	Path      string     `json:"path,omitempty"`
	PathBytes string     `json:"path_base64,omitempty"` // if the path is not UTF-8
	Count     *uint64    `json:"count,omitempty"`
	Bytes     *uint64    `json:"bytes,omitempty"`
	Time      *time.Time `json:"modified,omitempty"`
}

// scanSummary is the last event of scan.
type scanSummary struct {
	scan.Totals
	leftOut
	Errors   uint64  `json:"errors"`
	Complete bool    `json:"complete"`
	Seconds  float64 `json:"seconds"`
	RPCs     uint64  `json:"rpcs"`
}

// scanner is scan under way.
type scanner struct {
	*looker
	cmd   *scanCmd
	scan  *scan.Scan
	began time.Time
	files scanFiles
}

func (c *scanCmd) Run(e *env) (err error) {
	s := &scanner{cmd: c, began: time.Now()}
	defer func() { err = errors.Join(err, s.files.csv.drop(), s.files.html.drop()) }()
	if s.files.csv, err = newWhole(e, "csv", c.CSV); err != nil {
		return err
	}
	if s.files.html, err = newWhole(e, "report", c.Report); err != nil {
		return err
	}
	if c.Parallel == 0 {
		c.Parallel = walk.DefaultParallel
	}
	if s.looker, err = c.look(e, true, &c.progressFlags); err != nil {
		return err
	}
	s.scan, err = scan.New(scan.Options{Now: s.began, Top: c.Top, Depth: c.DepthTable, Progress: func(entries, bytes uint64) {
		s.fails.Add(progress.Files, entries)
		s.fails.Add(progress.FoundItems, entries)
		s.fails.Add(progress.FoundBytes, bytes)
		s.fails.Add(progress.Bytes, bytes)
	}})
	if err == nil {
		err = s.choose(c.From0, &c.fileFlags)
	}
	if err == nil {
		err = s.places(c.Places, s.one)
	}
	return s.end(err)
}

// one scans a place.
func (s *scanner) one(p *place.Place, r *vfs.Resolved) error {
	names := spell(p)
	if r.Attr.Type != vfs.TypeDir {
		s.scan.Single([]byte(path.Base(names.path)), &r.Attr, p.Spelled())
		return nil
	}
	t := s.scan.Tree()
	t.Spell = names.place
	t.Failed = func(d *walk.Dir, name string, err error) { s.fault(names.fault(d, name, err), err) }
	t.Elsewhere = s.elsewhere
	return s.walk(p, r.Handle, walk.Options{Descend: t.Descend}, t)
}

// end prints the report, and writes the files, unless the scan was interrupted or there was nothing to scan: an earlier
// report is worth more.
func (s *scanner) end(err error) error {
	r, took := s.scan.Report(), time.Since(s.began)
	r.Complete = r.Complete && err == nil
	if s.e.ctx.Err() == nil && r.Entries > 0 {
		about := &scan.About{Places: s.cmd.Places, Began: s.began, Took: took, Failures: s.errors}
		err = errors.Join(err, s.files.csv.write(r.WriteCSV), s.files.html.write(func(w io.Writer) error { return r.WriteHTML(w, about) }))
	}
	switch {
	case s.json:
		for i := range r.Tables {
			err = errors.Join(err, s.rows(&r.Tables[i]))
		}
	case !s.cmd.Quiet:
		err = errors.Join(err, s.text(scanText(r, s.left())))
	}
	return s.done(err, func(sum listSummary) any {
		return &scanSummary{Totals: r.Totals, leftOut: s.left(), Errors: sum.Errors, Complete: r.Complete, Seconds: took.Seconds(), RPCs: s.rpcs}
	})
}

// rows prints a table in JSON.
func (s *scanner) rows(t *scan.Table) error {
	for i := range t.Rows {
		x := &t.Rows[i]
		r := &scanRow{Table: t.Name, Label: x.Label, Path: x.Path, PathBytes: notUTF8(x.Path)}
		if t.Count != "" && !x.Example() {
			r.Count = &x.Count
		}
		if t.Bytes != "" && !x.Example() {
			r.Bytes = &x.Bytes
		}
		if !x.Time.IsZero() {
			r.Time = &x.Time
		}
		if err := s.event("row", r); err != nil {
			return err
		}
	}
	return nil
}

// scanText is a report for people.
func scanText(r *scan.Report, left leftOut) string {
	var b strings.Builder
	if !r.Complete {
		b.WriteString("Something could not be looked at: all numbers are what there is at least.\n\n")
	}
	verdict(&b,
		line{"", items(r.Files, r.Dirs, r.Symlinks, r.Hardlinks, r.Nodes)},
		line{"", fmt.Sprintf("%s in files, %s on the disk", progress.Size(r.Bytes), progress.Size(r.Used))},
		line{"", text(counted{r.Sparse, "sparse file|sparse files"}, counted{r.Over, "name that may be a further one of a file, and was counted|names that may be further ones of files, and were counted"},
			counted{r.CaseUnsee, "directory whose names were not all compared|directories whose names were not all compared"}, counted{r.Vanished, "vanished meanwhile"})},
		line{"left out: ", left.words()},
	)
	for i := range r.Tables {
		writeTable(&b, &r.Tables[i])
	}
	return b.String()
}

// writeTable writes the rows of a table that say something.
func writeTable(b *strings.Builder, t *scan.Table) {
	head := "\n" + t.Title + "\n"
	if t.Note != "" && t.Name != "findings" {
		head += "  " + t.Note + "\n"
	}
	head += columnHeads(t)
	for i := range t.Rows {
		x := &t.Rows[i]
		if x.Count == 0 && x.Bytes == 0 && x.Path == "" {
			continue
		}
		b.WriteString(head)
		head = ""
		if x.Example() {
			fmt.Fprintf(b, "%14s  %s\n", "", progress.Clean(x.Path))
			continue
		}
		if t.Count != "" {
			fmt.Fprintf(b, "%14s", progress.Count(x.Count))
		}
		if t.Bytes != "" {
			fmt.Fprintf(b, "%14s", progress.Size(x.Bytes))
		}
		if !x.Time.IsZero() {
			b.WriteString("  " + x.Time.Local().Format(time.DateTime))
		}
		b.WriteString("  " + x.Label + progress.Clean(x.Path) + "\n")
	}
}

// columnHeads say what the numbers of a table are. What is longer than its column stands out to the left.
func columnHeads(t *scan.Table) (heads string) {
	for _, what := range []string{t.Count, t.Bytes} {
		if what != "" {
			heads += fmt.Sprintf("%14s", strings.TrimSuffix(what, " of files in it"))
		}
	}
	return heads + "\n"
}

// scanFiles are the files of a report; nil: not asked for.
type scanFiles struct{ csv, html *wholeFile }

// wholeFile is a file under a name of its own, until it is whole.
type wholeFile struct {
	to string
	*os.File
}

// newWhole makes a file before anything is done, so that one that cannot be written is known by then. It is nil
// for "".
func newWhole(e *env, flag, to string) (*wholeFile, error) {
	if to == "" {
		return nil, nil
	}
	info, err := os.Stat(to)
	if err == nil && !info.Mode().IsRegular() {
		return nil, refused(fmt.Errorf("--%s: %s is no file", flag, to))
	}
	var random [8]byte
	e.rand(random[:])
	f, err := os.OpenFile(filepath.Join(filepath.Dir(to), fmt.Sprintf(".nfsbox-%x", random)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, refused(fmt.Errorf("--%s: %w", flag, err))
	}
	return &wholeFile{to, f}, nil
}

// write fills the file, and gives it its name.
func (f *wholeFile) write(fill func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	w := bufio.NewWriter(f)
	err := errors.Join(fill(w), w.Flush(), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.to, errors.Join(err, os.Remove(f.Name())))
	}
	f.File = nil
	return nil
}

// drop removes the file, unless it was written.
func (f *wholeFile) drop() error {
	if f == nil || f.File == nil {
		return nil
	}
	name := f.Name()
	_ = f.Close() // nothing of it is kept
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
