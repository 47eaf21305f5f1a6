package main

import (
	"errors"
	"regexp"

	"fakebrokers/kit"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

// The library has an error for most response codes of the broker, but does not keep the code.
var codes = map[error]int{
	stream.StreamDoesNotExist: 2, stream.SubscriptionIdDoesNotExist: 4, stream.StreamAlreadyExists: 5,
	stream.StreamNotAvailable: 6, stream.AuthenticationFailure: 8, stream.AuthenticationFailureLoopbackError: 11,
	stream.VirtualHostAccessFailure: 12, stream.UnknownFrame: 13, stream.FrameTooLarge: 14, stream.InternalError: 15,
	stream.CodeAccessRefused: 16, stream.PreconditionFailed: 17, stream.PublisherDoesNotExist: 18,
	stream.OffsetNotFoundError: 19,
}

// Most of its other errors have no type: they are known by their text.
var texts = []struct {
	kind     string
	definite bool
	pattern  *regexp.Regexp
}{
	// lookErrorCode gives it for every code of the broker that has no name of its own
	{"refused", true, regexp.MustCompile(`^Generic Error$|^Leader not Ready yet$`)},
	{"auth", true, regexp.MustCompile(`no matching mechanism`)},
	// a Metadata request without an answer ends like this
	{"timeout", false, regexp.MustCompile(`^timeout \d+ ms|leader error for stream|^Stream Metadata Failure$`)},
	{"closed", true, regexp.MustCompile(`producer id: \d+ closed|queue closed|^Already Closed$|connection is closed`)},
	{"connection", true, regexp.MustCompile(`^Producer not found in the SuperStream Producer$`)},
	{"unsupported", true, regexp.MustCompile(`^Filtering is not supported by the broker`)},
	{"invalid", true, regexp.MustCompile(`Route not found|must be|can't be|specify a valid|only spaces|frame size \d+ exceeds`)},
}

func classify(err error) *kit.Failure {
	for _, known := range texts {
		if known.pattern.MatchString(err.Error()) {
			failure := kit.Fail(known.kind, err.Error())
			failure.Definite = known.definite
			return failure
		}
	}
	for known, code := range codes {
		if !errors.Is(err, known) {
			continue
		}
		failure := kit.Refused(code, err.Error())
		if code == 8 || code == 11 {
			failure.Kind = "auth"
		}
		return failure
	}
	return kit.Classify(err)
}
