package kit

import (
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Subscription does with messages what the script wants (`on_message`).
type Subscription struct {
	Handle  any // whatever the library has for the subscription
	adapter *Adapter
	sub     string
	target  string
	plan    plan
	mutex   sync.Mutex
	count   int
	native  map[string]any
	buffer  []Fields
	filled  chan struct{}
}

type plan struct {
	Mode       string
	AutoSettle string    `json:"auto_settle"`
	SleepMS    float64   `json:"sleep_ms"`
	SleepOn    []int     `json:"sleep_on"`
	RaiseOn    []int     `json:"raise_on"`
	Do         []request `json:"do"`
}

// Message is what Deliver reports.
type Message struct {
	Body     Body
	Position any
	Headers  Fields
	TS       any
	Native   any    // what the library needs to settle it; see Subscription.Native
	More     Fields // redelivered, key, meta
}

// Deliver reports one message and does what the script wants. Call it inside the library's callback, and return the
// error where the library's callbacks do, or panic with it where the library recovers from that.
func (s *Subscription) Deliver(message Message) error {
	s.mutex.Lock()
	s.count++
	ordinal, ref := s.count, s.adapter.NextRef()
	line := with(Fields{"ref": ref, "sub": s.sub, "target": s.target, "body": message.Body, "ts": message.TS,
		"position": message.Position, "headers": with(message.Headers, nil), "redelivered": nil, "meta": Fields{}}, message.More)
	if message.Native != nil {
		s.native[ref] = message.Native
	}
	if s.plan.Mode == "event" {
		s.adapter.Emit("message", line)
	} else {
		s.buffer = append(s.buffer, line)
		close(s.filled)
		s.filled = make(chan struct{})
	}
	s.mutex.Unlock()

	sleeps := s.plan.SleepMS > 0 && (s.plan.SleepOn == nil || slices.Contains(s.plan.SleepOn, ordinal))
	if sleeps {
		time.Sleep(milliseconds(s.plan.SleepMS))
	}
	wanted := slices.Clone(s.plan.Do)
	if s.plan.AutoSettle == "ack" {
		args, _ := json.Marshal(Fields{"sub": s.sub, "ref": ref, "how": "ack"})
		wanted = append(wanted, request{Op: "settle", Args: args})
	}
	for index, inner := range wanted {
		answer := s.adapter.attempt(&Call{request: inner, begun: func() {}})
		s.adapter.Emit("done", with(answer, Fields{"sub": s.sub, "ref": ref, "index": index, "op": inner.Op}))
	}
	if s.plan.AutoSettle == "ack" {
		s.mutex.Lock()
		delete(s.native, ref)
		s.mutex.Unlock()
	}
	var raised error
	if slices.Contains(s.plan.RaiseOn, ordinal) {
		raised = ErrRaised
	} else {
		raised = s.adapter.Trip("message")
	}
	if sleeps || len(s.plan.Do) > 0 {
		s.adapter.Emit("returned", Fields{"sub": s.sub, "ref": ref, "raised": raised != nil})
	}
	return raised
}

// Native is what the library needs to settle a message, by its ref. It is kept, as scripts may settle twice, except
// where `auto_settle` leaves the script nothing to settle.
func (s *Subscription) Native(ref string) (any, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if native, found := s.native[ref]; found {
		return native, nil
	}
	return nil, Fail("invalid", "no message "+ref+" to settle")
}

// take gives up to max buffered messages: at once if there are any, else when one comes within the time.
func (s *Subscription) take(max int, wait time.Duration) []Fields {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.buffer) == 0 {
		filled := s.filled
		s.mutex.Unlock()
		select {
		case <-filled:
		case <-time.After(wait):
		}
		s.mutex.Lock()
	}
	taken := s.buffer[:min(max, len(s.buffer))]
	s.buffer = s.buffer[len(taken):]
	return append([]Fields{}, taken...)
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
