//go:build unix

package way

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// SharedWith says which users, beside the process's own and root, can replace a folder in
// this one, and what to do about it; "" is nobody. In a sticky folder only its owner can
// (unlink(2), EPERM). A group with the owner's number has no other member: umasks that let
// groups write rely on that (pam_umask(8), usergroups). With an access list the bits of
// the group hold for every user and group that it names (acl(5)).
func SharedWith(path string, info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	switch us := os.Geteuid(); {
	case st.Uid != 0 && int(st.Uid) != us:
		return fmt.Sprintf("belongs to user %d, and this is user %d: serve as that one, chown it", st.Uid, us)
	case listed(path, info.Mode()):
		return fmt.Sprintf("can be written to by others (access list, mode %04o): setfacl -b it and chmod 700 it", info.Mode().Perm())
	case written(info.Mode(), st):
		return fmt.Sprintf("can be written to by others (mode %04o): chmod 700 it", info.Mode().Perm())
	}
	return ""
}

// listed reports whether an access list may let others replace what is in a folder.
func listed(path string, mode fs.FileMode) bool {
	return mode&fs.ModeSticky == 0 && mode.Perm()&0o020 != 0 && hasList(path)
}

// written reports whether the mode lets others than the owner replace what is in a folder.
func written(mode fs.FileMode, st *syscall.Stat_t) bool {
	group := mode.Perm()&0o020 != 0 && st.Gid != st.Uid
	return mode&fs.ModeSticky == 0 && (group || mode.Perm()&0o002 != 0)
}

// ReplacedBy is [SharedWith] for a step of a way that begins at the directory top: a folder
// or a symbolic link. The owner of top is trusted: that is root, or it can do anything
// anyway. In a user name space it may be the number that stands for all users without one
// (user_namespaces(7)).
func ReplacedBy(at Step, top fs.FileInfo) (who, mend string) {
	info := at.Info
	st, ok := info.Sys().(*syscall.Stat_t)
	first, ok2 := top.Sys().(*syscall.Stat_t)
	if !ok || !ok2 {
		return "", ""
	}
	mode := info.Mode()
	link := mode&fs.ModeSymlink != 0
	switch stranger := st.Uid != 0 && st.Uid != first.Uid && int(st.Uid) != os.Geteuid(); {
	case stranger && link:
		return fmt.Sprintf("belongs to user %d", st.Uid), "chown -h it"
	case stranger:
		return fmt.Sprintf("belongs to user %d", st.Uid), "chown it"
	case !link && listed(at.Path, mode):
		return fmt.Sprintf("can be written to by others (access list, mode %04o)", mode.Perm()), "setfacl -b and chmod go-w it"
	case !link && written(mode, st):
		return fmt.Sprintf("can be written to by others (mode %04o)", mode.Perm()), "chmod go-w or chmod +t it"
	}
	return "", ""
}
