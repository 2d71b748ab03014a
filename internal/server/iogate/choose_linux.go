package iogate

import "fmt"

// choose opens the kind that o asks for, or says why it is Auto instead.
func choose(o *Options) (k Kind, reason string, p *pool) {
	if o.Kind == Auto || o.Kind == None {
		return o.Kind, "", nil
	}
	var err error
	p = newPool(o.Threads)
	switch o.Kind {
	case Go:
		p.b = startGoroutines(o.Threads)
	case C:
		p.b, err = startThreads(p, o)
	}
	if err != nil {
		return Auto, fmt.Sprintf("%v is not possible: %v", o.Kind, err), nil
	}
	return o.Kind, "", p
}
