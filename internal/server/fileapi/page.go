package fileapi

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/base/fault"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

//go:embed page.html
var pageText string

// pageForm escapes all names for where they stand.
var pageForm = template.Must(template.New("page").Parse(pageText))

// listing is a page of a directory, as JSON has it.
type listing struct {
	Path    string  `json:"path"`
	Entries []*item `json:"entries"`
	// Next is the query that asks for the next page; "": this one is the last.
	Next string `json:"next,omitempty"`
}

// item is an entry of a listing. What is not known is left out: a caller that may not look
// at an object learns its name alone.
type item struct {
	Name     string     `json:"name"`
	RawName  []byte     `json:"rawName,omitempty"` // base64, of a name that is not UTF-8
	Type     string     `json:"type,omitempty"`
	Size     *uint64    `json:"size,omitempty"`
	Mode     string     `json:"mode,omitempty"` // octal digits
	Modified *time.Time `json:"modified,omitempty"`
}

// fileTypes are the types of a listing's items.
var fileTypes = map[pb.FileType]string{
	pb.FileType_FILE_TYPE_REGULAR: "file", pb.FileType_FILE_TYPE_DIRECTORY: "directory", pb.FileType_FILE_TYPE_SYMLINK: "symlink",
	pb.FileType_FILE_TYPE_BLOCK_DEVICE: "device", pb.FileType_FILE_TYPE_CHARACTER_DEVICE: "device",
	pb.FileType_FILE_TYPE_SOCKET: "socket", pb.FileType_FILE_TYPE_FIFO: "fifo",
}

// directory answers with a page of a directory.
func (s service) directory(ctx context.Context, w http.ResponseWriter, r *http.Request, name string) error {
	q := r.URL.Query()
	page, err := s.List(ctx, &pb.ListRequest{
		File: &pb.ListRequest_RawPath{RawPath: []byte(name)}, WithInfo: true, PageToken: q.Get("page"),
	})
	if err != nil {
		return err
	}
	l := &listing{Path: asDirectory(name), Entries: make([]*item, 0, len(page.GetEntries()))}
	for _, e := range page.GetEntries() {
		l.Entries = append(l.Entries, itemOf(e))
	}
	if next := page.GetNextPageToken(); next != "" {
		l.Next = queryOf(q.Get("sort"), q.Get("order"), next)
	}
	return l.answer(w, r)
}

// asDirectory is a path with one slash at its end.
func asDirectory(path string) string { return strings.TrimRight(path, "/") + "/" }

func itemOf(e *pb.Entry) *item {
	i := &item{Name: e.GetName(), RawName: e.GetRawName()}
	if i.RawName != nil {
		i.Name = strings.ToValidUTF8(string(i.RawName), "\uFFFD")
	}
	if info := e.GetInfo(); info != nil {
		i.Type, i.Mode = fileTypes[info.GetType()], fmt.Sprintf("%04o", info.GetMode())
		if i.Type == "file" {
			i.Size = new(info.GetSize())
		}
		if t := info.GetMtime(); t != nil {
			i.Modified = new(t.AsTime())
		}
	}
	return i
}

// listExports answers with the first parts, below dir, of the paths of those exports that
// the caller may use. It is vfs.ErrNoEnt if there are none.
func (s service) listExports(ctx context.Context, w http.ResponseWriter, r *http.Request, dir string) error {
	l := &listing{Path: asDirectory(dir)}
	q := requestOf(ctx)
	view := s.view(q.who, q.remote)
	for _, name := range below(s.o.Table.Exports(), l.Path) {
		if _, _, err := view.Mount(ctx, name.path); err == nil {
			l.Entries = append(l.Entries, &item{Name: name.part, Type: "directory"})
		}
	}
	l.Entries = slices.CompactFunc(l.Entries, func(a, b *item) bool { return a.Name == b.Name })
	if len(l.Entries) == 0 {
		return vfs.ErrNoEnt
	}
	return l.answer(w, r)
}

// exportName is the path of an export, and its first part below some directory.
type exportName struct{ path, part string }

// below returns the exports whose paths begin with dir, sorted.
func below(exports []export.Export, dir string) (names []exportName) {
	for i := range exports {
		if rest, ok := strings.CutPrefix(exports[i].Path, dir); ok && rest != "" {
			part, _, _ := strings.Cut(rest, "/")
			names = append(names, exportName{exports[i].Path, part})
		}
	}
	slices.SortFunc(names, func(a, b exportName) int { return strings.Compare(a.part, b.part) })
	return names
}

// answer sends a listing as the client prefers it: a page to browsers, else JSON.
func (l *listing) answer(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	l.sort(q.Get("sort"), q.Get("order") == "desc")
	h := w.Header()
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Vary", "Accept")
	if accepts(r.Header, "application/json", "text/html") == "application/json" {
		body, err := json.Marshal(l)
		if err != nil {
			return err
		}
		return whole(w, r, "application/json", append(fault.CleanJSON(body), '\n'))
	}
	if !strings.HasSuffix(r.URL.Path, "/") {
		// The page's links go on from a slash. The address is relative, so that no path can
		// lead to another host.
		part := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		to := url.URL{Path: "./" + part + "/", RawQuery: r.URL.RawQuery}
		h.Set("Location", to.String())
		w.WriteHeader(http.StatusTemporaryRedirect)
		return nil
	}
	var b strings.Builder
	if err := pageForm.Execute(&b, l.view(q)); err != nil {
		return err
	}
	return whole(w, r, "text/html; charset=utf-8", []byte(b.String()))
}

// whole answers with a body. If that fails, the client is gone.
func whole(w http.ResponseWriter, r *http.Request, kind string, body []byte) error {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
	return nil
}

// sort sorts the entries: directories first, then by name, size or time.
func (l *listing) sort(by string, descending bool) {
	slices.SortFunc(l.Entries, func(a, b *item) int {
		order := 0
		switch by {
		case "size":
			order = cmp.Compare(value(a.Size), value(b.Size))
		case "modified":
			order = value(a.Modified).Compare(value(b.Modified))
		}
		order = cmp.Or(order, strings.Compare(a.Name, b.Name))
		if descending {
			order = -order
		}
		return cmp.Or(-cmp.Compare(isDirectory(a), isDirectory(b)), order)
	})
}

// value is what p points to, or zero.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func isDirectory(i *item) int {
	if i.Type == "directory" {
		return 1
	}
	return 0
}

// queryOf is a query for a page of a listing. What is the default is left out.
func queryOf(sort, order, page string) string {
	q := url.Values{}
	for name, v := range map[string]string{"sort": sort, "order": order, "page": page} {
		if v != "" {
			q.Set(name, v)
		}
	}
	return "?" + q.Encode()
}

// view is what the page shows.
func (l *listing) view(q url.Values) any {
	type link struct{ Text, To, Mark string }
	type row struct{ Name, To, Type, Size, Modified string }
	var v struct {
		Path, Next, First string
		Crumbs, Columns   []link
		Rows              []row
	}
	v.Path, v.Next = strings.ToValidUTF8(l.Path, "\uFFFD"), l.Next
	if q.Get("page") != "" {
		v.First = queryOf(q.Get("sort"), q.Get("order"), "")
	}
	parts := strings.FieldsFunc(l.Path, func(c rune) bool { return c == '/' })
	for i, part := range append([]string{"files"}, parts...) {
		v.Crumbs = append(v.Crumbs, link{strings.ToValidUTF8(part, "\uFFFD"), cmp.Or(strings.Repeat("../", len(parts)-i), "./"), ""})
	}
	sort, order := cmp.Or(q.Get("sort"), "name"), q.Get("order")
	for _, by := range []string{"name", "size", "modified"} {
		c := link{by, queryOf(by, "", q.Get("page")), ""}
		if by == sort {
			if c.Mark = "\u2191"; order == "desc" {
				c.Mark = "\u2193"
			} else {
				c.To = queryOf(by, "desc", q.Get("page"))
			}
		}
		v.Columns = append(v.Columns, c)
	}
	for _, e := range l.Entries {
		name := e.Name
		if e.RawName != nil {
			name = string(e.RawName)
		}
		x := row{Name: e.Name, To: "./" + url.PathEscape(name), Type: e.Type}
		if e.Type == "directory" {
			x.Name, x.To = x.Name+"/", x.To+"/"
		}
		if e.Size != nil {
			x.Size = human(*e.Size)
		}
		if e.Modified != nil {
			x.Modified = e.Modified.UTC().Format("2006-01-02 15:04")
		}
		v.Rows = append(v.Rows, x)
	}
	return &v
}

// human is a size as people read it: 999 B, 1.5 KiB, 27 MiB.
func human(n uint64) string {
	if n < 1<<10 {
		return strconv.FormatUint(n, 10) + " B"
	}
	f, units := float64(n)/(1<<10), "KMGTPE"
	for f >= 1023.5 {
		f, units = f/(1<<10), units[1:]
	}
	if f < 9.95 {
		return fmt.Sprintf("%.1f %ciB", f, units[0])
	}
	return fmt.Sprintf("%.0f %ciB", f, units[0])
}
