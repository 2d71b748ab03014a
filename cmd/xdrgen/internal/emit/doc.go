// Package emit writes Go from a checked specification: the types with their
// encoders and decoders, the descriptions of RPC programs, and the tests that
// hold the two directions together.
//
// A specification is first lowered to a model in Go's terms (model.go): what
// each name becomes, which struct is the node of a list, how many bytes a type
// takes on the wire where that is fixed, which opaque is bulk. The emitters then
// print one construct each.
//
// # Runs
//
// What makes the code fast is one idea. A struct is flattened to its items, and
// neighbouring items of fixed size form a run (seq.go). A run is one bounds
// check and one slice in the decoder, one growth of the buffer in the encoder,
// and between them loads and stores at constant offsets. A fixed struct that is
// too large to flatten gets two unexported methods, getBlock and putBlock, which
// work on the run of the type that holds it.
package emit
