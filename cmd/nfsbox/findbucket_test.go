package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/fakes3"
)

// TestFindInBucket: what find prints of a bucket names the same again, and what it complains of is told with a place that is there.
func TestFindInBucket(t *testing.T) {
	fakes3.Setenv(t)
	s := fakes3.Start(t, 1, fakes3.Faults{})
	for _, key := range []string{
		"good", "d/a", "c::d", "x::y/z", ":::::e", "%0A", "%00", "%41", "100%", "a@b::c", "q?x", "h#y", "amp&z", "star*", "br[a]", "plus+", "back\\slash", "é", "\u202e", "a b", "...", "~",
		"d//b", "d/./c", "/a", "n/" + strings.Repeat("n", 256), "line\nbreak", "file", "file/below", "file.rclonelink",
	} {
		s.Plant(key, []byte("x"))
	}
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	for _, args := range []string{"", "?endpoint=" + url.QueryEscape(s.URL)} {
		out, _ := ask(t, exitIncomplete, "find", "--print0", "s3://"+fakes3.Bucket+args)
		places := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
		if len(places) < 24 {
			t.Errorf("%d places: %q", len(places), places)
		}
		for _, at := range places {
			if again, _ := ask(t, 0, "find", "--print0", "--max-depth", "0", at); again != at+"\x00" {
				t.Errorf("%q is given back as %q", at, again)
			}
		}
		out, _ = ask(t, exitIncomplete, "find", "--json", "s3://"+fakes3.Bucket+args)
		foreign := 0
		for line := range strings.Lines(out) {
			var x struct {
				Type, Path string
				Error      struct{ Message string }
			}
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			if x.Type == "error" && strings.HasPrefix(x.Error.Message, "name in a listing: ") {
				foreign++
				ask(t, 0, "stat", x.Path)
			}
		}
		if foreign != 8 || !strings.Contains(out, `"errors":8`) {
			t.Errorf("%d keys are told of:\n%s", foreign, out)
		}
	}
}
