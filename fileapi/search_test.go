package fileapi_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/fileapi"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
)

// TestSearch finds lines in every encoding, whatever bytes names, patterns and lines have.
func TestSearch(t *testing.T) {
	url := serve(t)
	c, ctx := dial(t, url, fileapi.Options{}), t.Context()
	for name, text := range map[string]string{"/a": "one\ntwo\nthree\n", "/\xff": "two \xfe\n" + strings.Repeat("x", 50_000) + "two\n", "/none": "no\n"} {
		if _, err := c.Put(ctx, name, []byte(text), fileapi.UploadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, o := range map[string]fileapi.Options{"protobuf": {}, "JSON": {JSON: true}, "HTTP/2": {HTTP2: true}} {
		c := dial(t, url, o)
		var got []string
		done, err := c.Search(ctx, "/", fileapi.SearchOptions{Patterns: []string{"^two$", "\xfe", "xtwo"}, Recursive: true, After: 1, Rules: []fileapi.SearchRule{{Pattern: "\xfe*"}}},
			func(f fileapi.Found) error {
				switch {
				case f.Line != nil:
					got = append(got, fmt.Sprintf("%s:%d:%d:%t:%.10s:%d", f.Path, f.Line.Number, f.Line.Offset, f.Line.Context, f.Line.Text, f.Line.Size))
				case f.File != nil:
					got = append(got, fmt.Sprint(f.Path, " ", f.File.Matches))
				default:
					got = append(got, f.Err.Error())
				}
				return nil
			})
		slices.Sort(got)
		want := []string{"/a 1", "/a:2:4:false:two:3", "/a:3:8:true:three:5", "/\xff 2", "/\xff:1:0:false:two \xfe:5", "/\xff:2:6:false:xxxxxxxxxx:50003"}
		if err != nil || !slices.Equal(got, want) || done != (fileapi.Searched{Files: 3, Bytes: 14 + 6 + 50_004 + 3, MatchedFiles: 2, Matches: 3, End: pb.SearchEnd_SEARCH_END_COMPLETE}) {
			t.Errorf("%s: %+v, %v\n%q\nwant\n%q", name, done, err, got, want)
		}
	}
	enough := errors.New("enough")
	_, stopped := c.Search(ctx, "/", fileapi.SearchOptions{Patterns: []string{""}, Recursive: true}, func(fileapi.Found) error { return enough })
	_, none := c.Search(ctx, "/nothing", fileapi.SearchOptions{Patterns: []string{"x"}}, nil)
	_, bad := c.Search(ctx, "/a", fileapi.SearchOptions{Patterns: []string{"("}}, nil)
	_, negative := c.Search(ctx, "/a", fileapi.SearchOptions{Patterns: []string{"x"}, Before: -1}, nil)
	_, relative := c.Search(ctx, "a", fileapi.SearchOptions{Patterns: []string{"x"}}, nil)
	for _, c := range []struct {
		err  error
		is   error
		code connect.Code
	}{
		{stopped, enough, connect.CodeUnknown}, {none, fs.ErrNotExist, connect.CodeNotFound}, {bad, nil, connect.CodeInvalidArgument},
		{negative, nil, connect.CodeUnknown}, {relative, nil, connect.CodeUnknown},
	} {
		e, ok := errors.AsType[*fileapi.Error](c.err)
		if !ok || e.Op != "search" || e.Code != c.code || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("%v: want %v, %v", c.err, c.code, c.is)
		}
	}
}

// answers is a server whose searches answer so.
type answers struct {
	pb.UnimplementedFileServiceHandler
	parts []*pb.SearchResponse
	ended chan struct{}
}

func (a *answers) Search(ctx context.Context, _ *pb.SearchRequest, s *connect.ServerStream[pb.SearchResponse]) error {
	for _, p := range a.parts {
		if err := s.Send(p); err != nil {
			return err
		}
	}
	if a.ended != nil {
		<-ctx.Done()
		close(a.ended)
	}
	return nil
}

// TestSearchForeign: a search without its end, or with more than that, is an error, and what a later server
// says is passed over. One that the caller ends, ends on the server.
func TestSearchForeign(t *testing.T) {
	end := &pb.SearchResponse{Part: &pb.SearchResponse_Trailer{Trailer: &pb.SearchTrailer{Counts: &pb.SearchCounts{Failures: 1}, End: pb.SearchEnd_SEARCH_END_COMPLETE}}}
	odd := &pb.SearchResponse{Part: &pb.SearchResponse_Failure{Failure: &pb.SearchFailure{Path: "/x", Code: "tired", Message: "no"}}}
	lines := &pb.SearchResponse{Part: &pb.SearchResponse_Lines{Lines: &pb.SearchLines{Lines: []*pb.SearchLine{{}}}}}
	for what, c := range map[string]struct {
		parts []*pb.SearchResponse
		ok    bool
	}{
		"no end": {nil, false}, "cut off": {[]*pb.SearchResponse{lines}, false}, "more": {[]*pb.SearchResponse{end, lines}, false},
		"no reason": {[]*pb.SearchResponse{{Part: &pb.SearchResponse_Trailer{}}}, false}, "an end": {[]*pb.SearchResponse{end}, true},
		"later": {[]*pb.SearchResponse{{}, odd, end}, true},
	} {
		_, handler := pb.NewFileServiceHandler(&answers{parts: c.parts})
		s := httptest.NewServer(handler)
		done, err := dial(t, s.URL, fileapi.Options{}).Search(t.Context(), "/", fileapi.SearchOptions{Patterns: []string{"x"}}, func(f fileapi.Found) error {
			if f.Err != nil && (f.Err.Code != connect.CodeUnknown || f.Path != "/x") {
				t.Errorf("%s: %+v", what, f.Err)
			}
			return nil
		})
		if (err == nil) != c.ok || c.ok && done.Failures != 1 {
			t.Errorf("%s: %+v, %v", what, done, err)
		}
		s.Close()
	}
	a := &answers{parts: []*pb.SearchResponse{lines}, ended: make(chan struct{})}
	_, handler := pb.NewFileServiceHandler(a)
	s := httptest.NewServer(http.HandlerFunc(handler.ServeHTTP))
	defer s.Close()
	broken := errors.New("broken")
	if _, err := dial(t, s.URL, fileapi.Options{}).Search(t.Context(), "/", fileapi.SearchOptions{Patterns: []string{"x"}}, func(fileapi.Found) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	<-a.ended
}
