package objecttest

import (
	"bytes"
	"io"
	"strings"
	"testing/iotest"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

var contentTests = []test{
	{"content/once", func(e *env) {
		content := random(10, 70_000)
		sum := object.SumOf(content)
		info, stored, err := object.PutContent(e.ctx(), e.s, sum, -1, bytes.NewReader(content))
		e.ok(err)
		if !stored {
			e.Error("new content was not stored")
		}
		e.wantInfo(info, object.ContentKey(sum), content)
		info, stored, err = object.PutContent(e.ctx(), e.s, sum, int64(len(content)), iotest.ErrReader(io.ErrClosedPipe))
		e.ok(err)
		if stored {
			e.Error("content that is there was stored again")
		}
		e.wantInfo(info, object.ContentKey(sum), content)
		e.want(object.ContentKey(sum), content)
	}},
	{"content/another", func(e *env) {
		sum := object.SumOf([]byte("right"))
		_, stored, err := object.PutContent(e.ctx(), e.s, sum, -1, strings.NewReader("wrong"))
		e.wantErr(err, object.ErrMismatch)
		if stored {
			e.Error("it is said to be stored")
		}
		e.wantNone(object.ContentKey(sum))
	}},
	{"content/corrupted", func(e *env) {
		e.put(object.ContentKey(object.SumOf([]byte("right"))), []byte("something else"))
		_, stored, err := object.PutContent(e.ctx(), e.s, object.SumOf([]byte("right")), 5, strings.NewReader("right"))
		e.ok(err)
		if !stored {
			e.Error("another content has passed for it")
		}
		e.want(object.ContentKey(object.SumOf([]byte("right"))), []byte("right"))
	}},
}
