//go:build linux

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/ganesha"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/v3suite"
)

// ganeshaExports are directories main, ro and other of %[1]s.
const ganeshaExports = `
EXPORT { Export_Id = 1; Path = %[1]s/main; Pseudo = /main; Access_Type = RW; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }
EXPORT { Export_Id = 2; Path = %[1]s/ro; Pseudo = /ro; Access_Type = RO; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }
EXPORT { Export_Id = 3; Path = %[1]s/other; Pseudo = /other; Access_Type = RW; Attr_Expiration_Time = 0; FSAL { Name = VFS; } }
`

// startGanesha starts a private nfs-ganesha until the test ends.
func startGanesha(t *testing.T) v3suite.Target {
	t.Helper()
	home := t.TempDir()
	for _, dir := range []string{"main", "ro", "other"} {
		freshDir(t, home, dir)
	}
	freshDir(t, filepath.Join(home, "ro"), "dir")
	if err := os.WriteFile(filepath.Join(home, "ro/dir/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := ganesha.Start(t, fmt.Sprintf(ganeshaExports, home))
	return v3suite.Target{
		Dial: dialer(fmt.Sprintf("127.0.0.1:%d", s.NFS)), DialMount: dialer(fmt.Sprintf("127.0.0.1:%d", s.Mount)),
		Export: home + "/main", ReadOnly: home + "/ro", Other: home + "/other", Identities: true,
	}
}

// TestV3SuiteGanesha holds the suite against another server, so that it asks for
// what RFC 1813 has and not for what ours does.
func TestV3SuiteGanesha(t *testing.T) {
	need.Time(t, "the suite of the protocol against nfs-ganesha")
	if err := ganesha.Missing(); err != nil {
		need.Missing(t, "ganesha", err.Error())
	}
	t.Parallel() // it waits for the disk
	target := startGanesha(t)
	target.Differences = ganeshaDifferences
	v3suite.Run(t, target)
}

const (
	badType  = "ganesha answers BADTYPE, which RFC 1813 has for MKNOD alone"
	pathLike = "ganesha takes names with '/' and NUL, and hands them to the system as paths: \"../up\" is out of the directory"
	leftOver = "ganesha sends bytes behind a refusal"
)

// ganeshaDifferences are what nfs-ganesha 4.3 does in its own way.
var ganeshaDifferences = map[string]string{
	"setattr/size-of-others":           badType,
	"create/over-others":               badType,
	"link/directory":                   badType,
	"create/dots":                      "ganesha answers ISDIR",
	"write/count-and-data-differ":      "ganesha writes the smaller of count and data",
	"write/stable-how-unknown":         "ganesha takes any number for stable",
	"symlink/target-of-a-client's-own": "ganesha cuts a target at a NUL",
	"link/as-many-as-there-can-be":     "ganesha announces a link_max of 8 and makes more",
	"readdir/too-small":                leftOver,
	"readdirplus/too-small":            leftOver,
	"readdirplus/dircount":             "ganesha does not look at dircount",
	"pathconf/name-max-holds":          "ganesha announces that it cuts long names, and refuses them",
	"commit/not-a-file":                "ganesha answers SERVERFAULT",
	"names/lookup-impossible":          pathLike,
	"names/create-impossible":          pathLike,
	"names/mkdir-impossible":           pathLike,
	"names/symlink-impossible":         pathLike,
	"names/mknod-impossible":           pathLike,
	"names/remove-impossible":          pathLike,
	"names/rmdir-impossible":           pathLike,
	"names/rename-from-impossible":     pathLike,
	"names/rename-to-impossible":       pathLike,
	"names/link-dir-impossible":        pathLike,
	"xdev/file-systems-differ":         "both exports are of one file system here",
	"identity/truncate-clears-set-uid": "ganesha leaves the set-uid bit where another user truncates",
	"rpc/rpc-version-unknown":          "ganesha closes the connection",
	"rpc/fragments":                    "ganesha closes the connection after many small fragments",
	"mount/dump":                       "ganesha keeps no list of mounts",
}
