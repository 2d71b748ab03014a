package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// Self is this process. Of its command line it has the program's name, and a first argument that
// is a plain word: what stands behind may be nobody else's business.
func Self() Holder {
	h := Holder{PID: os.Getpid(), Command: filepath.Base(os.Args[0])}
	if host, err := os.Hostname(); err == nil {
		h.Host = host
	}
	if len(os.Args) > 1 && strings.Trim(os.Args[1], "abcdefghijklmnopqrstuvwxyz") == "" {
		h.Command += " " + os.Args[1]
	}
	return h
}

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
