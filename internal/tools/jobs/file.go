package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// FileName is the name of a job's file in its directory.
const FileName = "job.json"

const (
	fileName   = FileName
	magic      = "nfsbox-job"
	version    = 1
	withLimits = 2 // that has limits, which an earlier program would drop

	// maxFile bounds job.json, in bytes. A longer one is refused, and none is written.
	maxFile = 60 << 10
	// maxError bounds the text of an error in job.json, in bytes. What follows is left out.
	maxError = 1 << 10
)

// State is how the last run stands.
type State string

// The states of a job.
const (
	Running     State = "running"     // it has begun, and has not said how it ended
	Interrupted State = "interrupted" // a signal has ended it
	Complete    State = "complete"    // all was done, and nothing has failed
	Failed      State = "failed"      // it has ended early, or items have failed
)

// Target is how DEST was understood by the first run.
type Target string

// What DEST may be.
const (
	Inside Target = "inside" // a directory, and the copy is in it
	Itself Target = "itself" // DEST is the copy
)

// Job is what job.json has.
type Job struct {
	Magic   string `json:"magic"`
	Version int    `json:"version"`
	Command string `json:"command"` // "cp"
	Source  Text   `json:"source"`  // a URL or an absolute path
	Dest    Text   `json:"dest"`    // likewise
	Target  Target `json:"target"`
	From    Origin `json:"from,omitzero"` // the directory that SOURCE was; zero: not known, or no directory

	// The last run.
	Args  []Text    `json:"args"` // after the program's name
	Dir   Text      `json:"dir"`  // where it was started: relative paths in Args begin there
	State State     `json:"state"`
	Error string    `json:"error,omitempty"` // why it has ended early
	Runs  uint64    `json:"runs"`            // how many there were, this one too
	Begun time.Time `json:"begun"`
	Ended time.Time `json:"ended,omitzero"` // zero while it is Running
	// Counts are those of its summary. While it is Running they are what it has counted by then, at
	// most SaveEvery ago. Both have what was found: found_items, found_bytes, and totals_final, which
	// is 1 if that is all there is.
	Counts map[string]uint64 `json:"counts"`
	// Limits are what an Order has changed while the last run went on; nil: nothing. Only a file of
	// version 2 has them.
	Limits *Limits `json:"limits,omitempty"`
}

// Limits are those of a run that can be changed; nil: not this one.
type Limits struct {
	MaxRate *uint64 `json:"max_rate,omitempty"` // bytes a second; 0: none
	MaxLoad *int    `json:"max_load,omitempty"` // calls in flight of each class; 0: what is found to be best
}

// maxLoad is the most that MaxLoad may be, as nfsbox.WithMaxLoad has it.
const maxLoad = 512

func (l *Limits) check() error {
	if l != nil && l.MaxLoad != nil && (*l.MaxLoad < 0 || *l.MaxLoad > maxLoad) {
		return fmt.Errorf("a load of %d; 0 to %d are possible", *l.MaxLoad, maxLoad)
	}
	return nil
}

// Text is a string of any bytes. In JSON it is a string, or, if it is not UTF-8, an object whose
// one field "base64" has its bytes.
type Text string

type encoded struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(encoded{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(b, []byte("{")) {
		return json.Unmarshal(b, (*string)(t))
	}
	var e encoded
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(&e)
	*t = Text(e.Base64)
	return err
}

// Origin identifies the directory that is copied; the zero Origin is not known. A directory that
// was made anew on the same file system, and has got its number, counts as the same.
type Origin struct {
	FSID   [2]uint64 `json:"fsid"`
	FileID uint64    `json:"fileid"`
	Born   int64     `json:"born"` // nanoseconds since 1970; 0: the file system does not tell
}

// Another reports whether now is another directory. A file system may have another number after
// it was mounted again: then the time of birth tells, if there is one.
func (o Origin) Another(now Origin) bool {
	if o == (Origin{}) || now == (Origin{}) {
		return false
	}
	return o.FileID != now.FileID || o.FSID != now.FSID && o.Born != 0 && now.Born != 0 && o.Born != now.Born
}

// encode returns the file's contents.
func (j *Job) encode() ([]byte, error) {
	own := *j
	own.Magic, own.Version = magic, version
	if own.Limits != nil {
		own.Version = withLimits
	}
	if own.Args == nil {
		own.Args = []Text{}
	}
	if own.Counts == nil {
		own.Counts = map[string]uint64{}
	}
	own.Error = strings.ToValidUTF8(own.Error[:min(len(own.Error), maxError)], "")
	if err := own.check(); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(&own, "", "  ")
	if err != nil {
		return nil, err
	}
	if b = append(b, '\n'); len(b) > maxFile {
		return nil, fmt.Errorf("the command line is too long for a job: %d bytes, of %d", len(b), maxFile)
	}
	return b, nil
}

// decode reads the file's contents, of which nothing is believed.
func decode(b []byte) (j Job, err error) {
	if len(b) > maxFile {
		return j, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	var head struct {
		Magic   string `json:"magic"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil || head.Magic != magic {
		return j, errors.New("it is not a file of ours")
	}
	if head.Version != version && head.Version != withLimits {
		return j, fmt.Errorf("it is of version %d, which this program does not know", head.Version)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return Job{}, fmt.Errorf("it is damaged: %w", err)
	}
	if err := j.check(); err != nil {
		return Job{}, fmt.Errorf("it is damaged: %w", err)
	}
	return j, nil
}

// check returns an error if a field makes no sense.
func (j *Job) check() error {
	switch {
	case j.Command == "":
		return errors.New("no command")
	case j.Source == "" || j.Dest == "":
		return errors.New("no source, or no dest")
	case j.Target != Inside && j.Target != Itself:
		return fmt.Errorf("target %q", j.Target)
	case j.State != Running && j.State != Interrupted && j.State != Complete && j.State != Failed:
		return fmt.Errorf("state %q", j.State)
	case j.Args == nil || j.Counts == nil:
		return errors.New("no args, or no counts")
	case (j.Limits != nil) != (j.Version == withLimits):
		return fmt.Errorf("limits, and version %d", j.Version)
	case j.Limits.check() != nil:
		return j.Limits.check()
	case j.Runs == 0 || j.Begun.IsZero() || j.Ended.IsZero() != (j.State == Running):
		return errors.New("it was never run, or its times contradict its state")
	}
	return nil
}
