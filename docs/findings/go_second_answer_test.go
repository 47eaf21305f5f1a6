package fakebrokers

import (
	"testing"
	"time"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

func TestSecondAnswer(t *testing.T) {
	broker := Serve(t, "rabbitmq-stream")
	broker.AddFault(`{"match": {"kind": "OpenResponse"}, "effect": [{"type": "duplicate", "times": 1}, {"type": "coalesce", "frames": 2, "within_s": 0.05}]}`)
	for range 100 {
		environment, err := stream.NewEnvironment(
			stream.NewEnvironmentOptions().SetHost(broker.Host).SetPort(broker.Port))
		if err == nil {
			environment.Close()
		}
	}
	time.Sleep(time.Second)
	t.Log("the process lives")
}
