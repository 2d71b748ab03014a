package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestSuiteGanesha runs the suite against nfs-ganesha.
func TestSuiteGanesha(t *testing.T) {
	need.Time(t, "the suite against nfs-ganesha")
	need.Speed(t, "the suite against nfs-ganesha")
	if err := ganesha.Missing(); err != nil {
		need.Missing(t, "ganesha", err.Error())
	}
	dir := inMemory(t)
	s := ganesha.Start(t, fmt.Sprintf("EXPORT { Export_Id = 1; Path = %s; Pseudo = /export; "+
		"Access_Type = RW; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }", dir))
	n := 0
	suite(t, 50, func(t *testing.T) vfs.FS {
		n++
		name := fmt.Sprintf("suite%d", n)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		return dial(t, strings.Replace(s.URL(dir), "?", "/"+name+"?", 1)).FS()
	})
}
