package objecttest

import (
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

var keyTests = []test{
	{"keys/largest", func(e *env) {
		segment := strings.Repeat("s", object.MaxSegment)
		longest := strings.Repeat(segment+"/", object.MaxKey/(object.MaxSegment+1)) + strings.Repeat("t", object.MaxKey%(object.MaxSegment+1))
		deepest := strings.Repeat("d/", object.MaxSegments-1) + "d"
		for _, key := range []string{segment, longest, deepest, deepest + "d"} {
			e.put(key, []byte(key))
			e.want(key, []byte(key))
		}
		e.wantList("", "", 1, []string{deepest, deepest + "d", segment, longest})
	}},
	{"keys/hostile", func(e *env) {
		e.put("a", []byte("x"))
		for _, key := range hostile {
			r := strings.NewReader("evil")
			_, err := e.s.Put(e.ctx(), key, r, anything)
			e.wantErr(err, object.ErrKey)
			if r.Len() != 4 {
				e.Errorf("for %.40q something was read", key)
			}
			_, _, err = e.s.Get(e.ctx(), key, 0, -1)
			e.wantErr(err, object.ErrKey)
			_, err = e.s.Stat(e.ctx(), key)
			e.wantErr(err, object.ErrKey)
			e.wantErr(e.s.Delete(e.ctx(), key), object.ErrKey)
			if len(err.Error()) > 300 {
				e.Errorf("the error for %.40q has %d bytes", key, len(err.Error()))
			}
		}
		e.wantList("", "", 0, []string{"a"})
	}},
}

// hostile are no keys.
var hostile = []string{
	"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "./a", ".hidden", "a/.tmp-0", ".nfsbox-store",
	"=aa", "=aa/aa", "-a", "_a", "A", "aB", "a b", "a\x00b", "a\nb", "a\\b", "a%2fb", "a:b", "a*", "a?", "~", "ä", "\xff", "a\u202eb",
	strings.Repeat("a", object.MaxSegment+1), strings.Repeat("a/", object.MaxSegments) + "a",
	strings.Repeat("a", object.MaxSegment) + "/" + strings.Repeat(strings.Repeat("b", 100)+"/", 5) + "c", strings.Repeat("a", 1<<20),
}
