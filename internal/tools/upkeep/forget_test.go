package upkeep

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
)

// TestJudge has snapshots of one name judged, the oldest first: each is its day, "C" if it is complete, "i" if not, and "x" if it cannot be
// read. Of those that are kept the rules are wanted, and of others why not.
func TestJudge(t *testing.T) {
	const day = 24*time.Hour + time.Minute*30
	for name, c := range map[string]struct {
		o         ForgetOptions
		have      string
		kept, why string
	}{
		"the newest":            {ForgetOptions{KeepLast: 2}, "1C 2C 3C", "2C 3C", "no rule, last, last"},
		"a day":                 {ForgetOptions{Daily: 2}, "1C 2C 2C 3C 3C", "2C 3C", "no rule, no rule, daily, no rule, daily"},
		"within":                {ForgetOptions{Within: 2 * day}, "1C 2C 3C 4C", "2C 3C 4C", "no rule, within, within, within"},
		"two rules":             {ForgetOptions{KeepLast: 1, Daily: 2}, "1C 2C 3C", "2C 3C", "no rule, daily, last daily"},
		"all incomplete, last":  {ForgetOptions{KeepLast: 2}, "1i 2i 3i 4i", "3i 4i", "incomplete, incomplete, last, last"},
		"all incomplete, daily": {ForgetOptions{Daily: 2}, "1i 2i 3i 3i", "2i 3i", "incomplete, daily, incomplete, daily"},
		"all incomplete, years": {ForgetOptions{Yearly: 5}, "1i 2i 3i", "3i", "incomplete, incomplete, yearly"},
		"incomplete within":     {ForgetOptions{Within: 2 * day}, "1C 2i 3i 4i 5i 6i", "1C 4i 5i 6i", "within, incomplete, incomplete, within, within, within"},
		// None that is complete goes for one that is not.
		"incomplete ones since":    {ForgetOptions{KeepLast: 2}, "1C 2C 3C 4i 5i 6i", "2C 3C 5i 6i", "no rule, last, last, incomplete, last, last"},
		"days since":               {ForgetOptions{Daily: 2}, "1C 2C 3C 4i 5i 6i", "2C 3C 5i 6i", "no rule, daily, daily, incomplete, daily, daily"},
		"a complete one long ago":  {ForgetOptions{Daily: 1}, "1C 20i 21i 22i", "1C 22i", "daily, incomplete, incomplete, daily"},
		"on the same day, before":  {ForgetOptions{Daily: 2}, "1i 1C 2C", "1C 2C", "incomplete, daily, daily"},
		"on the same day, after":   {ForgetOptions{Daily: 2}, "1C 2C 2i", "1C 2C", "daily, daily, incomplete"},
		"on a day of its own":      {ForgetOptions{Daily: 3}, "1C 2i 3C", "1C 2i 3C", "daily, daily, daily"},
		"that day is over":         {ForgetOptions{Daily: 2}, "1i 2C 3C", "2C 3C", "incomplete, daily, daily"},
		"a complete one of a year": {ForgetOptions{Yearly: 1}, "1C 2i", "1C", "yearly, incomplete"},
		// What cannot be read is not judged, and stays.
		"unreadable": {ForgetOptions{KeepLast: 1}, "1x 2C 3x 4C", "1x 3x 4C", ", no rule, , last"},
		// The order is that of the ids: a clock was set back from day 9 to day 2.
		"a clock set back": {ForgetOptions{Daily: 2, Within: day}, "1C 9C 2C", "1C 9C 2C", "within, daily within, daily within"},
	} {
		var items []ForgetItem
		words := strings.Fields(c.have)
		for i, w := range words {
			item := ForgetItem{Snapshot: w, Complete: strings.HasSuffix(w, "C")}
			n, err := time.ParseDuration(w[:len(w)-1] + "h")
			if err != nil {
				t.Fatal(err)
			}
			item.Time = time.Date(2026, 1, 0, 1, i, 0, 0, time.UTC).Add(24 * n)
			if strings.HasSuffix(w, "x") {
				item.Err = errors.New("unreadable")
			}
			items = append(items, item)
		}
		c.o.judge(items)
		var kept, why []string
		for i := range items {
			if !items[i].Forgotten {
				kept = append(kept, words[i])
			}
			why = append(why, strings.Join(items[i].Why, " "))
		}
		if got := strings.Join(kept, " "); got != c.kept {
			t.Errorf("%s: of %s %s are kept, want %s", name, c.have, got, c.kept)
		}
		if got := strings.Join(why, ", "); got != c.why {
			t.Errorf("%s: %s: %s, want %s", name, c.have, got, c.why)
		}
	}
}

// TestForgetOfNoName: a name that nothing has is an error, and those that have no tag are not judged.
func TestForgetOfNoName(t *testing.T) {
	b := newBed(t)
	b.file("f", nil)
	b.mustBackup("a")
	if _, err := Forget(t.Context(), b.memory, ForgetOptions{Name: "none", KeepLast: 1}); !errors.Is(err, snapshot.ErrNoSnapshot) {
		t.Error(err)
	}
	for tag, judged := range map[string]uint64{"all": 1, "none": 0} {
		sum, err := Forget(t.Context(), b.memory, ForgetOptions{Name: "a", Tags: []string{tag}, KeepLast: 1})
		if err != nil || sum.Judged != judged || sum.Kept != judged {
			t.Errorf("%s: %+v, %v", tag, sum, err)
		}
	}
}
