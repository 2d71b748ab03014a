package job

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
)

// maxLeft is how many temporaries that could not be removed are named. Those beyond it
// are counted.
const maxLeft = 5

// KindTemporary is the kind of a note that a temporary may have stayed. Its path is that
// of the temporary.
const KindTemporary = "temporary"

// leftovers are temporaries that a job which ends early could not remove, and those of
// calls that were never answered: they may appear yet.
type leftovers struct {
	mu    sync.Mutex
	n     uint64
	named []string
}

// note takes err of the item at this path, which nobody will be told of.
func (l *leftovers) note(item string, err error) {
	left, ok := errors.AsType[*transfer.LeftError](err)
	if ok {
		l.add(path.Dir(item), left.Names)
	}
}

// add takes temporaries in dir.
func (l *leftovers) add(dir string, names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if l.n++; len(l.named) < maxLeft {
			l.named = append(l.named, path.Join(dir, name))
		}
	}
}

// tell reports them in the end, and returns how many they are.
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
