//go:build !linux

package localio

import (
	"errors"
	"syscall"

	"github.com/nfsbox/nfsbox/vfs"
)

// supported says whether this system can use descriptors of a local server. If not, nothing below is
// called.
const supported = false

func openLimit() int { return 0 }

func closeFD(int) error { return errors.ErrUnsupported }

func checkFD(int, vfs.Share) error { return errors.ErrUnsupported }

func preadNowait(int, []byte, uint64) (int, syscall.Errno) { return 0, syscall.EINVAL }

func cannotNowait(syscall.Errno) bool { return true }

func pread(int, []byte, uint64) (int, error) { return 0, errors.ErrUnsupported }

func pwrite(int, []byte, uint64) (int, error) { return 0, errors.ErrUnsupported }

func syncFD(int, bool) error { return errors.ErrUnsupported }

func decided(error) bool { return false }

func fail(_ string, err error) error { return err }

type stat struct{ Size uint64 }

func (st *stat) statFD(int) error { return errors.ErrUnsupported }

func (st *stat) attr(*identity, *vfs.Attr) {}
