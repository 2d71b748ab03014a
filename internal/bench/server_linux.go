package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of times in /proc: USER_HZ is 100 on every architecture of
// Linux that Go runs on.
const tick = 10 * time.Millisecond

// tickBits bounds a time, to 87 years: more would not fit into a Duration.
const tickBits = 38

// Fields of /proc/PID/stat behind the command's name (proc_pid_stat(5) counts
// from 1, and the name is the second).
const (
	utimeField = 14 - 3
	stimeField = 15 - 3
)

// processTime is the processor time of a process with all its threads, user and
// system together.
func processTime(pid int) (time.Duration, error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	return parseStat(name, b)
}

// parseStat finds the times in what name, a stat file, holds.
func parseStat(name string, b []byte) (time.Duration, error) {
	// The command's name may hold anything, parentheses and blanks as well.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) <= stimeField {
		return 0, fmt.Errorf("%s: %d fields behind the name", name, len(fields))
	}
	var sum uint64
	for _, f := range [...][]byte{fields[utimeField], fields[stimeField]} {
		n, err := strconv.ParseUint(string(f), 10, tickBits)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}
