package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// DefaultLarge is the size in bytes above which a file is copied in parts if the options do not say.
	// Of a smaller one little is lost.
	DefaultLarge = 1 << 30
	// partsPerLarge is how often such a size is made stable and noted while it is copied: each 256 MiB.
	partsPerLarge = 4
)

// KindPart is the kind of a note about a file that is copied in part. Its path is the file's.
const KindPart = "part"

// parts are the files that are copied in part, by the names of their temporaries: what is noted of
// them is stable in the destination. A later run goes on there (transfer.Part). The file beside the
// record has them.
type parts struct {
	dir   *os.Root
	tag   string // of this job's temporaries
	large uint64
	tell  func(error) // that nothing more is noted

	mu sync.Mutex
	of map[string]Part
}

// openParts reads what earlier runs have copied in part.
func (j *copyJob) openParts() {
	dir := j.o.Parts
	if j.record != nil {
		dir = j.o.Record
	}
	if dir == nil || j.dry() {
		return
	}
	p := &parts{dir: dir, tag: j.t.Tag, large: cmp.Or(j.o.Large, DefaultLarge), of: make(map[string]Part)}
	if vfs.Has[vfs.Maker](j.o.Dest.FS) {
		p.large = 0 // the destination decides which files it is worth for
	}
	p.tell = func(err error) {
		j.progress.Report(progress.Event{Type: "note", Kind: KindPart, Message: "large files that are being copied when the copy is broken off will be copied anew: " + err.Error()})
	}
	all, err := Parts(dir)
	if err != nil {
		j.progress.Report(progress.Event{Type: "note", Kind: KindPart, Message: "what was copied of large files is not known, and they are copied anew: " + err.Error()})
	}
	for _, one := range all {
		p.of[one.Temp] = one
	}
	j.parts = p
}

// part is how a file of the source is copied in parts; nil: it is not.
func (j *copyJob) part(s *dirState, src *transfer.Source, name string) *transfer.Part {
	p := j.parts
	if p == nil || j.o.Hands != nil || src.Attr.Size <= p.large { // other hands have copies of their own
		return nil
	}
	file := s.path(name)
	was := p.find(file)
	temp, resumed := was.Temp, false
	note := func(text string) {
		j.progress.Report(progress.Event{Type: "note", Kind: KindPart, Path: file, Message: text})
	}
	return &transfer.Part{
		Every: max(p.large/partsPerLarge, 1), Was: was,
		Note: func(m transfer.Mark) bool {
			if m.Temp == "" {
				if temp == was.Temp && !resumed {
					note("it is copied anew: it, or the part that an earlier run has copied, is not what it was")
				}
				return p.drop(temp)
			}
			temp = m.Temp
			return p.add(Part{file, m})
		},
		Skipped: func(n int64) { // n may be negative: as an unsigned number it wraps, and so subtracts
			if n > 0 {
				resumed = true
				note(fmt.Sprintf("it goes on behind the %s of %s that an earlier run has copied", progress.Size(uint64(n)), progress.Size(was.Size)))
			}
			j.progress.Add(progress.FoundBytes, uint64(-n))
			j.progress.Add(progress.SkippedBytes, uint64(n))
		},
	}
}

// ours reports whether the temporary is one of this job.
func (p *parts) ours(temp string) bool { return transfer.IsTemp(temp, p.tag) }

// find is what this job has noted of a file; zero: nothing.
func (p *parts) find(file string) transfer.Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	for temp, one := range p.of {
		if one.Path == file && p.ours(temp) {
			return one.Mark
		}
	}
	return transfer.Mark{}
}

// spares reports whether a temporary is that of a file that is copied in part.
func (p *parts) spares(temp string) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.of[temp]
	return ok
}

// add notes a file that is copied in part, and reports whether that is written.
func (p *parts) add(one Part) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, there := p.of[one.Temp]
	if !there && len(p.of) >= maxParts || !one.sane() {
		return false
	}
	p.of[one.Temp] = one
	if p.write() {
		return true
	}
	if delete(p.of, one.Temp); there {
		p.of[one.Temp] = was
	}
	return false
}

// drop forgets a file.
func (p *parts) drop(temp string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.of[temp]; !there {
		return true
	}
	delete(p.of, temp)
	return p.write()
}

// write writes the file. An error is told once, and leaves what was written before. parts.mu is held.
func (p *parts) write() bool {
	err := writeParts(p.dir, p.sorted())
	if err != nil && p.tell != nil {
		p.tell(err)
		p.tell = nil
	}
	return err == nil
}

// sorted are the parts in the order of their paths. parts.mu is held.
func (p *parts) sorted() []Part {
	all := make([]Part, 0, len(p.of))
	for _, one := range p.of {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Temp, b.Temp))
	})
	return all
}

// clearParts removes the temporaries that no file has been made of, when all is copied: those of files that the
// source does not have any more, and of a job that was begun anew. What cannot be found is told of.
func (j *copyJob) clearParts(ctx context.Context) {
	if j.parts == nil || j.progress.Get(progress.Errors) > j.failedBefore || ctx.Err() != nil {
		return
	}
	j.parts.mu.Lock()
	all := j.parts.sorted()
	j.parts.mu.Unlock()
	for _, one := range all {
		err := j.clearPart(ctx, &one)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			j.progress.Report(progress.Event{Type: "note", Kind: KindTemporary, Path: path.Join(path.Dir(one.Path), one.Temp), Message: "was not removed: " + err.Error()})
		}
		j.parts.drop(one.Temp)
	}
}

// clearPart removes a temporary, if the name in the destination is still that of the very file. It follows no link.
func (j *copyJob) clearPart(ctx context.Context, one *Part) error {
	if m, ok := vfs.As[vfs.Maker](j.o.Dest.FS); ok && one.Whole != "" {
		return m.Unmake(ctx, one.Whole)
	}
	dir, names := j.target, strings.Split(one.Path, "/")
	if j.srcAttr.Type != vfs.TypeDir {
		dir = j.o.Dest.Handle
	}
	names[len(names)-1] = one.Temp
	for i, name := range names {
		there, ok, err := lookup(ctx, j.o.Dest.FS, dir, name)
		switch {
		case err == nil && !ok && !j.parts.ours(one.Temp):
			return errors.New("it was not found, and may be where the earlier copy went")
		case err != nil || !ok:
			return err
		case i == len(names)-1 && !one.IsTemp(&there.attr):
			return errors.New("it may be another file")
		case i == len(names)-1:
			return j.keepMtime(ctx, dir, func() error {
				return transfer.RemoveTemp(ctx, &transfer.Target{FS: j.o.Dest.FS, Dir: dir}, name, nil)
			})
		case there.attr.Type != vfs.TypeDir:
			return nil // nothing is in it
		}
		dir = there.handle
	}
	return nil
}

// tellParts reports the files that are copied in part when the job ends, and returns their number.
func (j *copyJob) tellParts() uint64 {
	if j.parts == nil {
		return 0
	}
	j.parts.mu.Lock()
	all := j.parts.sorted()
	j.parts.mu.Unlock()
	for i, one := range all {
		if i == maxLeft {
			j.progress.Report(progress.Event{Type: "note", Kind: KindPart, Message: fmt.Sprintf("%d more files are copied in part, and the next run goes on there", len(all)-i)})
			break
		}
		message := fmt.Sprintf("%s of its %s are copied, in %s, and the next run goes on there", progress.Size(one.Bytes), progress.Size(one.Size), one.Temp)
		if one.Whole != "" {
			message = "parts of it are in the bucket, and the next run goes on there"
		}
		if !j.parts.ours(one.Temp) {
			message = fmt.Sprintf("%s, with %s of it, is of an earlier copy, and the next run removes it", one.Temp, progress.Size(one.Bytes))
		}
		j.progress.Report(progress.Event{Type: "note", Kind: KindPart, Path: one.Path, Message: message})
	}
	return uint64(len(all))
}
