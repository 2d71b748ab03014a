package config

import (
	"reflect"
	"testing"
)

// said sets each field of a rule to something that is not the default; other is true for
// a second value.
func said(t *testing.T, r *Rule, other bool) {
	t.Helper()
	for f, v := range reflect.ValueOf(r).Elem().Fields() {
		switch {
		case f.Type == reflect.TypeFor[*bool]():
			v.Set(reflect.ValueOf(new(!other)))
		case f.Type == reflect.TypeFor[*uint32]():
			n := uint32(7)
			if other {
				n = 8
			}
			v.Set(reflect.ValueOf(&n))
		case f.Type == reflect.TypeFor[string]():
			v.SetString(map[bool]string{false: "all", true: "root"}[other])
		default:
			t.Fatalf("%s is a %v: say here how to set it", f.Name, f.Type)
		}
	}
}

// TestFillTakesEachField: a client's rule gets every field of the export's that it leaves
// out, and keeps every one that it has.
func TestFillTakesEachField(t *testing.T) {
	var of, r, own Rule
	said(t, &of, false)
	if r.fill(&of); !reflect.DeepEqual(r, of) {
		t.Errorf("%+v is filled in from %+v", r, of)
	}
	said(t, &own, true)
	kept := own
	if own.fill(&of); !reflect.DeepEqual(own, kept) {
		t.Errorf("%+v is what %+v became", own, kept)
	}
}

// TestShowHasEachField: no field of an export or its rules is shown as not said, but for
// Squash, which depends on where the server listens.
func TestShowHasEachField(t *testing.T) {
	e := Export{Clients: []Client{{Match: "*"}}}
	e.show()
	for what, v := range map[string]reflect.Value{"export": reflect.ValueOf(e), "client": reflect.ValueOf(e.Clients[0])} {
		n := 0
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.Type.Kind() != reflect.Pointer {
				continue
			}
			if n++; v.FieldByIndex(f.Index).IsNil() {
				t.Errorf("%s of an %s is not shown", f.Name, what)
			}
		}
		if n < 6 {
			t.Errorf("only %d fields of an %s can be unsaid", n, what)
		}
	}
}
