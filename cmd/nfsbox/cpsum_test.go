package main

import (
	"reflect"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

// TestSummaryAddsEachCounter: a run of cp with several sources sums up every figure of job's.
func TestSummaryAddsEachCounter(t *testing.T) {
	var one job.Summary
	n := 0
	for _, v := range reflect.ValueOf(&one).Elem().Fields() {
		n++
		if v.CanFloat() {
			v.SetFloat(float64(n))
		} else {
			v.SetUint(uint64(n))
		}
	}
	var sum cpSummary
	sum.add(&one)
	sum.add(&one)
	for f, v := range reflect.ValueOf(sum.Summary).Fields() {
		was := reflect.ValueOf(one).FieldByIndex(f.Index)
		if v.CanFloat() && v.Float() != 2*was.Float() || v.CanUint() && v.Uint() != 2*was.Uint() {
			t.Errorf("%s is %v after two copies with %v each", f.Name, v, was)
		}
	}
}
