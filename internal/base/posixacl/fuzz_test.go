package posixacl

import "testing"

// FuzzACL reads the kernel's form of lists, and writes what it has read again.
func FuzzACL(f *testing.F) {
	f.Add(Append(nil, FromMode(0o640)))
	f.Add([]byte{2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := Parse(b)
		if err != nil || len(list) == 0 {
			return
		}
		if len(list)*xattrEntry+xattrHead != len(b) {
			t.Fatalf("%d entries of %d bytes", len(list), len(b))
		}
		canonical, err := Canonical(list)
		if err != nil {
			return
		}
		again, err := Parse(Append(nil, canonical))
		if err != nil || len(again) != len(canonical) {
			t.Errorf("%v is read back as %v, %v", canonical, again, err)
		}
	})
}
