//go:build linux

package outsider

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// snapshot is all that lies below the box, object by object, but for what servers and locks keep.
func (b *box) snapshot() []string {
	b.Helper()
	var all []string
	b.no(filepath.WalkDir(b.dir, func(path string, e fs.DirEntry, err error) error {
		b.no(err)
		if strings.HasPrefix(e.Name(), ".served-") {
			return filepath.SkipDir
		}
		all = append(all, path+" "+b.fingerprint(path))
		return nil
	}))
	return all
}

// untouched runs commands that have to end with status 1, say why in one line that names what is wrong, and touch
// nothing.
func (b *box) untouched(why string, runs ...[]string) {
	b.Helper()
	was := b.snapshot()
	for _, args := range runs {
		r := b.run(args...)
		if r.status != 1 || !strings.Contains(r.stderr, why) || r.stdout != "" && !slices.Contains(args, "--json") {
			b.Errorf("%.200q: exit status %d, want 1 and %q\n%.500s%.1000s", args, r.status, why, r.stdout, r.stderr)
		}
		if now := b.snapshot(); !slices.Equal(was, now) {
			b.Errorf("%.200q has changed something:\n%s\n%s", args, minus(was, now), minus(now, was))
			was = now
		}
	}
}

// minus are the lines of one list that another lacks.
func minus(one, other []string) string {
	var lines []string
	for _, line := range one {
		if !slices.Contains(other, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestBadArguments: filters, lists, sizes, names of jobs and rules that make no sense are refused before anything
// is done, by every verb that takes them.
func TestBadArguments(t *testing.T) {
	b := newBox(t)
	b.write(b.path("srv", "src", "d", "f"), "new")
	b.write(b.path("srv", "dst", "d", "f"), "older")
	b.write(b.path("srv", "dst", "extra"), "extra")
	url := b.serve(b.path("srv")).url
	b.write(b.path("rules"), "- ok\n: .rules\n")
	b.write(b.path("binary"), string(pattern(5000, 1)))
	b.write(b.path("long"), "- "+strings.Repeat("x", 1<<20)+"\n")
	b.write(b.path("absolute"), "d/f\n/etc\n")
	b.write(b.path("dots"), "d/../../f\n")
	b.no(os.Mkdir(b.path("dir"), 0o755))
	verbs := func(flags ...string) (runs [][]string) {
		for _, verb := range [][]string{
			{"cp", "-r", "SRC", "DST"}, {"sync", "--delete", "SRC", "DST"}, {"verify", "SRC", "DST"}, {"rm", "-r", "DST"},
		} {
			args := slices.Clone(verb[:1])
			args = append(append(args, flags...), verb[1:]...)
			for i := range args {
				args[i] = strings.NewReplacer("SRC", url+"src", "DST", url+"dst").Replace(args[i])
			}
			runs = append(runs, args)
		}
		return runs
	}
	for why, flags := range map[string][]string{
		"without its ]":                 {"--exclude=["},
		"rules, such as":                {"--include=+ x"},
		"rules:2: ":                     {"--filter-from", b.path("rules")},
		"binary:":                       {"--filter-from", b.path("binary")},
		"long:1: ":                      {"--filter-from", b.path("long")},
		"none":                          {"--filter-from", b.path("none")},
		"is a directory":                {"--filter-from", b.path("dir")},
		"\"/etc\" is absolute":          {"--files-from", b.path("absolute")},
		"dots:1: the path has a \"..\"": {"--files-from", b.path("dots")},
		"nolist":                        {"--files-from", b.path("nolist")},
		"no size":                       {"--min-size=1X"},
		"neither a time":                {"--newer=soon"},
		"--max-size":                    {"--max-size=-5"},
		"--failed-to":                   {"--failed-to", b.path("no", "such", "dir")},
	} {
		b.untouched(why, verbs(flags...)...)
	}
	jobs := verbs()[:2]
	for _, job := range []string{"", ".", "..", "../x", "a/b", "new\nline", strings.Repeat("x", 65)} {
		for _, args := range jobs {
			b.untouched("name", append([]string{args[0], "--job", job}, args[1:]...))
		}
	}
	b.untouched("--map-uid", []string{"cp", "-r", "--map-uid=a:b", url + "src", url + "dst"}, []string{"sync", "--map-uid=1:2", "--map-uid=1:3", url + "src", url + "dst"})
	b.untouched("--max-delete", []string{"sync", "--delete", "--max-delete=-1", url + "src", url + "dst"})
	b.untouched("--max-rate", []string{"cp", "-r", "--max-rate=fast", url + "src", url + "dst"})
}

// TestBadRecords: what stands in for a job's files is no record, one of a later program, another job's, cut off, or damaged
// at its beginning. The job says which file, and touches nothing; put back, the record serves.
func TestBadRecords(t *testing.T) {
	chance := rand.New(rand.NewPCG(5, 6))
	t.Parallel()
	for _, verb := range [][]string{{"cp", "-r"}, {"sync", "--delete"}} {
		b := newBoxAlone(t)
		b.alike(b.path("src"), 20, 100)
		args := func(job, dst string) []string {
			return append(slices.Clone(verb), "--job", job, b.path("src"), b.path(dst))
		}
		b.must(0, args("j", "dst")...)
		b.must(0, args("other", "dst2")...)
		b.write(b.path("dst", "extra"), "extra")
		b.write(b.path("src", "more"), "more")
		at := func(job, name string) string { return b.path(".state", "nfsbox", "jobs", job, name) }
		for _, name := range []string{"job.json", "copied"} {
			good := b.text(at("j", name))
			bad := map[string]string{
				"nothing of ours": "#!/bin/sh\nrm -rf /\n" + good, "another job's": b.text(at("other", name)), "zeros": string(make([]byte, len(good))),
			}
			if name == "copied" {
				for i := range 8 { // its beginning says what it is, and of which job
					text := []byte(good)
					text[chance.IntN(40)] ^= 1 << chance.IntN(8)
					bad[fmt.Sprint("a bit of it, ", i)] = string(text)
				}
			} else {
				bad["cut off"], bad["nothing"] = good[:len(good)/3], ""
				bad["a number for a text"] = strings.Replace(good, `"itself"`, "7", 1)
				bad["a command that there is not"] = strings.Replace(good, `"command": "`, `"command": "rm`, 1)
			}
			for what, text := range bad {
				b.no(os.WriteFile(at("j", name), []byte(text), 0o600))
				t.Logf("%s, %s: %s", verb[0], name, what)
				why := name
				if what == "another job's" || what == "a command that there is not" {
					why = "the job j copies "
				}
				b.untouched(why, args("j", "dst"))
			}
			b.no(os.WriteFile(at("j", name), []byte(good), 0o600))
		}
		b.must(0, args("j", "dst")...)
	}
}
