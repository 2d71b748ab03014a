package job

import (
	"crypto/sha256"
	"errors"
	"testing"
)

// TestCheckRecord: the header of any job's record passes, of every version that is known, and where it is cut off.
// With any bit of it turned it does not, nor does a file of something else.
func TestCheckRecord(t *testing.T) {
	dir := recordDir(t)
	check := func(text []byte) error {
		t.Helper()
		if err := dir.WriteFile(recordName, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return CheckRecord(dir)
	}
	if err := CheckRecord(dir); err != nil {
		t.Errorf("none: %v", err)
	}
	for version := uint32(1); version <= recordVersion; version++ {
		head := (&record{identity: sha256.Sum256([]byte("id")), version: version}).header()
		for n := range len(head) + 1 {
			if err := check(head[:n]); err != nil {
				t.Errorf("version %d, %d bytes: %v", version, n, err)
			}
		}
		for bit := range 8 * len(head) {
			head[bit/8] ^= 1 << (bit % 8)
			if err := check(append(head, "entries"...)); !errors.Is(err, ErrRecord) {
				t.Errorf("version %d, bit %d: %v", version, bit, err)
			}
			head[bit/8] ^= 1 << (bit % 8)
		}
	}
	for _, text := range []string{"#", "NFSBOXCQ", "#!/bin/sh\nexec rm -rf / # it is longer than a header is\n"} {
		if err := check([]byte(text)); !errors.Is(err, ErrRecord) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
