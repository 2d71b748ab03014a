//go:build linux

package outsider

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestJobOfAnotherUser: what another user has put into a record, or could have, is not run, whoever has the
// directory. The command that it names would copy with the rights of this user.
func TestJobOfAnotherUser(t *testing.T) {
	root(t, "to give files away")
	for name, c := range map[string]struct {
		own, open string // below the state directory: given to another user; made writable for others
		says      string
	}{
		"an open directory and a file of another": {"jobs/j/job.json", "jobs/j", "others may write to"},
		"an open directory":                       {"", "jobs/j", "others may write to"},
		"a file of another":                       {"jobs/j/job.json", "", "belongs to user 1000"},
		"an open file":                            {"", "jobs/j/job.json", "others may write to"},
		"another's list of what was copied":       {"jobs/j/copied", "", "belongs to user 1000"},
		"another's directory":                     {"jobs/j", "", "belongs to user 1000"},
		"another's directory of all":              {"jobs", "", "belongs to user 1000"},
		"an open directory of all":                {"", "jobs", "others may write to"},
		"another's state":                         {".", "", "belongs to user 1000"},
		"open state":                              {"", ".", "others may write to"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			state := b.path(".state", "nfsbox")
			b.alike(b.path("src"), 3, 100)
			b.must(0, "cp", "-r", "-q", "--job", "j", b.path("src"), b.path("copy"))
			b.must(0, "cp", "-r", "-q", "--job", "good", b.path("src"), b.path("copy2"))
			b.no(os.RemoveAll(b.path("copy")))
			if c.own != "" {
				b.no(os.Chown(filepath.Join(state, c.own), 1000, 1000))
			}
			if c.open != "" {
				b.no(os.Chmod(filepath.Join(state, c.open), 0o777))
			}
			for status, args := range map[int][][]string{
				2: {{"job", "ls"}, {"job", "show", "j"}, {"job", "resume", "j"}, {"job", "set", "j", "--max-rate", "0"}},
				1: {{"cp", "-r", "--job", "j", b.path("src"), b.path("copy")}, {"sync", "--job", "j", b.path("src"), b.path("copy")}},
			} {
				for _, args := range args {
					if r := b.must(status, args...); !strings.Contains(r.stderr, c.says) || !strings.Contains(r.stderr, filepath.Join(state, c.own+c.open)) && c.own+c.open != "jobs/j/job.jsonjobs/j" {
						t.Errorf("%q says\n%s", args, r.stderr)
					}
				}
			}
			if r := b.run("job", "ls"); strings.HasPrefix(c.own+c.open, "jobs/") != strings.Contains(r.stdout, "good  complete") {
				t.Errorf("it lists\n%s", r.stdout)
			}
			if exists(b.path("copy")) {
				t.Error("it was copied")
			}
		})
	}
}

// TestJobUmask: a job's files are its user's alone with any umask, and so is none refused.
func TestJobUmask(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 3, 100)
	sh := b.command()
	sh.Path, sh.Args = "/bin/sh", []string{"sh", "-c", `umask 000; "$0" cp -r -q --job j src copy && "$0" job resume j && "$0" job ls`, b.bin}
	if r := b.finish(sh); r.status != 0 || !strings.Contains(r.stdout, "j     complete") {
		t.Errorf("status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
}

// TestJobResumeElsewhere: a job is resumed in another directory, by a relative path of the program, and
// interrupted. The command that it says then goes on from there, with the same tree.
func TestJobResumeElsewhere(t *testing.T) {
	heeds(t, syscall.SIGINT)
	t.Parallel()
	for _, name := range []string{"j", ""} {
		b := newBoxAlone(t)
		b.alike(b.path("src"), 40, 50_000)
		b.write(b.path("elsewhere", "src", "wrong"), "another tree")
		b.no(os.Symlink(b.bin, b.path("program")))
		runs := func(is map[string]any, runs float64) bool {
			return is != nil && is["state"] == "running" && is["runs"] == runs
		}
		args := []string{"cp", "-r", "--max-rate", "64K", "src", "copy"}
		if name != "" {
			args = append(args, "--job", name)
		}
		r := b.begin(args...)
		b.until("it runs", func() bool { return runs(b.job(name), 1) && exists(b.path("copy")) })
		b.no(r.Process.Signal(syscall.SIGINT))
		if status := r.status(); status != 130 {
			t.Fatalf("status %d\n%s", status, r.err)
		}
		called := b.job(name)["name"].(string)
		r = &running{Cmd: b.command("job", "resume", called), b: b, out: new(log), err: new(log)}
		r.Stdout, r.Stderr = r.out, r.err
		r.Dir, r.Path, r.Args[0] = b.path("elsewhere"), "../program", "../program"
		b.no(r.Start())
		b.until("it runs again", func() bool { return runs(b.job(name), 2) })
		b.no(r.Process.Signal(syscall.SIGINT))
		if status := r.status(); status != 130 {
			t.Fatalf("status %d\n%s", status, r.err)
		}
		text := r.err.String()
		if !strings.HasPrefix(text, "nfsbox: in "+b.dir+": "+b.path("program")+" cp -r") {
			t.Errorf("it begins with\n%s", text)
		}
		_, line, _ := strings.Cut(text, "to go on from here: ")
		if line, _, _ = strings.Cut(line, "\n"); line != b.path("program")+" job resume "+called {
			t.Errorf("to go on: %q", line)
		}
		sh := b.command()
		sh.Path, sh.Args, sh.Dir = "/bin/sh", []string{"sh", "-c", line}, b.path("elsewhere")
		b.no(sh.Start())
		b.until("it runs once more", func() bool { return runs(b.job(name), 3) })
		b.must(0, "job", "set", called, "--max-rate", "0")
		if err := sh.Wait(); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		b.same(b.path("src"), b.path("copy"))
		if exists(b.path("elsewhere", "copy")) {
			t.Error("another tree was copied")
		}
	}
}
