package bench

import (
	"context"
	"errors"
)

// existVerb asks whether the files that upload has made are there.
var existVerb = verb{
	name: "exist", count: DefaultFiles, anywhere: true, files: true, start: startExist,
	calls: [2][]string{{"LOOKUP"}, {"Exist"}},
}

// errAbsent is a file that is not there any more.
var errAbsent = errors.New("the file is not there: not all that upload makes with these flags is")

func startExist(ctx context.Context, o *Options) (work, error) {
	return startOnFiles(ctx, o, exist)
}

func exist(ctx context.Context, c *fileCaller) (moved, error) {
	w := c.w
	x := w.item()
	there, err := w.dirs[x.dir].exist(ctx, x.name)
	if err == nil && !there {
		err = errAbsent
	}
	return moved{}, err
}
