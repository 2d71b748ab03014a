package scan

import (
	"slices"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// The steps of the histograms. The last of each has all that is more.
var (
	sizeSteps = [...]uint64{0, 4 << 10, 64 << 10, 1 << 20, 10 << 20, 100 << 20, 1 << 30, 10 << 30, 100 << 30, 1 << 40}
	sizeNames = [...]string{"0", "to 4 KiB", "to 64 KiB", "to 1 MiB", "to 10 MiB", "to 100 MiB", "to 1 GiB", "to 10 GiB", "to 100 GiB", "to 1 TiB", "more"}
	ageSteps  = [...]int64{0, 1, 7, 30, 90, 365, 2 * 365, 5 * 365} // days; before the first is the future
	ageNames  = [...]string{"in the future", "to a day", "to a week", "to a month", "to 3 months", "to a year", "to 2 years", "to 5 years", "older"}
	fillSteps = [...]uint64{0, 9, 99, 999, 9_999, 99_999, 999_999}
	fillNames = [...]string{"0", "1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999", "10,000 to 99,999", "100,000 to 999,999", "1,000,000 and more"}
	nameSteps = [...]uint64{8, 16, 32, 64, 128, 255}
	nameNames = [...]string{"1 to 8", "9 to 16", "17 to 32", "33 to 64", "65 to 128", "129 to 255"}
)

// step is the number of the first step that n does not exceed.
func step(steps []uint64, n uint64) int {
	for i, most := range steps {
		if n <= most {
			return i
		}
	}
	return len(steps)
}

// The lists of the largest.
const (
	largestFiles = iota
	newest
	oldest
	mostEntries
	mostBytes
	deepest
	numTops
)

// What is found about names and files.
const (
	caseOnly = iota
	badWindows
	longWindows
	badS3
	avoidS3
	controls
	noUTF8
	tooLong
	setUID
	setGID
	numFindings
)

// finding is how often something was found, and where at first.
type finding struct {
	count uint64
	paths []string
}

// tally is a set of counts.
type tally struct {
	totals   Totals
	types    [8]Cell // by vfs.Type
	sizes    [len(sizeNames)]Cell
	mtimes   [len(ageNames)]Cell
	atimes   [len(ageNames)]Cell
	depths   [maxDepths + 1]uint64
	fills    [len(fillNames)]uint64
	names    [len(nameNames)]uint64
	owners   hitters[uint32]
	groups   hitters[uint32]
	exts     hitters[string]
	tops     [numTops]top
	findings [numFindings]finding
}

// Totals are the sums of a scan.
type Totals struct {
	Entries   uint64 `json:"entries"` // of all kinds: each name, and the PLACEs
	Files     uint64 `json:"files"`
	Dirs      uint64 `json:"dirs"`
	Symlinks  uint64 `json:"symlinks"`
	Nodes     uint64 `json:"nodes"`          // devices, pipes, sockets
	Hardlinks uint64 `json:"hardlinks"`      // further names of objects that are counted
	Over      uint64 `json:"hardlinks_over"` // names that were counted as objects, and may be further ones
	Bytes     uint64 `json:"bytes"`          // of files
	Used      uint64 `json:"used"`           // on the disk, of all
	Sparse    uint64 `json:"sparse"`         // files with less on the disk than they are long, by a block or more
	SparseBy  uint64 `json:"sparse_bytes"`   // by how much
	CaseUnsee uint64 `json:"case_unchecked"` // directories with more names than could be compared
	Vanished  uint64 `json:"vanished"`       // items that were gone when their turn came: no failures
}

func (t *Totals) add(o *Totals) {
	t.Entries += o.Entries
	t.Files += o.Files
	t.Dirs += o.Dirs
	t.Symlinks += o.Symlinks
	t.Nodes += o.Nodes
	t.Hardlinks += o.Hardlinks
	t.Over += o.Over
	t.Bytes += o.Bytes
	t.Used += o.Used
	t.Sparse += o.Sparse
	t.SparseBy += o.SparseBy
	t.CaseUnsee += o.CaseUnsee
	t.Vanished += o.Vanished
}

func (t *tally) init(most int) {
	t.owners, t.groups, t.exts = newHitters[uint32](maxKeys), newHitters[uint32](maxKeys), newHitters[string](maxKeys)
	for i := range t.tops {
		t.tops[i].max = most
	}
}

// add adds what another has counted.
func (t *tally) add(o *tally) {
	t.totals.add(&o.totals)
	addCells(t.types[:], o.types[:])
	addCells(t.sizes[:], o.sizes[:])
	addCells(t.mtimes[:], o.mtimes[:])
	addCells(t.atimes[:], o.atimes[:])
	for i, n := range o.depths {
		t.depths[i] += n
	}
	for i, n := range o.fills {
		t.fills[i] += n
	}
	for i, n := range o.names {
		t.names[i] += n
	}
	t.owners.merge(&o.owners)
	t.groups.merge(&o.groups)
	t.exts.merge(&o.exts)
	for i := range t.tops {
		t.tops[i].merge(&o.tops[i])
	}
	for i := range t.findings {
		f := &t.findings[i]
		f.count += o.findings[i].count
		f.paths = append(f.paths, o.findings[i].paths...)
		slices.Sort(f.paths)
		f.paths = f.paths[:min(len(f.paths), maxExamples)]
	}
}

func addCells(to, from []Cell) {
	for i := range from {
		to[i].add(from[i])
	}
}

// found notes a finding. path is called for the first ones.
func (t *tally) found(what int, path func() string) {
	f := &t.findings[what]
	f.count++
	if len(f.paths) < maxExamples {
		f.paths = append(f.paths, path())
	}
}

// ages are the times at which the steps of ages begin, the latest first.
type ages [len(ageSteps)]int64

func newAges(now time.Time) (a ages) {
	for i, days := range ageSteps {
		a[i] = now.Unix() - days*24*60*60
	}
	return a
}

// of is the step of a time.
func (a *ages) of(t int64) int {
	for i, since := range a {
		if t > since {
			return i
		}
	}
	return len(a)
}

// entry is an object as it is counted.
type entry struct {
	name  []byte
	attr  *vfs.Attr
	depth int
	path  func() string
}

// object counts what an object is, under one of its names.
func (t *tally) object(e *entry, ages *ages) {
	a := e.attr
	t.types[min(int(a.Type), len(t.types)-1)].add(Cell{1, a.Used})
	t.totals.Used += a.Used
	size := uint64(0)
	switch a.Type {
	case vfs.TypeReg:
		size = a.Size
		t.file(e, ages)
	case vfs.TypeDir:
		t.totals.Dirs++
	case vfs.TypeSymlink:
		t.totals.Symlinks++
	default:
		t.totals.Nodes++
	}
	t.owners.of(a.UID).add(Cell{1, size})
	t.groups.of(a.GID).add(Cell{1, size})
}

// block is the least that a sparse file lacks.
const block = 4096

// file counts what only files have.
func (t *tally) file(e *entry, ages *ages) {
	a, one := e.attr, Cell{1, e.attr.Size}
	t.totals.Files++
	t.totals.Bytes += a.Size
	t.sizes[step(sizeSteps[:], a.Size)].add(one)
	if a.Has(vfs.MaskUsed) && a.Size >= block && a.Used <= a.Size-block {
		t.totals.Sparse++
		t.totals.SparseBy += a.Size - a.Used
	}
	mtime := a.Mtime.Unix()
	t.mtimes[ages.of(mtime)].add(one)
	t.atimes[ages.of(a.Atime.Unix())].add(one)
	for _, list := range [...]struct {
		what  int
		value int64
	}{{largestFiles, int64(min(a.Size, 1<<63-1))}, {newest, mtime}, {oldest, -mtime}} {
		if l := &t.tops[list.what]; l.wants(list.value) {
			l.add(item{list.value, one, e.path()})
		}
	}
	if a.Mode&0o6000 != 0 {
		if a.Mode&0o4000 != 0 {
			t.found(setUID, e.path)
		}
		if a.Mode&0o2000 != 0 {
			t.found(setGID, e.path)
		}
	}
}

// spelled counts what a name is, also a further name of an object.
func (t *tally) spelled(e *entry, s *spelling, low []byte, pathLen int) {
	t.totals.Entries++
	t.depths[min(e.depth, maxDepths)]++
	t.names[step(nameSteps[:], uint64(len(e.name)))]++
	if s.invalid {
		t.found(noUTF8, e.path)
	}
	if s.flags&control != 0 {
		t.found(controls, e.path)
	}
	if s.flags&avoid != 0 {
		t.found(avoidS3, e.path)
	}
	if windowsRefuses(low, s.flags) {
		t.found(badWindows, e.path)
	}
	if pathLen > longestWindows {
		t.found(longWindows, e.path)
	}
	if s.invalid || pathLen > longestS3 {
		t.found(badS3, e.path)
	}
}

// The longest paths of other systems, in bytes: MAX_PATH of Windows less its NUL, and a key of S3.
const (
	longestWindows = 259
	longestS3      = 1024
)

// extension counts a file's extension, in lower case.
func (t *tally) extension(low []byte, at int, size uint64) {
	ext := low[at:]
	if at == 0 || len(ext) < 2 || len(ext) > maxExtension+1 {
		ext = nil
	}
	ofName(&t.exts, ext).add(Cell{1, size})
}

// directory counts what is known of a directory when it is left.
func (t *tally) directory(d *dir, path func() string) {
	t.fills[step(fillSteps[:], d.entries)]++
	for _, list := range [...]struct {
		what  int
		value uint64
	}{{mostEntries, d.entries}, {mostBytes, d.bytes}, {deepest, uint64(d.depth)}} {
		value := int64(min(list.value, 1<<63-1))
		if l := &t.tops[list.what]; l.wants(value) {
			l.add(item{value, Cell{d.entries, d.bytes}, path()})
		}
	}
}

// alike counts names of a directory that are equal but for case.
func (t *tally) alike(d *dir, path func() string) {
	if d.unchecked {
		t.totals.CaseUnsee++
	}
	if !d.capital {
		return
	}
	slices.Sort(d.names)
	for i := 1; i < len(d.names); i++ {
		if d.names[i] == d.names[i-1] {
			t.found(caseOnly, path)
		}
	}
}
