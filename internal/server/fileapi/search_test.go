package fileapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// search is all that a search has told: a line for each line, file and failure, and the trailer.
func search(ctx context.Context, c pb.FileServiceClient, q *pb.SearchRequest) (told []string, trailer *pb.SearchTrailer, err error) {
	stream, err := c.Search(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	for stream.Receive() {
		if trailer != nil {
			return nil, nil, errors.New("there is more behind the trailer")
		}
		switch p := stream.Msg().GetPart().(type) {
		case *pb.SearchResponse_Lines:
			for _, l := range p.Lines.GetLines() {
				mark := ":"
				if l.GetContext() {
					mark = "-"
				}
				cut := ""
				if l.GetSize() > 0 {
					cut = fmt.Sprintf(" of %d", l.GetSize())
				}
				told = append(told, fmt.Sprintf("%s%s%d@%d%s%q%s", p.Lines.GetPath()+string(p.Lines.GetRawPath()), mark, l.GetNumber(), l.GetOffset(), mark, l.GetText()+string(l.GetRawText()), cut))
			}
		case *pb.SearchResponse_File:
			binary := ""
			if p.File.GetBinary() {
				binary = " binary"
			}
			told = append(told, fmt.Sprintf("%s has %d%s", p.File.GetPath()+string(p.File.GetRawPath()), p.File.GetMatches(), binary))
		case *pb.SearchResponse_Failure:
			told = append(told, fmt.Sprintf("%s: %s %s", p.Failure.GetPath()+string(p.Failure.GetRawPath()), p.Failure.GetCode(), p.Failure.GetDetail().GetName()))
		case *pb.SearchResponse_Trailer:
			trailer = p.Trailer
		}
	}
	return told, trailer, errors.Join(stream.Err(), stream.Close())
}

// among asks for a search below a directory.
func among(path string, patterns ...string) *pb.SearchRequest {
	return &pb.SearchRequest{File: &pb.SearchRequest_Path{Path: path}, Recursive: true, Patterns: patterns}
}

// with changes a request.
func with(q *pb.SearchRequest, change func(*pb.SearchRequest)) *pb.SearchRequest {
	change(q)
	return q
}

// grove makes a tree with all kinds of things.
func grove(r *rig) {
	r.make("/t", aDir, "")
	r.make("/t/a.txt", aFile, "one\ntwo milk\nthree\nMilk\nmilky\r\n")
	r.make("/t/b.log", aFile, "milk")
	r.make("/t/bin", aFile, "milk\n\x00\nmilk again\n")
	r.make("/t/empty", aFile, "")
	r.make("/t/sub", aDir, "")
	r.make("/t/sub/\xff", aFile, "milk \xfe\nno\n")
	r.make("/t/sub/long", aFile, "x\n"+strings.Repeat("é", 20_000)+"milk\n"+strings.Repeat("y", searchLine+1)+"milk\nmilk\n")
	r.make("/t/.snapshot", aDir, "")
	r.make("/t/.snapshot/old", aFile, "milk\n")
	r.make("/t/"+tempPrefix+"1", aFile, "milk\n")
	r.make("/outside", aFile, "milk outside\n")
	r.make("/t/link", aLink("/outside"), "")
	r.make("/t/up", aLink(".."), "")
	r.make("/t/pipe", vfs.CreateHow{Type: vfs.TypeFIFO}, "")
	r.make("/to", aLink("/t"), "")
}

// TestSearch finds the lines that grep would, in every encoding.
func TestSearch(t *testing.T) {
	onEvery(t, func(t *testing.T, fs vfs.FS) {
		r := newRig(t, fs, nil)
		grove(r)
		long := strings.Repeat("é", searchShown/2)
		for what, c := range map[string]struct {
			q    *pb.SearchRequest
			want []string
			end  pb.SearchEnd // 0: complete
		}{
			"a tree": {among("/t", "milk"), []string{
				`/t/a.txt:2@4:"two milk"`, `/t/a.txt:5@24:"milky\r"`, "/t/a.txt has 2", `/t/b.log:1@0:"milk"`, "/t/b.log has 1", `/t/bin has 1 binary`,
				"/t/sub/\xff:1@0:\"milk \\xfe\"", "/t/sub/\xff has 1", `/t/sub/long:2@2:"` + long + `" of 40004`, fmt.Sprintf(`/t/sub/long:4@%d:"milk"`, 2+40005+searchLine+6), "/t/sub/long has 2", "/t/sub/long: out_of_range ",
			}, 0},
			"one file":       {with(among("/t/b.log", "milk"), func(q *pb.SearchRequest) { q.Recursive = false }), []string{`/t/b.log:1@0:"milk"`, "/t/b.log has 1"}, 0},
			"by a link":      {among("/to/", "^one$"), []string{`/to/a.txt:1@0:"one"`, "/to/a.txt has 1", "/to/sub/long: out_of_range "}, 0},
			"names of links": {among("/t", "outside"), []string{"/t/sub/long: out_of_range "}, 0},
			"texts":          {with(among("/t", "^one", "."), func(q *pb.SearchRequest) { q.Fixed = true }), []string{"/t/sub/long: out_of_range "}, 0},
			"either case":    {with(among("/t/a.txt", "MILK$"), func(q *pb.SearchRequest) { q.IgnoreCase = true }), []string{`/t/a.txt:2@4:"two milk"`, `/t/a.txt:4@19:"Milk"`, "/t/a.txt has 2"}, 0},
			"words":          {with(among("/t/a.txt", "milk"), func(q *pb.SearchRequest) { q.Word = true }), []string{`/t/a.txt:2@4:"two milk"`, "/t/a.txt has 1"}, 0},
			"whole lines":    {with(among("/t/a.txt", "[Mm]ilk"), func(q *pb.SearchRequest) { q.WholeLine = true }), []string{`/t/a.txt:4@19:"Milk"`, "/t/a.txt has 1"}, 0},
			"others":         {with(among("/t/a.txt", "ilk"), func(q *pb.SearchRequest) { q.Invert = true }), []string{`/t/a.txt:1@0:"one"`, `/t/a.txt:3@13:"three"`, "/t/a.txt has 2"}, 0},
			"bytes":          {with(among("/t/sub"), func(q *pb.SearchRequest) { q.RawPatterns = [][]byte{{0xfe}} }), []string{"/t/sub/\xff:1@0:\"milk \\xfe\"", "/t/sub/\xff has 1", "/t/sub/long: out_of_range "}, 0},
			"a raw path":     {&pb.SearchRequest{File: &pb.SearchRequest_RawPath{RawPath: []byte("/t/sub/\xff")}, Patterns: []string{"no"}}, []string{"/t/sub/\xff:2@7:\"no\"", "/t/sub/\xff has 1"}, 0},
			"counts":         {with(among("/t", "milk"), func(q *pb.SearchRequest) { q.Show = pb.SearchShow_SEARCH_SHOW_COUNTS }), []string{"/t/a.txt has 2", "/t/b.log has 1", "/t/bin has 2 binary", "/t/sub/\xff has 1", "/t/sub/long has 2", "/t/sub/long: out_of_range "}, 0},
			"names":          {with(among("/t", "milk"), func(q *pb.SearchRequest) { q.Show = pb.SearchShow_SEARCH_SHOW_NAMES }), []string{"/t/a.txt has 1", "/t/b.log has 1", "/t/bin has 1 binary", "/t/sub/\xff has 1", "/t/sub/long has 1"}, 0},
			"binary as text": {with(among("/t/bin", "milk|^.$"), func(q *pb.SearchRequest) { q.Binary = pb.SearchBinary_SEARCH_BINARY_TEXT }), []string{`/t/bin:1@0:"milk"`, `/t/bin:2@5:"\x00"`, `/t/bin:3@7:"milk again"`, "/t/bin has 3"}, 0},
			"no binary":      {with(among("/t/bin", "milk"), func(q *pb.SearchRequest) { q.Binary = pb.SearchBinary_SEARCH_BINARY_SKIP }), nil, 0},
			"snapshots":      {among("/t/.snapshot", "milk"), []string{`/t/.snapshot/old:1@0:"milk"`, "/t/.snapshot/old has 1"}, 0},
			"snapshots below": {with(among("/t", "^milk$"), func(q *pb.SearchRequest) {
				q.Snapshots = true
				q.Rules = []*pb.SearchRule{{Pattern: "/[ab]*"}, {Pattern: "sub"}}
			}), []string{`/t/.snapshot/old:1@0:"milk"`, "/t/.snapshot/old has 1"}, 0},
			"included": {with(among("/t", "milk"), func(q *pb.SearchRequest) { q.Rules = []*pb.SearchRule{{Include: true, Pattern: "*.log"}} }), []string{`/t/b.log:1@0:"milk"`, "/t/b.log has 1"}, 0},
			"excluded": {with(among("/t", "milk"), func(q *pb.SearchRequest) {
				q.Rules = []*pb.SearchRule{{Pattern: "*.*"}, {Pattern: "sub/"}, {RawPattern: []byte("b*")}}
			}), nil, 0},
			"lines beside":   {with(among("/t/a.txt", "three"), func(q *pb.SearchRequest) { q.Before, q.After = 1, 1 }), []string{`/t/a.txt-2@4-"two milk"`, `/t/a.txt:3@13:"three"`, `/t/a.txt-4@19-"Milk"`, "/t/a.txt has 1"}, 0},
			"a shorter line": {with(among("/t/a.txt", "three"), func(q *pb.SearchRequest) { q.MaxLineBytes = 2 }), []string{`/t/a.txt:3@13:"th" of 5`, "/t/a.txt has 1"}, 0},
			"one of a file":  {with(among("/t/a.txt", "milk"), func(q *pb.SearchRequest) { q.MaxMatchesPerFile = 1 }), []string{`/t/a.txt:2@4:"two milk"`, "/t/a.txt has 1"}, 0},
			"three in all": {with(among("/t", "milk"), func(q *pb.SearchRequest) {
				q.MaxMatches = 3
				q.Rules = []*pb.SearchRule{{Pattern: "bin"}, {Pattern: "sub"}}
			}), []string{`/t/a.txt:2@4:"two milk"`, `/t/a.txt:5@24:"milky\r"`, "/t/a.txt has 2", `/t/b.log:1@0:"milk"`, "/t/b.log has 1"}, pb.SearchEnd_SEARCH_END_MATCHES},
			"two in all":        {with(among("/t/a.txt", "."), func(q *pb.SearchRequest) { q.MaxMatches = 2 }), []string{`/t/a.txt:1@0:"one"`, `/t/a.txt:2@4:"two milk"`, "/t/a.txt has 2"}, pb.SearchEnd_SEARCH_END_MATCHES},
			"a bound of bytes":  {with(among("/t/a.txt", "."), func(q *pb.SearchRequest) { q.MaxBytes = 5 }), []string{`/t/a.txt:1@0:"one"`, "/t/a.txt has 1"}, pb.SearchEnd_SEARCH_END_BYTES},
			"nothing":           {among("/t/sub/\u00ff", "x"), nil, -1},
			"an empty pattern":  {among("/t/b.log", ""), []string{`/t/b.log:1@0:"milk"`, "/t/b.log has 1"}, 0},
			"escapes of bytes":  {among("/t/sub", `\xfe`), []string{"/t/sub/\xff:1@0:\"milk \\xfe\"", "/t/sub/\xff has 1", "/t/sub/long: out_of_range "}, 0},
			"lines in patterns": {among("/t/a.txt", "one\nthree"), []string{`/t/a.txt:1@0:"one"`, `/t/a.txt:3@13:"three"`, "/t/a.txt has 2"}, 0},
		} {
			for name, client := range r.client {
				got, trailer, err := search(t.Context(), client, c.q)
				if c.end < 0 {
					if connect.CodeOf(err) != connect.CodeNotFound {
						t.Errorf("%s, %s: %v", what, name, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s, %s: %v", what, name, err)
					continue
				}
				// A file system lists as it likes.
				got, want := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(c.want))
				if !slices.Equal(got, want) && !strings.Contains(what, "in all") || len(got) != len(want) {
					t.Errorf("%s, %s:\n%s\nwant\n%s", what, name, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if end := max(c.end, pb.SearchEnd_SEARCH_END_COMPLETE); trailer.GetEnd() != end {
					t.Errorf("%s, %s: it has ended with %v, want %v", what, name, trailer.GetEnd(), end)
				}
				checkCounts(t, what, got, trailer.GetCounts())
			}
		}
	})
}

// checkCounts holds a trailer against what has come.
func checkCounts(t *testing.T, what string, told []string, c *pb.SearchCounts) {
	t.Helper()
	var files, matches, failures uint64
	for _, line := range told {
		var n uint64
		if i := strings.LastIndex(line, " has "); i >= 0 {
			if _, err := fmt.Sscan(line[i+5:], &n); err != nil {
				t.Fatal(err)
			}
			files++
			matches += n
		} else if strings.Contains(line, ": out_of_range") {
			failures++
		}
	}
	if c.GetMatchedFiles() != files || c.GetMatches() != matches || c.GetFailures() != failures || c.GetFiles() < files {
		t.Errorf("%s: the trailer has %v; %d files, %d lines and %d failures have come", what, c, files, matches, failures)
	}
}

// TestSearchRefused has requests that make no sense, or ask for too much.
func TestSearchRefused(t *testing.T) {
	r := newRig(t, nil, nil)
	grove(r)
	for what, c := range map[string]struct {
		q    *pb.SearchRequest
		want connect.Code
	}{
		"no pattern":          {among("/t"), connect.CodeInvalidArgument},
		"a bad one":           {among("/t", "("), connect.CodeInvalidArgument},
		"many":                {among("/t", make([]string, maxSearchPatterns+1)...), connect.CodeInvalidArgument},
		"a long one":          {among("/t", strings.Repeat("x", searchProgram+1)), connect.CodeInvalidArgument},
		"one that explodes":   {among("/t", "((a{30}){30}){30}"), connect.CodeInvalidArgument},
		"a set that explodes": {among("/t", `(\pL{10}){20}`), connect.CodeInvalidArgument},
		"a long text":         {with(among("/t", strings.Repeat("x", searchProgram+1)), func(q *pb.SearchRequest) { q.Fixed = true }), connect.CodeInvalidArgument},
		"many rules":          {with(among("/t", "x"), func(q *pb.SearchRequest) { q.Rules = make([]*pb.SearchRule, maxSearchRules+1) }), connect.CodeInvalidArgument},
		"an empty rule":       {with(among("/t", "x"), func(q *pb.SearchRequest) { q.Rules = []*pb.SearchRule{{}} }), connect.CodeInvalidArgument},
		"a bad rule":          {with(among("/t", "x"), func(q *pb.SearchRequest) { q.Rules = []*pb.SearchRule{{Pattern: "["}} }), connect.CodeInvalidArgument},
		"long lines":          {with(among("/t", "x"), func(q *pb.SearchRequest) { q.MaxLineBytes = maxSearchShown + 1 }), connect.CodeInvalidArgument},
		"many lines before":   {with(among("/t", "x"), func(q *pb.SearchRequest) { q.Before = 1<<32 - 1 }), connect.CodeInvalidArgument},
		"many lines after":    {with(among("/t", "x"), func(q *pb.SearchRequest) { q.After = maxSearchContext + 1 }), connect.CodeInvalidArgument},
		"what to show":        {with(among("/t", "x"), func(q *pb.SearchRequest) { q.Show = 3 }), connect.CodeInvalidArgument},
		"what to do":          {with(among("/t", "x"), func(q *pb.SearchRequest) { q.Binary = -1 }), connect.CodeInvalidArgument},
		"no path":             {&pb.SearchRequest{Patterns: []string{"x"}}, connect.CodeInvalidArgument},
		"a way out":           {among("/t/../..", "x"), connect.CodeInvalidArgument},
		"a directory":         {with(among("/t", "x"), func(q *pb.SearchRequest) { q.Recursive = false }), connect.CodeFailedPrecondition},
		"a pipe":              {among("/t/pipe", "x"), connect.CodeFailedPrecondition},
		"a temporary":         {among("/t/"+tempPrefix+"1", "x"), connect.CodeInvalidArgument},
		"nothing there":       {among("/none", "x"), connect.CodeNotFound},
	} {
		told, _, err := search(t.Context(), r.client["protobuf"], c.q)
		if connect.CodeOf(err) != c.want || len(told) > 0 {
			t.Errorf("%s: %v, want %v; told is %q", what, err, c.want, told)
		}
	}
	off := newRig(t, nil, func(o *Options) { o.NoSearch = true })
	if _, _, err := search(t.Context(), off.client["grpc"], among("/", "x")); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a server that does not search: %v", err)
	}
}

// TestSearchDocs makes the search of docs/file-api.md, and gets what stands there.
func TestSearchDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/file-api.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)frame '(\{[^\n]*\})' \| stream Search.*?` + "```json\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the page has no search")
	}
	q := &pb.SearchRequest{}
	if err := protojson.Unmarshal(m[1], q); err != nil { // of unknown keys, too
		t.Fatal(err)
	}
	r := newRig(t, nil, nil)
	r.make("/notes", aDir, "")
	r.make("/notes/today.txt", aFile, "Buy milk.\n")
	r.make("/notes/large.bin", aFile, "milk\n")
	stream, err := r.client["json"].Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for stream.Receive() {
		text, err := protojson.Marshal(stream.Msg())
		if err == nil {
			err = json.Compact(&got, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || got.String() != string(m[2]) {
		t.Errorf("%v\n%s\nwant\n%s", err, got.String(), m[2])
	}
}

// FuzzSearchRequest judges requests: whatever comes is refused as such, or bounded.
func FuzzSearchRequest(f *testing.F) {
	for _, q := range []*pb.SearchRequest{
		among("/t", "milk", "[ab][^x]{14}z", `\<a\>`), {RawPatterns: [][]byte{{0xff}}, Fixed: true, Word: true, Before: 7},
		with(among("/", "(a|b)*c"), func(q *pb.SearchRequest) {
			q.IgnoreCase, q.Rules = true, []*pb.SearchRule{{Include: true, Pattern: "/**/[a-z]/***"}}
		}),
	} {
		f.Add(encode(q, false))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q := &pb.SearchRequest{}
		if proto.Unmarshal(b, q) != nil {
			return
		}
		const most = 1000
		p, err := planOf(q, most)
		if err != nil {
			if connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("%v", err)
			}
			return
		}
		if p.maxBytes == 0 || p.maxBytes > most || p.lineBytes <= 0 || p.lineBytes > maxSearchShown || p.search.MaxLine != searchLine ||
			max(p.search.Before, p.search.After) > maxSearchContext || p.memory < searchMemory || p.memory > searchMemory+(maxSearchRules+2)*(1024/64+1)*searchRuleWord {
			t.Errorf("%+v", p)
		}
	})
}
