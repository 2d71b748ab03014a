package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// failedFlag is of commands that can be told by --files-from to try again what has failed.
type failedFlag struct {
	FailedTo string `name:"failed-to" type:"path" placeholder:"FILE" help:"Write the paths of what has failed to FILE, for --files-from of another run; with -0 a NUL ends each."`
}

// failedFile takes the paths of what has failed, relative to a place. Its methods may be called on nil, and
// concurrently.
type failedFile struct {
	end  string   // of a path
	not  []string // what is no path below a place, though errors have it
	file *os.File

	mu      sync.Mutex
	w       *bufio.Writer
	unfit   uint64 // paths that the file cannot have
	written map[string]bool
}

// maxFailedOnce bounds the paths of a failedFile that are known not to be written twice. Further ones may be: a list with
// a path twice means the same.
const maxFailedOnce = 1 << 16

// create makes the file; nil if the flag is not given. What not has is not written. It is made after --files-from was read, which may be the same.
func (f *failedFlag) create(nul bool, places, not []string) (*failedFile, error) {
	if f.FailedTo == "" {
		return nil, nil
	}
	if len(places) > 1 {
		return nil, refused(errors.New("--failed-to takes one PLACE: its paths are relative to that"))
	}
	file, err := os.Create(f.FailedTo)
	if err != nil {
		return nil, refused(fmt.Errorf("--failed-to: %w", err))
	}
	x := &failedFile{end: "\n", not: not, file: file, w: bufio.NewWriter(file), written: make(map[string]bool)}
	if nul {
		x.end = "\x00"
	}
	return x, nil
}

// add adds a path. Errors of the file close tells.
func (f *failedFile) add(path string) {
	if f == nil || path == "" || slices.Contains(f.not, path) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case strings.Contains(path, f.end) || strings.HasPrefix(path, ".../"): // package walk shortens longer paths so
		f.unfit++
	case f.written[path]:
	default:
		if len(f.written) < maxFailedOnce {
			f.written[path] = true
		}
		_, _ = f.w.WriteString(path + f.end) // Flush returns the error
	}
}

// close ends the file.
func (f *failedFile) close() error {
	if f == nil {
		return nil
	}
	err := errors.Join(f.w.Flush(), f.file.Close())
	if f.unfit > 0 {
		err = errors.Join(err, fmt.Errorf("%d paths are too long, or have line feeds, and are not in it (-0 allows those)", f.unfit))
	}
	if err != nil {
		return fmt.Errorf("--failed-to: %w", err)
	}
	return nil
}

// repairable are the kinds of differences that a copy of the item itself mends. For others, such as the time
// of a directory, a list would take all that is below, though nothing of that may differ. What is extra the source does not have.
var repairable = []string{job.DiffMissing, job.DiffType, job.DiffSize, job.DiffContent, job.DiffTarget, job.DiffDevice}

// failedEvents is the renderer that takes the errors of a job, and what verify has found to be copied again.
type failedEvents struct{ *failedFile }

func (failedEvents) Interval() time.Duration                 { return time.Hour }
func (failedEvents) Progress(*progress.Snapshot) error       { return nil }
func (f failedEvents) Summary(*progress.Snapshot, any) error { return f.close() }

func (f failedEvents) Event(_ time.Time, e *progress.Event) error {
	if e.Type == "error" || e.Type == "difference" && slices.Contains(repairable, e.Kind) {
		f.add(e.Path)
	}
	return nil
}
