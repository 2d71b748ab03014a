package paths

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxMountInfo bounds the list of mounts, in bytes: some hundred thousand fit. A longer
// list is not used, as if there were none.
const maxMountInfo = 64 << 20

// mountsNow reads the mounts that this process sees (proc_pid_mountinfo(5)). Without
// /proc there are none.
func mountsNow() mounts {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxMountInfo+1))
	if err != nil || len(text) > maxMountInfo {
		return nil
	}
	return parseMounts(text)
}

// parseMounts leaves out lines that it does not understand.
func parseMounts(text []byte) mounts {
	all := make(mounts)
	for line := range bytes.Lines(text) {
		if m, ok := parseMount(string(line)); ok {
			all[m.id] = m
		}
	}
	return all
}

// parseMount reads a line: number, parent, device, root, mount point, options, any number of
// optional fields, "-", type. The paths have some bytes as three octal digits.
func parseMount(line string) (m mounted, ok bool) {
	head, tail, ok := strings.Cut(line, " - ")
	fields, kind := strings.Fields(head), strings.Fields(tail)
	if !ok || len(fields) < 6 || len(kind) == 0 {
		return m, false
	}
	id, err := strconv.ParseUint(fields[0], 10, 64)
	parent, err2 := strconv.ParseUint(fields[1], 10, 64)
	if err != nil || err2 != nil {
		return m, false
	}
	m = mounted{id: id, parent: parent, volume: fields[2], root: octal(fields[3]), point: octal(fields[4])}
	if strings.HasPrefix(kind[0], "nfs") { // the root of each is called "/", wherever it is
		m.volume += "." + fields[0]
	}
	return m, true
}

// octal reads "\040" as a space, and the like.
func octal(text string) string {
	var b strings.Builder
	for {
		plain, rest, found := strings.Cut(text, `\`)
		b.WriteString(plain)
		if !found {
			return b.String()
		}
		if n, err := strconv.ParseUint(rest[:min(3, len(rest))], 8, 8); err == nil && len(rest) >= 3 {
			b.WriteByte(byte(n))
			text = rest[3:]
			continue
		}
		b.WriteByte('\\')
		text = rest
	}
}
