// rabbitmq-stream-go-client (https://github.com/rabbitmq/rabbitmq-stream-go-client) behind the adapter protocol.
//
// A session is one Environment, with a Producer for each target and name. The library reconnects what it asks the
// broker with (its "locator") and no Producer or Consumer; those of its package `ha`, which do, are not used here.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"fakebrokers/kit"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

const library = "github.com/rabbitmq/rabbitmq-stream-go-client"

type session struct {
	env        *stream.Environment
	listen     bool
	ended      atomic.Bool
	mutex      sync.Mutex
	publishers map[[5]string]*publisher
	name       string
}

var (
	a = kit.New(kit.Facts{
		Adapter:   "rabbitmq-stream-go",
		Library:   library,
		Version:   kit.ModuleVersion(library),
		Protocols: []string{"rabbitmq-stream"},
		Roles:     []string{"publisher", "consumer", "admin"},
		Formats:   []string{"amqp"},
		Restart:   "per_scenario", // the library tries without end to reconnect its locator
		Caps: kit.Fields{"ack_timeout": true, "callback_sleep": true, "crc": true, "endpoints": true,
			"auto_reconnect": []string{"locator"}, "filters": true, "named_publisher": true, "offset_without_consumer": true, "properties": true, "reentrant": true,
			"sac": true, "subentry": true, "super_streams": true, "tls": true, "tracking": true},
		// the environment has a connection for each role, which it drops when it has no user any more
		Contract: kit.Fields{"stores_positions": false, "pipelines": false, "takes_existing": false,
			"skips_damaged": false, "beats_late": false, "reads_odd": false},
		// Time-outs belong to the Environment and to the Producer, and are left as they are: 10 s. A ticker of that
		// period looks for overdue confirms, so a message is told 10 to 20 s after it was sent.
		Limits: kit.Fields{"heartbeat_min_s": 3, "connect_timeout_ms": 10_000, "request_timeout_ms": 10_000,
			"publish_timeout_ms": 20_000, "close_timeout_ms": 10_000},
	})
	mutex    sync.Mutex
	sessions = map[string]*session{}
)

func main() {
	a.Classify = classify
	a.Clear = clear
	a.Op("connect", connect)
	a.Op("state", state)
	a.Op("close", closeSession)
	a.Ordered("publish", publish)
	a.Ordered("publish_many", publishMany)
	a.Op("subscribe", subscribe)
	a.Op("unsubscribe", unsubscribe)
	admin()
	a.Run()
}

type connectOptions struct {
	User, Password, Vhost, Mechanism string
	FrameMax                         *int     `json:"frame_max"`
	HeartbeatS                       *float64 `json:"heartbeat_s"`
	Listen                           bool
	TLS                              *struct {
		CA   string `json:"ca_file"`
		Name string `json:"server_name"`
	}
}

func connect(c *kit.Call) (any, error) {
	wanted := connectOptions{User: "guest", Password: "guest", Vhost: "/", Listen: true}
	if err := c.Options(&wanted); err != nil {
		return nil, err
	}
	endpoints, err := c.Endpoints()
	if err != nil {
		return nil, err
	}
	options := stream.NewEnvironmentOptions()
	for _, endpoint := range endpoints {
		host, port, _ := net.SplitHostPort(endpoint)
		options.ConnectionParameters = append(options.ConnectionParameters, &stream.Broker{
			Host: host, Port: port, User: wanted.User, Password: wanted.Password, Vhost: wanted.Vhost})
	}
	if wanted.TLS != nil {
		trusted, err := tlsConfig(wanted.TLS.CA, wanted.TLS.Name, options.ConnectionParameters[0].Host)
		if err != nil {
			return nil, err
		}
		options.IsTLS(true).SetTLSConfig(trusted)
	}
	if wanted.Mechanism != "" {
		options.SetSaslConfiguration(wanted.Mechanism)
	}
	if wanted.FrameMax != nil {
		options.SetRequestedMaxFrameSize(*wanted.FrameMax)
	}
	if wanted.HeartbeatS != nil {
		options.SetRequestedHeartbeat(time.Duration(*wanted.HeartbeatS * float64(time.Second)))
	}
	env, err := stream.NewEnvironment(options)
	if err != nil {
		return nil, err
	}
	mutex.Lock()
	defer mutex.Unlock()
	sessions[c.Args.Session] = &session{
		env: env, name: c.Args.Session, listen: wanted.Listen, publishers: map[[5]string]*publisher{}}
	return nil, nil
}

func tlsConfig(file, name, host string) (*tls.Config, error) {
	config := &tls.Config{ServerName: name}
	if name == "" {
		config.ServerName = host
	}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, kit.Fail("invalid", err.Error())
		}
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(text)
	}
	return config, nil
}

func of(c *kit.Call) (*session, error) {
	mutex.Lock()
	defer mutex.Unlock()
	if found := sessions[c.Args.Session]; found != nil {
		return found, nil
	}
	return nil, kit.Fail("closed", "no session "+strconv.Quote(c.Args.Session)).Surely()
}

func state(c *kit.Call) (any, error) {
	s, err := of(c)
	return kit.Fields{"open": err == nil && !s.env.IsClosed(), "pending": nil}, nil
}

func closeSession(c *kit.Call) (any, error) {
	s, err := of(c)
	if err != nil {
		return nil, err
	}
	s.ended.Store(true)
	return nil, s.env.Close()
}

// clear leaves the goroutines of the library to the end of their sockets.
func clear() {
	mutex.Lock()
	defer mutex.Unlock()
	for _, s := range sessions {
		s.ended.Store(true)
	}
	sessions = map[string]*session{}
}

// report tells why the library closed a Producer or a Consumer, unless the script asked for it.
func (s *session) report(closed stream.ChannelClose) {
	for event := range closed {
		s.tell(event)
	}
}

// tell reports the end of one Producer or Consumer.
func (s *session) tell(event stream.Event) {
	if s.listen {
		what := map[string]string{stream.SocketClosed: "connection_lost", stream.MetaDataUpdate: "target_closed"}[event.Reason]
		if what != "" && !s.ended.Load() {
			a.Emit("session", kit.Fields{"session": s.name, "what": what, "text": event.Reason,
				"targets": []string{event.StreamName}})
		}
	}
}

// keyOf tells publishers apart.
func keyOf(c *kit.Call) [5]string {
	wanted, _ := wishesOf(c)
	return [5]string{c.Args.Target, c.Args.Name, c.Args.Subentry, wanted.Routing.By, strconv.FormatBool(wanted.Filtered)}
}

// publisher is the one for a target, a name and a kind of batch.
func (s *session) publisher(c *kit.Call) *publisher {
	key := keyOf(c)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.publishers[key] == nil {
		s.publishers[key] = &publisher{waiting: map[message.StreamMessage]chan *stream.ConfirmationStatus{}}
	}
	return s.publishers[key]
}

// forget lets the next op declare anew.
func (s *session) forget(c *kit.Call) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.publishers, keyOf(c))
}

// inTurn does something with a publisher, in line order; it is declared where there is none.
func inTurn(c *kit.Call, do func(p *publisher) error) error {
	s, err := of(c)
	if err != nil {
		return err
	}
	p := s.publisher(c)
	ready, done := p.turns.Take()
	defer done()
	c.Begun()
	<-ready
	if err := p.declare(s, c); err != nil {
		s.forget(c)
		return err
	}
	return do(p)
}

func send(c *kit.Call, messages ...message.StreamMessage) (ends []<-chan *stream.ConfirmationStatus, err error) {
	err = inTurn(c, func(p *publisher) (err error) {
		wanted, err := wishesOf(c)
		if err == nil {
			ends, err = p.publish(messages, c.Args.Subentry != "", wanted.Routing.Key)
		}
		return err
	})
	return ends, err
}

func publish(c *kit.Call) (any, error) {
	key, err := c.Number()
	if err != nil {
		return nil, err
	}
	ends, err := send(c, record(c.Args.Body, key, c.Args.Headers))
	if err != nil {
		return nil, err
	}
	if !c.Args.Wait {
		go tell(c.ID, ends)
		return kit.Fields{"outcome": "sent", "key": nil, "meta": kit.Fields{}}, nil
	}
	status := <-ends[0]
	if err := failure(status); err != nil {
		return nil, err
	}
	return kit.Fields{"outcome": "acked", "key": kit.Int(status.GetPublishingId()), "meta": kit.Fields{}}, nil
}

func publishMany(c *kit.Call) (any, error) {
	messages := make([]message.StreamMessage, len(c.Args.Messages))
	for i, m := range c.Args.Messages {
		messages[i] = record(m.Body, m.Key, m.Headers)
	}
	ends, err := send(c, messages...)
	if err != nil {
		return nil, err
	}
	if c.Args.Wait {
		return kit.Fields{"outcomes": tell(c.ID, ends)}, nil
	}
	go tell(c.ID, ends)
	outcomes := make([]kit.Fields, len(ends))
	for i := range ends {
		outcomes[i] = kit.Fields{"outcome": "sent", "key": nil}
	}
	return kit.Fields{"outcomes": outcomes}, nil
}

// tell waits for the outcomes and writes an event for each.
func tell(id int64, ends []<-chan *stream.ConfirmationStatus) []kit.Fields {
	outcomes := make([]kit.Fields, len(ends))
	for i, end := range ends {
		outcomes[i] = outcome(<-end)
		event := kit.Fields{"id": id}
		for name, value := range outcomes[i] {
			event[name] = value
		}
		a.Emit("outcome", event)
	}
	return outcomes
}

type subscribeOptions struct {
	Offset struct {
		Type  string
		Value kit.Int
	}
	Credit      int16
	Name        string
	Properties  map[string]string
	SuperStream bool `json:"super_stream"`
	Filter      *struct {
		Values     []string
		Unfiltered bool
	}
	Tracking struct {
		By    string
		Every int
	}
}

func (o subscribeOptions) consumer() string {
	if o.Name == "" {
		return o.Properties["name"]
	}
	return o.Name
}

func (o subscribeOptions) isSingle() bool { return o.Properties["single-active-consumer"] == "true" }

// filter has the predicate that the library asks of its users; nil where none is wanted.
func (o subscribeOptions) filter() *stream.ConsumerFilter {
	if o.Filter == nil {
		return nil
	}
	return stream.NewConsumerFilter(o.Filter.Values, o.Filter.Unfiltered, func(m *amqp.Message) bool {
		value := filterValueOf(m.Data)
		return value == "" && o.Filter.Unfiltered || slices.Contains(o.Filter.Values, value)
	})
}

func subscribe(c *kit.Call) (any, error) {
	wanted := subscribeOptions{}
	wanted.Offset.Type = "first"
	if err := c.Options(&wanted); err != nil {
		return nil, err
	}
	s, err := of(c)
	if err != nil {
		return nil, err
	}
	sub, err := a.Subscribed(c)
	if err != nil {
		return nil, err
	}
	start := map[string]stream.OffsetSpecification{
		"first": stream.OffsetSpecification{}.First(), "last": stream.OffsetSpecification{}.Last(),
		"next": stream.OffsetSpecification{}.Next(), "offset": stream.OffsetSpecification{}.Offset(int64(wanted.Offset.Value)),
		"timestamp": stream.OffsetSpecification{}.Timestamp(int64(wanted.Offset.Value)),
	}[wanted.Offset.Type]
	if wanted.SuperStream {
		return nil, subscribeAll(c, s, sub, wanted, start)
	}
	options := stream.NewConsumerOptions().SetOffset(start).SetConsumerName(wanted.consumer()).SetFilter(wanted.filter())
	if wanted.Credit != 0 {
		options.SetInitialCredits(wanted.Credit)
	}
	if wanted.Tracking.By == "library" {
		strategy := stream.NewAutoCommitStrategy()
		if wanted.Tracking.Every != 0 {
			strategy.SetCountBeforeStorage(wanted.Tracking.Every)
		}
		options.SetAutoCommit(strategy)
	}
	if wanted.isSingle() {
		options.SetSingleActiveConsumer(stream.NewSingleActiveConsumer(
			func(string, bool) stream.OffsetSpecification { return start }))
	}
	consumer, err := s.env.NewConsumer(c.Args.Target, func(context stream.ConsumerContext, m *amqp.Message) {
		sub.Deliver(kit.Message{Body: m.Data, Headers: m.ApplicationProperties,
			Position: strconv.FormatInt(context.Consumer.GetOffset(), 10)})
	}, options)
	if err != nil {
		return nil, err
	}
	if s.listen {
		go s.report(consumer.NotifyClose()) // the library has no way to ask for it before
	}
	sub.Handle = consumer
	return nil, nil
}

func unsubscribe(c *kit.Call) (any, error) {
	sub, err := a.Subscription(c.Args.Sub)
	if err != nil {
		return nil, err
	}
	consumer, ready := sub.Handle.(interface{ Close() error })
	if !ready {
		return nil, kit.Fail("closed", "not subscribed").Surely()
	}
	return nil, consumer.Close()
}
