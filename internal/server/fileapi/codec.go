package fileapi

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/nfsbox/nfsbox/internal/base/fault"
)

// jsonCodec is package connect's codec of JSON, by whatever name, but for one thing: what is
// not printable is escaped, since names of files may be made to steer a terminal.
type jsonCodec string

// jsonNames are the names by which requests ask for JSON.
var jsonNames = [...]jsonCodec{"json", "json; charset=utf-8"}

func (c jsonCodec) Name() string { return string(c) }

func (c jsonCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

func (c jsonCodec) MarshalAppend(out []byte, message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message of protobuf", message)
	}
	at := len(out)
	out, err := protojson.MarshalOptions{}.MarshalAppend(out, m)
	if err != nil {
		return nil, err
	}
	return append(out[:at], fault.CleanJSON(out[at:])...), nil
}

// Unmarshal passes over keys that do not exist, so that clients may be newer.
func (c jsonCodec) Unmarshal(text []byte, message any) error {
	m, ok := message.(proto.Message)
	switch {
	case !ok:
		return fmt.Errorf("%T is no message of protobuf", message)
	case len(text) == 0:
		return errors.New("zero-length payload is not a valid JSON object")
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, m); err != nil {
		return fmt.Errorf("unmarshal into %T: %w", message, err)
	}
	return nil
}
