package bucket

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/nfsbox/nfsbox/internal/base/wait"
	"github.com/nfsbox/nfsbox/internal/server/object"
)

const (
	// awsRegion is where signatures say they are if nothing else is known.
	awsRegion = "us-east-1"
	awsHost   = "amazonaws.com"

	// SumHeader has the SHA-256 of a body, which S3 compares.
	SumHeader = "X-Amz-Checksum-Sha256"
)

// Client asks about one bucket. Its methods may be called concurrently.
type Client struct {
	o        Options
	endpoint *url.URL // nil: AWS
	client   *http.Client
	creds    *credentials.Credentials
	keys     atomic.Pointer[credentials.Value] // that were used last, which no message shows
	answered atomic.Bool                       // the store has answered something
	silence  silence

	mu     sync.Mutex
	region string // as options, environment or the store said; "" is not known
}

// New makes a client. It looks for credentials, and asks the bucket nothing.
func New(ctx context.Context, o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"} {
		if o.Endpoint == "" {
			o.Endpoint = os.Getenv(name)
		}
	}
	endpoint, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("s3: AWS_ENDPOINT_URL: %w", err)
	}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if o.Region == "" {
			o.Region = os.Getenv(name)
		}
	}
	if err := checkRegion(o.Region); err != nil {
		return nil, fmt.Errorf("s3: AWS_REGION: %w", err)
	}
	if o.Pause == nil {
		o.Pause = wait.For
	}
	c := &Client{o: o, endpoint: endpoint, region: o.Region, creds: o.Credentials.of, client: newHTTP(), silence: silence{tell: o.Silent}}
	if c.creds == nil {
		if c.creds, err = findCredentials(ctx, c.client); err != nil {
			c.Close()
			return nil, fmt.Errorf("s3: %w", err)
		}
	}
	return c, nil
}

func newHTTP() *http.Client {
	return &http.Client{
		// A redirect would take signed requests to a place that was not named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSHandshakeTimeout:   dialTime,
			ResponseHeaderTimeout: headTime,
			MaxConnsPerHost:       maxConns,
			MaxIdleConnsPerHost:   maxIdle,
			IdleConnTimeout:       idleTime,
			DisableCompression:    true, // an object is what it is
		},
	}
}

// Close closes connections that are idle. No request may be under way.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// Store tells one store of buckets from another: the host of the endpoint, or that of AWS.
func (c *Client) Store() string {
	if c.endpoint != nil {
		return c.endpoint.Host
	}
	return awsHost
}

// Bucket is the bucket's name.
func (c *Client) Bucket() string { return c.o.Bucket }

// at is where requests go, with the bucket if it stands in the path, and the region.
func (c *Client) at() (url.URL, string) {
	c.mu.Lock()
	region := c.region
	c.mu.Unlock()
	if region == "" {
		region = awsRegion
	}
	u := url.URL{Scheme: "https", Host: "s3." + region + "." + awsHost}
	inPath := strings.Contains(c.o.Bucket, ".") // no certificate has a host's name with more dots
	if c.endpoint != nil {
		u, inPath = *c.endpoint, true
	}
	if c.o.PathStyle != nil {
		inPath = *c.o.PathStyle
	}
	if inPath {
		u.Path = "/" + c.o.Bucket
	} else {
		u.Host = c.o.Bucket + "." + u.Host
	}
	return u, region
}

// Place is the host that is asked, for messages.
func (c *Client) Place() string {
	u, _ := c.at()
	return u.Host
}

// move takes over the region that an answer says, unless one was given. It is false if that is nothing new.
func (c *Client) move(r *Refusal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.Region != "" || r.region == "" || r.region == c.region || r.Status < 300 || r.Status == http.StatusNotFound {
		return false
	}
	c.region = r.region
	return true
}

// Foreign is the error of an answer that is not S3's.
func (c *Client) Foreign(why string) error {
	return fmt.Errorf("%w: what answers at %s is not S3: correct endpoint=, or sign in at the network's portal or proxy: %s",
		object.ErrForeign, c.Place(), why)
}

// SumOf is the checksum of an object, or a part, that the store has computed. One over the checksums of parts ("...-2") is none.
func SumOf(h http.Header) (object.Sum, bool) { return ParseSum(h.Get(SumHeader)) }

// ParseSum reads a checksum as S3 writes it.
func ParseSum(text string) (sum object.Sum, ok bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != len(sum) {
		return sum, false
	}
	return object.Sum(b), true
}

// FormatSum is a checksum as S3 has it.
func FormatSum(sum object.Sum) string { return base64.StdEncoding.EncodeToString(sum[:]) }
