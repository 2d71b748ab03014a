package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/nfsbox/nfsbox/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxKinds bounds the kinds of failures that are told apart; all others are
// "other".
const maxKinds = 32

// Fault is a kind of failure.
type Fault struct {
	Kind    string `json:"kind"`
	Count   uint64 `json:"count"`
	Example string `json:"example"` // the first
}

// faults counts failures. Its methods may be called concurrently.
type faults struct {
	mu   sync.Mutex
	list []Fault
	sum  uint64
}

func (f *faults) add(err error) {
	kind := kindOf(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sum++
	i := slices.IndexFunc(f.list, func(x Fault) bool { return x.Kind == kind })
	if i < 0 && len(f.list) >= maxKinds {
		kind = kindOther
		i = slices.IndexFunc(f.list, func(x Fault) bool { return x.Kind == kind })
	}
	if i < 0 {
		f.list = append(f.list, Fault{Kind: kind, Example: err.Error()})
		i = len(f.list) - 1
	}
	f.list[i].Count++
}

func (f *faults) total() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sum
}

// all returns the faults, the most frequent first.
func (f *faults) all() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := append([]Fault{}, f.list...) // not nil: JSON has a list
	slices.SortFunc(list, func(a, b Fault) int {
		if a.Count != b.Count {
			return int(min(max(int64(b.Count)-int64(a.Count), -1), 1))
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	return list
}

// The kinds that are not a server's status.
const (
	kindOther      = "other"
	kindTimeout    = "timeout"
	kindConnection = "connection"
	kindUnknown    = "unknown outcome"
	kindVerifier   = "write verifier changed"
	kindData       = "wrong data"
	kindAbsent     = "not there"
)

// errVerifier is what a server has done that restarted between WRITE and COMMIT.
var errVerifier = errors.New("COMMIT answered with another verifier than WRITE: the server restarted, and has lost what was not stable")

// errShort is a file that ended before it should have.
var errShort = errors.New("the file ends early: somebody has changed it")

// asError is the faults as errors, one each; nil if there are none.
func asError(list []Fault) error {
	var all []error
	for _, f := range list {
		all = append(all, fmt.Errorf("%d times %s: %s", f.Count, f.Kind, f.Example))
	}
	return errors.Join(all...)
}

// kindOf says in a word or two what went wrong. What the server has answered
// comes last but one: a client whose patience has ended may call that an I/O
// error, as nfs(5) does, and no server has said so.
func kindOf(err error) string {
	var network *net.OpError
	switch {
	case errors.Is(err, errVerifier):
		return kindVerifier
	case errors.Is(err, errShort), errors.Is(err, errContent), errors.Is(err, fileapi.ErrCorrupted):
		return kindData
	case errors.Is(err, errAbsent):
		return kindAbsent
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return kindTimeout
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return kindConnection
	}
	if s, ok := vfs.StatusOf(err); ok {
		return s.Name()
	}
	if errors.Is(err, vfs.ErrUnknownOutcome) {
		return kindUnknown
	}
	if e, ok := errors.AsType[*fileapi.Error](err); ok {
		return e.Code.String()
	}
	if e, ok := errors.AsType[*refusedError](err); ok {
		return fmt.Sprintf("HTTP %d", e.status)
	}
	return kindOther
}
