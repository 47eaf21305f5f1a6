// go-redis (https://github.com/redis/go-redis) behind the adapter protocol.
//
// A session is one client with its pool, and a PubSub for each subscription, as the library has it. Deadlines are
// contexts, which the library follows as ContextTimeoutEnabled asks; its own read time-out of 3 s, after which it tries
// again, is left as it is.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"fakebrokers/kit"

	"github.com/redis/go-redis/v9"
)

const library = "github.com/redis/go-redis/v9"

type session struct {
	client *redis.Client
	mutex  sync.Mutex
	subs   []*redis.PubSub
	closed bool
}

var (
	a = kit.New(kit.Facts{
		Adapter:   "redis-go",
		Library:   library,
		Version:   kit.ModuleVersion(library),
		Protocols: []string{"redis"},
		Roles:     []string{"publisher", "consumer", "caller"},
		Limits:    kit.Fields{"request_timeout_ms": 5000},
		Contract: kit.Fields{"many_connections": true, "waits": true, "repeats": true, "drops_idle": true,
			"own_deadline": true},
		Caps: kit.Fields{"ack_timeout": true, "auto_reconnect": true, "callback_sleep": true, "cancel": false,
			"connect.auto_reconnect": false, "reentrant": true, "resp3": true, "shards": true, "tls": true},
	})
	mutex    sync.Mutex
	sessions = map[string]*session{}
	word     = regexp.MustCompile(`^[A-Z]+`)
)

func main() {
	a.Classify, a.Clear = classify, clear
	a.Op("connect", connect)
	a.Op("state", state)
	a.Op("close", with(func(s *session, _ *kit.Call) (any, error) { return nil, s.close() }))
	a.Op("publish", with(publish))
	a.Op("subscribe", with(subscribe))
	a.Op("unsubscribe", unsubscribe)
	a.Op("redis.call", with(call))
	a.Op("redis.pipeline", with(pipeline))
	a.Run()
}

func with(do func(s *session, c *kit.Call) (any, error)) kit.Op {
	return func(c *kit.Call) (any, error) {
		mutex.Lock()
		found := sessions[c.Args.Session]
		mutex.Unlock()
		if found == nil {
			return nil, kit.Fail("closed", "no session "+strconv.Quote(c.Args.Session)).Surely()
		}
		return do(found, c)
	}
}

func limited(c *kit.Call) (context.Context, context.CancelFunc) {
	if c.Timeout == 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), c.Timeout)
}

func connect(c *kit.Call) (any, error) {
	options := struct {
		Resp           int
		User, Password string
		TLS            *struct {
			CA   string `json:"ca_file"`
			Name string `json:"server_name"`
		}
	}{Resp: 2}
	if err := c.Options(&options); err != nil {
		return nil, err
	}
	endpoints, err := c.Endpoints()
	if err != nil {
		return nil, err
	}
	given := &redis.Options{Addr: endpoints[0], Protocol: options.Resp, Username: options.User,
		Password: options.Password, ContextTimeoutEnabled: true}
	if options.TLS != nil {
		pool := x509.NewCertPool()
		if text, err := os.ReadFile(options.TLS.CA); err == nil {
			pool.AppendCertsFromPEM(text)
		}
		given.TLSConfig = &tls.Config{RootCAs: pool, ServerName: options.TLS.Name}
	}
	made := &session{client: redis.NewClient(given)}
	mutex.Lock()
	sessions[c.Args.Session] = made
	mutex.Unlock()
	ctx, cancel := limited(c)
	defer cancel()
	err = made.client.Ping(ctx).Err() // the library connects for a command alone
	if err != nil && isReply(err) && classify(err).Kind != "auth" {
		return nil, nil // the server is there, whatever it refuses
	}
	return nil, err
}

func state(c *kit.Call) (any, error) {
	mutex.Lock()
	found := sessions[c.Args.Session]
	mutex.Unlock()
	return kit.Fields{"open": found != nil && !found.closed, "pending": nil}, nil
}

func (s *session) close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.closed = true
	for _, each := range s.subs {
		each.Close()
	}
	return s.client.Close()
}

func publish(s *session, c *kit.Call) (any, error) {
	send := func() (int64, error) {
		ctx, cancel := limited(c)
		defer cancel()
		return s.client.Publish(ctx, c.Args.Target, c.Args.Body.Bytes()).Result()
	}
	if c.Args.Wait {
		count, err := send()
		return kit.Fields{"outcome": "acked", "key": nil, "meta": kit.Fields{"receivers": count}}, err
	}
	go func() {
		fields := kit.Fields{"id": c.ID, "outcome": "acked", "key": nil, "code": nil}
		if _, err := send(); err != nil {
			failure := classify(err)
			fields["outcome"], fields["code"] = "unknown", failure.Code
			if failure.Definite {
				fields["outcome"] = "nacked"
			}
		}
		a.Emit("outcome", fields)
	}()
	return kit.Fields{"outcome": "sent", "key": nil, "meta": kit.Fields{}}, nil
}

func subscribe(s *session, c *kit.Call) (any, error) {
	options := struct{ Way string }{Way: "channel"}
	if err := c.Options(&options); err != nil {
		return nil, err
	}
	sub, err := a.Subscribed(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited(c)
	defer cancel()
	begin := map[string]func(context.Context, ...string) *redis.PubSub{"channel": s.client.Subscribe,
		"pattern": s.client.PSubscribe, "shard": s.client.SSubscribe}[options.Way]
	made := begin(ctx, c.Args.Target)
	s.mutex.Lock()
	s.subs = append(s.subs, made)
	s.mutex.Unlock()
	if _, err := made.Receive(ctx); err != nil {
		made.Close()
		return nil, err
	}
	sub.Handle = made
	go func() {
		for message := range made.Channel() {
			meta := kit.Fields{"channel": message.Channel}
			body := kit.Body{[]byte(message.Payload)}
			sub.Deliver(kit.Message{Body: body, More: kit.Fields{"meta": meta}})
		}
	}()
	return nil, nil
}

func unsubscribe(c *kit.Call) (any, error) {
	sub, err := a.Subscription(c.Args.Sub)
	if err != nil {
		return nil, err
	}
	return nil, sub.Handle.(*redis.PubSub).Close()
}

// wordsOf reads a command: text, or bodies.
func wordsOf(given []json.RawMessage) ([]any, error) {
	words := []any{}
	for _, each := range given {
		var text string
		if json.Unmarshal(each, &text) == nil {
			words = append(words, text)
			continue
		}
		var body kit.Body
		if err := json.Unmarshal(each, &body); err != nil {
			return nil, kit.Fail("invalid", err.Error())
		}
		words = append(words, body.Bytes())
	}
	return words, nil
}

func call(s *session, c *kit.Call) (any, error) {
	asked := struct{ Words []json.RawMessage }{}
	if err := c.Decode(&asked); err != nil {
		return nil, err
	}
	words, err := wordsOf(asked.Words)
	if err != nil {
		return nil, err
	}
	ctx, cancel := limited(c)
	defer cancel()
	name, _ := words[0].(string)
	if name = strings.ToUpper(name); name == "BLPOP" || name == "BRPOP" { // whose time-out the library has to know
		seconds, _ := strconv.ParseFloat(words[len(words)-1].(string), 64)
		keys := []string{}
		for _, each := range words[1 : len(words)-1] {
			keys = append(keys, each.(string))
		}
		pop := map[string]func(context.Context, time.Duration, ...string) *redis.StringSliceCmd{
			"BLPOP": s.client.BLPop, "BRPOP": s.client.BRPop}[name]
		found, err := pop(ctx, time.Duration(seconds*float64(time.Second)), keys...).Result()
		if errors.Is(err, redis.Nil) {
			return kit.Fields{"value": nil}, nil
		}
		return kit.Fields{"value": valueOf(found)}, err
	}
	value, err := s.client.Do(ctx, words...).Result()
	if errors.Is(err, redis.Nil) {
		return kit.Fields{"value": nil}, nil
	}
	return kit.Fields{"value": valueOf(value)}, err
}

func pipeline(s *session, c *kit.Call) (any, error) {
	asked := struct{ Commands [][]json.RawMessage }{}
	if err := c.Decode(&asked); err != nil {
		return nil, err
	}
	ctx, cancel := limited(c)
	defer cancel()
	pipe := s.client.Pipeline()
	commands := []*redis.Cmd{}
	for _, given := range asked.Commands {
		words, err := wordsOf(given)
		if err != nil {
			return nil, err
		}
		commands = append(commands, pipe.Do(ctx, words...))
	}
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	results := []kit.Fields{}
	for _, each := range commands {
		value, err := each.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			results = append(results, kit.Fields{"error": codeOf(err)})
			continue
		}
		results = append(results, kit.Fields{"value": valueOf(value)})
	}
	return kit.Fields{"results": results}, nil
}

func valueOf(value any) any {
	switch found := value.(type) {
	case string:
		return kit.Body{[]byte(found)}
	case int64:
		return kit.Int(found)
	case []string:
		all := []any{}
		for _, each := range found {
			all = append(all, valueOf(each))
		}
		return all
	case []any:
		all := []any{}
		for _, each := range found {
			all = append(all, valueOf(each))
		}
		return all
	case error:
		return kit.Fields{"error": codeOf(found)}
	}
	return value
}

func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func codeOf(err error) string {
	if found := word.FindString(err.Error()); found != "" {
		return found
	}
	return "ERR"
}

func classify(err error) *kit.Failure {
	var timeout net.Error
	switch {
	case errors.Is(err, redis.ErrClosed):
		return kit.Fail("closed", err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout):
		return kit.Fail("timeout", err.Error())
	case isReply(err):
		failure := kit.Fail("refused", err.Error())
		failure.Code = codeOf(err)
		if code := failure.Code; code == "NOAUTH" || code == "WRONGPASS" || code == "NOPERM" {
			failure.Kind = "auth"
		}
		return failure
	case strings.HasPrefix(err.Error(), "redis: can't parse"), strings.HasPrefix(err.Error(), "redis: invalid"):
		return kit.Fail("protocol", err.Error())
	case errors.As(err, &timeout) && timeout.Timeout():
		return kit.Fail("timeout", err.Error())
	}
	return kit.Classify(err)
}

func clear() {
	mutex.Lock()
	defer mutex.Unlock()
	for _, each := range sessions {
		go each.close()
	}
	sessions = map[string]*session{}
}
