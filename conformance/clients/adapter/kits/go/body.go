package kit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

const inlineBytesMax = 4096 // reports above this size are a digest

// Body is what a body of the protocol stands for: one part, or several where the protocol has them.
type Body [][]byte

// Bytes joins the parts.
func (b Body) Bytes() []byte { return bytes.Join(b, nil) }

// UnmarshalJSON reads {"text"}, {"b64"} or {"gen": "zero"|"rand"}, or a list of them.
func (b *Body) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		var parts []Body
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		for _, part := range parts {
			*b = append(*b, part.Bytes())
		}
		return nil
	}
	var form struct {
		Text, B64 *string
		Gen       string
		Seed      Int
		Len       int
	}
	err := json.Unmarshal(data, &form)
	switch {
	case err != nil:
	case form.Text != nil:
		*b = Body{[]byte(*form.Text)}
	case form.B64 != nil:
		var decoded []byte
		decoded, err = base64.StdEncoding.DecodeString(*form.B64)
		*b = Body{decoded}
	case form.Gen == "zero":
		*b = Body{make([]byte, form.Len)}
	case form.Gen == "rand":
		*b = Body{randomBytes(uint64(form.Seed), form.Len)}
	default:
		err = errors.New("a body has text, b64 or gen zero|rand")
	}
	return err
}

// randomBytes is SHA-256 in counter mode over the seed and a counter, 8 bytes big-endian each.
func randomBytes(seed uint64, size int) []byte {
	data := make([]byte, 0, size+sha256.Size)
	for counter := uint64(0); len(data) < size; counter++ {
		head := binary.BigEndian.AppendUint64(nil, seed)
		block := sha256.Sum256(binary.BigEndian.AppendUint64(head, counter))
		data = append(data, block[:]...)
	}
	return data[:size]
}

// MarshalJSON reports the body: base64 up to 4096 bytes, above that digest and length.
func (b Body) MarshalJSON() ([]byte, error) {
	if len(b) == 1 {
		return json.Marshal(reported(b[0]))
	}
	return json.Marshal(b.Parts())
}

// Parts reports the body of a protocol whose messages have parts: a list, for a single one too.
func (b Body) Parts() []any {
	parts := make([]any, len(b))
	for i, part := range b {
		parts[i] = reported(part)
	}
	return parts
}

func reported(data []byte) any {
	if len(data) <= inlineBytesMax {
		return Fields{"b64": base64.StdEncoding.EncodeToString(data)}
	}
	digest := sha256.Sum256(data)
	return Fields{"sha256": hex.EncodeToString(digest[:]), "len": len(data)}
}

// Key is how a key or position is reported: text, or {"b64"} where it is none.
func Key(key []byte) any {
	if utf8.Valid(key) {
		return string(key)
	}
	return Fields{"b64": base64.StdEncoding.EncodeToString(key)}
}

// Int is an integer of the protocol: a string of digits where a number would not be exact everywhere.
type Int int64

// UnmarshalJSON takes both forms.
func (i *Int) UnmarshalJSON(data []byte) error {
	value, err := strconv.ParseInt(string(bytes.Trim(data, `"`)), 10, 64)
	*i = Int(value)
	return err
}

// MarshalJSON writes the form that keeps every digit.
func (i Int) MarshalJSON() ([]byte, error) {
	if digits := strconv.FormatInt(int64(i), 10); i > 1<<53 || i < -1<<53 {
		return json.Marshal(digits)
	} else {
		return []byte(digits), nil
	}
}
