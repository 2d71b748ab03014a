package job

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestStanding: set-id bits are given to no bytes of another, and with SyncOptions.Wary neither is an owner. What looks the same and may
// get these is made anew, in a sync and where a record says that it was copied.
func TestStanding(t *testing.T) {
	owner := vfs.SetAttr{Valid: vfs.MaskUID | vfs.MaskGID, UID: 7, GID: 8}
	for name, c := range map[string]struct {
		mode, was uint32
		other     bool   // the owner differs
		linked    bool   // the file has a name that the source does not have
		bytes     string // of the file
		wary      bool
		anew      bool
	}{
		"set-uid, missing":         {mode: 0o4755, was: 0o755, bytes: "good", anew: true},
		"set-gid, missing":         {mode: 0o2755, was: 0o4755, bytes: "good", anew: true},
		"set-uid, there":           {mode: 0o4755, was: 0o4755, bytes: "evil"},
		"set-uid, another owner":   {mode: 0o4755, was: 0o4755, bytes: "good", other: true, anew: true},
		"another owner":            {mode: 0o755, was: 0o755, bytes: "evil", other: true},
		"another owner, wary":      {mode: 0o755, was: 0o755, bytes: "evil", other: true, wary: true, anew: true},
		"the same, wary":           {mode: 0o755, was: 0o755, bytes: "good", other: true, wary: true},
		"another name, wary":       {mode: 0o755, was: 0o755, bytes: "good", other: true, wary: true, linked: true, anew: true},
		"another mode, wary":       {mode: 0o755, was: 0o777, bytes: "evil", wary: true},
		"the same name of another": {mode: 0o755, was: 0o777, bytes: "evil", wary: true, linked: true},
	} {
		for _, how := range []string{"sync", "dry", "record"} {
			src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
			src.set(src.file("d/f", c.mode, []byte("good")), owner)
			src.set(src.at("d/f"), mode(c.mode)) // another owner has taken bits away
			src.set(src.at("d/f"), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
			o, v := options(t, src, dst, "")
			o.Owner, o.Sync, o.DryRun = true, &SyncOptions{Wary: c.wary}, how == "dry"
			if how == "record" {
				o.Record, o.ID, o.Sync.Existing = recordDir(t), "x", Replace
				first := o
				if _, err := Copy(t.Context(), first); err != nil {
					t.Fatal(err)
				}
			} else {
				dst.file("d/f", 0o600, []byte("good"))
			}
			h, has := dst.at("d/f"), owner
			if c.other {
				has.UID, has.GID = 1, 1
			}
			dst.write(h, 0, []byte(c.bytes))
			dst.set(h, has)
			dst.set(h, mode(c.was))
			dst.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
			if c.linked {
				dst.link(h, "elsewhere")
			}
			sum, err := Copy(t.Context(), o)
			if err != nil || sum.Errors > 0 || (sum.Files == 1) != c.anew {
				t.Errorf("%s, %s: %v, %+v\n%v", name, how, err, sum, v)
			}
			if how == "dry" {
				continue
			}
			a := dst.attr("d/f")
			if a.UID != 7 || a.GID != 8 || a.Mode != c.mode {
				t.Errorf("%s, %s: %o of %d:%d", name, how, a.Mode, a.UID, a.GID)
			}
			if got := string(dst.read(dst.at("d/f"), 4)); c.anew && got != "good" || !c.anew && got != c.bytes {
				t.Errorf("%s, %s: it has %q", name, how, got)
			}
		}
	}
}
