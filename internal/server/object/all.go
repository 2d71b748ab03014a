package object

import (
	"context"
	"iter"
)

// All iterates over the objects whose keys begin with prefix, in the order of
// [Store.List], a page at a time. It ends with the first error.
func All(ctx context.Context, s Store, prefix string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for after := ""; ; {
			page, err := s.List(ctx, prefix, after, 0)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, info := range page.Objects {
				if !yield(info, nil) {
					return
				}
				after = info.Key
			}
			if !page.More || len(page.Objects) == 0 {
				return
			}
		}
	}
}
