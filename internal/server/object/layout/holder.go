package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// HolderName is the file beside the marker in which the only writer of a store says who it
	// is. It says nothing about whether that writer still runs.
	HolderName = ".nfsbox-writer"
	// MaxHolder bounds what is read of it, in bytes, and maxField a field in a message.
	MaxHolder = 512
	maxField  = 64
)

// Holder is the process that has a store open to write.
type Holder struct {
	Host    string
	PID     int
	Command string // the program and its verb, without arguments
}

// Self is this process.
func Self() Holder { return OnHost(os.Getpid(), os.Args) }

// OnHost is a process of this host. Of its command line it has the program's name, and a first argument that
// is a plain word: what stands behind may be nobody else's business.
func OnHost(pid int, args []string) Holder {
	h := Holder{PID: pid}
	if host, err := os.Hostname(); err == nil {
		h.Host = host
	}
	if len(args) > 0 {
		h.Command = filepath.Base(args[0])
	}
	if len(args) > 1 && strings.Trim(args[1], "abcdefghijklmnopqrstuvwxyz") == "" {
		h.Command += " " + args[1]
	}
	return h
}

// HeldError is an [object.ErrBusy]: other processes have the store, and keep this one out.
type HeldError struct {
	Reading bool      // they read it, and this one wanted it alone; else one has it open to write
	Holder  Holder    // the first of them; zero: not known
	Since   time.Time // when that began; zero: not known
	More    int       // how many others there are
}

// Error implements error.
func (e *HeldError) Error() string {
	what, who := "it is open for writing by ", "another process"
	if e.Reading {
		what = "it is being read by "
	}
	if e.Holder != (Holder{}) {
		who = e.Holder.String()
		if !e.Since.IsZero() {
			who += ", since " + e.Since.UTC().Format(time.RFC3339)
		}
	}
	if e.More > 0 {
		who += fmt.Sprintf(", and %d more", e.More)
	}
	return what + who
}

// Is reports whether target is [object.ErrBusy].
func (e *HeldError) Is(target error) bool { return target == object.ErrBusy }

// Append writes h: three lines, for people as well.
func (h Holder) Append(b []byte) []byte {
	return fmt.Appendf(b, "host %s\npid %d\ncommand %s\n", word(h.Host), h.PID, word(h.Command))
}

// ParseHolder reads what Append writes. It is false for anything else.
func ParseHolder(b []byte) (h Holder, ok bool) {
	lines := strings.Split(string(b), "\n")
	if len(b) > MaxHolder || len(lines) != 4 {
		return h, false
	}
	for i, to := range []struct {
		name string
		set  func(v string) bool
	}{
		{"host ", func(v string) bool { h.Host = v; return true }},
		{"pid ", func(v string) (ok bool) { h.PID, ok = pid(v); return ok }},
		{"command ", func(v string) bool { h.Command = v; return true }},
	} {
		v, is := strings.CutPrefix(lines[i], to.name)
		if !is || !to.set(v) {
			return Holder{}, false
		}
	}
	return h, string(h.Append(nil)) == string(b)
}

func pid(v string) (int, bool) {
	n, err := strconv.ParseUint(v, 10, 31)
	return int(n), err == nil
}

// String is h in words: "nfsbox backup, process 17 on host db1".
func (h Holder) String() string {
	return fmt.Sprintf("%s, process %d on host %s", word(h.Command), h.PID, word(h.Host))
}

// word is s as it may stand in a line and in a message: its first bytes, those that can be
// printed.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), maxField)])
	if s == "" {
		return "unknown"
	}
	return s
}
