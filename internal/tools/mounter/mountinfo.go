package mounter

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// fuseType is the type of our mounts in /proc/self/mountinfo.
const fuseType = "fuse.nfsbox"

// mountPoint is what is mounted at a directory.
type mountPoint struct {
	kind        string // "" if nothing is, or nobody knows
	user, group int    // of FUSE: its owner
}

// mountedAt is what is mounted at dir, the uppermost.
func mountedAt(dir string) mountPoint {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mountPoint{}
	}
	return mountIn(string(text), dir)
}

// mountIn reads proc_pid_mountinfo(5). Field 5 is the directory; behind a lone dash are the type, the source, and the
// options of the file system.
func mountIn(text, dir string) (at mountPoint) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		dash := slices.Index(fields, "-")
		if dash < 5 || len(fields) < dash+4 || unescape(fields[4]) != dir {
			continue
		}
		at = mountPoint{kind: fields[dash+1]}
		for o := range strings.SplitSeq(fields[dash+3], ",") {
			name, val, _ := strings.Cut(o, "=")
			n, err := strconv.Atoi(val)
			switch {
			case err != nil:
			case name == "user_id":
				at.user = n
			case name == "group_id":
				at.group = n
			}
		}
	}
	return at
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
