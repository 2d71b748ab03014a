package fileapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// allowed are the methods that a path answers to.
const allowed = "GET, HEAD, PUT, DELETE, OPTIONS"

// isCall reports whether a path is that of a call of the protocol. All other paths
// are those of files.
func isCall(path string) bool { return strings.HasPrefix(path, "/"+pb.FileServiceName+"/") }

// pathName is a request's path, as find takes it.
type pathName string

func (p pathName) GetPath() string  { return string(p) }
func (pathName) GetRawPath() []byte { return nil }

// files answers a request for a path by HTTP alone (RFC 9110).
func (s service) files(ctx context.Context, w *pacedWriter, r *http.Request) {
	q := requestOf(ctx)
	q.pacer.call = nil // the methods count the memory that they take
	// No page of another site may show or embed what is here, nor guess its type.
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache")
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// There may have been a length besides, by which a proxy has found another end of
		// this request (RFC 9112, section 6.1). net/http does not tell.
		h.Set("Connection", "close")
	}
	err := q.outcome(s.wire(s.file(ctx, w, r)))
	switch {
	case err == nil && q.pacer.status == http.StatusPreconditionFailed:
		q.code = Code(connect.CodeFailedPrecondition)
	case err == nil && q.pacer.status == http.StatusRequestedRangeNotSatisfiable:
		q.code = Code(connect.CodeOutOfRange)
	case err == nil:
	case q.pacer.began:
		// The client must not take what it has for all of it.
		panic(http.ErrAbortHandler)
	default:
		s.refused(w, r, err)
	}
}

// file makes the method's call. After an error it has written nothing, or a part.
func (s service) file(ctx context.Context, w *pacedWriter, r *http.Request) error {
	path, err := pathOf(r)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.getPath(ctx, w, r, path)
	case http.MethodPut:
		return s.putPath(ctx, w, r, path)
	case http.MethodDelete:
		return s.deletePath(ctx, w, r, path)
	case http.MethodOptions:
		w.Header().Set("Allow", allowed)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Allow", allowed)
	return withStatus(http.StatusMethodNotAllowed, connect.CodeUnimplemented, "files have the methods "+allowed)
}

// pathOf is the path of a request, decoded. An encoded slash is refused: no name has
// one, and a proxy may have judged the path as one that is not decoded.
func pathOf(r *http.Request) (string, error) {
	if r.URL.Opaque != "" { // "GET localhost:80" (RFC 9112, section 3.2)
		return "", refuse(connect.CodeInvalidArgument, "the request's target is no path")
	}
	if strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
		return "", refuse(connect.CodeInvalidArgument, "the path holds an encoded slash")
	}
	if r.URL.Path == "" || r.URL.Path == "*" && r.Method == http.MethodOptions {
		return "/", nil
	}
	return r.URL.Path, checkPath(r.URL.Path)
}

// statusError is an error with a status of HTTP's that its code does not tell.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

func withStatus(status int, code connect.Code, text string) error {
	return connect.NewError(code, &statusError{status, text})
}

// statuses are those of a file system's errors, and codeStatuses those of others. An
// error that is in neither is the server's own: 500.
var (
	statuses = map[vfs.Status]int{
		vfs.ErrIsDir: http.StatusConflict, vfs.ErrNotDir: http.StatusNotFound, vfs.ErrNotEmpty: http.StatusConflict,
		vfs.ErrNoSpace: http.StatusInsufficientStorage, vfs.ErrQuota: http.StatusInsufficientStorage,
		vfs.ErrMLink: http.StatusInsufficientStorage, vfs.ErrFBig: http.StatusRequestEntityTooLarge,
	}
	codeStatuses = map[connect.Code]int{
		connect.CodeInvalidArgument: http.StatusBadRequest, connect.CodeOutOfRange: http.StatusBadRequest,
		connect.CodeDataLoss: http.StatusBadRequest, connect.CodeFailedPrecondition: http.StatusConflict,
		connect.CodeNotFound: http.StatusNotFound, connect.CodeAlreadyExists: http.StatusConflict,
		connect.CodeAborted: http.StatusConflict, connect.CodePermissionDenied: http.StatusForbidden,
		connect.CodeUnauthenticated: http.StatusUnauthorized, connect.CodeResourceExhausted: http.StatusTooManyRequests,
		connect.CodeUnavailable: http.StatusServiceUnavailable, connect.CodeDeadlineExceeded: http.StatusGatewayTimeout,
		connect.CodeCanceled: http.StatusRequestTimeout, connect.CodeUnimplemented: http.StatusNotImplemented,
	}
)

// statusOf is the status of an error of the protocol.
func statusOf(q *request, err error) int {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	if q.pacer != nil && q.pacer.slow {
		return http.StatusRequestTimeout
	}
	if d, ok := errors.AsType[*denial](err); ok && d.why == TooLarge {
		return http.StatusRequestEntityTooLarge
	}
	status, _ := vfs.StatusOf(err)
	switch {
	case q.procedure.String() == "HTTP PUT" && (status == vfs.ErrNoEnt || status == vfs.ErrNotDir):
		return http.StatusConflict // it is the directory that is not there
	case statuses[status] != 0:
		return statuses[status]
	}
	if code := codeStatuses[connect.CodeOf(err)]; code != 0 {
		return code
	}
	return http.StatusInternalServerError
}

// refused answers with an error: text, or JSON where the client prefers that.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, err error) {
	q, _ := r.Context().Value(requestKey{}).(*request)
	if q == nil {
		q = &request{}
	}
	status, h := statusOf(q, err), w.Header()
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	if r.ProtoMajor == 1 && (status == http.StatusLengthRequired || r.Body != http.NoBody && (q.pacer == nil || !q.pacer.whole)) {
		h.Set("Connection", "close") // rather than to read what is not wanted, or take it for the next request
	}
	h.Del("Etag")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Vary", "Accept")
	said := tell(err)
	body := said.text()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if accepts(r.Header, "text/plain", "application/json") == "application/json" {
		body = said.json(connect.CodeOf(err))
		h.Set("Content-Type", "application/json")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // if this fails, the client is gone
	}
}

// accepts is the one of the offers that the request's Accept prefers (RFC 9110, section
// 12.5.1); of equal ones the first, and the first if it accepts none.
func accepts(h http.Header, offers ...string) string {
	best, most := offers[0], 0.0
	for _, offer := range offers {
		if q := quality(h.Values("Accept"), offer); q > most {
			best, most = offer, q
		}
	}
	return best
}

// quality is how much the fields of Accept want a type: the closest range counts.
func quality(fields []string, offer string) float64 {
	q, closest := 0.0, -1
	family, _, _ := strings.Cut(offer, "/")
	for _, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			kind, params, _ := strings.Cut(part, ";")
			near := -1
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case offer:
				near = 2
			case family + "/*":
				near = 1
			case "*/*":
				near = 0
			}
			if near > closest {
				q, closest = weight(params), near
			}
		}
	}
	return q
}

// weight is the q of a range's parameters: 1 if there is none.
func weight(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			// What is no number is 0: not wanted.
			q, _ := strconv.ParseFloat(value, 64)
			return q
		}
	}
	return 1
}
