package export

import (
	"reflect"
	"testing"
)

// change gives v another value than it has.
func change(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(v.Uint() ^ 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if !v.IsNil() {
			p.Elem().Set(v.Elem())
		}
		change(t, p.Elem())
		v.Set(p)
	case reflect.Interface:
		v.Set(reflect.ValueOf(memory()))
	default:
		t.Fatalf("a field of %v: say here how to change it", v.Type())
	}
}

// TestWatchersAreToldOfEachField changes one field of an export, or of its rule, after the
// other: judgesAs sees each but those that take no right away.
func TestWatchersAreToldOfEachField(t *testing.T) {
	unjudged := map[string]string{
		"Path":     "handles go by the number",
		"ID":       "replaced looks for the same number",
		"Tree":     "another root is another file system",
		"Verbatim": "it is about what handles look like, and a reload makes all of them others",
		"Async":    "it is about what is on the disk, not about who may read it",
	}
	id := uint32(7)
	original := func() *entry {
		return &entry{Export: &Export{FS: memory(), Clients: []Rule{{Match: "*", AnonUID: &id}}}}
	}
	judged := func(name string, of func(e *Export) reflect.Value) {
		a := original()
		b := &entry{Export: &Export{}}
		*b.Export = *a.Export
		b.Clients = []Rule{a.Clients[0]}
		if !b.judgesAs(a) {
			t.Fatal("the same is not judged the same")
		}
		change(t, of(b.Export))
		if same := b.judgesAs(a); same != (unjudged[name] != "") {
			t.Errorf("%s is another, and judgesAs says that the rights are the same: %t", name, same)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Export]()) {
		judged(f.Name, func(e *Export) reflect.Value { return reflect.ValueOf(e).Elem().FieldByIndex(f.Index) })
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Rule]()) {
		judged("Clients."+f.Name, func(e *Export) reflect.Value { return reflect.ValueOf(&e.Clients[0]).Elem().FieldByIndex(f.Index) })
	}
}

// TestBeyondSeesEachField changes one field of a rule after the other: one of the two rules
// then gives more than the other, in any field but Match, which says to whom.
func TestBeyondSeesEachField(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Rule]()) {
		if f.Name == "Match" {
			continue
		}
		a := rule{Rule: Rule{Match: "*", Squash: SquashAll}, all: true} // whose anonymous user matters
		b := a
		change(t, reflect.ValueOf(&b.Rule).Elem().FieldByIndex(f.Index))
		if a.more(&b) == "" && b.more(&a) == "" {
			t.Errorf("%s is another, and neither rule gives more than the other", f.Name)
		}
	}
}

// TestGivenSeesEachField: what an export says for all of its clients is in the rules that
// are compared with another export's.
func TestGivenSeesEachField(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Export]()) {
		_, ofRules := reflect.TypeFor[Rule]().FieldByName(f.Name)
		if !ofRules {
			continue
		}
		e := &entry{Export: &Export{}}
		change(t, reflect.ValueOf(e.Export).Elem().FieldByIndex(f.Index))
		got := reflect.ValueOf(e.given()[0].Rule).FieldByName(f.Name)
		if got.IsZero() {
			t.Errorf("%s of the export is not in what its rules give", f.Name)
		}
	}
}
