package mounter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// Unmounting says how to unmount.
type Unmounting struct {
	Lazy  bool // the directory disappears at once, and the mount ends when nobody uses it any more
	Force bool // what waits there ends with an error, and what is not stable is given up
}

// Unmount unmounts the nfsbox at dir, and waits until it has ended, unless lazily. It touches nothing below dir, so it
// does not wait for the server. The report is nil if the mount could not be asked, or is not waited for.
func Unmount(ctx context.Context, dir string, how Unmounting) (*Report, error) {
	abs, err := named(dir)
	if err != nil {
		return nil, usage{err}
	}
	switch kind := mountType(abs); {
	case kind == "":
		return nil, usage{fmt.Errorf("%s: nothing is mounted there", abs)}
	case kind != fuseType:
		return nil, usage{fmt.Errorf("%s: a file system of type %s is mounted there, and no nfsbox; use umount", abs, kind)}
	}
	c := ask(socketPath(abs), tellPatience)
	if c != nil {
		defer func() { _ = c.Close() }() // it was read to the end
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	}
	if err := fusefs.Unmount(abs, how.Lazy, how.Force); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			err = fmt.Errorf("%w; lsof or fuser -m says who uses it, and -l lets it go all the same", err)
		}
		return nil, err
	}
	if c == nil || how.Lazy && !how.Force {
		return nil, nil
	}
	if how.Force {
		_, _ = c.Write([]byte{hurryWord}) // a mount that has ended is read below
	}
	r, err := hear(c)
	if ctx.Err() != nil {
		err = fmt.Errorf("it is unmounted, but its process may still send what is not stable: %w", ctx.Err())
	}
	return r, err
}

// named is the absolute path of dir. Links on the way are followed, but dir itself is not looked at.
func named(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if mountType(abs) != "" {
		return abs, nil
	}
	up, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	if at := filepath.Join(up, filepath.Base(abs)); mountType(at) != "" {
		return at, nil
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	return real, nil
}

// fuseType is the type of our mounts in /proc/self/mountinfo.
const fuseType = "fuse.nfsbox"

func isMount(dir string) bool { return mountType(dir) == fuseType }

// mountType is the type of what is mounted at dir, the uppermost; "" if nothing is, or nobody knows.
func mountType(dir string) string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return typeAt(string(text), dir)
}

// typeAt reads proc_pid_mountinfo(5). Field 5 is the directory, and the type follows a lone dash.
func typeAt(text, dir string) (kind string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 || unescape(fields[4]) != dir {
			continue
		}
		for i, f := range fields {
			if f == "-" && i+1 < len(fields) {
				kind = fields[i+1]
			}
		}
	}
	return kind
}

// unescape reads \040 and its like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
