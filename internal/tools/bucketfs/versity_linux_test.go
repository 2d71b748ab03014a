package bucketfs

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/internal/testkit/versity"
	"github.com/nfsbox/nfsbox/internal/tools/dirfs"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/vfs"
)

func overVersity(t *testing.T, v *versity.Server, root ...string) *FS {
	t.Helper()
	return at(t, bucket.Options{Bucket: versity.Bucket, Endpoint: v.URL, Credentials: bucket.Static(versity.Key, versity.Secret)}, root...)
}

// TestVersity copies a tree with odd names, a large file and a sync over a server that computes signatures and checksums itself, and keeps
// files.
func TestVersity(t *testing.T) {
	need.Time(t, "a tree and a large file over versitygw")
	v := versity.Start(t)
	f := overVersity(t, v, "pre fix")
	src, dst := motley(t, 1100), rooted(t, f)
	there := roundTrip(t, src, dst)

	some, _, _, err := src.FS.Lookup(t.Context(), src.Handle, "some")
	if err != nil {
		t.Fatal(err)
	}
	set(t, src.FS, some, vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o640}) // the copy gets it where it is
	if _, err := src.FS.Remove(t.Context(), src.Handle, "empty", false); err != nil {
		t.Fatal(err)
	}
	sum := copied(t, job.CopyOptions{Source: src, Dest: there, Sync: &job.SyncOptions{Delete: &job.DeleteOptions{}}})
	if sum.Files != 0 || sum.Deleted != 1 || sum.AttrsSet == 0 {
		t.Errorf("%+v", sum)
	}
	same(t, src, there)

	_, big := largeFile(t, parts(partSize))
	sum = copied(t, job.CopyOptions{Source: big, Dest: dst, Name: "big", Verify: true})
	if sum.Verified != 1 {
		t.Errorf("%+v", sum)
	}
}

// TestRclone: rclone reads what is put here with times and modes, and what it puts is read here.
func TestRclone(t *testing.T) {
	bin, err := exec.LookPath("rclone")
	if err != nil {
		need.Missing(t, "rclone", "no rclone in PATH")
	}
	v := versity.Start(t)
	rclone := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin, append(args, "--config", t.TempDir()+"/none")...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		for name, value := range map[string]string{
			"TYPE": "s3", "PROVIDER": "Other", "ACCESS_KEY_ID": versity.Key, "SECRET_ACCESS_KEY": versity.Secret, "ENDPOINT": v.URL, "FORCE_PATH_STYLE": "true",
		} {
			cmd.Env = append(cmd.Env, "RCLONE_CONFIG_V_"+name+"="+value)
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	dir := t.TempDir()
	at := time.Unix(1e9, 123456789)
	for _, name := range []string{"a file", "100%"} {
		if err := os.WriteFile(dir+"/"+name, []byte(name), 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir+"/"+name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a file", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	fsys, err := dirfs.New(dir, dirfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() }) // nothing was written
	src, f := rooted(t, fsys), overVersity(t, v)
	dst := rooted(t, f)
	copied(t, job.CopyOptions{Source: src, Dest: dst, Name: "ours"})

	if list := rclone("lsl", "V:"+versity.Bucket+"/ours"); strings.Count(list, at.Format("2006-01-02 15:04:05.000000000")) != 2 || !strings.Contains(list, "link.rclonelink") {
		t.Errorf("rclone sees\n%s", list)
	}
	if text := rclone("lsjson", "-M", "--stat", "V:"+versity.Bucket+"/ours/100%"); !strings.Contains(text, `"mode": "100640"`) || !strings.Contains(text, fmt.Sprintf(`"uid": "%d"`, os.Geteuid())) {
		t.Errorf("rclone sees\n%s", text)
	}
	rclone("copy", "--links", "--metadata", dir, "V:"+versity.Bucket+"/theirs")
	h, _, _, err := f.Lookup(t.Context(), dst.Handle, "theirs")
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours := make(map[string]string), make(map[string]string)
	listed(t, f, h, "", theirs)
	listed(t, src.FS, src.Handle, "", ours)
	for _, name := range []string{"a file", "100%"} {
		if theirs[name] != ours[name] {
			t.Errorf("%s of rclone: %s, want %s", name, theirs[name], ours[name])
		}
	}
	if link, _, _, err := f.Lookup(t.Context(), h, "link"); err != nil {
		t.Error(err)
	} else if target, _, err := f.Readlink(t.Context(), link); target != "a file" || err != nil {
		t.Errorf("a link of rclone: %q, %v", target, err)
	}
}
