// Package kit is the adapter's side of the protocol of fakebrokers: everything but the library, on the standard
// library alone. The protocol is described in ADAPTER.md of fakebrokers.
//
//	a := kit.New(kit.Facts{Adapter: "mine", Library: "mylib", Protocols: []string{"rabbitmq-stream"}})
//	a.Op("connect", func(c *kit.Call) (any, error) { ... })
//	a.Run()
//
// An op returns its `result` object, or a *Failure, or whatever error the library gave. It runs on a goroutine of
// its own and may block. Nothing is recovered: a panic of the library ends the process, as it does for its users.
package kit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const version = 1

// Fields are the members of a JSON object.
type Fields map[string]any

// Facts are what hello says about the adapter and its library.
type Facts struct {
	Adapter   string   `json:"adapter"`
	Library   string   `json:"library"`
	Version   string   `json:"library_version"` // see ModuleVersion
	Protocols []string `json:"protocols"`
	Roles     []string `json:"roles"`
	Caps      Fields   `json:"caps"`     // capabilities: true, or what ADAPTER.md says; "mol.call.node": false
	Limits    Fields   `json:"limits"`   // time-outs that do not follow `timeout_ms`, and other bounds
	Settles   string   `json:"settles"`  // "auto", "manual" or "none", the default
	Restart   string   `json:"restart"`  // "per_scenario" where the library leaves goroutines that nobody can end
	Contract  Fields   `json:"contract"` // what the library may do besides; see ADAPTER.md
	Formats   []string `json:"formats"`  // how a body becomes a record, such as "raw" or "amqp"
	Callbacks []string `json:"-"`        // the kinds that end with Trip, where Caps has callback_raise

	Transporters []string `json:"transporters,omitempty"` // moleculer: what carries its packets ...
	Serializers  []string `json:"serializers,omitempty"`  // ... and how they are written
}

// with is a copy of some fields and more.
func with(fields, more Fields) Fields {
	all := Fields{}
	maps.Copy(all, fields)
	maps.Copy(all, more)
	return all
}

// Op carries out one kind of request.
type Op func(c *Call) (any, error)

// Adapter serves requests; fill in Classify and Clear where the library needs it.
type Adapter struct {
	Classify func(err error) *Failure // what the library's errors mean; ends with kit.Classify
	Clear    func()                   // part of reset: forget the sessions, fast; sockets are shut down by the kit

	facts   Facts
	ops     map[string]Op
	ordered map[string]bool
	begun   time.Time

	mutex sync.Mutex // of everything below
	lines int
	refs  int
	open  map[int64]*Call
	subs  map[string]*Subscription
	armed map[string]int
}

// New makes an adapter that knows hello, echo, next, stats, reset and shutdown.
func New(facts Facts) *Adapter {
	facts.Caps = with(facts.Caps, Fields{"concurrent": true, "stats": true})
	facts.Limits = with(facts.Limits, nil)
	facts.Contract = with(facts.Contract, nil)
	facts.Settles, facts.Restart = cmp.Or(facts.Settles, "none"), cmp.Or(facts.Restart, "never")
	facts.Roles, facts.Formats = append([]string{}, facts.Roles...), append([]string{}, facts.Formats...)
	a := &Adapter{Classify: Classify, Clear: func() {}, facts: facts, ops: map[string]Op{},
		ordered: map[string]bool{}, begun: time.Now(), open: map[int64]*Call{}, subs: map[string]*Subscription{},
		armed: map[string]int{}}
	a.Op("hello", a.hello)
	a.Op("echo", func(c *Call) (any, error) { return Fields{"body": c.Args.Body}, nil })
	a.Op("next", func(c *Call) (any, error) {
		sub, err := a.Subscription(c.Args.Sub)
		if err != nil {
			return nil, err
		}
		return Fields{"messages": sub.take(c.Args.Max, milliseconds(c.Args.WaitMS))}, nil
	})
	a.Op("stats", func(*Call) (any, error) { return Fields{"tasks": runtime.NumGoroutine()}, nil })
	a.Op("reset", a.reset)
	a.Op("shutdown", a.reset)
	if a.facts.Caps["callback_raise"] == true {
		a.Op("raise_next", a.raiseNext)
	}
	return a
}

// ErrRaised is what a callback ends with because the script ordered it.
var ErrRaised = errors.New("raised, as the script ordered")

// Trip is ErrRaised if raise_next armed this kind of callback. Call it last in each callback of a library whose
// callbacks return an error, and return what it says; or panic with it, if the library recovers from that.
func (a *Adapter) Trip(callback string) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.armed[callback] == 0 {
		return nil
	}
	a.armed[callback]--
	return ErrRaised
}

func (a *Adapter) raiseNext(c *Call) (any, error) {
	asked := struct {
		Callback string
		Times    int
	}{Times: 1}
	if err := c.Decode(&asked); err != nil {
		return nil, err
	}
	can := slices.Contains(a.facts.Callbacks, asked.Callback)
	if can {
		a.mutex.Lock()
		a.armed[asked.Callback] = asked.Times
		a.mutex.Unlock()
	}
	return Fields{"armed": can}, nil
}

// Op adds an op. Only ops that were added are declared in the hello.
func (a *Adapter) Op(name string, op Op) { a.ops[name] = op }

// Ordered adds an op that hands something to the library in line order: no later op begins before this one has
// called c.Begun or has ended. Take a turn before Begun if the handing over itself may block; see Turns.
func (a *Adapter) Ordered(name string, op Op) {
	a.Op(name, op)
	a.ordered[name] = true
}

// Args are the members of `args` that most ops have; Call.Decode reads others. Wait and Max are filled in.
type Args struct {
	Session   string
	Endpoints json.RawMessage // see Call.Endpoints
	Options   json.RawMessage // see Call.Options
	Roles     []string
	Target    string
	Targets   []string
	Name      string
	Body      Body
	Key       json.RawMessage // a number, or bytes; see Call.Number and Call.KeyBytes
	Headers   Fields
	Messages  []struct {
		Body    Body
		Key     *Int
		Headers Fields
	}
	Wait     bool
	Subentry string
	Sub      string
	Max      int
	WaitMS   float64 `json:"wait_ms"`
	Offset   Int
}

type request struct {
	ID        int64
	Op        string
	Args      json.RawMessage
	TimeoutMS *float64 `json:"timeout_ms"`
}

// Call is one request.
type Call struct {
	request
	Args    Args
	Timeout time.Duration // 0: the request has none
	begun   func()
}

// Begun lets the ops behind an ordered one begin. Calling it again is harmless.
func (c *Call) Begun() { c.begun() }

// Decode reads members of `args` that Args does not have.
func (c *Call) Decode(into any) error { return invalid(json.Unmarshal(c.request.Args, into)) }

// Options reads `options` into a struct, whose values stay where a member is left out.
func (c *Call) Options(into any) error {
	if c.Args.Options == nil {
		return nil
	}
	return invalid(json.Unmarshal(c.Args.Options, into))
}

// Endpoints is the list of "host:port".
func (c *Call) Endpoints() (endpoints []string, err error) {
	return endpoints, invalid(json.Unmarshal(c.Args.Endpoints, &endpoints))
}

// Number is a key that is a number; nil without one.
func (c *Call) Number() (number *Int, err error) {
	if c.Args.Key == nil {
		return nil, nil
	}
	return number, invalid(json.Unmarshal(c.Args.Key, &number))
}

// KeyBytes is a key that is text or a body; nil without one.
func (c *Call) KeyBytes() ([]byte, error) {
	var text string
	if c.Args.Key == nil || string(c.Args.Key) == "null" {
		return nil, nil
	}
	if json.Unmarshal(c.Args.Key, &text) == nil {
		return []byte(text), nil
	}
	var body Body
	err := json.Unmarshal(c.Args.Key, &body)
	return body.Bytes(), invalid(err)
}

func invalid(err error) error {
	if err == nil {
		return nil
	}
	return Fail("invalid", err.Error())
}

// Emit writes an event line; from any goroutine.
func (a *Adapter) Emit(event string, fields Fields) {
	a.write(with(fields, Fields{"event": event}))
}

// NextRef is a new message reference.
func (a *Adapter) NextRef() string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.refs++
	return "m" + strconv.Itoa(a.refs)
}

// Subscribed keeps a new subscription under its name. Messages may come before the library has said yes.
func (a *Adapter) Subscribed(c *Call) (*Subscription, error) {
	args := struct {
		OnMessage plan `json:"on_message"`
	}{}
	if err := c.Decode(&args); err != nil {
		return nil, err
	}
	sub := &Subscription{adapter: a, sub: c.Args.Sub, target: c.Args.Target, plan: args.OnMessage,
		native: map[string]any{}, filled: make(chan struct{})}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.subs[c.Args.Sub] = sub
	return sub, nil
}

// Subscription is the one of that name, or a Failure (closed).
func (a *Adapter) Subscription(name string) (*Subscription, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if sub, found := a.subs[name]; found {
		return sub, nil
	}
	return nil, Fail("closed", "no subscription "+strconv.Quote(name)).Surely()
}

// attempt carries out one op: `ok` and `result`, or `error`.
func (a *Adapter) attempt(c *Call) Fields {
	op, found := a.ops[c.Op]
	if !found {
		return Fields{"ok": false, "error": Fail("unsupported", "no op "+strconv.Quote(c.Op))}
	}
	c.Args = Args{Wait: true, Max: 1}
	if c.request.Args != nil {
		if err := c.Decode(&c.Args); err != nil {
			return Fields{"ok": false, "error": err}
		}
	}
	result, err := op(c)
	if err != nil {
		return Fields{"ok": false, "error": a.classified(err)}
	}
	if result == nil {
		result = Fields{}
	}
	return Fields{"ok": true, "result": result}
}

// classified asks Classify. If that panics, it is a bug of the adapter and not of the library.
func (a *Adapter) classified(err error) *Failure {
	defer func() {
		if bug := recover(); bug != nil {
			fmt.Fprintln(os.Stderr, string(debug.Stack()))
			fmt.Fprintln(os.Stderr, "Classify panicked:", bug)
			leave(ownBug)
		}
	}()
	return a.Classify(err)
}

// receive starts one request on a goroutine of its own, and returns when it has begun.
func (a *Adapter) receive(r request) {
	begun := make(chan struct{})
	var once sync.Once
	call := &Call{request: r, begun: func() { once.Do(func() { close(begun) }) }}
	if r.TimeoutMS != nil {
		call.Timeout = milliseconds(*r.TimeoutMS)
	}
	a.mutex.Lock()
	a.open[r.ID] = call
	a.mutex.Unlock()
	go func() {
		if !a.ordered[r.Op] {
			call.Begun()
		}
		a.answer(call, a.attempt(call))
		call.Begun()
	}()
	<-begun
}

// answer writes the answer to a request, unless reset has done that already.
func (a *Adapter) answer(c *Call, answer Fields) {
	a.mutex.Lock()
	_, due := a.open[c.ID]
	delete(a.open, c.ID)
	a.mutex.Unlock()
	if !due {
		return
	}
	answer["id"] = c.ID
	if c.Op == "hello" || c.Op == "reset" {
		writeCoverage()
	}
	a.write(answer)
	if c.Op == "shutdown" {
		leave(0)
	}
}

func (a *Adapter) hello(c *Call) (any, error) {
	var asked struct {
		Version  int
		Protocol string
	}
	if err := c.Decode(&asked); err != nil {
		return nil, err
	}
	if asked.Version != version || !slices.Contains(a.facts.Protocols, asked.Protocol) {
		return nil, Fail("unsupported", "version 1 for "+strings.Join(a.facts.Protocols, ", ")+" only")
	}
	return struct {
		Facts
		Number   int      `json:"version"`
		Language string   `json:"language"`
		Runtime  string   `json:"runtime"`
		Ops      []string `json:"ops"`
	}{a.facts, version, "go", runtime.Version(), slices.Sorted(maps.Keys(a.ops))}, nil
}

// ModuleVersion is the version of a module that this program was built with, without its "v".
func ModuleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "unknown"
}

// Turns lets those who took one go in the order in which they took it.
type Turns struct {
	mutex sync.Mutex
	last  chan struct{}
}

// Take is called before Begun. Wait for the channel behind Begun, and call done when the next one may go.
func (t *Turns) Take() (ready <-chan struct{}, done func()) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	before, mine := t.last, make(chan struct{})
	if before == nil {
		before = make(chan struct{})
		close(before)
	}
	t.last = mine
	return before, sync.OnceFunc(func() { close(mine) })
}
