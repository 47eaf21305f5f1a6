// nats.go (https://github.com/nats-io/nats.go) behind the adapter protocol.
//
// A publish is acknowledged by a flush, which is what the library has for that. The time-out of a connect is that of the
// library, which it has for each server of the list. Drains return at once; their ops wait for the closed handlers.
package main

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fakebrokers/kit"

	"github.com/nats-io/nats.go"
)

const (
	library      = "github.com/nats-io/nats.go"
	defaultLimit = 10 * time.Second
)

type session struct {
	name   string
	conn   *nats.Conn
	isOver atomic.Bool // the application has closed or drained it
	closed chan struct{}
}

var (
	a = kit.New(kit.Facts{
		Adapter:   "nats-go",
		Library:   library,
		Version:   kit.ModuleVersion(library),
		Protocols: []string{"nats"},
		Roles:     []string{"publisher", "consumer", "requester"},
		Contract:  kit.Fields{"others": false, "reads_odd": true, "waits": true},
		Caps: kit.Fields{"ack_timeout": true, "auto_reconnect": true, "callback_sleep": true, "endpoints": true,
			"keepalive": true, "max_messages": true, "pending_limit": true, "queue_groups": true, "reentrant": true,
			"stop_in_callback": true, "tls": true, "token": true},
	})
	mutex    sync.Mutex
	sessions = map[string]*session{}

	// logins are the library's errors for what the server says of a login, and what that is.
	logins = map[error]string{nats.ErrAuthorization: nats.AUTHORIZATION_ERR,
		nats.ErrAuthExpired: nats.AUTHENTICATION_EXPIRED_ERR, nats.ErrAuthRevoked: nats.AUTHENTICATION_REVOKED_ERR,
		nats.ErrAccountAuthExpired: nats.ACCOUNT_AUTHENTICATION_EXPIRED_ERR}
)

func main() {
	a.Classify, a.Clear = classify, clear
	a.Op("connect", connect)
	a.Op("state", state)
	a.Op("close", with(func(s *session, _ *kit.Call) (any, error) {
		s.isOver.Store(true)
		s.conn.Close()
		return nil, nil
	}))
	a.Ordered("publish", with(publish))
	a.Op("flush", with(func(s *session, c *kit.Call) (any, error) { return nil, s.flush(c) }))
	a.Op("subscribe", with(subscribe))
	a.Op("unsubscribe", unsubscribe)
	a.Op("nats.request", with(request))
	a.Op("nats.drain", with(drain))
	a.Run()
}

// with finds the session, and tells a connection that was lost from one that was closed: the library says the same.
func with(do func(s *session, c *kit.Call) (any, error)) kit.Op {
	return func(c *kit.Call) (any, error) {
		mutex.Lock()
		found := sessions[c.Args.Session]
		mutex.Unlock()
		if found == nil {
			return nil, kit.Fail("closed", "no session "+strconv.Quote(c.Args.Session)).Surely()
		}
		result, err := do(found, c)
		if errors.Is(err, nats.ErrConnectionClosed) && !found.isOver.Load() {
			err = kit.Fail("connection", err.Error())
		}
		return result, err
	}
}

func limit(c *kit.Call) time.Duration {
	if c.Timeout == 0 {
		return defaultLimit
	}
	return c.Timeout
}

type connectOptions struct {
	User, Password, Token string
	Listen                bool
	AutoReconnect         *bool    `json:"auto_reconnect"`
	PingInterval          *float64 `json:"ping_interval_s"`
	MaxPings              *int     `json:"max_pings"`
	TLS                   *struct {
		CA   string `json:"ca_file"`
		Name string `json:"server_name"`
	}
}

func (o connectOptions) apply(given *nats.Options) error {
	given.User, given.Password, given.Token = o.User, o.Password, o.Token
	if o.AutoReconnect != nil {
		given.AllowReconnect = *o.AutoReconnect
	}
	if o.PingInterval != nil {
		given.PingInterval = time.Duration(*o.PingInterval * float64(time.Second))
	}
	if o.MaxPings != nil {
		given.MaxPingsOut = *o.MaxPings
	}
	if o.TLS == nil {
		return nil
	}
	if err := nats.RootCAs(o.TLS.CA)(given); err != nil {
		return err
	}
	if given.TLSConfig != nil {
		given.TLSConfig.ServerName = o.TLS.Name
	}
	return nil
}

func connect(c *kit.Call) (any, error) {
	options := connectOptions{Listen: true}
	if err := c.Options(&options); err != nil {
		return nil, err
	}
	endpoints, err := c.Endpoints()
	if err != nil {
		return nil, err
	}
	given := nats.GetDefaultOptions()
	given.NoRandomize = true
	for _, each := range endpoints {
		given.Servers = append(given.Servers, "nats://"+each)
	}
	if c.Timeout != 0 {
		given.Timeout = c.Timeout
	}
	if err := options.apply(&given); err != nil {
		return nil, err
	}
	made := &session{name: c.Args.Session, closed: make(chan struct{})}
	made.listen(&given, options.Listen)
	if made.conn, err = given.Connect(); err != nil {
		return nil, err
	}
	mutex.Lock()
	defer mutex.Unlock()
	sessions[made.name] = made
	return nil, nil
}

func (s *session) listen(given *nats.Options, listens bool) {
	report := func(what string) {
		if listens && !s.isOver.Load() {
			a.Emit("session", kit.Fields{"session": s.name, "what": what, "text": "", "code": nil})
		}
	}
	given.DisconnectedErrCB = func(*nats.Conn, error) { report("connection_lost") }
	given.ReconnectedCB = func(*nats.Conn) { report("reconnected") }
	given.ClosedCB = func(*nats.Conn) {
		report("disconnected")
		close(s.closed)
	}
	given.AsyncErrorCB = func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if listens {
			a.Emit("error", kit.Fields{"session": s.name, "where": "other", "error": classify(err)})
		}
	}
}

func state(c *kit.Call) (any, error) {
	mutex.Lock()
	found := sessions[c.Args.Session]
	mutex.Unlock()
	return kit.Fields{"open": found != nil && found.conn.IsConnected(), "pending": nil}, nil
}

func (s *session) flush(c *kit.Call) error { return s.conn.FlushTimeout(limit(c)) }

func publish(s *session, c *kit.Call) (any, error) {
	if err := s.conn.Publish(c.Args.Target, c.Args.Body.Bytes()); err != nil {
		return nil, err
	}
	c.Begun()
	if c.Args.Wait {
		return kit.Fields{"outcome": "acked", "key": nil, "meta": kit.Fields{}}, s.flush(c)
	}
	go func() {
		outcome := "acked"
		if s.flush(c) != nil {
			outcome = "unknown"
		}
		a.Emit("outcome", kit.Fields{"id": c.ID, "outcome": outcome, "key": nil, "code": nil})
	}()
	return kit.Fields{"outcome": "sent", "key": nil, "meta": kit.Fields{}}, nil
}

func request(s *session, c *kit.Call) (any, error) {
	answer, err := s.conn.Request(c.Args.Target, c.Args.Body.Bytes(), limit(c))
	if err != nil {
		return nil, err
	}
	return kit.Fields{"body": kit.Body{answer.Data}}, nil
}

func subscribe(s *session, c *kit.Call) (any, error) {
	options := struct {
		Queue   string
		Max     *int
		Pending *int `json:"pending_limit"`
	}{}
	if err := c.Options(&options); err != nil {
		return nil, err
	}
	sub, err := a.Subscribed(c)
	if err != nil {
		return nil, err
	}
	made, err := s.conn.QueueSubscribe(c.Args.Target, options.Queue, func(message *nats.Msg) {
		meta := kit.Fields{"subject": message.Subject}
		sub.Deliver(kit.Message{Body: kit.Body{message.Data}, More: kit.Fields{"meta": meta}})
	})
	if err != nil {
		return nil, err
	}
	sub.Handle = made
	if options.Pending != nil {
		if err := made.SetPendingLimits(*options.Pending, nats.DefaultSubPendingBytesLimit); err != nil {
			return nil, err
		}
	}
	if options.Max != nil {
		if err := made.AutoUnsubscribe(*options.Max); err != nil {
			return nil, err
		}
	}
	if err := s.flush(c); err != nil { // the application has no subscription, so the library shall not keep it
		made.Unsubscribe()
		return nil, err
	}
	return nil, nil
}

func unsubscribe(c *kit.Call) (any, error) {
	asked := struct{ Drain bool }{}
	if err := c.Decode(&asked); err != nil {
		return nil, err
	}
	sub, err := a.Subscription(c.Args.Sub)
	if err != nil {
		return nil, err
	}
	made, ok := sub.Handle.(*nats.Subscription)
	if !ok {
		return nil, kit.Fail("closed", "the subscription was not made").Surely()
	}
	if !asked.Drain {
		return nil, made.Unsubscribe()
	}
	closed := make(chan struct{})
	made.SetClosedHandler(func(string) { close(closed) })
	if err := made.Drain(); err != nil {
		return nil, err
	}
	return nil, waited(closed, c)
}

func drain(s *session, c *kit.Call) (any, error) {
	s.isOver.Store(true)
	if err := s.conn.Drain(); err != nil {
		return nil, err
	}
	return nil, waited(s.closed, c)
}

func waited(closed <-chan struct{}, c *kit.Call) error {
	select {
	case <-closed:
		return nil
	case <-time.After(limit(c)):
		return kit.Fail("timeout", "not drained in time")
	}
}

func is(err error, kinds ...error) bool {
	for _, each := range kinds {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}

func classify(err error) *kit.Failure {
	text := err.Error()
	if said, ok := logins[err]; ok {
		failure := kit.Fail("auth", text)
		failure.Code = said
		return failure
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return kit.Refused(503, text)
	case is(err, nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrBadQueueName, nats.ErrInvalidArg, nats.ErrInvalidMsg,
		nats.ErrBadSubscription):
		return kit.Fail("invalid", text)
	case is(err, nats.ErrConnectionClosed, nats.ErrConnectionDraining):
		return kit.Fail("closed", text)
	case is(err, nats.ErrTimeout, nats.ErrDrainTimeout):
		return kit.Fail("timeout", text)
	case is(err, nats.ErrNoServers, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting):
		return kit.Fail("connection", text).Surely()
	case is(err, nats.ErrStaleConnection, nats.ErrDisconnected):
		return kit.Fail("connection", text)
	case is(err, nats.ErrNoInfoReceived, nats.ErrJsonParse):
		return kit.Fail("protocol", text)
	}
	if failure := kit.Classify(err); failure.Kind != "internal" {
		return failure
	}
	if said, ok := strings.CutPrefix(text, "nats: "); ok { // what the server has said
		failure := kit.Fail("refused", text)
		failure.Code = strings.TrimPrefix(said, "permissions violation: ")
		return failure
	}
	return kit.Fail("internal", text)
}

func clear() {
	mutex.Lock()
	defer mutex.Unlock()
	for _, each := range sessions {
		each.isOver.Store(true)
		go each.conn.Close()
	}
	sessions = map[string]*session{}
}
