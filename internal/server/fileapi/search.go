package fileapi

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/base/filter"
	"github.com/nfsbox/nfsbox/internal/base/lines"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// Search runs on the goroutine of its call alone: it has one file open at a time, and one place at the disk.
func (s service) Search(ctx context.Context, q *pb.SearchRequest, stream *connect.ServerStream[pb.SearchResponse]) error {
	if s.o.NoSearch {
		return refuse(connect.CodeUnimplemented, "this server does not search")
	}
	call := requestOf(ctx).call
	if err := call.beginSearch(); err != nil {
		return err
	}
	defer call.endSearch()
	plan, err := planOf(q, s.o.Limits.SearchBytes)
	if err != nil {
		return err
	}
	if err := call.hold(plan.memory); err != nil {
		return err
	}
	p, err := s.find(ctx, q)
	if err != nil {
		return err
	}
	h, attr, err := p.resolve(ctx, true)
	switch {
	case err != nil:
		return err
	case attr.Type == vfs.TypeDir && !q.GetRecursive():
		return vfs.ErrIsDir
	case attr.Type != vfs.TypeDir && attr.Type != vfs.TypeReg:
		return refuse(connect.CodeFailedPrecondition, "neither a regular file nor a directory")
	}
	r := s.newSearching(ctx, p, plan, stream.Send)
	defer r.count()
	if attr.Type == vfs.TypeDir {
		err = r.tree(ctx, requestOf(ctx).path, h)
	} else {
		err = r.file(ctx, requestOf(ctx).path, h, attr.Size)
	}
	if err != nil {
		return err
	}
	return r.end()
}

// searchPlan is a request that was found good, and is bounded.
type searchPlan struct {
	pattern    *lines.Pattern
	search     lines.Search
	filter     *filter.Filter
	show       pb.SearchShow
	maxMatches uint64 // 0: any number
	maxBytes   uint64
	lineBytes  int
	memory     int // of it, and of the search but for the listings, in bytes
}

// planOf judges a request. most bounds the bytes that are read.
func planOf(q *pb.SearchRequest, most uint64) (*searchPlan, error) {
	p := &searchPlan{show: q.GetShow(), maxMatches: q.GetMaxMatches(), maxBytes: most, lineBytes: searchShown, memory: searchMemory}
	if n := q.GetMaxBytes(); n > 0 {
		p.maxBytes = min(n, most)
	}
	if n := int(q.GetMaxLineBytes()); n > maxSearchShown {
		return nil, refuse(connect.CodeInvalidArgument, "of a line at most %d bytes are sent", maxSearchShown)
	} else if n > 0 {
		p.lineBytes = n
	}
	var err error
	if p.search, err = streamOf(q); err != nil {
		return nil, err
	}
	if p.pattern, err = patternOf(q); err != nil {
		return nil, err
	}
	p.search.MaxMatch = min(searchLine, searchWork/p.pattern.Size())
	rules, memory, err := rulesOf(q.GetRules())
	if err != nil {
		return nil, err
	}
	p.memory += memory
	if p.filter, err = filter.New(filter.Options{Rules: rules, Snapshots: q.GetSnapshots()}); err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "%w", err)
	}
	return p, nil
}

// streamOf is what is looked for in each file.
func streamOf(q *pb.SearchRequest) (lines.Search, error) {
	s := lines.Search{
		Invert: q.GetInvert(), Limit: q.GetMaxMatchesPerFile() > 0, Max: q.GetMaxMatchesPerFile(), MaxLine: searchLine,
		Before: int(min(q.GetBefore(), maxSearchContext+1)), After: int(min(q.GetAfter(), maxSearchContext+1)),
	}
	if max(s.Before, s.After) > maxSearchContext {
		return s, refuse(connect.CodeInvalidArgument, "at most %d lines are sent before and after another", maxSearchContext)
	}
	switch q.GetShow() {
	case pb.SearchShow_SEARCH_SHOW_UNSPECIFIED:
	case pb.SearchShow_SEARCH_SHOW_COUNTS:
		s.Quiet = true
	case pb.SearchShow_SEARCH_SHOW_NAMES:
		s.First = true
	default:
		return s, refuse(connect.CodeInvalidArgument, "%d is nothing to show", q.GetShow())
	}
	switch q.GetBinary() {
	case pb.SearchBinary_SEARCH_BINARY_UNSPECIFIED:
	case pb.SearchBinary_SEARCH_BINARY_TEXT:
		s.Text = true
	case pb.SearchBinary_SEARCH_BINARY_SKIP:
		s.Skip = true
	default:
		return s, refuse(connect.CodeInvalidArgument, "%d is no way to treat a binary file", q.GetBinary())
	}
	return s, nil
}

// patternOf compiles the patterns of a request.
func patternOf(q *pb.SearchRequest) (*lines.Pattern, error) {
	n := len(q.GetPatterns()) + len(q.GetRawPatterns())
	switch {
	case n == 0:
		return nil, refuse(connect.CodeInvalidArgument, "a pattern is missing")
	case n > maxSearchPatterns:
		return nil, refuse(connect.CodeInvalidArgument, "there are %d patterns, of at most %d", n, maxSearchPatterns)
	}
	all := append(make([]string, 0, n), q.GetPatterns()...)
	for _, raw := range q.GetRawPatterns() {
		all = append(all, string(raw))
	}
	p, err := lines.Compile(all, lines.Options{
		Fixed: q.GetFixed(), Fold: q.GetIgnoreCase(), Word: q.GetWord(), Whole: q.GetWholeLine(), MaxSize: searchProgram,
	})
	switch {
	case errors.Is(err, lines.ErrTooLarge):
		return nil, refuse(connect.CodeInvalidArgument, "%w: it may have about %d characters and sets", err, searchProgram)
	case err != nil:
		return nil, refuse(connect.CodeInvalidArgument, "%w", err)
	}
	return p, nil
}

// rulesOf are the rules of a request, and about the memory that they take.
func rulesOf(asked []*pb.SearchRule) (rules []filter.Rule, memory int, err error) {
	if len(asked) > maxSearchRules {
		return nil, 0, refuse(connect.CodeInvalidArgument, "there are %d rules, of at most %d", len(asked), maxSearchRules)
	}
	for _, a := range asked {
		pattern := a.GetPattern() + string(a.GetRawPattern())
		rules = append(rules, filter.Rule{Include: a.GetInclude(), Pattern: pattern, From: "rules"})
		memory += (len(pattern)/64 + 1) * searchRuleWord
	}
	if len(rules) > 0 && rules[0].Include { // as for grep
		rules = append(rules, filter.Rule{Include: true, Pattern: "*/"}, filter.Rule{Pattern: "*"})
		memory += 2 * searchRuleWord
	}
	return rules, memory, nil
}

// joined is the path of a name in a directory.
func joined(dir string, name []byte) string {
	var b strings.Builder
	b.Grow(len(dir) + 1 + len(name))
	b.WriteString(strings.TrimRight(dir, "/"))
	b.WriteByte('/')
	b.Write(name)
	return b.String()
}

// shownOf is a line as it is sent: at most so many bytes of it, and no part of a character.
func shownOf(l *lines.Line, most int) *pb.SearchLine {
	out := &pb.SearchLine{Number: l.Number, Offset: l.Offset, Context: l.Context}
	text := l.Text
	if len(text) > most {
		out.Size, text = uint64(len(text)), characters(text[:most])
	}
	out.Text, out.RawText = textOrRaw(string(text))
	return out
}

// characters is text without what is left of a last character, if that is UTF-8 and was cut.
func characters(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n:]; utf8.RuneStart(c[0]) {
			if !utf8.FullRune(c) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// textOrRaw is what may not be UTF-8, in two fields: a string cannot have it.
func textOrRaw(s string) (text string, raw []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}
