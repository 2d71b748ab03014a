//go:build linux

package handlemap

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/localfs/linux"
)

func FuzzRecord(f *testing.F) {
	for _, r := range []record{
		{typ: recBind, slot: 1, serial: 2, id: linux.Ident{Ino: 3, Gen: 4}, parent: 5, only: true, name: []byte("name")},
		{typ: recUnbind, slot: 1, parent: 2, hash: 3}, {typ: recDrop, slot: 1}, {typ: recSynced, synced: 1 << 40},
	} {
		f.Add(appendRecord(nil, &r))
	}
	f.Add((&header{slots: 1, serial: 3}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r record
		if n, err := parseRecord(b, &r); err == nil {
			if got := appendRecord(nil, &r); r.typ != recBind && string(got) != string(b[:n]) {
				t.Errorf("%x is read as %+v and written as %x", b[:n], r, got)
			}
		}
		var h header
		if err := parseHeader(b, &h); err == nil && string(h.append(nil)) != string(b[:headerSize]) {
			t.Errorf("%x is read as %+v", b, h)
		}
	})
}
