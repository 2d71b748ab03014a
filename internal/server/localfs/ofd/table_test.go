//go:build linux

package ofd

import (
	"strconv"
	"testing"
)

// TestLockShares: clients take all descriptions they can have, one after the other,
// whatever the files. One alone has half, and many that come later find some, too. A
// newcomer gets what has come back.
func TestLockShares(t *testing.T) {
	const most = 2048
	table := Table{Most: most}
	fill := func(share string) (n int) {
		for table.room(share) {
			n++
		}
		return n
	}
	if n := fill("0"); n != most/2 {
		t.Errorf("one alone has got %d of %d", n, most)
	}
	for share := 1; share < 20; share++ {
		if n := fill(strconv.Itoa(share)); n < most/few || n > most/4 {
			t.Errorf("share %d has got %d, want %d at least", share, n, most/few)
		}
	}
	for share := 20; table.open < most; share++ {
		if fill(strconv.Itoa(share)) == 0 {
			t.Fatalf("share %d has got none, and %d are taken", share, table.open)
		}
	}
	for range 16 {
		table.left("1")
	}
	if table.room("0") || !table.room("a newcomer") {
		t.Error("what has come back is not a newcomer's, or is the greediest one's")
	}
	table.left("a newcomer")
	for table.shares["1"] > 0 {
		table.left("1")
	}
	sum := 0
	for _, n := range table.shares {
		sum += n
	}
	if _, here := table.shares["1"]; here || table.open != sum {
		t.Errorf("%d are held, %v", table.open, table.shares)
	}
}

// TestLockSharesSmall: with few descriptions, too, a client that has none finds one as
// long as there is any.
func TestLockSharesSmall(t *testing.T) {
	for most := range 70 {
		table := Table{Most: most}
		for share := 0; table.open < most; share++ {
			n := 0
			for table.room(strconv.Itoa(share)) {
				n++
			}
			if n == 0 || n > (most+2)/2 {
				t.Fatalf("of %d share %d has got %d", most, share, n)
			}
		}
		if table.room("one more") || table.room("") {
			t.Errorf("there are more than %d", most)
		}
	}
}
