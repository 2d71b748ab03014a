package fileapi

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// SearchOptions say what is searched for, and what is told of it. The zero value of each field but Patterns is what
// grep(1) does without the option.
type SearchOptions struct {
	// Patterns are expressions of RE2's syntax, over bytes. A line that one of them matches is selected. They are
	// at least one, 1000 at most.
	Patterns   []string
	Fixed      bool // they are texts, not expressions
	IgnoreCase bool // of the letters of ASCII
	Word       bool // a match has no letter, digit or underscore beside it
	WholeLine  bool // a match is a whole line
	Invert     bool // lines are selected that do not match

	// Recursive searches all files below a directory, and follows no link there. Of Rules the first decides
	// that matches; if the first one includes, files that none matches are left out. Snapshots takes
	// directories called .snapshot and the like as well. At most 100 rules.
	Recursive bool
	Rules     []SearchRule
	Snapshots bool

	Show   pb.SearchShow   // lines, or counts or names alone
	Binary pb.SearchBinary // what happens to files with a NUL

	MaxMatches        uint64 // end after so many selected lines; 0: do not
	MaxMatchesPerFile uint64 // read a file no further after so many; 0: do not
	MaxLineBytes      int    // of a line no more is sent, at most 128 KiB; 0: 16 KiB
	Before, After     int    // lines beside selected ones, at most 100
	MaxBytes          uint64 // end when so many bytes were read; 0: the server's bound
}

// SearchRule includes or excludes what a pattern of rsync(1) matches: "*.log", "cache/", "/etc/**".
type SearchRule struct {
	Include bool
	Pattern string
}

// Found is something that a search tells of a file: exactly one of Line, File and Err is set.
type Found struct {
	Path string // as bytes, which need not be UTF-8
	// Line is a line of the file. Those of one file come one after the other.
	Line *SearchLine
	// File says that a file with selected lines is done. It comes after its lines.
	File *SearchFile
	// Err is why the file or directory could not be searched, or not to its end. Its Op is "search".
	Err *Error
}

// SearchLine is a line of a file.
type SearchLine struct {
	Number  uint64 // from 1
	Offset  uint64 // of its first byte in the file
	Text    string // its bytes without the newline, or their beginning
	Size    uint64 // of the whole line, in bytes
	Context bool   // it is not selected, but beside a line that is
}

// SearchFile is what a file has.
type SearchFile struct {
	Matches uint64 // selected lines; with SEARCH_SHOW_NAMES 1
	Binary  bool   // it has a NUL, and what is selected from then on has not come
}

// Searched is a whole search.
type Searched struct {
	Files, Bytes          uint64 // that were read
	MatchedFiles, Matches uint64 // files with selected lines, and those lines
	Failures              uint64 // what could not be searched, or not to its end
	End                   pb.SearchEnd
}

// errCutOff says that a search came without its trailer.
var errCutOff = errors.New("the search was cut off before its end")

// Search finds lines of one file, or of all files below a directory that the caller can read, and calls each with what
// it finds, as it comes. An error of each ends it, and is returned in an [Error]. Searched is what was done until
// then, as far as the server has told. Without an error it is the whole search; but its End may be a bound, and
// there may be Failures.
func (c *Client) Search(ctx context.Context, path string, o SearchOptions, each func(Found) error) (Searched, error) {
	q, err := o.request()
	if err == nil {
		err = setName(q, path)
	}
	if err != nil {
		return Searched{}, failed("search", path, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a search that nobody reads must end
	stream, err := c.rpc.Search(ctx, q)
	if err != nil {
		return Searched{}, failed("search", path, err)
	}
	defer func() { cancel(); _ = stream.Close() }() // all that counts was received
	var done Searched
	for stream.Receive() {
		if err := done.take(stream.Msg(), each); err != nil {
			return done, failed("search", path, err)
		}
	}
	if err = stream.Err(); err == nil && done.End == 0 {
		err = errCutOff
	}
	return done, failed("search", path, err)
}

// request is the message for a server.
func (o *SearchOptions) request() (*pb.SearchRequest, error) {
	q := &pb.SearchRequest{
		Fixed: o.Fixed, IgnoreCase: o.IgnoreCase, Word: o.Word, WholeLine: o.WholeLine, Invert: o.Invert,
		Recursive: o.Recursive, Snapshots: o.Snapshots, Show: o.Show, Binary: o.Binary,
		MaxMatches: o.MaxMatches, MaxMatchesPerFile: o.MaxMatchesPerFile, MaxBytes: o.MaxBytes,
	}
	for _, n := range []struct {
		what string
		of   int
		to   *uint32
	}{{"bytes of a line", o.MaxLineBytes, &q.MaxLineBytes}, {"lines before", o.Before, &q.Before}, {"lines after", o.After, &q.After}} {
		if n.of < 0 || n.of > 1<<30 {
			return nil, fmt.Errorf("%d %s cannot be asked for", n.of, n.what)
		}
		*n.to = uint32(n.of)
	}
	for _, p := range o.Patterns {
		if utf8.ValidString(p) {
			q.Patterns = append(q.Patterns, p)
		} else {
			q.RawPatterns = append(q.RawPatterns, []byte(p))
		}
	}
	for _, r := range o.Rules {
		rule := &pb.SearchRule{Include: r.Include}
		if utf8.ValidString(r.Pattern) {
			rule.Pattern = r.Pattern
		} else {
			rule.RawPattern = []byte(r.Pattern)
		}
		q.Rules = append(q.Rules, rule)
	}
	return q, nil
}

// take takes a message of a search. An error of each it returns.
func (s *Searched) take(m *pb.SearchResponse, each func(Found) error) error {
	if s.End != 0 {
		return errors.New("there is more behind the trailer")
	}
	switch p := m.GetPart().(type) {
	case *pb.SearchResponse_Lines:
		path := p.Lines.GetPath() + string(p.Lines.GetRawPath())
		for _, l := range p.Lines.GetLines() {
			line := &SearchLine{Number: l.GetNumber(), Offset: l.GetOffset(), Text: l.GetText() + string(l.GetRawText()), Context: l.GetContext()}
			line.Size = max(l.GetSize(), uint64(len(line.Text)))
			if err := each(Found{Path: path, Line: line}); err != nil {
				return err
			}
		}
	case *pb.SearchResponse_File:
		return each(Found{Path: p.File.GetPath() + string(p.File.GetRawPath()), File: &SearchFile{Matches: p.File.GetMatches(), Binary: p.File.GetBinary()}})
	case *pb.SearchResponse_Failure:
		err := failureOf(p.Failure)
		return each(Found{Path: err.Name, Err: err})
	case *pb.SearchResponse_Progress:
		s.count(p.Progress)
	case *pb.SearchResponse_Trailer:
		s.count(p.Trailer.GetCounts())
		if s.End = p.Trailer.GetEnd(); s.End == 0 {
			return errors.New("the trailer does not say why the search has ended")
		}
	}
	return nil // what a later server says besides is passed over
}

func (s *Searched) count(c *pb.SearchCounts) {
	s.Files, s.Bytes, s.MatchedFiles, s.Matches, s.Failures = c.GetFiles(), c.GetBytes(), c.GetMatchedFiles(), c.GetMatches(), c.GetFailures()
}

// failureOf is the error of a file.
func failureOf(f *pb.SearchFailure) *Error {
	e := &Error{Op: "search", Name: f.GetPath() + string(f.GetRawPath()), Code: connect.CodeUnknown, Status: vfs.Status(f.GetDetail().GetStatus()), Err: errors.New(f.GetMessage())}
	var code connect.Code
	if code.UnmarshalText([]byte(f.GetCode())) == nil { // a code of a later server is unknown
		e.Code = code
	}
	return e
}
