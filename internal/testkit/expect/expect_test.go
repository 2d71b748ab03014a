package expect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/nfsbox/nfsbox/internal/testkit/expect"
)

// failed is a test that tells how it has failed.
type failed struct {
	testing.TB
	how string
}

func (f *failed) Helper()                           {}
func (f *failed) Fatal(args ...any)                 { panic("ended: " + fmt.Sprint(args...)) }
func (f *failed) Fatalf(format string, args ...any) { panic("ended: " + fmt.Sprintf(format, args...)) }
func (f *failed) Errorf(format string, args ...any) { f.how = fmt.Sprintf(format, args...) }

// outcome is how a test fails that expects what do says; "": it does not.
func outcome(do func(testing.TB)) (how string) {
	f := &failed{}
	defer func() {
		if end := recover(); end != nil {
			how = fmt.Sprint(end)
		} else {
			how = f.how
		}
	}()
	do(f)
	return
}

func TestExpectations(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, none := os.Stat(file + "x")
	for _, c := range []struct {
		do   func(testing.TB)
		want string
	}{
		{func(t testing.TB) { expect.OK(t, nil) }, ""},
		{func(t testing.TB) { expect.OK(t, syscall.EIO) }, "ended: input/output error"},
		{func(t testing.TB) { expect.Errno(t, none, syscall.ENOENT) }, ""},
		{func(t testing.TB) { expect.Errno(t, none, syscall.EIO) }, none.Error() + ", want input/output error"},
		{func(t testing.TB) { expect.Errno(t, nil, syscall.EIO) }, "<nil>, want input/output error"},
		{func(t testing.TB) { expect.Content(t, file, "text") }, ""},
		{func(t testing.TB) { expect.Content(t, file, "other") }, file + ` holds "text", <nil>; want "other"`},
	} {
		if got := outcome(c.do); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		if got := outcome(func(t testing.TB) { expect.Soon(t, "the fifth", func() bool { asked++; return asked == 5 }) }); got != "" || asked != 5 {
			t.Errorf("%q after %d questions", got, asked)
		}
		if got := outcome(func(t testing.TB) { expect.Soon(t, "the end", func() bool { return false }) }); got != "ended: the end: not within 3m0s" {
			t.Errorf("what never comes: %q", got)
		}
	})
}
