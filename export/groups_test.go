package export

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// fakeGetent puts a getent in PATH that is a script.
func fakeGetent(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("getent is Linux'")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "getent"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestHostGroups asks a getent that goes wrong in every way.
func TestHostGroups(t *testing.T) {
	fakeGetent(t, `
test "$1" = -- || exit 1
case "$2 $3" in
"passwd 1") printf '%s\n' 'ann:x:1:10:Ann,,,:/home/ann:/bin/sh';;
"initgroups ann") printf '%s\n' 'ann                  20 10 30 20';;
"passwd 2") printf '%s\n' 'DOM\a user:x:2:11::/:/bin/sh';;
"initgroups DOM\a user") printf '%s\n' 'DOM\a user 21';;
"passwd 3") printf '%s\n' '-x:x:3:12::/:';;
"initgroups -x") printf '%s\n' '-x                   ';;
"passwd 4") exit 2;;
"passwd 5") printf '%s\n' 'six:x:6:6::/:';;
"passwd 6") printf '%s\n' 'six:x:6';;
"passwd 7") printf '%s\n' 'seven:x:7:-1::/:';;
"passwd 8") printf '%s\n' 'eight:x:8:8::/:';;
"initgroups eight") printf '%s\n' 'eight 1 two';;
"passwd 9") exit 1;;
"passwd 10") printf '%s\n' 'ten:x:10:10::/:';;
"initgroups ten") head -c 2000000 /dev/zero;;
"passwd 11") printf '%s\n' 'eleven:x:11:11::/:';;
"initgroups eleven") printf '%s\n' 'twelve 1 2';;
"passwd 12") printf '%s\n' ':x:12:12::/:';;
*) exit 1;;
esac
`)
	for uid, want := range map[uint32][]uint32{1: {10, 20, 30}, 2: {11, 21}, 3: {12}, 4: nil} {
		if got, err := HostGroups(t.Context(), uid); err != nil || !slices.Equal(got, want) {
			t.Errorf("uid %d: %v, %v; want %v", uid, got, err, want)
		}
	}
	for _, uid := range []uint32{5, 6, 7, 8, 9, 11, 12} {
		if got, err := HostGroups(t.Context(), uid); err == nil {
			t.Errorf("uid %d: %v", uid, got)
		}
	}
	// An endless answer is cut off. Then the files of this host answer for uid 10.
	if got, err := HostGroups(t.Context(), 10); err == nil && len(got) > maxGroups {
		t.Errorf("uid 10: %d groups", len(got))
	}
}

// TestSlowHostGroups gives up with its context.
func TestSlowHostGroups(t *testing.T) {
	fakeGetent(t, "exec sleep 60\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := HostGroups(ctx, 1); err == nil {
		t.Errorf("%v", got)
	}
}

// TestFileGroups asks the files of this host, which know root.
func TestFileGroups(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("root is number 0 on Unix")
	}
	if got, err := fileGroups(0); err != nil || len(got) == 0 || got[0] != 0 {
		t.Errorf("root: %v, %v", got, err)
	}
	if got, err := fileGroups(3999999999); err != nil || len(got) != 0 {
		t.Errorf("a user who does not exist: %v, %v", got, err)
	}
}

func TestTooManyGroups(t *testing.T) {
	line := "ann" + strings.Repeat(" 1", maxGroups)
	if got, err := parseInitgroups(line, "ann"); err == nil {
		t.Errorf("%d groups", len(got))
	}
	ids := slices.Repeat([]string{"1"}, maxGroups)
	if got, err := parseGroups(7, ids); err != nil || !slices.Equal(got, []uint32{1}) {
		t.Errorf("as many groups as there may be: %v, %v", got, err)
	}
	if got, err := parseGroups(7, append(ids, "2")); err == nil {
		t.Errorf("one group too many: %d groups", len(got))
	}
	b := &bounded{most: 10}
	if n, err := fmt.Fprint(b, strings.Repeat("x", 11)); n != 0 || err == nil || len(b.held) != 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// FuzzGroups parses any bytes as getent's answer.
func FuzzGroups(f *testing.F) {
	f.Add("ann:x:1:10:Ann,,,:/home/ann:/bin/sh", "ann   1 2 3")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, passwd, initgroups string) {
		name, _, err := parsePasswd(passwd, 1)
		if err == nil && name == "" {
			t.Errorf("%q has no name", passwd)
		}
		if groups, err := parseInitgroups(initgroups, name); err == nil && len(groups) >= maxGroups {
			t.Errorf("%d groups", len(groups))
		}
	})
}
