package job

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
)

// maxLeft is how many temporaries that could not be removed are reported by name. Further
// ones are only counted.
const maxLeft = 5

// KindTemporary is the kind of a note that a temporary may remain. Its path is the
// temporary's.
const KindTemporary = "temporary"

// leftovers are temporaries that a job which ended early could not remove, and those of
// calls without an answer, which may appear yet.
type leftovers struct {
	mu    sync.Mutex
	n     uint64
	named []string
}

// note collects the temporaries that err names, for an item whose error is not reported.
func (l *leftovers) note(item string, err error) {
	left, ok := errors.AsType[*transfer.LeftError](err)
	if ok {
		l.add(path.Dir(item), left.Names)
	}
}

// add collects temporaries in dir.
func (l *leftovers) add(dir string, names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if l.n++; len(l.named) < maxLeft {
			l.named = append(l.named, path.Join(dir, name))
		}
	}
}

// tell reports them at the end of the job, and returns their number.
func (l *leftovers) tell(t *progress.Tracker) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.named {
		t.Report(progress.Event{Type: "note", Kind: KindTemporary, Path: name, Message: "could not be removed, or may appear yet"})
	}
	if more := l.n - uint64(len(l.named)); more > 0 {
		t.Report(progress.Event{Type: "note", Kind: KindTemporary, Message: fmt.Sprintf("%d more could not be removed, or may appear yet", more)})
	}
	return l.n
}
