package nfsbox_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// TestExtract holds the example to what archives have besides files and directories:
// nothing is left out without a word, and no link leads to what is outside.
func TestExtract(t *testing.T) {
	tree, unmount := mount()
	defer unmount()
	file := tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o644, Size: 4}
	for name, tc := range map[string]struct {
		header tar.Header
		say    string
	}{
		"hard link":      {tar.Header{Typeflag: tar.TypeLink, Name: "again", Linkname: "file"}, ""},
		"symbolic link":  {tar.Header{Typeflag: tar.TypeSymlink, Name: "again", Linkname: "file"}, ""},
		"global":         {tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "again", PAXRecords: map[string]string{"comment": "x"}}, ""},
		"link to others": {tar.Header{Typeflag: tar.TypeLink, Name: "again", Linkname: "../www/hello.txt"}, "link to"},
		"name outside":   {tar.Header{Typeflag: tar.TypeReg, Name: "../again"}, "the name"},
		"pipe":           {tar.Header{Typeflag: tar.TypeFifo, Name: "again"}, "type"},
	} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		err := w.WriteHeader(&file)
		if err == nil {
			_, err = w.Write([]byte("here"))
		}
		if err = errors.Join(err, w.WriteHeader(&tc.header), w.Close(), tree.RemoveAll("to"), tree.Mkdir("to", 0o755)); err != nil {
			t.Fatal(name, err)
		}
		err = extract(tree, "to", &archive)
		if (err == nil) != (tc.say == "") || err != nil && !strings.Contains(err.Error(), tc.say) {
			t.Errorf("%s: %v, want %q", name, err, tc.say)
		}
		data, err := fs.ReadFile(tree, "to/again")
		if want := strings.Contains(name, "c link") || name == "hard link"; (string(data) == "here") != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}
