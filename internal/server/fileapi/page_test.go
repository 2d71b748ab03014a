package fileapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestPage looks at what a browser gets of a directory, and at the same in JSON.
func TestPage(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/dir", aDir, "")
	for i, name := range []string{"b.txt", `<script>alert("1")</script>`, "a b&c?.txt", "javascript:alert(1)", "\xff.bin"} {
		r.make("/dir/"+strings.ReplaceAll(name, "/", "|"), aFile, strings.Repeat("x", 1+i*700))
	}
	r.make("/dir/sub", aDir, "")
	page := r.expect(200, "GET", "/dir/", "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	for _, want := range []string{`href="./sub/"`, `href="./b.txt"`, `href="./a%20b&amp;c%3F.txt"`, `href="./%FF.bin"`, `href="./javascript:alert%281%29"`, "1.4 KiB", `href="../"`, "prefers-color-scheme"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	if strings.Contains(page.body, "<script") || !strings.Contains(page.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("there is a script on the page, or may be")
	}
	if t.Failed() {
		t.Log(page.body)
	}
	for query, want := range map[string]string{
		"": "sub a b b.txt", "?order=desc": "sub b.txt a b", "?sort=size": "sub b.txt a b", "?sort=size&order=desc": "sub a b b.txt",
	} {
		var l listing
		if err := json.Unmarshal([]byte(r.expect(200, "GET", "/dir"+query, "").body), &l); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range l.Entries {
			if name, _, _ := strings.Cut(e.Name, "&"); name == "sub" || name == "a b" || name == "b.txt" {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want || len(l.Entries) != 6 || l.Path != "/dir/" {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	if a := r.expect(307, "GET", "/dir?sort=size", "", "Accept", "text/html"); a.Header.Get("Location") != "./dir/?sort=size" {
		t.Errorf("a browser is sent to %q", a.Header.Get("Location"))
	}
	if a := r.expect(307, "GET", "//dir", "", "Accept", "text/html"); a.Header.Get("Location") != "./dir/" {
		t.Errorf("a browser is sent to %q", a.Header.Get("Location"))
	}
	r.expect(201, "PUT", "/x.html", "<script>1</script>")
	if html := r.expect(200, "GET", "/x.html", ""); !strings.Contains(html.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a file may run in a browser: %q", html.Header)
	}
}

// TestPlainPages: a directory of any size comes in parts, each name in one of them.
func TestPlainPages(t *testing.T) {
	r := newRig(t, nil, nil)
	r.make("/dir", aDir, "")
	const n = 2*maxPage + 10
	for i := range n {
		r.make(fmt.Sprintf("/dir/%d", i), aFile, "")
	}
	seen := make(map[string]int)
	for query := "?sort=size"; query != ""; {
		var l listing
		if err := json.Unmarshal([]byte(r.expect(200, "GET", "/dir/"+query, "").body), &l); err != nil {
			t.Fatal(err)
		}
		page := r.expect(200, "GET", "/dir/"+query, "", "Accept", "text/html")
		if bytes.Count([]byte(page.body), []byte("<tr><td>")) != len(l.Entries) || strings.Contains(page.body, `rel="next"`) != (l.Next != "") {
			t.Errorf("the page has not what JSON has")
		}
		for _, e := range l.Entries {
			seen[e.Name]++
		}
		if len(l.Entries) > maxPage {
			t.Errorf("%d entries on a page", len(l.Entries))
		}
		query = l.Next
	}
	if len(seen) != n {
		t.Errorf("%d names, want %d", len(seen), n)
	}
	r.expect(400, "GET", "/dir/?page=x", "")
}

func TestHuman(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB", 1<<20 - 1: "1.0 MiB", 27 << 20: "27 MiB", 1 << 63: "8.0 EiB"} {
		if got := human(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestAccepts(t *testing.T) {
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/html": "text/html", "text/*;q=0.5": "text/html", "text/html;q=0": "application/json",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html", "application/json;q=0.5, text/html;q=0.4": "application/json",
		"image/png": "application/json", "text/html;q=x, */*;q=0.1": "application/json", ",;=": "application/json",
	} {
		if got := accepts(http.Header{"Accept": {accept}}, "application/json", "text/html"); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}

// TestPrintableJSON: names in JSON cannot steer a terminal, and are what they were.
func TestPrintableJSON(t *testing.T) {
	r := newRig(t, nil, nil)
	const odd = "a\u009b31m\u0085\u202eü<\U000e0001"
	r.make("/"+odd, aDir, "")
	r.make("/"+odd+"/"+odd, aFile, "")
	for _, body := range []string{
		r.expect(200, "GET", "/"+url.PathEscape(odd)+"/", "").body,
		r.expect(200, "POST", "/"+pb.FileServiceName+"/List", `{"path":"/`+odd+`"}`, "Content-Type", "application/json").body,
		r.expect(200, "POST", "/"+pb.FileServiceName+"/List", `{"path":"/`+odd+`"}`, "Content-Type", "application/json; charset=utf-8").body,
	} {
		var l listing
		if err := json.Unmarshal([]byte(body), &l); err != nil || len(l.Entries) != 1 || l.Entries[0].Name != odd {
			t.Errorf("%q: %v", body, err)
		}
		for _, c := range strings.TrimSuffix(body, "\n") {
			if !unicode.IsPrint(c) {
				t.Errorf("%q holds %U", body, c)
				break
			}
		}
	}
}
