package fakebrokers

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

// A lost confirm and the stock client: what was sent is stored, and the client says that the third message is not.
func TestTheThirdConfirmIsLost(t *testing.T) {
	broker := Serve(t, "rabbitmq-stream")
	loseTheThirdConfirm(t, broker, broker)
}

// The same in front of a server; a real one in real life.
func TestTheThirdConfirmIsLostInTheProxy(t *testing.T) {
	server := Serve(t, "rabbitmq-stream")
	loseTheThirdConfirm(t, server, Proxy(t, server.URL, "--protocol", "rabbitmq-stream"))
}

// loseTheThirdConfirm uses a client that connects to broker and adds the fault there; server has what is stored.
func loseTheThirdConfirm(t *testing.T, server, broker *Broker) {
	server.Call("create_stream", Values{"name": "orders"}, nil)
	broker.AddFault(`{"name": "lost", "match": {"role": "confirm", "nth": 3}, "effect": {"type": "drop"}}`)
	environment, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetHost(broker.Host).SetPort(broker.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer environment.Close()
	options := stream.NewProducerOptions().SetConfirmationTimeOut(5 * time.Second)
	producer, err := environment.NewProducer("orders", options)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := producer.NotifyPublishConfirmation()
	for number, body := range []string{"tea", "milk", "salt", "rice"} {
		if err := producer.Send(amqp.NewMessage([]byte(body))); err != nil {
			t.Fatal(err)
		}
		broker.WaitFor("PublishConfirm", number+1, time.Minute)
	}
	told := map[string]bool{}
	for len(told) < 4 {
		select {
		case batch := <-outcomes:
			for _, status := range batch {
				told[string(status.GetMessage().GetData()[0])] = status.IsConfirmed()
			}
		case <-time.After(time.Minute):
			t.Fatalf("no outcome of all four messages: %v", told)
		}
	}
	if !reflect.DeepEqual(told, map[string]bool{"tea": true, "milk": true, "salt": false, "rice": true}) {
		t.Errorf("confirmed: %v", told)
	}
	var stored []any
	server.Ask("messages", url.Values{"name": {"orders"}}, &stored)
	if len(stored) != 4 {
		t.Errorf("expected four stored messages, got %v", stored)
	}
	faults := []string{}
	for _, record := range broker.Journal(url.Values{"kind": {"PublishConfirm"}, "tap": {"said"}}) {
		faults = append(faults, record.Fault)
	}
	if !reflect.DeepEqual(faults, []string{"", "", "lost", ""}) || broker.Fired("lost") != 1 {
		t.Errorf("faults of the confirms: %q", faults)
	}
	broker.CheckFaults()
	broker.Reset()
	if records := broker.Journal(nil); len(records) > 0 {
		t.Errorf("expected an empty journal behind a reset, got %v", records)
	}
}

// judged is a test that notes that it failed instead of failing.
type judged struct {
	testing.TB
	said []string
}

func (j *judged) Helper() {}

func (j *judged) Errorf(format string, values ...any) { j.said = append(j.said, format) }

func (j *judged) Fatal(values ...any) {
	j.said = append(j.said, values[0].(string))
	panic(j)
}

func TestAFaultThatNeverTookPlaceIsTold(t *testing.T) {
	broker := Serve(t, "pzq")
	broker.AddFault(`{"name": "never", "match": {"role": "confirm"}, "effect": {"type": "drop"}}`)
	test := &judged{TB: t}
	broker.t = test
	broker.CheckFaults()
	if len(test.said) != 1 || !strings.Contains(test.said[0], "never took place") {
		t.Errorf("said: %q", test.said)
	}
}

func TestWhatIsRefusedSaysWhereAndWhy(t *testing.T) {
	broker := Serve(t, "pzq")
	test := &judged{TB: t}
	broker.t = test
	defer func() {
		if recover() != test || !strings.Contains(test.said[0], "400 body.match.rol: expected one of") {
			t.Errorf("said: %q", test.said)
		}
	}()
	broker.AddFault(`{"match": {"rol": "confirm"}, "effect": {"type": "drop"}}`)
}
