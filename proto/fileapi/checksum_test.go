package fileapi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestChecksum holds the algorithms against values that others have published for
// "abc" (FIPS 180-4's examples, BLAKE3's and RFC 3720's tools).
func TestChecksum(t *testing.T) {
	const (
		sha256 = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
		blake3 = "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
		crc32c = "crc32c:364b3fb7"
	)
	for _, c := range []struct{ asked, want string }{
		{"", sha256}, {"sha256", sha256}, {sha256, sha256}, {"blake3", blake3}, {blake3, blake3}, {"crc32c", crc32c}, {crc32c, crc32c},
	} {
		sum, err := fileapi.NewChecksum(c.asked)
		if err != nil {
			t.Fatalf("%q: %v", c.asked, err)
		}
		if _, err := sum.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		if got, err := sum.Check(c.want); got != c.want || err != nil {
			t.Errorf("%q: %s, %v", c.asked, got, err)
		}
		if _, err := sum.Check("sha256:00"); err == nil {
			t.Errorf("%q: another checksum is taken for it", c.asked)
		}
		_, _ = sum.Write([]byte("d"))
		if _, err := sum.Check(""); (err != nil) != strings.Contains(c.asked, ":") {
			t.Errorf("%q: other bytes: %v", c.asked, err)
		}
	}
}

func FuzzChecksum(f *testing.F) {
	for _, s := range []string{"", ":", "sha256", "sha256:", "crc32c:0000000g", "crc32c:0000000A", "md5:00", "crc32c:00000000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		sum, err := fileapi.NewChecksum(s)
		if err != nil {
			if !errors.Is(err, fileapi.ErrChecksum) {
				t.Fatal(err)
			}
			return
		}
		if _, value, _ := strings.Cut(s, ":"); value != "" && len(sum.String()) != len(s) {
			t.Fatalf("%q is taken for a checksum such as %s", s, sum)
		}
	})
}
