package hands

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/hands/wire"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// Spec is what workers must know of a job: what it does, where, and how.
type Spec struct {
	Version int    `json:"version"` // of this protocol, first of all
	Command string `json:"command"` // for messages

	Source *Place `json:"source,omitempty"` // nil: the job has none, as it only removes
	Dest   Place  `json:"dest"`

	Tag    string   `json:"tag,omitempty"` // of the job's temporaries: see transfer.IsTemp
	Owner  bool     `json:"owner,omitempty"`
	Verify bool     `json:"verify,omitempty"`
	MapUID []string `json:"map_uid,omitempty"`
	MapGID []string `json:"map_gid,omitempty"`
}

// Place is a directory on a server, and as whom it is used.
type Place struct {
	Host      string `json:"host"` // in lower case
	Port      uint16 `json:"port,omitempty"`
	NFSPort   uint16 `json:"nfsport,omitempty"`
	MountPort uint16 `json:"mountport,omitempty"`
	Export    string `json:"export,omitempty"`
	UID       uint32 `json:"uid"`
	GID       uint32 `json:"gid"`
	Path      string `json:"path"` // absolute: no name in it is empty, "." or ".."
}

// ErrSpec says that a job's description is not one that this program knows.
var ErrSpec = errors.New("not a job that this program knows")

// Encode is s as a broker has it.
func (s *Spec) Encode() ([]byte, error) {
	s.Version = wire.VERSION
	b, err := json.Marshal(s)
	if err == nil && len(b) > queue.MaxSpec {
		err = fmt.Errorf("the description of the job has %d bytes, of %d at most; give fewer rules: %w", len(b), queue.MaxSpec, queue.ErrTooLong)
	}
	return b, err
}

// ParseSpec reads what a broker has of a job, which anybody may have written. One of another
// version is a wire.VersionError, all else an ErrSpec.
func ParseSpec(b []byte) (*Spec, error) {
	var of struct {
		Version int `json:"version"`
	}
	if len(b) > queue.MaxSpec {
		return nil, fmt.Errorf("%w: %w", ErrSpec, queue.ErrTooLong)
	}
	if err := json.Unmarshal(b, &of); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if of.Version != wire.VERSION {
		return nil, &wire.VersionError{Speaks: uint32(of.Version)}
	}
	s := new(Spec)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	for _, c := range s.Tag {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && c != '-' {
			return nil, fmt.Errorf("%w: no temporary is marked %q", ErrSpec, s.Tag)
		}
	}
	if len(s.Tag) > maxTag {
		return nil, fmt.Errorf("%w: the mark of its temporaries is too long", ErrSpec)
	}
	return s, nil
}

// maxTag bounds the mark of a job's temporaries, in bytes, so that their names stay short.
const maxTag = 64
