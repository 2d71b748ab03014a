//go:build linux

package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// fusermount is the program that mounts for users. Where PATH does not lead to it, it is in a place of its own.
func fusermount() (string, error) {
	path, err := exec.LookPath("fusermount3")
	if err != nil {
		var err2 error
		if path, err2 = exec.LookPath("/bin/fusermount3"); err2 != nil {
			return "", fmt.Errorf("fusermount3 is not there: install fuse3, or mount as root: %w", err)
		}
	}
	return path, nil
}

// mountAsUser has fusermount3 mount at dir. It returns the descriptor of the mount: fusermount3 sends it over a socket,
// whose number it finds in its environment (util/fusermount.c of libfuse).
func mountAsUser(dir string, options []string) (fd int, err error) {
	path, err := fusermount()
	if err != nil {
		return -1, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socketpair", err)
	}
	ours, its := os.NewFile(uintptr(pair[0]), "fusermount3"), os.NewFile(uintptr(pair[1]), "fusermount3")
	defer func() { err = errors.Join(err, ours.Close()) }()
	var said bytes.Buffer
	cmd := exec.Command(path, "-o", strings.Join(options, ","), "--", dir)
	cmd.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	cmd.ExtraFiles, cmd.Stderr = []*os.File{its}, &said
	err = errors.Join(cmd.Run(), its.Close())
	if err != nil {
		return -1, refused(dir, said.String(), err)
	}
	return receive(ours)
}

// receive takes the descriptor that was sent.
func receive(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	var one [1]byte
	space := make([]byte, unix.CmsgSpace(4))
	n := 0
	got := raw.Read(func(s uintptr) bool { // what fusermount3 has sent is there: it has ended
		_, n, _, _, err = unix.Recvmsg(int(s), one[:], space, unix.MSG_CMSG_CLOEXEC)
		return true
	})
	if err = errors.Join(got, err); err != nil {
		return -1, fmt.Errorf("fusermount3 has sent nothing: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(space[:n])
	if err != nil || len(messages) != 1 {
		return -1, errors.Join(errors.New("fusermount3 has sent no descriptor"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("fusermount3 has sent no descriptor"), err)
	}
	return fds[0], nil
}

// refused is what fusermount3 said, in words that say what to do.
func refused(dir, said string, err error) error {
	said = strings.TrimSpace(said)
	has := func(text string) bool { return strings.Contains(said, text) }
	switch {
	case has("user_allow_other"):
		return &RefusedError{"a user's mount is for that user alone: option allow_other is not allowed here",
			"leave allow_other out, or have root write user_allow_other into /etc/fuse.conf"}
	case has("no write access to mountpoint"), has("not owned by user"), has("bad mount point") && has("ermission denied"):
		return &RefusedError{dir + ": a user mounts only on directories that belong to that user, or at least may be written",
			"name such a directory, or mount as root"}
	case has("too many FUSE filesystems"):
		return fmt.Errorf("there are too many mounts by users: %w; mount_max in /etc/fuse.conf is how many there may be", err)
	case has("could not determine username"):
		return fmt.Errorf("fusermount3 mounts for users that have a name, and user %d has none in /etc/passwd: %w", os.Geteuid(), err)
	case said == "":
		return fmt.Errorf("fusermount3: %w", err)
	}
	return errors.New(said) // which begins with its name
}

// userOptions are those of a mount by fusermount3, where commas and backslashes are escaped.
func (m *Mount) userOptions() []string {
	list := append([]string{"fsname=" + m.opt.Source, "subtype=" + typeName, fmt.Sprintf("max_read=%d", maxTransfer)}, m.opt.Kernel...)
	if m.opt.AllowOther {
		list = append(list, "allow_other")
	}
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`)
	for i, o := range list {
		list[i] = escape.Replace(o)
	}
	return list
}
