// Package expect says in a line what a test expects of files and of system calls: no error, a certain error, a certain
// content, or something that comes in time.
package expect

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// bound is how long Soon waits. Nothing that comes takes a tenth of it, on a busy machine either.
const bound = 3 * time.Minute

// OK ends the test if err is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Errno fails the test unless err is want.
func Errno(t testing.TB, err error, want syscall.Errno) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

// Content fails the test unless a file can be read, and holds want.
func Content(t testing.TB, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %.100q, %v; want %.100q", path, b, err, want)
	}
}

// Soon asks again and again until done says yes, and ends the test if it never does. what is what is waited for.
func Soon(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, bound)
		}
	}
}
