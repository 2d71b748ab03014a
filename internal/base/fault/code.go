package fault

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/nfsbox/nfsbox/vfs"
)

// Codes of errors that errno(3) has no name for.
const (
	CodeNoHost   = "ENOHOST"   // the name of a host is not known
	CodeCanceled = "ECANCELED" // an interruption ended it
	CodeOther    = "EOTHER"    // it has no code
)

// codes are the system errors that come about outside the contract of package vfs.
var codes = [...]struct {
	errno syscall.Errno
	name  string
}{
	{syscall.ECONNREFUSED, "ECONNREFUSED"},
	{syscall.ECONNRESET, "ECONNRESET"},
	{syscall.ECONNABORTED, "ECONNABORTED"},
	{syscall.EPIPE, "EPIPE"},
	{syscall.EHOSTUNREACH, "EHOSTUNREACH"},
	{syscall.ENETUNREACH, "ENETUNREACH"},
	{syscall.ETIMEDOUT, "ETIMEDOUT"},
	{syscall.EADDRINUSE, "EADDRINUSE"},
	{syscall.EADDRNOTAVAIL, "EADDRNOTAVAIL"},
	{syscall.ELOOP, "ELOOP"},
	{syscall.EMFILE, "EMFILE"},
	{syscall.ENFILE, "ENFILE"},
	{syscall.ENOMEM, "ENOMEM"},
	{syscall.EINTR, "EINTR"},
	{syscall.EBUSY, "EBUSY"},
	{syscall.ETXTBSY, "ETXTBSY"},
}

// JSON is an error in a line of JSON.
type JSON struct {
	Code    string `json:"code"`             // for programs: "ENOENT", "NFS3ERR_JUKEBOX"
	Message string `json:"message"`          // for people
	Advice  string `json:"advice,omitempty"` // what to do
}

// Code names the cause of err for programs: "ENOENT", "ECONNREFUSED", "NFS3ERR_JUKEBOX". It is
// "" for nil, and CodeOther if nothing is known of the cause.
func Code(err error) string {
	if err == nil {
		return ""
	}
	if status, ok := errors.AsType[vfs.Status](err); ok {
		return statusCode(status)
	}
	for _, c := range codes {
		if errors.Is(err, c.errno) {
			return c.name
		}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return CodeNoHost
	}
	switch {
	case errors.Is(err, context.Canceled):
		return CodeCanceled
	case silent(err):
		return "ETIMEDOUT"
	}
	if status, ok := vfs.StatusOf(err); ok {
		return statusCode(status)
	}
	return CodeOther
}

// statusCode is errno(3)'s name of a status if there is one, else NFS's.
func statusCode(s vfs.Status) string {
	if s.Errno() != 0 && s.Errno() != syscall.EAGAIN && s != vfs.ErrServerFault && s != vfs.ErrBadHandle {
		return "E" + s.Name()
	}
	return "NFS3ERR_" + s.Name()
}

// silent reports whether nobody has answered in time.
func silent(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, vfs.ErrNoAnswer)
}
