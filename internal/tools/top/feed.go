package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/view"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// ErrUsage marks an address that is not valid. ErrUnreachable marks a server that does not
// answer, or not with a Frame.
var (
	ErrUsage       = errors.New("not the address of a view")
	ErrUnreachable = errors.New("no figures")
)

// Feed fetches Frames from one server. Its methods are called by one goroutine.
type Feed struct {
	url     url.URL
	client  *http.Client
	started string // the server's start time, to which the points belong
	points  []view.Point
}

// NewFeed makes a Feed of the view at an address: "http://HOST:PORT/", or only HOST:PORT. client
// is http.DefaultClient if nil. Redirections are not followed.
func NewFeed(address string, client *http.Client) (*Feed, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: %s; it looks like http://HOST:PORT/", ErrUsage, progress.Clean(address))
	}
	if !strings.HasSuffix(u.Path, ".json") {
		u = u.JoinPath("view.json")
	}
	if client == nil {
		client = http.DefaultClient
	}
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Feed{url: *u, client: &c}, nil
}

// Next returns the server's last Frame, with all points that the Feed has kept.
func (f *Feed) Next(ctx context.Context) (*view.Frame, error) {
	after := uint64(0)
	if n := len(f.points); n > 0 {
		after = f.points[n-1].Seq
	}
	x, err := f.fetch(ctx, after)
	if err != nil {
		return nil, err
	}
	if started := x.Started.String(); started != f.started {
		f.started, f.points = started, nil
		if after > 0 { // it has restarted: ask for all its points
			if x, err = f.fetch(ctx, 0); err != nil {
				return nil, err
			}
		}
	}
	f.points = append(f.points, x.Points...)
	if old := len(f.points) - maxPoints; old > 0 {
		f.points = slices.Delete(f.points, 0, old)
	}
	x.Points = f.points
	return x, nil
}

// fetch asks for a Frame with the points after number after.
func (f *Feed) fetch(ctx context.Context, after uint64) (x *view.Frame, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	u := f.url
	u.RawQuery = "after=" + strconv.FormatUint(after, 10)
	fail := func(err error) (*view.Frame, error) {
		return nil, fmt.Errorf("%w from %s: %w", ErrUnreachable, f.url.Redacted(), err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fail(err)
	}
	res, err := f.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which fail adds
		}
		return fail(err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return fail(fmt.Errorf("it says %s; the live view is where nfsbox serve --http has it", progress.Clean(res.Status)))
	default:
		return fail(fmt.Errorf("it says %s", progress.Clean(res.Status)))
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxFrame+1))
	switch {
	case err != nil:
		return fail(err)
	case len(text) > maxFrame:
		return fail(fmt.Errorf("its answer is longer than %s", progress.Size(maxFrame)))
	}
	x = new(view.Frame)
	if err := json.Unmarshal(text, x); err != nil {
		return fail(fmt.Errorf("its answer is no figures: %w", err))
	}
	if x.Format != view.Format {
		return fail(fmt.Errorf("its figures are of format %d, and this program knows %d", x.Format, view.Format))
	}
	return x, nil
}
