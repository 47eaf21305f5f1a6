package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"fakebrokers/kit"
)

const custom = "x-msg-x-" // names that the server keeps; everything else it drops in silence

// unread fits what net/http says of an answer that it cannot read; these errors have no type of their own.
var unread = regexp.MustCompile("malformed|bad Content-Length|invalid Content-Length|headers exceeded|" +
	"chunk|transfer encoding")

// narconi is one project on one server, over a connection pool of its own.
type narconi struct {
	root   string
	client *http.Client
	closed context.Context
	end    context.CancelFunc
}

func dial(base, project string, transport *http.Transport) *narconi {
	closed, end := context.WithCancel(context.Background())
	// a redirect is an answer like any other: Narconi has none
	unfollowed := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &narconi{base + "/v2/" + url.PathEscape(project) + "/queues/",
		&http.Client{Transport: transport, CheckRedirect: unfollowed}, closed, end}
}

// ask sends one request and reads its answer to the end; another status than the wanted ones is a Failure.
func (n *narconi) ask(timeout time.Duration, method, path string, headers http.Header, body []byte, wanted ...int) (
	*http.Response, []byte, error) {
	if n.closed.Err() != nil {
		return nil, nil, kit.Fail("closed", "the session is closed").Surely()
	}
	ctx := n.closed
	if timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	request, err := http.NewRequestWithContext(ctx, method, n.root+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, kit.Fail("invalid", err.Error())
	}
	request.Header = headers
	response, err := n.client.Do(request)
	if err != nil {
		return nil, nil, n.told(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, n.told(err)
	}
	if !slices.Contains(wanted, response.StatusCode) {
		return nil, nil, refused(response.StatusCode, data)
	}
	return response, data, nil
}

// told is what an error of net/http means, where the session itself has not ended it.
func (n *narconi) told(err error) error {
	switch {
	case n.closed.Err() != nil:
		return kit.Fail("closed", err.Error())
	case strings.Contains(err.Error(), "invalid header field"):
		return kit.Fail("invalid", err.Error())
	case unread.MatchString(err.Error()):
		return kit.Fail("protocol", err.Error())
	}
	return err // kit.Classify knows those of the network
}

func refused(status int, data []byte) error {
	var said struct{ Message string }
	text := string(data)
	if json.Unmarshal(data, &said) == nil && said.Message != "" {
		text = said.Message
	}
	failure := kit.Refused(status, text)
	if status == http.StatusUnauthorized {
		failure.Kind = "auth"
	}
	return failure
}

func queue(name string) string { return url.PathEscape(name) }

func (n *narconi) ensureQueue(timeout time.Duration, name string) error {
	_, _, err := n.ask(timeout, "PUT", queue(name), nil, nil, http.StatusCreated)
	return err
}

func (n *narconi) deleteQueue(timeout time.Duration, name string) error {
	_, _, err := n.ask(timeout, "DELETE", queue(name), nil, nil, http.StatusNoContent)
	return err
}

func (n *narconi) post(timeout time.Duration, name string, body []byte, headers kit.Fields) error {
	sent, err := metadata(headers)
	if err == nil {
		_, _, err = n.ask(timeout, "POST", queue(name)+"/messages", sent, body, http.StatusCreated)
	}
	return err
}

// take gives a message, or no response where the queue is empty.
func (n *narconi) take(timeout time.Duration, name string) (*http.Response, []byte, error) {
	response, body, err := n.ask(timeout, "DELETE", queue(name)+"/messages", nil, nil, http.StatusOK, http.StatusNoContent)
	if err != nil || response.StatusCode == http.StatusNoContent {
		return nil, nil, err
	}
	return response, body, nil
}

func metadata(headers kit.Fields) (http.Header, error) {
	sent := http.Header{}
	for name, value := range headers {
		text, isText := value.(string)
		switch {
		case strings.EqualFold(name, "Content-Type") && !isText:
			return nil, kit.Fail("invalid", "Content-Type has to be text")
		case !strings.EqualFold(name, "Content-Type") && !strings.HasPrefix(strings.ToLower(name), custom):
			return nil, kit.Fail("invalid", "the name of metadata has to begin with "+custom+": "+name)
		case !isText:
			data, err := json.Marshal(value)
			if err != nil {
				return nil, errors.Join(kit.Fail("invalid", name), err)
			}
			text = string(data)
		}
		sent.Set(name, text)
	}
	return sent, nil
}
