package kit

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// Failure is how an op did not work out. Kind is one of the error kinds of ADAPTER.md.
type Failure struct {
	Kind     string `json:"kind"`
	Definite bool   `json:"definite"` // the op surely had no effect and will have none; false in doubt
	Code     any    `json:"code"`     // the number on the wire, where there is one
	Text     string `json:"text"`
	Type     string `json:"type,omitempty"` // name of a remote error, where the protocol has such names
}

func (f *Failure) Error() string { return f.Kind + ": " + f.Text }

// Fail makes a Failure, as definite as its kind implies.
func Fail(kind, text string) *Failure {
	sure := kind == "auth" || kind == "invalid" || kind == "refused" || kind == "unsupported"
	return &Failure{Kind: kind, Definite: sure, Text: text}
}

// Surely says that the op had no effect, where its kind does not imply it.
func (f *Failure) Surely() *Failure {
	f.Definite = true
	return f
}

// Named says what a remote error is called, where the protocol has such names.
func (f *Failure) Named(name string) *Failure {
	f.Type = name
	return f
}

// Refused makes the Failure of an op that the peer refused with a code.
func Refused(code int, text string) *Failure {
	failure := Fail("refused", text)
	failure.Code = code
	return failure
}

// Classify tells the Failure of what every library returns; the rest is internal until you say otherwise.
func Classify(err error) *Failure {
	var known *Failure
	var network net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &certificate):
		return Fail("connection", err.Error()).Surely()
	case errors.As(err, &network) && network.Timeout():
		return Fail("timeout", err.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.As(err, &network):
		return Fail("connection", err.Error())
	}
	return Fail("internal", err.Error())
}
