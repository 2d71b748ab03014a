package main

import "testing"

// TestOriginAnother: a directory is another one if its number differs, or if its file system and
// the time of its birth do. What is not known makes no difference.
func TestOriginAnother(t *testing.T) {
	was := origin{FSID: [2]uint64{1, 2}, FileID: 3, Born: 4}
	for name, c := range map[string]struct {
		now  origin
		want bool
	}{
		"the same":                   {was, false},
		"not known":                  {origin{}, false},
		"another number":             {origin{was.FSID, 5, 4}, true},
		"mounted again":              {origin{[2]uint64{9, 9}, 3, 4}, false},
		"mounted again, no birth":    {origin{[2]uint64{9, 9}, 3, 0}, false},
		"of another file system":     {origin{[2]uint64{9, 9}, 3, 5}, true},
		"born again, as overlays do": {origin{was.FSID, 3, 5}, false},
	} {
		if got := was.another(c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
