//go:build !linux

package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/proto/localio"
)

// Dirs is empty: LOCALIO is for Linux.
func Dirs() []string { return nil }

// DefaultDir is "": LOCALIO is for Linux.
func DefaultDir() string { return "" }

// UserNS is 0: LOCALIO is for Linux.
func UserNS() uint64 { return 0 }

// Conn is one end of a session. There are none here.
type Conn struct{}

// Connect is errors.ErrUnsupported.
func Connect(context.Context, string, [localio.UUID_SIZE]byte) (*Conn, error) {
	return nil, errors.ErrUnsupported
}

// Send is errors.ErrUnsupported.
func (c *Conn) Send(*localio.SessionMessage, ...int) error { return errors.ErrUnsupported }

// Receive is errors.ErrUnsupported.
func (c *Conn) Receive(*localio.SessionMessage) ([]int, error) { return nil, errors.ErrUnsupported }

// Peer is nobody.
func (c *Conn) Peer() Peer { return Peer{} }

// Shutdown does nothing.
func (c *Conn) Shutdown() error { return nil }

// Close does nothing.
func (c *Conn) Close() error { return nil }

// Listener is a server's socket. There are none here.
type Listener struct{}

// Listen is errors.ErrUnsupported.
func Listen(string, [localio.UUID_SIZE]byte) (*Listener, error) {
	return nil, fmt.Errorf("localio: it is for Linux: %w", errors.ErrUnsupported)
}

// Accept is errors.ErrUnsupported.
func (l *Listener) Accept() (*Conn, error) { return nil, errors.ErrUnsupported }

// Path is "".
func (l *Listener) Path() string { return "" }

// Close does nothing.
func (l *Listener) Close() error { return nil }

// Page is the server's side of the page. There are none here.
type Page struct{}

// NewPage is errors.ErrUnsupported.
func NewPage(int) (*Page, error) { return nil, errors.ErrUnsupported }

// FD is no descriptor.
func (p *Page) FD() int { return -1 }

// Load is 0.
func (p *Page) Load(int) uint32 { return 0 }

// Store does nothing.
func (p *Page) Store(int, uint32) {}

// Close does nothing.
func (p *Page) Close() {}

// View is the client's side of the page. There are none here.
type View struct{}

// MapPage is errors.ErrUnsupported.
func MapPage(fd, slots int) (*View, error) { return nil, errors.ErrUnsupported }

// Load is 0.
func (v *View) Load(int) uint32 { return 0 }

// Close does nothing.
func (v *View) Close() {}
