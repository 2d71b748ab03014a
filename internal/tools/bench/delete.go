package bench

import "context"

// deleteVerb removes the files that upload has made.
var deleteVerb = verb{
	name: "delete", count: DefaultFiles, anywhere: true, files: true, once: true, start: startDelete,
	calls: [2][]string{{"REMOVE"}, {"Delete"}},
}

func startDelete(ctx context.Context, o *Options) (work, error) {
	w, err := startFiles(ctx, o, false)
	if err != nil {
		return nil, err
	}
	w.one, w.last = remove, removeEmpty
	return w, nil
}

// remove removes the next file. The warm-up only looks: what it would remove could
// not be measured any more.
func remove(ctx context.Context, c *fileCaller) (moved, error) {
	w := c.w
	x := w.item()
	if !w.measured {
		_, err := w.dirs[x.dir].exist(ctx, x.name)
		return moved{}, err
	}
	return moved{}, w.dirs[x.dir].remove(ctx, x.name, false)
}
