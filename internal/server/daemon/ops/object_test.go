package ops

import (
	"testing"

	"github.com/nfsbox/nfsbox/nfsserver"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestObject names what a call was about, or says by which handle it was.
func TestObject(t *testing.T) {
	h, err := vfs.MakeHandle([]byte{0xab, 1})
	if err != nil {
		t.Fatal(err)
	}
	known := func(vfs.Handle) (string, bool) { return "/data/dir", true }
	top := func(vfs.Handle) (string, bool) { return "/", true }
	unknown := func(vfs.Handle) (string, bool) { return "", false }
	for _, c := range []struct {
		o     object
		attr  string
		label string
	}{
		{object{nfsserver.Object{Handle: h}, known}, "path=/data/dir", "/data/dir"},
		{object{nfsserver.Object{Handle: h, Name: "x"}, known}, "path=/data/dir/x", "/data/dir/x"},
		{object{nfsserver.Object{Handle: h, Name: "x"}, top}, "path=/x", "/x"},
		{object{nfsserver.Object{Handle: h}, unknown}, "handle=ab01", "handle ab01"},
		{object{nfsserver.Object{Handle: h, Name: "x"}, unknown}, "handle=ab01/x", "handle ab01/x"},
		{object{nfsserver.Object{Path: "/data"}, unknown}, "path=/data", "/data"},
	} {
		if got := c.o.Attr().String(); got != c.attr || c.o.label() != c.label {
			t.Errorf("%+v: %s, %s; want %s", c.o.Object, got, c.o.label(), c.attr)
		}
	}
}
