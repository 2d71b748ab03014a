package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// WhereCredentials is how to give them.
const WhereCredentials = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or have them in ~/.aws/credentials (AWS_PROFILE chooses)"

// Credentials are an access key and its secret. The zero value is none.
type Credentials struct{ of *credentials.Credentials }

// Static are credentials that the caller has.
func Static(id, secret string) Credentials {
	return Credentials{credentials.NewStaticV4(id, secret, "")}
}

// findCredentials returns the first that are there: of the environment, of files, of the instance. They are
// renewed where they came from. An error has nothing of what a file says, which may be a secret.
func findCredentials(ctx context.Context, client *http.Client) (*credentials.Credentials, error) {
	cc := &credentials.CredContext{Client: client, Context: ctx}
	var failed error
	for _, p := range providers() {
		switch v, err := p.RetrieveWithCredContext(cc); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "":
			return credentials.New(p), nil
		case v.AccessKeyID != "" || v.SecretAccessKey != "":
			return nil, fmt.Errorf("the credentials have one half alone, the key or the secret: %s", WhereCredentials)
		case os.Getenv("AWS_PROFILE") != "" && isFile(p):
			failed = errors.New("AWS_PROFILE names a profile that gives none")
		}
	}
	if failed == nil {
		failed = errors.New("there are none")
	}
	return nil, fmt.Errorf("no credentials: %w: %s, or run where an instance has a role", failed, WhereCredentials)
}

func isFile(p credentials.Provider) bool {
	_, ok := p.(*credentials.FileAWSCredentials)
	return ok
}

func providers() []credentials.Provider {
	list := []credentials.Provider{&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{}}
	if !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		list = append(list, &instance{})
	}
	return list
}

// instance is the role of the machine, the container or the pod, which are asked for a short time: where there is
// none, nothing answers.
type instance struct{ credentials.IAM }

func (i *instance) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	ctx, cancel := context.WithTimeout(cc.Context, credTime)
	defer cancel()
	return i.IAM.RetrieveWithCredContext(&credentials.CredContext{Client: cc.Client, Context: ctx})
}
