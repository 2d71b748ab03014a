package fakes3

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// What every server here has.
const (
	Bucket = "bucket"
	Region = "us-east-1"
	Key    = "fakes3-key"
	Secret = "fakes3-secret" // which no message may show
)

const (
	maxBody   = 128 << 20        // bytes of a PUT; more is EntityTooLarge
	maxSkew   = 15 * time.Minute // as S3 has it
	pageSize  = 1000
	isoFormat = "20060102T150405Z"
)

// Hook answers a request in place of the server, and is then true.
type Hook func(w http.ResponseWriter, r *http.Request) bool

// Faults are how many of a thousand requests have each fault, and what the server does wrong each time. The
// zero value has none.
type Faults struct {
	SlowDown int // 503
	Dropped  int // the connection ends, and nothing was done
	Lost     int // the connection ends, and it was done
	Cut      int // the connection ends in the middle of the answer
	Twice    int // the request is executed a second time, and that answer is sent

	Page   int           // most names of a page of a listing; 0 is as many as S3 has
	LieSum bool          // the checksum that is answered is another one
	Forget bool          // If-None-Match is without effect
	Skew   time.Duration // how far the server's clock is ahead
	Hook   Hook
}

// Server is the server.
type Server struct {
	URL string // http://127.0.0.1:PORT

	mu      sync.Mutex
	active  int        // requests
	idle    *sync.Cond // there are none
	faults  Faults
	rng     *rand.Rand
	calls   map[string]int
	objects map[string]*stored
	names   []string           // of objects, in order; nil: they have changed
	uploads map[string]*upload // by id
}

// stored is an object; it is not changed.
type stored struct {
	content []byte
	sum     string // base64; "" if the client sent none
	tag     string // the ETag, if it is not made of the content
	meta    http.Header
	mod     time.Time
}

// Start starts a server that ends with the test. The seed decides which requests have a fault.
func Start(t testing.TB, seed uint64, f Faults) *Server {
	s, end := Run(seed, f)
	t.Cleanup(end)
	return s
}

// Run is Start without a test: the caller ends the server.
func Run(seed uint64, f Faults) (s *Server, end func()) {
	s = &Server{faults: f, rng: rand.New(rand.NewPCG(seed, 1)), calls: make(map[string]int), objects: make(map[string]*stored), uploads: make(map[string]*upload)}
	s.idle = sync.NewCond(&s.mu)
	h := httptest.NewServer(s)
	s.URL = h.URL
	return s, h.Close
}

// Setenv has commands find this server's credentials, and no others.
func Setenv(t *testing.T) {
	for name, value := range Environment(t.TempDir()) {
		t.Setenv(name, value)
	}
}

// Environment is what has commands find this server's credentials, and no others. home is a directory without any.
func Environment(home string) map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": Key, "AWS_SECRET_ACCESS_KEY": Secret, "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "",
		"AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_SHARED_CREDENTIALS_FILE": home + "/credentials", "AWS_CONFIG_FILE": home + "/config",
	}
}

// Set changes the faults.
func (s *Server) Set(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Calls is how many requests came of a method; those for listings are "LIST", for parts of uploads "PART", and for copies "COPY".
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Settle waits until no request is under way, also of clients that have left. What such a client has sent may still come behind it.
func (s *Server) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.active > 0 {
		s.idle.Wait()
	}
}

// begin counts a request as under way until end is called.
func (s *Server) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.active--; s.active == 0 {
			s.idle.Broadcast()
		}
	}
}

// Names are those of all objects, in order.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Plant puts an object as another program would.
func (s *Server) Plant(name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(name, &stored{content: content, mod: time.Now()})
}

// Change has f change the content of an object, as a bad disk would: its checksum stays. It reports whether there
// is such an object.
func (s *Server) Change(name string, f func([]byte) []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[name]
	if o == nil {
		return false
	}
	changed := *o
	changed.content = f(bytes.Clone(o.content))
	s.keep(name, &changed)
	return true
}

// reply is an answer before it is sent.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// ServeHTTP answers a request, as well as the faults allow.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.begin()()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client has left
	}
	f, hit := s.roll(r)
	if f.Hook != nil && f.Hook(w, r) {
		return
	}
	switch {
	case hit(f.SlowDown):
		failure(http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.").send(w, r, false)
		return
	case hit(f.Dropped):
		panic(http.ErrAbortHandler)
	}
	a := s.answer(r, body, &f)
	if hit(f.Twice) {
		a = s.answer(r, body, &f)
	}
	if hit(f.Lost) {
		panic(http.ErrAbortHandler)
	}
	a.header.Set("Date", time.Now().Add(f.Skew).UTC().Format(http.TimeFormat))
	a.send(w, r, hit(f.Cut))
}

// roll counts a request and decides its faults.
func (s *Server) roll(r *http.Request) (Faults, func(perMille int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[callOf(r)]++
	dice := rand.New(rand.NewPCG(s.rng.Uint64(), 2))
	return s.faults, func(perMille int) bool { return perMille > 0 && dice.IntN(1000) < perMille }
}

// callOf is what a request counts as.
func callOf(r *http.Request) string {
	switch {
	case isList(r):
		return "LIST"
	case r.Method == http.MethodPut && r.URL.Query().Has("partNumber"):
		return "PART"
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return "COPY"
	}
	return r.Method
}

func (a reply) send(w http.ResponseWriter, r *http.Request, cut bool) {
	maps.Copy(w.Header(), a.header)
	if r.Method == http.MethodHead {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if cut && len(a.body) > 0 {
		_, _ = w.Write(a.body[:len(a.body)/2]) // the client may have left
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(a.body)
}

// answer executes a request.
func (s *Server) answer(r *http.Request, body []byte, f *Faults) reply {
	if bad := admit(r, body, f); bad != nil {
		return *bad
	}
	bucket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if bucket != Bucket {
		return failure(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isList(r):
		return s.list(r.URL.Query(), f)
	case name == "":
		return failure(http.StatusNotImplemented, "NotImplemented", "fakes3 has no such request")
	case r.URL.Query().Has("uploads"), r.URL.Query().Has("uploadId"):
		return s.inParts(r, name, body, f)
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return s.copy(r, name, f)
	case r.Method == http.MethodPut:
		return s.put(r, name, body, f)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return s.get(r, name, f)
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		s.names = nil
		return reply{http.StatusNoContent, http.Header{}, nil}
	}
	return failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
}

// admit is what is wrong with a request's signature; nil if it may pass.
func admit(r *http.Request, body []byte, f *Faults) *reply {
	refuse := func(code, text string) *reply {
		a := failure(http.StatusForbidden, code, text)
		return &a
	}
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=")
	id, _, _ := strings.Cut(auth, "/")
	switch {
	case !ok || !strings.Contains(auth, "SignedHeaders=") || !strings.Contains(auth, "Signature="):
		return refuse("AccessDenied", "Access Denied.")
	case id != Key:
		return refuse("InvalidAccessKeyId", "The AWS Access Key Id "+id+" does not exist in our records.")
	}
	at, err := time.Parse(isoFormat, r.Header.Get("X-Amz-Date"))
	if ahead := time.Now().Add(f.Skew).Sub(at); err != nil || ahead.Abs() > maxSkew {
		return refuse("RequestTimeTooSkewed", "The difference between the request time and the server's time is too large.")
	}
	if sum := sha256.Sum256(body); r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]) {
		a := failure(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.")
		return &a
	}
	return nil
}

func (s *Server) put(r *http.Request, name string, body []byte, f *Faults) reply {
	if r.Header.Get("If-None-Match") == "*" && !f.Forget && s.objects[name] != nil {
		return failure(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	sum := sha256.Sum256(body)
	text := base64.StdEncoding.EncodeToString(sum[:])
	if sent := r.Header.Get("X-Amz-Checksum-Sha256"); sent != "" && sent != text {
		return failure(http.StatusBadRequest, "BadDigest", "The SHA256 you specified did not match the calculated checksum.")
	}
	o := &stored{content: body, sum: text, meta: described(r), mod: time.Now().Add(f.Skew)}
	o.tag = o.etag()
	s.keep(name, o)
	h := http.Header{"Etag": {o.etag()}}
	o.checksum(h, f)
	return reply{http.StatusOK, h, nil}
}

// keep keeps an object. s.mu is held.
func (s *Server) keep(name string, o *stored) {
	if s.objects[name] == nil {
		s.names = nil
	}
	s.objects[name] = o
}

// described is what a request says of an object.
func described(r *http.Request) http.Header {
	meta := http.Header{}
	for k, v := range r.Header {
		if strings.HasPrefix(k, "X-Amz-Meta-") || k == "Content-Type" || k == "Cache-Control" {
			meta[k] = v
		}
	}
	return meta
}

func (o *stored) etag() string {
	if o.tag != "" {
		return o.tag
	}
	sum := sha256.Sum256(o.content)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

func (o *stored) checksum(h http.Header, f *Faults) {
	if f.LieSum {
		sum := sha256.Sum256([]byte("a lie"))
		h.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(sum[:]))
	} else if o.sum != "" {
		h.Set("X-Amz-Checksum-Sha256", o.sum)
	}
}

func (s *Server) get(r *http.Request, name string, f *Faults) reply {
	o := s.objects[name]
	if o == nil {
		return failure(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	if match := r.Header.Get("If-Match"); match != "" && match != o.etag() {
		return failure(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	h := http.Header{"Etag": {o.etag()}, "Last-Modified": {o.mod.UTC().Format(http.TimeFormat)}, "Content-Type": {"application/octet-stream"}}
	maps.Copy(h, o.meta)
	size := int64(len(o.content))
	ask := r.Header.Get("Range")
	if ask == "" {
		if r.Header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
			o.checksum(h, f)
		}
		h.Set("Content-Length", strconv.FormatInt(size, 10))
		return reply{http.StatusOK, h, o.content}
	}
	first, last, _ := strings.Cut(strings.TrimPrefix(ask, "bytes="), "-")
	a, err := strconv.ParseInt(first, 10, 64)
	b := size - 1
	if err == nil && last != "" {
		b, err = strconv.ParseInt(last, 10, 64)
		b = min(b, size-1)
	}
	if err != nil || a >= size || b < a {
		return failure(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable")
	}
	h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", a, b, size))
	return reply{http.StatusPartialContent, h, o.content[a : b+1]}
}

func failure(status int, code, text string) reply {
	return document(status, struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: text})
}

func document(status int, v any) reply {
	b, err := xml.Marshal(v)
	if err != nil {
		panic(err) // of types of this file
	}
	return reply{status, http.Header{"Content-Type": {"application/xml"}}, append([]byte(xml.Header), b...)}
}
