package localfs

import (
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/layers"
)

// order are the files, from the ground up: an object and how its way is found know no operation. Files of
// one line do not know each other.
const order = `
bounds doc flight snapshot sys
options
host
data gate path
handle_kernel name whole writer
object
getattr info watch
access
acl flock hostopen link lookup readdir remove setattr xattr
create walk
open put rename
commit read
sweep write
new
`

// TestLayers: files point down.
func TestLayers(t *testing.T) { layers.Hold(t, order, 500) }
