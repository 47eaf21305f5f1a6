// A small client on net/http (https://pkg.go.dev/net/http) behind the adapter protocol.
//
// Narconi has no client library; client.go is what a user makes of Narconi's document. Go's standard library has no
// WebSockets, so this client has the roles that need none.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"fakebrokers/kit"
)

var (
	a = kit.New(kit.Facts{
		Adapter:   "narconi-go",
		Library:   "net/http",
		Version:   strings.TrimPrefix(runtime.Version(), "go"),
		Protocols: []string{"narconi"},
		Roles:     []string{"admin", "http"},
		Caps:      kit.Fields{"tls": true},
	})
	mutex    sync.Mutex
	sessions = map[string]*narconi{}
)

func main() {
	a.Clear = clear
	a.Op("connect", connect)
	a.Op("state", state)
	a.Op("close", func(c *kit.Call) (any, error) {
		n, err := of(c)
		if err == nil {
			n.end()
			n.client.CloseIdleConnections()
		}
		return nil, err
	})
	a.Op("narc.ensure_queue", with(func(n *narconi, c *kit.Call) (any, error) {
		return nil, n.ensureQueue(c.Timeout, c.Args.Target)
	}))
	a.Op("narc.delete_queue", with(func(n *narconi, c *kit.Call) (any, error) {
		return nil, n.deleteQueue(c.Timeout, c.Args.Target)
	}))
	a.Op("narc.post", with(func(n *narconi, c *kit.Call) (any, error) {
		err := n.post(c.Timeout, c.Args.Target, c.Args.Body.Bytes(), c.Args.Headers)
		return kit.Fields{"outcome": "acked", "key": nil, "meta": kit.Fields{}}, err
	}))
	a.Op("narc.take", with(take))
	a.Run()
}

func with(do func(n *narconi, c *kit.Call) (any, error)) kit.Op {
	return func(c *kit.Call) (any, error) {
		n, err := of(c)
		if err != nil {
			return nil, err
		}
		return do(n, c)
	}
}

func of(c *kit.Call) (*narconi, error) {
	mutex.Lock()
	defer mutex.Unlock()
	if found := sessions[c.Args.Session]; found != nil {
		return found, nil
	}
	return nil, kit.Fail("closed", "no session "+strconv.Quote(c.Args.Session)).Surely()
}

func connect(c *kit.Call) (any, error) {
	endpoints, err := c.Endpoints()
	if err != nil {
		return nil, err
	}
	wanted := struct {
		Base, Project string
		TLS           *struct {
			CA   string `json:"ca_file"`
			Name string `json:"server_name"`
		}
	}{Project: "test"}
	if err := c.Options(&wanted); err != nil {
		return nil, err
	}
	transport, scheme := &http.Transport{}, "http://"
	if wanted.TLS != nil {
		scheme = "https://"
		transport.TLSClientConfig = &tls.Config{ServerName: wanted.TLS.Name}
		if wanted.TLS.CA != "" {
			text, err := os.ReadFile(wanted.TLS.CA)
			if err != nil {
				return nil, kit.Fail("invalid", err.Error())
			}
			transport.TLSClientConfig.RootCAs = x509.NewCertPool()
			transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text)
		}
	}
	if wanted.Base == "" {
		wanted.Base = scheme + endpoints[0]
	}
	mutex.Lock()
	defer mutex.Unlock()
	sessions[c.Args.Session] = dial(wanted.Base, wanted.Project, transport)
	return nil, nil
}

// state: HTTP has requests and no session, so this is what the adapter was told last.
func state(c *kit.Call) (any, error) {
	n, err := of(c)
	return kit.Fields{"open": err == nil && n.closed.Err() == nil, "pending": nil}, nil
}

func take(n *narconi, c *kit.Call) (any, error) {
	response, body, err := n.take(c.Timeout, c.Args.Target)
	if err != nil || response == nil {
		return kit.Fields{"message": nil}, err
	}
	headers := kit.Fields{"Content-Type": nil}
	for name, values := range response.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, custom) {
			headers[lower] = strings.Join(values, ", ")
		}
	}
	if kinds := response.Header.Values("Content-Type"); len(kinds) > 0 {
		headers["Content-Type"] = kinds[0]
	}
	message := kit.Fields{"ref": a.NextRef(), "sub": "", "target": c.Args.Target, "body": kit.Body{body},
		"headers": headers, "redelivered": nil, "ts": nil, "position": nil, "meta": kit.Fields{}}
	if flags := response.Header.Values("x-msg-redelivered"); len(flags) > 0 {
		message["redelivered"] = flags[0] == "true"
	}
	if ms, err := strconv.ParseInt(response.Header.Get("x-msg-timestamp"), 10, 64); err == nil {
		message["ts"] = ms
	}
	return kit.Fields{"message": message}, nil
}

// clear ends what is under way; the kit shuts the sockets.
func clear() {
	mutex.Lock()
	defer mutex.Unlock()
	for _, n := range sessions {
		n.end()
		n.client.CloseIdleConnections()
	}
	sessions = map[string]*narconi{}
}
