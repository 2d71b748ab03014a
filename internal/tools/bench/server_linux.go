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
	utimeField   = 14 - 3
	stimeField   = 15 - 3
	threadsField = 20 - 3
)

// process is what a process takes of its host: processor time of all its threads,
// user and system together, and how many they are.
func process(pid int) (cpu time.Duration, threads int, err error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, err
	}
	return parseStat(name, b)
}

// parseStat finds times and threads in what name, a stat file, holds.
func parseStat(name string, b []byte) (cpu time.Duration, threads int, err error) {
	// The command's name may hold anything, parentheses and blanks as well.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) <= threadsField {
		return 0, 0, fmt.Errorf("%s: %d fields behind the name", name, len(fields))
	}
	var sum uint64
	for _, f := range [...][]byte{fields[utimeField], fields[stimeField]} {
		n, err := strconv.ParseUint(string(f), 10, tickBits)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += n
	}
	n, err := strconv.ParseUint(string(fields[threadsField]), 10, 31)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	return time.Duration(sum) * tick, int(n), nil
}
