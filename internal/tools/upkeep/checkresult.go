package upkeep

import (
	"io"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// CheckOptions say how closely a store is looked at.
type CheckOptions struct {
	// ReadData is which part of the objects is read, and compared with all that snapshots say of them: 0 is none, and 1 all. Between,
	// it is a random sample, another one each time.
	ReadData float64
	Rand     io.Reader         // chooses the sample; nil if ReadData is 0 or 1
	Progress *progress.Tracker // nil: no reports. Files are names that were gone through, Bytes what was read of objects.
	// Found, if it is not nil, is called with each damage, one at a time, when the check knows all that it hurts.
	Found func(Damage)
}

// Problem is what is wrong with an object.
type Problem string

// The problems.
const (
	Missing Problem = "missing" // there is no such object
	Size    Problem = "size"    // it is shorter or longer than snapshots say
	Content Problem = "content" // its bytes are not those that were put
	Format  Problem = "format"  // its bytes are those that were put, and break the format, or their place in the snapshot
	// Unreadable is what this user may not read, or of which the disk has failed: an object, or all whose keys begin with Object, as their
	// directory is.
	Unreadable Problem = "unreadable"
)

// Damage is an object that is not what snapshots say of it.
type Damage struct {
	Object  string  `json:"object"` // its key
	Problem Problem `json:"problem"`
	Message string  `json:"message"` // what is wrong, in words
	Hurts   []Hurt  `json:"hurts"`   // at most [MaxHurts]; none if it is in no use
	More    uint64  `json:"more"`    // how many more are hurt
}

// MaxHurts bounds how many names are told for each damaged object. Further ones are counted.
const MaxHurts = 100

// Hurt is what cannot be restored as it was, because of a damage.
type Hurt struct {
	// Snapshot is NAME@ID; NAME@ if it is all of a name, as they cannot be listed; "partial NAME" for what a backup has left to go on from.
	Snapshot string `json:"snapshot"`
	// Path is a file, or a directory with all that is below it ("/" at its end), in the snapshot. "/" is all of it. What is no
	// UTF-8 is in PathBytes as it is.
	Path      string `json:"path"`
	PathBytes []byte `json:"path_base64,omitempty"`
}

// CheckSummary is what a check has found.
type CheckSummary struct {
	Snapshots uint64 `json:"snapshots"` // complete or not, that could be opened
	Partials  uint64 `json:"partials"`  // left by backups that were stopped
	Names     uint64 `json:"names"`     // gone through, in all snapshots
	Objects   uint64 `json:"objects"`   // different ones that snapshots need
	Bytes     uint64 `json:"bytes"`     // of these, as they are stored

	ReadObjects uint64 `json:"read_objects"` // that were read whole, beside those of manifests
	ReadBytes   uint64 `json:"read_bytes"`

	Unused      uint64 `json:"unused_objects"` // that no snapshot needs: what a prune could remove
	UnusedBytes uint64 `json:"unused_bytes"`

	Damaged       uint64 `json:"damaged_objects"` // roots included
	HurtNames     uint64 `json:"hurt_names"`      // over all damages; a name that two of them hurt counts twice
	HurtSnapshots uint64 `json:"hurt_snapshots"`  // different ones
}
