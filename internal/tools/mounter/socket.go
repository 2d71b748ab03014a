package mounter

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The bounds of a mount's socket.
const (
	// maxAsking is how many wait at once to hear how a mount ends. Further ones are not answered.
	maxAsking = 16
	// maxReport is the most of a report that is read.
	maxReport = 1 << 20
	// tellPatience is how long one that asked may take to read it.
	tellPatience = 5 * time.Second
)

// What Unmount says: give up at once what is not stable (with force); it is unmounted where I am.
const (
	hurryWord = 'f'
	leftWord  = 'u'
)

// helloWord says that the mount will tell how it ends.
const helloWord = 'h'

// socket is where a mount tells how it ended.
type socket struct {
	l     net.Listener // nil: there is none
	path  string
	hurry chan struct{} // closed when somebody does not want to wait

	mu    sync.Mutex
	asks  []net.Conn
	fast  bool
	ended bool // it is mounted nowhere any more
}

// runDir is where sockets are; "" if there is no such place.
func runDir() string {
	if os.Geteuid() == 0 {
		return "/run/nfsbox/mounts"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "nfsbox", "mounts")
	}
	return ""
}

// socketPath is where the mount at dir listens; "" if it cannot.
func socketPath(dir string) string {
	at := runDir()
	if at == "" {
		return ""
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, dir) // a hash has no errors
	return filepath.Join(at, fmt.Sprintf("%016x.sock", h.Sum64()))
}

// listen begins to listen at the path of a mount's socket. Without a place for it an umount hears nothing.
func listen(path string) *socket {
	s := &socket{path: path, hurry: make(chan struct{})}
	if s.path == "" || os.MkdirAll(filepath.Dir(s.path), 0o755) != nil {
		return s
	}
	_ = os.Remove(s.path) // of a mount that has died
	l, err := net.Listen("unix", s.path)
	if err != nil {
		return s
	}
	if err := os.Chmod(s.path, 0o600); err != nil { // who unmounts is root, or this user
		_ = l.Close()
		return s
	}
	s.l = l
	go s.accept()
	return s
}

func (s *socket) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		many := len(s.asks) >= maxAsking
		if !many {
			s.asks = append(s.asks, c)
		}
		s.mu.Unlock()
		if many {
			_ = c.Close()
			continue
		}
		_, _ = c.Write([]byte{helloWord}) // umount waits for it, so as to be told for certain
		go s.read(c)
	}
}

// read reads what one that unmounts says.
func (s *socket) read(c net.Conn) {
	for {
		var b [1]byte
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return
		}
		switch b[0] {
		case hurryWord:
			s.hurried()
		case leftWord:
			time.AfterFunc(busyPatience, func() { s.elsewhere(c) })
		default:
			return
		}
	}
}

func (s *socket) hurried() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fast {
		s.fast = true
		close(s.hurry)
	}
}

// elsewhere answers one that has unmounted a while ago, if the mount goes on all the same: another mount namespace has a copy of
// it, and may have it for days.
func (s *socket) elsewhere(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.asks, c)
	if s.ended || i < 0 {
		return
	}
	s.asks = slices.Delete(s.asks, i, i+1)
	tell(c, &Report{Elsewhere: true})
	_ = c.Close() // an umount that has gone does not want to know
}

// end says that the file system is mounted nowhere any more. What is not stable yet is waited for.
func (s *socket) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// report tells all that have asked.
func (s *socket) report(r *Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.asks {
		tell(c, r)
	}
}

func tell(c net.Conn, r *Report) {
	text, err := json.Marshal(r)
	if err != nil {
		return // numbers and strings have none
	}
	_ = c.SetWriteDeadline(time.Now().Add(tellPatience))
	_, _ = c.Write(text) // an umount that has gone does not want to know
}

// close ends what listens. An umount that has asked and was not told learns that the mount has ended.
func (s *socket) close() {
	if s.l != nil {
		_ = s.l.Close() // which removes the name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.asks {
		_ = c.Close()
	}
}

// ask connects to the mount that listens at path; nil if none does, or it says nothing for as long as patience.
func ask(path string, patience time.Duration) net.Conn {
	if path == "" {
		return nil
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil
	}
	var b [1]byte
	err = c.SetReadDeadline(time.Now().Add(patience))
	if err == nil {
		_, err = io.ReadFull(c, b[:])
	}
	if err == nil {
		err = c.SetReadDeadline(time.Time{})
	}
	if err != nil || b[0] != helloWord {
		_ = c.Close()
		return nil
	}
	return c
}

// ErrNoReport says that a mount has ended without a word of what was not stable.
var ErrNoReport = errors.New("the mount's process has ended without a report")

// hear reads how a mount has ended. One that ends before it has read what it was told resets the connection behind its
// report.
func hear(c net.Conn) (*Report, error) {
	text, err := io.ReadAll(io.LimitReader(c, maxReport))
	if len(text) == 0 {
		return nil, errors.Join(ErrNoReport, err)
	}
	r := new(Report)
	if broken := json.Unmarshal(text, r); broken != nil {
		return nil, errors.Join(ErrNoReport, broken, err)
	}
	return r, nil
}
