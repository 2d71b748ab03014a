package job

import (
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
)

// TestRecordThatCannotBe: a copy whose record cannot be opened is made without, if the record is
// optional, and says so. One that was asked for is not begun.
func TestRecordThatCannotBe(t *testing.T) {
	for _, optional := range []bool{true, false} {
		src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
		everything(src)
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID, o.RecordOptional = recordDir(t), "this job", optional
		if err := o.Record.Mkdir(RecordFile, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := Copy(t.Context(), o)
		if !optional {
			if s.ExitCode(err) != ExitRefused || len(dst.list(dst.root)) != 1 {
				t.Errorf("%v, %+v; there is %v", err, s, dst.list(dst.root))
			}
			continue
		}
		if s.ExitCode(err) != ExitDone || !strings.Contains(v.String(), "an interrupted copy will copy again") {
			t.Errorf("%v, %+v\n%s", err, s, v)
		}
		if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
			t.Error(d)
		}
	}
}
